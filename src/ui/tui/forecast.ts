// How long, and how much, the rest of a run may take: a range, from what its own stories took.
import { epochMs } from '../../core/stamp.ts'
import { selectedStories } from '../../core/state.ts'
import type { LoopState } from '../../core/state.ts'
import { usd } from '../print/text.ts'

export interface Forecast {
  readonly ms: readonly [low: number, high: number]
  /** Absent where what was done has no price. */
  readonly usd?: readonly [low: number, high: number]
}

interface Past {
  readonly ms: number
  readonly usd: number | undefined
}

/** Undefined while no story of the run is done, when none is left, and while it is paused. */
export function forecastOf(state: LoopState, nowMs: number): Forecast | undefined {
  const stories = selectedStories(state)
  const open = stories.filter(({ status }) => status === 'open').length
  const done = stories.filter(({ status }) => status === 'done').flatMap(({ id }) => pastOf(state, id) ?? [])
  if (open === 0 || done.length === 0 || state.outcome !== undefined) return undefined
  if (state.waiting?.for === 'pause') return undefined
  const begun = state.storyId === undefined ? undefined : pastOf(state, state.storyId)
  const isOpen = stories.some(({ id, status }) => id === state.storyId && status === 'open')
  const current = state.current === undefined ? 0 : Math.max(0, nowMs - epochMs(state.current.started))
  const spentMs = isOpen ? (begun?.ms ?? 0) + current : 0
  const waiting = state.waiting === undefined ? 0 : Math.max(0, state.waiting.untilMs - nowMs)
  const [low, high] = rangeOf(
    done.map(({ ms }) => ms),
    open,
    spentMs,
  )
  const times = [low + waiting, high + waiting] as const
  const costs = done.flatMap(({ usd: cost }) => cost ?? [])
  if (costs.length < done.length) return { ms: times }
  return { ms: times, usd: rangeOf(costs, open, isOpen ? (begun?.usd ?? 0) : 0) }
}

/** All attempts at a story, those that failed too: what comes will have some of them. */
function pastOf({ iterations }: LoopState, storyId: string): Past | undefined {
  const own = iterations.filter(({ story_id: id }) => id === storyId)
  if (own.length === 0) return undefined
  const costs = own.flatMap(({ cost_usd: cost }) => cost ?? [])
  return {
    ms: own.reduce((sum, { started, ended }) => sum + Math.max(0, epochMs(ended) - epochMs(started)), 0),
    usd: costs.length === 0 ? undefined : costs.reduce((sum, cost) => sum + cost, 0),
  }
}

/** The mean, and how far sums of so many are from theirs; of one alone nobody knows, so a half and double. */
function rangeOf(past: readonly number[], open: number, spent: number): readonly [number, number] {
  const mean = past.reduce((sum, each) => sum + each, 0) / past.length
  const spread =
    past.length === 1
      ? mean / 2
      : Math.sqrt(past.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (past.length - 1))
  // A story that has taken longer than others still takes a while.
  const left = open * mean - Math.min(spent, mean * 0.9)
  const off = Math.max(spread * Math.sqrt(open), left * 0.1)
  return [Math.max(left * 0.3, left - off), left + off]
}

/** "about 9–14 min, $1.10–1.60 left". */
export function forecastWords({ ms, usd: cost }: Forecast): string {
  const money = cost === undefined || cost[1] === 0 ? '' : `, ${moneyRange(cost)}`
  return ms[1] < minute ? `less than a minute${money} left` : `about ${timeRange(ms)}${money} left`
}

const minute = 60_000

function timeRange([low, high]: readonly [number, number]): string {
  const isHours = high >= 120 * minute
  const unit = isHours ? 60 * minute : minute
  const round = (value: number): number => (isHours ? Math.round((value / unit) * 2) / 2 : value / unit)
  const from = isHours ? round(low) : Math.max(1, Math.floor(round(low)))
  const to = isHours ? round(high) : Math.ceil(round(high))
  const word = isHours ? 'h' : 'min'
  return from >= to ? `${String(to)} ${word}` : `${String(from)}–${String(to)} ${word}`
}

function moneyRange([low, high]: readonly [number, number]): string {
  const [from, to] = [usd(low), usd(high)]
  return from === to ? to : `${from}–${to.replace('$', '')}`
}
