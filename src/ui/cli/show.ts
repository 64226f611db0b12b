// `ralph show`: one change with its stories, tasks and scenarios.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { respond } from './context.ts'

export function addShow(program: Command, context: Context): void {
  program
    .command('show')
    .description('one change: stories, tasks, scenarios')
    .argument('<change>')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph show add-login')
    .action(async (change, { json }) => {
      const app = await context.app()
      const detail = await app.show(change)
      await respond(context, json, detail, async (paint) => {
        const { showText } = await import('../print/show.ts')
        return showText(detail, paint)
      })
    })
}
