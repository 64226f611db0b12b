// `ralph help`: the same texts as --help; commander's own help command has no answer for a wrong name.
import type { Command } from '@commander-js/extra-typings'
import { RalphError } from '../../core/error.ts'

export function addHelp(program: Command): void {
  program
    .command('help')
    .description('help for a command')
    .argument('[command]')
    .addHelpText('after', '\nExample:\n  $ ralph help loop')
    .action(async (name) => {
      if (name === undefined) return program.outputHelp()
      const found = program.commands.find((command) => [command.name(), ...command.aliases()].includes(name))
      if (found !== undefined) return found.outputHelp()
      const { nearest } = await import('../../core/nearest.ts')
      const near = nearest(
        name,
        program.commands.map((command) => command.name()),
      )
      throw new RalphError('usage', `unknown command '${name}'`, {
        hint: near === undefined ? 'see: ralph --help' : `did you mean ${near}?`,
        exitCode: 2,
      })
    })
}
