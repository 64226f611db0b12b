// `ralph history`: every iteration of a run.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { respond } from './context.ts'

export function addHistory(program: Command, context: Context): void {
  program
    .command('history')
    .description('every iteration: story, attempt, verdict, duration, tokens')
    .argument('[change]', 'may be left out when there is only one')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph history add-login')
    .action(async (change, { json }) => {
      const app = await context.app()
      const history = await app.history(change)
      await respond(context, json, history, async (paint) => {
        const { historyText } = await import('../print/history.ts')
        return historyText(history, paint)
      })
    })
}
