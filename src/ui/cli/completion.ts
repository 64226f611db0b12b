// `ralph completion`: the shell's script, and the hidden command it calls at every Tab.
import type { Command } from '@commander-js/extra-typings'
import { Argument } from '@commander-js/extra-typings'
import type { Context } from './context.ts'

export function addCompletion(program: Command, context: Context): void {
  program
    .command('completion')
    .description('completion for your shell, change names too')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish'] as const))
    .addHelpText('after', '\nExample:\n  $ source <(ralph completion bash)')
    .action(async (shell) => {
      const { completionScript } = await import('./complete.ts')
      completionScript(shell)
    })
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .allowUnknownOption()
    .helpOption(false)
    .action(async (words) => {
      const { complete } = await import('./complete.ts')
      await complete(program, words, context)
    })
}
