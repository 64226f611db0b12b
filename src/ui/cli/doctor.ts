// `ralph doctor`: what works here, what does not, and how to fix it.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { respond } from './context.ts'

export function addDoctor(program: Command, context: Context): void {
  program
    .command('doctor')
    .description('git, openspec, agents, terminal, repository: what works, and how to fix what does not')
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      '\nExits with 2 when something stands in the way of a loop.\n\nExample:\n  $ ralph doctor',
    )
    .action(async ({ json }) => {
      const app = await context.app()
      const diagnosis = await app.doctor()
      if (diagnosis.checks.some((check) => check.verdict === 'problem')) context.exitWith(2)
      await respond(context, json, diagnosis, async (paint) => {
        const { doctorText } = await import('../print/doctor.ts')
        return doctorText(diagnosis, paint)
      })
    })
}
