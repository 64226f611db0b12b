// `ralph attempts`: every attempt, failed ones too, with its ref.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { respond } from './context.ts'

export function addAttempts(program: Command, context: Context): void {
  program
    .command('attempts')
    .description('every attempt, failed ones too')
    .argument('[change]', 'may be left out when there is only one')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph attempts add-login')
    .action(async (change, { json }) => {
      const app = await context.app()
      const list = await app.attempts(change)
      await respond(context, json, list, async (paint) => {
        const { attemptsText } = await import('../print/attempts.ts')
        return attemptsText(list, paint)
      })
    })
}
