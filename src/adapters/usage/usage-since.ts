// What `ralph usage` tells: every answer that agents gave in these work trees since a moment, from their session files alone.
import { RalphError } from '../../core/error.ts'
import type { UsageGroup, UsageSummary, UsedAnswer } from '../../core/usage-summary.ts'
import { summarizeUsage } from '../../core/usage-summary.ts'
import type { Clock } from '../../ports.ts'
import { costUsd, ownCost } from './prices.ts'
import { readOrSkip, sessionSources } from './session-sources.ts'

export interface UsageSinceRequest {
  /** All of the project's; sessions that began in a folder below one of them count too. */
  readonly worktrees: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  /** An ISO time, or the local day or week (from Monday) so far. */
  readonly since: string
  readonly until?: string | undefined
  readonly by?: UsageGroup | undefined
  /** For the breakdown by story: what was being worked on when. */
  readonly iterations?: readonly {
    readonly started: string
    readonly ended: string
    readonly story_id: string
  }[]
}

export async function usageSince(request: UsageSinceRequest): Promise<UsageSummary> {
  const { worktrees, env, clock, since, until, by } = request
  const sinceMs = momentOf(since, '--since', clock)
  const untilMs = until === undefined ? Number.POSITIVE_INFINITY : momentOf(until, '--until', clock)
  const read = await Promise.all(
    sessionSources(env, worktrees, { below: true }).map((source) => readOrSkip(source, { sinceMs })),
  )
  const storyAt = storyFinder(request.iterations ?? [])
  const answers: UsedAnswer[] = []
  for (const { agent, model, timeMs, figures } of read.flatMap((part) => part.records)) {
    if (!(timeMs >= sinceMs && timeMs < untilMs)) continue
    const cost = ownCost(figures) ?? (await costUsd(model, figures))
    const { cost_usd: _, ...tokens } = figures
    answers.push({
      agent,
      model,
      story: storyAt(timeMs),
      day: clock.stamp(timeMs).slice(0, 10),
      figures: { ...tokens, ...(cost !== undefined && { cost_usd: cost }) },
    })
  }
  return summarizeUsage(answers, {
    period: since === 'today' || since === 'week' ? since : 'custom',
    since: clock.stamp(sinceMs),
    until: until === undefined ? undefined : clock.stamp(untilMs),
    by,
    skipped: read.map((part) => part.skipped).filter((reason) => reason !== ''),
  })
}

function momentOf(word: string, flag: string, clock: Clock): number {
  if (word === 'today' || word === 'week') {
    const day = new Date(clock.now())
    day.setHours(0, 0, 0, 0)
    if (word === 'week') day.setDate(day.getDate() - ((day.getDay() + 6) % 7))
    return day.getTime()
  }
  // A day alone means the user's day; Date.parse takes it for UTC's.
  const moment = Date.parse(/^\d{4}-\d\d-\d\d$/.test(word) ? `${word}T00:00:00` : word)
  if (Number.isNaN(moment)) {
    throw new RalphError('usage', `${flag} is not a time: ${JSON.stringify(word)}`, {
      hint: `Write it as ISO 8601, for example: ralph usage ${flag} ${clock.stamp()}`,
      exitCode: 2,
    })
  }
  return moment
}

function storyFinder(iterations: NonNullable<UsageSinceRequest['iterations']>): (timeMs: number) => string {
  const spans = iterations.map(({ started, ended, story_id }) => ({
    fromMs: Date.parse(started),
    // Stamps are whole seconds: the last answer may lie in the second that `ended` names.
    toMs: Date.parse(ended) + 1000,
    story_id,
  }))
  return (timeMs) => spans.find((span) => timeMs >= span.fromMs && timeMs < span.toMs)?.story_id ?? ''
}
