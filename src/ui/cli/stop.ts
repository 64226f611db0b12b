// `ralph stop`: asks the running loop to stop and waits until it has.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { say } from './context.ts'

export function addStop(program: Command, context: Context): void {
  program
    .command('stop')
    .description('stop the running loop, and wait until it has stopped')
    .argument('[change]', 'may be left out when only one loop is running')
    .option('--force', 'kill it')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph stop add-login')
    .action(async (change, { force = false, json }) => {
      const app = await context.app()
      const said = await app.stop({ change, force })
      await say(context, json, said)
    })
}
