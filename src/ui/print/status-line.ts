// A loop in one line, for a status bar: `▸ add-greeting 2/4 #5 12m $1.42`.
import type { Freshness, LoopBrief } from '../../core/loop-brief.ts'
import { symbolOf } from '../vocabulary.ts'
import type { Meaning } from '../vocabulary.ts'
import { clip, oneLine } from './text.ts'

export type LineLoop = LoopBrief & {
  readonly freshness: Freshness
  /** Of a run that was done: opened again, or added since. */
  readonly stories_open?: number
}

interface Page {
  readonly nowMs: number
  /** Since its last sign of life. */
  readonly silentMs: number
  /** That run, too. */
  readonly others: number
}

export function statusLineText(loop: LineLoop, { nowMs, silentMs, others }: Page): string {
  const [meaning, state] = stateOf(loop, nowMs, silentMs)
  const words = [
    symbolOf(meaning),
    clip(oneLine(loop.change_id), 40),
    loop.stories_total === undefined || loop.stories_total === 0
      ? ''
      : `${loop.stories_done}/${loop.stories_total}`,
    loop.freshness === 'ended' || loop.current_iteration === 0 ? '' : `#${loop.current_iteration}`,
    state,
    loop.cost_usd === undefined || loop.cost_usd === 0 ? '' : `$${loop.cost_usd.toFixed(2)}`,
    others > 0 ? `+${others}` : '',
  ]
  return words.filter((word) => word !== '').join(' ')
}

function stateOf(loop: LineLoop, nowMs: number, silentMs: number): readonly [Meaning, string] {
  if (loop.freshness === 'dead') return ['failed', 'died']
  if (loop.stories_open !== undefined) return ['open', 'open']
  if (loop.freshness === 'ended')
    return [endings.get(loop.status) ?? 'waiting', clip(oneLine(loop.status), 20)]
  if (loop.freshness === 'stale') return ['human', `no activity for ${spanOf(silentMs)}`]
  if (loop.waiting_for === 'human') return ['human', 'needs you']
  if (loop.waiting_for === 'pause') return ['waiting', 'paused']
  if (loop.waiting_for !== undefined) {
    const [, until] = /T(\d\d:\d\d)/.exec(loop.waiting_until ?? '') ?? []
    return ['waiting', until === undefined ? 'waiting' : `waiting until ${until}`]
  }
  if (loop.status.startsWith('waiting:')) return ['waiting', clip(oneLine(loop.status), 20)]
  const startedMs = Date.parse(loop.started_at)
  return ['working', Number.isNaN(startedMs) ? '' : spanOf(nowMs - startedMs)]
}

const endings: ReadonlyMap<string, Meaning> = new Map([
  ['done', 'done'],
  ['stuck', 'failed'],
  ['stalled', 'failed'],
  ['stopped', 'waiting'],
])

function spanOf(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / 60_000))
  if (minutes < 60) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours}h${minutes % 60}m` : `${Math.floor(hours / 24)}d${hours % 24}h`
}
