// What `ralph usage` tells: every answer that agents gave in these work trees since a moment, from their session files; of a turn that no session file knows, what ralph noted then.
import { RalphError } from '../../core/error.ts'
import { isCovered, storyFinder } from '../../core/turns.ts'
import type { Turn } from '../../core/turns.ts'
import type { UsageGroup, UsageSummary, UsedAnswer } from '../../core/usage-summary.ts'
import { summarizeUsage } from '../../core/usage-summary.ts'
import type { UsageFigures } from '../../core/usage.ts'
import type { Clock } from '../../ports.ts'
import { costUsd, ownCost } from './prices.ts'
import { readOrSkip, sessionSources } from './session-sources.ts'

export interface UsageSinceRequest {
  /** All of the project's; sessions that began in a folder below one of them count too. */
  readonly worktrees: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  /** An ISO time, `yesterday`, `7d` and the like, or the local day or week (from Monday) so far. */
  readonly since: string
  readonly until?: string | undefined
  readonly by?: UsageGroup | undefined
  /** For the breakdown by story: what was being worked on when. */
  readonly turns?: readonly NotedTurn[]
}

/** With what was noted of it when it ended; absent where that was a guess. */
export interface NotedTurn extends Turn {
  readonly agent: string
  readonly model: string
  readonly figures?: UsageFigures | undefined
}

export async function usageSince(request: UsageSinceRequest): Promise<UsageSummary> {
  const { worktrees, env, clock, since, until, by } = request
  const sinceMs = momentOf(since, '--since', clock)
  const untilMs = until === undefined ? Number.POSITIVE_INFINITY : momentOf(until, '--until', clock)
  const read = await Promise.all(
    sessionSources(env, worktrees, { below: true }).map((source) => readOrSkip(source, { sinceMs })),
  )
  const storyOf = storyFinder(request.turns ?? [])
  const answers: UsedAnswer[] = []
  const records = read.flatMap((part) => part.records)
  for (const record of records) {
    const { agent, model, timeMs, figures } = record
    if (!(timeMs >= sinceMs && timeMs < untilMs)) continue
    const cost = ownCost(figures) ?? (await costUsd(model, figures))
    const { cost_usd: _, ...tokens } = figures
    answers.push({
      agent,
      model,
      story: storyOf(record),
      day: clock.stamp(timeMs).slice(0, 10),
      figures: { ...tokens, ...(cost !== undefined && { cost_usd: cost }) },
    })
  }
  for (const turn of request.turns ?? []) {
    const { agent, model, story_id: story, toMs, figures } = turn
    if (figures === undefined || !(toMs >= sinceMs && toMs < untilMs) || isCovered(turn, records)) continue
    answers.push({ agent, model, story, day: clock.stamp(toMs).slice(0, 10), figures })
  }
  return summarizeUsage(answers, {
    period: since === 'today' || since === 'week' ? since : 'custom',
    since: clock.stamp(sinceMs),
    until: until === undefined ? undefined : clock.stamp(untilMs),
    by,
    skipped: read.map((part) => part.skipped).filter((reason) => reason !== ''),
  })
}

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
type Unit = keyof typeof unitMs

function momentOf(word: string, flag: string, clock: Clock): number {
  if (word === 'today' || word === 'yesterday' || word === 'week') {
    const day = new Date(clock.now())
    day.setHours(0, 0, 0, 0)
    if (word === 'yesterday') day.setDate(day.getDate() - 1)
    if (word === 'week') day.setDate(day.getDate() - ((day.getDay() + 6) % 7))
    return day.getTime()
  }
  const [, count, unit] = /^(\d+)([mhdw])$/.exec(word) ?? []
  if (count !== undefined && unit !== undefined) return clock.now() - Number(count) * unitMs[unit as Unit]
  // A day alone means the user's day; Date.parse takes it for UTC's.
  const moment = Date.parse(/^\d{4}-\d\d-\d\d$/.test(word) ? `${word}T00:00:00` : word)
  if (Number.isNaN(moment)) {
    throw new RalphError('usage', `${flag} is not a time: ${JSON.stringify(word)}`, {
      hint: `Write it as ISO 8601, for example: ralph usage ${flag} ${clock.stamp()}`,
    })
  }
  return moment
}
