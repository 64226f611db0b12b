// `ralph clean`: removes kept attempts, and only when asked to.
import type { Command } from '@commander-js/extra-typings'
import { RalphError } from '../../core/error.ts'
import type { Context } from './context.ts'
import { say } from './context.ts'

export function addClean(program: Command, context: Context): void {
  program
    .command('clean')
    .description('remove what ralph has kept of a change: --attempts')
    .argument('[change]', 'may be left out when there is only one')
    .option('--attempts', 'the refs of all its attempts')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph clean add-login --attempts')
    .action(async (change, { attempts, json }) => {
      if (!attempts) {
        throw new RalphError('usage', 'clean removes only what it is told to', {
          hint: 'see what there is with: ralph attempts; remove it with: ralph clean --attempts',
          exitCode: 2,
        })
      }
      const app = await context.app()
      const said = await app.clean({ change, attempts })
      await say(context, json, said)
    })
}
