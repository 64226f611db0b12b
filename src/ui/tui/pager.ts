// Where in a long text somebody reads: at its end, which moves, or at a place that stays.
import type { Key } from './keys.ts'

export interface Pager {
  /** The first line that is shown; undefined: the last lines, whatever comes. */
  readonly top: number | undefined
  /** How many there were when the end was left. */
  readonly seen: number
}

/** What grows is read at its end, what does not from its beginning. */
export const atEnd: Pager = { top: undefined, seen: 0 }
export const atStart: Pager = { top: 0, seen: 0 }

/** How much there is, and how much of it is shown. */
export interface Extent {
  readonly total: number
  readonly height: number
  /** Whether it grows. */
  readonly isLive: boolean
  /** Where whoever has not moved begins to read; else at the end. */
  readonly opensAt?: number | undefined
}

const wheelLines = 3

export function firstLine({ top }: Pager, { total, height, opensAt }: Extent): number {
  const last = Math.max(0, total - height)
  return Math.min(top ?? opensAt ?? last, last)
}

/** Undefined: not a key of a pager. How much there is takes a while to find out, and only these keys need it. */
export function scrolled(pager: Pager, key: Key, measure: () => Extent): Pager | undefined {
  if (key.name === 'text') return jumped(pager, key.text, measure)
  const move = moves[key.name]
  if (move === undefined) return undefined
  const extent = measure()
  return scrollTo(pager, firstLine(pager, extent) + move(Math.max(1, extent.height - 1)), extent)
}

const moves: Readonly<Partial<Record<Key['name'], (page: number) => number>>> = {
  up: () => -1,
  down: () => 1,
  page_up: (page) => -page,
  page_down: (page) => page,
  wheel_up: () => -wheelLines,
  wheel_down: () => wheelLines,
}

function jumped(pager: Pager, char: string, measure: () => Extent): Pager | undefined {
  if (char === 'g') return scrollTo(pager, 0, measure())
  if (char !== 'G') return undefined
  const extent = measure()
  return scrollTo(pager, extent.total, extent)
}

export function scrollTo(pager: Pager, top: number, { total, height, isLive }: Extent): Pager {
  const last = Math.max(0, total - height)
  if (isLive && top >= last) return atEnd
  return { top: Math.max(0, Math.min(last, top)), seen: pager.top === undefined ? total : pager.seen }
}

/** So many lines have gone from the beginning: what is read stays where it is. */
export function shifted(pager: Pager, gone: number): Pager {
  if (pager.top === undefined || gone === 0) return pager
  return { top: Math.max(0, pager.top - gone), seen: Math.max(0, pager.seen - gone) }
}

/** How many have come since the end was left. */
export function unseen({ top, seen }: Pager, { total, height, isLive }: Extent): number {
  return top === undefined || !isLive || total <= height ? 0 : Math.max(0, total - seen)
}
