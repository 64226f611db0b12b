// The whole command line, from the table of commands.
import { Command, Help } from '@commander-js/extra-typings'
import { groups } from './commands.ts'
import type { Context } from './context.ts'

/** Of 80 columns. */
const widestTerm = 28

/** `first`: the first word typed: declaring one command is quicker than declaring all. */
export function buildProgram(context: Context, version: string, first = ''): Command {
  const { stdout, env } = context.io
  const program = new Command('ralph')
    .description(
      'Runs a coding agent over an OpenSpec change, story by story, with checkpoints, gates and retries.\n' +
        'On a terminal, ralph without a command opens the full screen; ralph --no-tui prints plain lines.',
    )
    .version(version, '-v, --version', 'the version')
    .option('-C <dir>', 'run in this folder')
    .helpCommand(false)
    .helpOption('-h, --help', 'show this help')
    .configureHelp({
      // Commander wraps nothing beside long options on a terminal of 80 columns.
      minWidthToWrap: 16,
      // A long term stands on a line of its own, so that the words have room.
      padWidth: (command, helper) =>
        Math.min(widestTerm, Help.prototype.padWidth.call(helper, command, helper)),
      formatItem: (term, width, words, helper) => {
        const item = (text: string): string =>
          Help.prototype.formatItem.call(helper, text, width, words, helper)
        return term.length > width ? `  ${term}\n${item('')}` : item(term)
      },
      subcommandTerm: (command) =>
        [
          [command.name(), ...command.aliases()].join('|'),
          ...command.registeredArguments.map((argument) =>
            argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
          ),
        ].join(' '),
    })
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      // Errors are thrown by exitOverride and said by failure.ts, in words of our own.
      writeErr: () => undefined,
      // As the door chooses among the pages that the build makes of it (main.ts).
      getOutHelpWidth: () => Math.min(stdout.columns || Number(env['COLUMNS']) || 80, 100),
    })
    .addHelpText('after', '\nExample:\n  $ ralph loop add-login --verify "npm test"')
  const only = groups.flatMap(([, rows]) => rows).find(({ names }) => names.includes(first))
  if (only?.isAboutAll === false) {
    only.add(program, context)
    return program
  }
  for (const [heading, rows] of groups) {
    program.commandsGroup(heading)
    for (const { add } of rows) add(program, context)
  }
  return program
}
