// `ralph why`: each decision of the last run, with its rule and its inputs.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { respond } from './context.ts'

export function addWhy(program: Command, context: Context): void {
  program
    .command('why')
    .description('each decision of the last run, with its rule and its inputs')
    .argument('[change]', 'may be left out when there is only one')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph why add-login')
    .action(async (change, { json }) => {
      const app = await context.app()
      const decisions = await app.why(change)
      await respond(context, json, decisions, async (paint) => {
        const { whyText } = await import('../print/why.ts')
        return whyText(decisions, paint)
      })
    })
}
