// `ralph restore`: brings an attempt back, into the work tree or another folder.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { say } from './context.ts'
import { iterationNumber } from './number.ts'

export function addRestore(program: Command, context: Context): void {
  program
    .command('restore')
    .description('bring an attempt back')
    .argument('<n>', "the iteration's number", iterationNumber)
    .argument('[change]', 'may be left out when there is only one')
    .option('--to <dir>', 'into this folder instead of the work tree')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph restore 3 --to /tmp/attempt-3')
    .action(async (n, change, { to, json }) => {
      const app = await context.app()
      const said = await app.restore({ change, n, to })
      await say(context, json, said)
    })
}
