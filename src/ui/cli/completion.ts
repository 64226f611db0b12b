// `ralph completion`: the shell's script, and the hidden command it calls at every Tab.
import type { Command } from '@commander-js/extra-typings'
import { Argument } from '@commander-js/extra-typings'
import type { Offer } from './complete.ts'
import type { Context } from './context.ts'

export function addCompletion(program: Command, context: Context): void {
  program
    .command('completion')
    .description('completion for your shell, change names too')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish'] as const))
    .addHelpText('after', '\nExample:\n  $ source <(ralph completion bash)')
    .action(async (shell) => {
      const { completionScripts } = await import('./completion-scripts.ts')
      context.io.stdout.write(completionScripts[shell])
    })
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action(async (words) => {
      const [{ offers }, { oneLine }] = await Promise.all([
        import('./complete.ts'),
        import('../print/text.ts'),
      ])
      // Commands and flags need no look at the repository: Tab must be quick.
      const changes = words.length > 1 && !words.at(-1)?.startsWith('-') ? await changeNames(context) : []
      const lines = offers(program, words, changes).map(
        ([word, what]) => `${oneLine(word)}\t${oneLine(what)}\n`,
      )
      context.io.stdout.write(lines.join(''))
    })
}

/** Tab must stay silent: outside a repository, or with a broken plan, there are just no names to offer. */
async function changeNames(context: Context): Promise<readonly Offer[]> {
  try {
    const app = await context.app()
    const { changes } = await app.list()
    return changes.map(({ name, title }) => [name, title])
  } catch {
    return []
  }
}
