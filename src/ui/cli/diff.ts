// `ralph diff`: what one attempt had changed.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { respond } from './context.ts'
import { iterationNumber } from './number.ts'

export function addDiff(program: Command, context: Context): void {
  program
    .command('diff')
    .description('what an attempt had changed, as a patch')
    .argument('<n>', "the iteration's number", iterationNumber)
    .argument('[change]', 'may be left out when there is only one')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph diff 3')
    .action(async (n, change, { json }) => {
      const app = await context.app()
      const patch = await app.diff({ change, n })
      await respond(context, json, { n, patch }, async (paint) => {
        const { patchText } = await import('../print/patch.ts')
        return patchText(patch, paint)
      })
    })
}
