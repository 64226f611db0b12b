// `ralph learnings`: what agents have noted for those after them.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { respond } from './context.ts'

export function addLearnings(program: Command, context: Context): void {
  program
    .command('learnings')
    .description('what the agents have noted for one another')
    .argument('[change]', 'may be left out when there is only one')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph learnings add-login')
    .action(async (change, { json }) => {
      const app = await context.app()
      const learnings = await app.learnings(change)
      await respond(context, json, learnings, async () => {
        const { clean } = await import('../print/text.ts')
        return learnings.text === '' ? `nothing noted yet (${learnings.path})` : clean(learnings.text)
      })
    })
}
