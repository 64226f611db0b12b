// `ralph usage`: tokens used since a time.
import type { Command } from '@commander-js/extra-typings'
import { InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { RalphError } from '../../core/error.ts'
import type { Context } from './context.ts'
import { respond } from './context.ts'

export function addUsage(program: Command, context: Context): void {
  program
    .command('usage')
    .description('tokens used since a time')
    .option('--since <ISO>', 'a date or a time, such as 2026-02-09T14:00', isoTime)
    .option('--today', 'since midnight')
    .option('--week', 'since Monday')
    .addOption(
      new Option('--format <format>', 'how').choices(['text', 'json'] as const).default('text' as const),
    )
    .addOption(new Option('--by <what>', 'broken down').choices(['agent', 'model', 'story', 'day'] as const))
    .option('--json', 'the same as --format json')
    .addHelpText('after', '\nExample:\n  $ ralph usage --since 2026-02-09 --by day')
    .action(async ({ since, today, week, format, by, json }) => {
      const [from, second] = [since, today && 'today', week && 'week'].filter(
        (word) => typeof word === 'string',
      )
      if (second !== undefined) {
        throw new RalphError('usage', '--since, --today and --week are three answers to one question', {
          hint: 'type one of them: ralph usage --today, ralph usage --week, or ralph usage --since 2026-02-09',
          exitCode: 2,
        })
      }
      if (from === undefined) {
        throw new RalphError('usage', 'usage needs to know since when', {
          hint: 'type: ralph usage --today (or --week, or --since 2026-02-09)',
          exitCode: 2,
        })
      }
      const app = await context.app()
      const report = await app.usage({ since: from, by })
      const columns = context.io.stdout.columns ?? 80
      await respond(context, json === true || format === 'json', report.json, () => report.text(columns))
    })
}

function isoTime(text: string): string {
  const day = /^\d{4}-\d{2}-\d{2}/.exec(text)?.[0] ?? ''
  if (!isRealDay(day) || Number.isNaN(Date.parse(text))) {
    throw new InvalidArgumentError('It wants an ISO time, such as 2026-02-09 or 2026-02-09T14:03:22+01:00')
  }
  return text
}

/** Date.parse takes the 30th of February for the 2nd of March. */
function isRealDay(day: string): boolean {
  const moment = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(moment.getTime()) && moment.toISOString().startsWith(day)
}
