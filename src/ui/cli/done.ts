// `ralph done`: the human's word that a manual loop is done.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { say } from './context.ts'

export function addDone(program: Command, context: Context): void {
  program
    .command('done')
    .description('your word that a manual loop is done')
    .argument('[change]', 'may be left out when only one loop awaits it')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph done add-login')
    .action(async (change, { json }) => {
      const app = await context.app()
      const said = await app.done(change)
      await say(context, json, said)
    })
}
