// Attempts as lines of the Agent tab: each told apart by a rule, messages as light Markdown, each tool call in one line.
import {
  baselineLines,
  claimLines,
  gateLines,
  inTree,
  turnoutLines,
  waitingLines,
  withoutPromise,
} from '../print/describe.ts'
import { clip, clockTime, duration, oneLine, plural } from '../print/text.ts'
import type { Attempt, Entry } from './feed.ts'
import { markdownLines } from './markdown.ts'
import { dim, fromPainted, harmless, line, paint, sides, span } from './spans.ts'
import type { Line } from './spans.ts'
import { wrapSpans } from './wrap.ts'

interface Page {
  readonly width: number
  /** Paths are shown as they are in it. */
  readonly worktree: string
  /** The attempt that the Gates tab shows whole. */
  readonly gated?: number | undefined
}

/** Laid out once for each width: most of what is shown was there before. */
const laid = new WeakMap<
  Entry,
  { readonly width: number; readonly isGated: boolean; readonly lines: readonly Line[] }
>()

export function entryLines(entry: Entry, page: Page): readonly Line[] {
  const known = laid.get(entry)
  const isGated = entry.kind === 'gate' && entry.gate.n === page.gated
  if (known?.width === page.width && known.isGated === isGated) return known.lines
  const lines = layOut(entry, page, isGated)
  laid.set(entry, { width: page.width, isGated, lines })
  return lines
}

function layOut(entry: Entry, { width, worktree }: Page, isGated: boolean): readonly Line[] {
  // The printers leave the last column free.
  const sheet = { paint, columns: width + 1 }
  switch (entry.kind) {
    case 'message':
      return markdownLines(harmless(inTree(withoutPromise(entry.text), worktree)).trim(), width)
    case 'tool': {
      const input = inTree(oneLine(harmless(entry.input)), worktree)
      return [line(clip(`  ${oneLine(harmless(entry.name))} ${input}`.trimEnd(), width), dim)]
    }
    case 'gate':
      return gateLines(entry.gate, sheet, undefined, isGated ? 'key 4' : undefined).map(fromPainted)
    case 'baseline':
      return baselineLines(entry.baseline, sheet).map(fromPainted)
    case 'claim':
      return claimLines(entry.claim, sheet).map(fromPainted)
    case 'said':
      return wrapSpans(line(oneLine(harmless(entry.text))), width, [span('  ')], '    ')
    case 'turnout':
      return turnoutLines(entry.iteration, entry.turnout, sheet).map(fromPainted)
    case 'wait':
      return waitingLines(entry.wait, sheet, '').map(fromPainted)
    case 'warning':
      return wrapSpans(
        line(oneLine(harmless(entry.text))),
        width,
        [span('  warning: ', { colour: 'yellow' })],
        '    ',
      )
  }
}

/** `#5 ──────── claude ── 14:03:22 ─`. */
function ruleLine({ n, started, who }: Attempt, { width }: Page): Line {
  const left = `#${String(n)} `
  const right = ` ${oneLine(harmless(who))}  ${clockTime(started.time)}`
  const rule = '─'.repeat(Math.max(0, width - left.length - right.length))
  return [span(left, { isBold: true }), span(`${rule}${right}`, dim)]
}

interface LiveLine {
  readonly spinner: string
  readonly nowMs: number
  /** When the last tool was called, as the wall clock has it. */
  readonly sinceMs: number
}

function* fromEnd<T>(values: readonly T[]): Generator<T> {
  for (let at = values.length - 1; at >= 0; at -= 1) yield values[at] as T
}

interface HowMuch {
  readonly live?: LiveLine | undefined
  /** So many of the last ones are enough. */
  readonly least?: number
}

export function attemptLines(attempt: Attempt, page: Page, how: HowMuch = {}): readonly Line[] {
  const { live, least = Infinity } = how
  const { entries, dropped, n } = attempt
  const parts: (readonly Line[])[] = []
  let height = 0
  for (const entry of fromEnd(entries)) {
    if (height >= least) break
    const own = entryLines(entry, page)
    parts.push(own)
    height += own.length
  }
  const rest = `… ${plural(dropped, 'earlier line', 'earlier lines')} of talk: ralph logs ${String(n)} ${oneLine(attempt.started.change_id)}`
  const head = [ruleLine(attempt, page), ...(dropped > 0 ? [line(clip(rest, page.width), dim)] : [])]
  const lines = [...(parts.length < entries.length ? [] : head), ...parts.toReversed().flat()]
  if (live === undefined || attempt.record !== undefined) return lines
  const last = entries.at(-1)
  const seconds = Math.max(0, Math.floor((live.nowMs - live.sinceMs) / 1000) * 1000)
  const since = `${live.spinner} ${seconds < 1000 ? '0 s' : duration(seconds)}`
  const right = line(since, { colour: 'cyan' })
  if (last?.kind !== 'tool') return [...lines, right]
  return [...lines.slice(0, -1), sides(lines.at(-1) ?? [], right, page.width)]
}

/** How many lines these take. */
export function heightOf(entries: readonly Entry[], page: Page): number {
  return entries.reduce((sum, entry) => sum + entryLines(entry, page).length, 0)
}
