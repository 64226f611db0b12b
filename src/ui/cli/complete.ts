// Answers the shell's Tab: the commands and flags of the program, and the names of the changes.
import tab, { script } from '@bomb.sh/tab'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { agentNames } from '../../config/options.ts'
import type { Context } from './context.ts'

export function completionScript(shell: 'bash' | 'zsh' | 'fish'): void {
  script(shell, 'ralph', 'ralph')
}

export async function complete(
  program: CommandUnknownOpts,
  words: readonly string[],
  context: Context,
): Promise<void> {
  const changes = await changeNames(context)
  for (const command of program.createHelp().visibleCommands(program)) {
    for (const name of [command.name(), ...command.aliases()]) declare(command, name, changes)
  }
  tab.parse([...words])
}

/** Tab must stay silent: outside a repository, or with a broken plan, there are just no names to offer. */
async function changeNames(context: Context): Promise<readonly (readonly [string, string])[]> {
  try {
    const { changes } = await (await context.app()).list()
    return changes.map(({ name, title }) => [name, title])
  } catch {
    return []
  }
}

function declare(
  command: CommandUnknownOpts,
  name: string,
  changes: readonly (readonly [string, string])[],
): void {
  const declared = tab.command(name, command.description())
  for (const option of command.createHelp().visibleOptions(command)) {
    const long = option.long?.slice(2)
    if (long === undefined) continue
    const words = long === 'agent' ? agentNames : (option.argChoices ?? inBrackets(option.flags))
    if (option.required || option.optional) {
      declared.option(long, option.description, (offer) => words.forEach((word) => offer(word, '')))
    } else declared.option(long, option.description)
  }
  for (const argument of command.registeredArguments) {
    declared.argument(argument.name(), (offer) => {
      if (argument.name() === 'change') changes.forEach(([change, title]) => offer(change, title))
      else argument.argChoices?.forEach((choice) => offer(choice, ''))
    })
  }
}

/** `--checkpoint <branch|stash>` */
function inBrackets(flags: string): readonly string[] {
  const inside = /<(.+)>/.exec(flags)?.[1] ?? ''
  return inside.includes('|') ? inside.split('|') : []
}
