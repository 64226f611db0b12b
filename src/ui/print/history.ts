// Every attempt of a run in one table, and what went into those that were not kept.
import { runReport, tookMs } from '../../core/report.ts'
import type { RunReport } from '../../core/report.ts'
import type { History } from '../app.ts'
import type { Paint } from '../io.ts'
import { inColourOf, statusName, symbolOf, verdictMeaning, verdictName } from '../vocabulary.ts'
import { storyName } from './describe.ts'
import { factLines } from './facts.ts'
import { handRow, withHands } from './hand-rows.ts'
import { costWord, knownTokens, newReason, notesOf } from './report-words.ts'
import { parkedRows } from './status.ts'
import { table } from './table.ts'
import { clip, clockTime, duration, excerpt, oneLine, plural, tokenWord } from './text.ts'

export interface HistoryPage {
  readonly paint: Paint
  readonly columns: number
}

export function historyText(history: History, page: HistoryPage): string {
  const { change_id: change, iterations, runs = [], earlier_runs: earlier, parked } = history
  const { paint } = page
  const past = runs.map((run) =>
    [
      `${paint.bold(oneLine(change))}  run ${String(run.number)}, ${whenOf(run.name)}: ${statusName(run.status)}`,
      ...runLines(change, run, page),
    ].join('\n'),
  )
  // One of the earlier runs was asked for, and no other.
  if (runs.length > 0 && iterations.length === 0) return past.join('\n\n')
  const own = [
    `${paint.bold(oneLine(change))}${past.length > 0 ? '  this run' : ''}`,
    ...(iterations.length === 0 ? ['no attempt has ended yet'] : runLines(change, history, page)),
  ].join('\n')
  const more =
    past.length === 0 && earlier.length > 0
      ? [
          paint.dim(
            `${plural(earlier.length, 'earlier run')}: ralph history ${oneLine(change)} --all (or --run ${String(earlier.length)})`,
          ),
        ]
      : []
  const now =
    parked === undefined || parked.byLoop === true
      ? []
      : factLines(parkedRows(parked), { paint, width: 8, columns: page.columns })
  return [...past, [own, ...more, ...now].join('\n')].join('\n\n')
}

/** An archived run is named by its start: `2026-11-16T041722+0000`. */
export function whenOf(name: string): string {
  const [, day, hour, minute] = /^(\d{4}-\d\d-\d\d)T(\d\d)(\d\d)/.exec(name) ?? []
  return day === undefined ? oneLine(name) : `${day} ${hour ?? ''}:${minute ?? ''}`
}

function runLines(
  change: string,
  {
    iterations,
    stories,
    gates_ms: gates = new Map(),
    warnings = [],
    by_hand: hands = [],
  }: Pick<History, 'iterations' | 'stories' | 'gates_ms' | 'warnings' | 'by_hand'>,
  { paint, columns }: HistoryPage,
): readonly string[] {
  const titles = new Map(stories.map(({ id, title }) => [id, title]))
  const nameOf = (name: string): string => clip(name, columns > wide ? Infinity : 24)
  const attempts = iterations.map((iteration, at) => {
    const meaning = verdictMeaning(iteration.verdict)
    return [
      `#${String(iteration.n)}`,
      clockTime(iteration.started),
      nameOf(storyName(iteration.story_id, titles.get(iteration.story_id) ?? '')),
      {
        text: `${symbolOf(meaning)} ${verdictName(iteration.verdict)}`,
        paint: (text: string) => inColourOf(meaning, text, paint),
      },
      duration(iteration.duration_ms + (gates.get(iteration.n) ?? 0)),
      tokensOf(iteration),
      costWord({ cost_usd: iteration.cost_usd, tokens: iteration.tokens_used }),
      { text: excerpt(newReason(iterations, at), 200), paint: paint.dim },
    ]
  })
  const byHand = hands.map((hand) => {
    const { time, story, result, tookMs: ms, reason } = handRow(hand, change, stories, paint)
    const took = ms === undefined ? '-' : duration(ms)
    return ['', clockTime(time), nameOf(story), result, took, '-', '-', { text: reason, paint: paint.dim }]
  })
  const rows = withHands(
    attempts.map((row, at) => [iterations[at]?.n ?? 0, row] as const),
    byHand.map((row, at) => [hands[at]?.after ?? 0, row] as const),
  )
  const report = runReport({
    change_id: change,
    status: 'stopped',
    reason: '',
    stories: [],
    iterations,
    gates_ms: gates,
    warnings,
  })
  // A column in which nothing is known says nothing.
  const hasCost = iterations.some(
    (iteration) => iteration.cost_usd !== undefined || iteration.tokens_used > 0,
  )
  const hasTokens = iterations.some((iteration) => tokensOf(iteration) !== '?')
  const hidden = new Set([
    ...(hasCost ? [] : ['cost']),
    ...(hasTokens ? [] : ['tokens']),
    ...(columns !== undefined && columns < narrow ? ['at'] : []),
  ])
  const isShown = (_: unknown, at: number): boolean => !hidden.has(headings[at] ?? '')
  return [
    table(
      headings.filter(isShown),
      rows.map((row) => row.filter((_, at) => isShown('', at))),
      paint,
      columns,
      true,
    ),
    totalLine(report),
    ...notesOf(report).map(([name, words]) => `${name}: ${words}`),
  ]
}

/** A title is read whole where its row has room for it. */
export const wide = 120
/** Too narrow for every column. */
const narrow = 70

/** Nobody answers for nothing: none were reported, as `ralph usage` says of it, too. */
function tokensOf({ tokens_used: used, tokens_estimated: isGuess }: History['iterations'][number]): string {
  return tokenWord({ tokens: used, tokens_estimated: isGuess === true || used === 0 })
}

const headings = ['#', 'at', 'story', 'result', 'took', 'tokens', 'cost', 'reason']

function totalLine({ totals }: RunReport): string {
  const figures = [
    plural(totals.iterations, 'attempt'),
    duration(tookMs(totals)),
    knownTokens(totals),
    costWord(totals),
  ]
  return figures.filter((word) => word !== '-').join(', ')
}
