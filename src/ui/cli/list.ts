// `ralph list`: the changes, how far each is, and how its loop stands.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { respond } from './context.ts'

export function addList(program: Command, context: Context): void {
  program
    .command('list')
    .description('the changes, with stories, tasks and loop status')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph list')
    .action(async ({ json }) => {
      const app = await context.app()
      const list = await app.list()
      await respond(context, json, list, async (paint) => {
        const { listText } = await import('../print/list.ts')
        return listText(list, paint)
      })
    })
}
