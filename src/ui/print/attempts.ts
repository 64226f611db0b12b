// Every kept attempt as a table, and how to see or bring back one.
import type { AttemptList } from '../app.ts'
import type { Paint } from '../io.ts'
import { inColourOf, symbolOf, verdictMeaning, verdictName } from '../vocabulary.ts'
import type { Verdict } from '../../core/event.ts'
import { keepsWork } from '../../core/report.ts'
import { storyName } from './describe.ts'
import { handRow, withHands } from './hand-rows.ts'
import { whenOf, wide } from './history.ts'
import type { HistoryPage } from './history.ts'
import { newReason } from './report-words.ts'
import { stepLines } from './step-lines.ts'
import { table } from './table.ts'
import type { Cell } from './table.ts'
import { clip, excerpt, oneLine, plural } from './text.ts'

/** Without `isAll` those of earlier runs are only counted, where this one has some. */
export function attemptsText(list: AttemptList, page: HistoryPage, isAll = false): string {
  const own = ofThisRun(list, page)
  const isShort = own.length > 0 && !isAll
  const parts = [...own, ...(isShort ? earlierCount(list, page) : ofEarlierRuns(list, page))]
  const { paint } = page
  return parts.length === 0
    ? `no attempt of ${oneLine(list.change_id)} is kept`
    : `${paint.bold(oneLine(list.change_id))}\n${parts.join('\n\n')}`
}

function ofThisRun(
  { change_id: id, attempts, by_hand: hands = [], stories }: AttemptList,
  { paint, columns }: HistoryPage,
): readonly string[] {
  // The one that somebody wants to see is the last that came to nothing, as with `ralph diff` alone.
  const seen = attempts.filter(({ changed }) => changed)
  const last = seen.findLast(({ verdict }) => !keepsWork[verdict]) ?? seen.at(-1)
  if (attempts.length === 0) return []
  const nameOf = (name: string): string => clip(name, columns > wide ? Infinity : 28)
  const kept = attempts.map(({ n, story_id: of, verdict, changed }, at) => {
    const title = stories.find((story) => story.id === of)?.title ?? ''
    const reason = reasonWords(excerpt(newReason(attempts, at), 200), changed)
    const row = [
      `#${String(n)}`,
      nameOf(storyName(of, title)),
      verdictCell(verdict, paint),
      { text: reason, paint: paint.dim },
    ]
    return [n, row] as const
  })
  const byHand = hands.map((hand) => {
    const { story, result, reason } = handRow(hand, id, stories, paint)
    const row = ['', nameOf(story), result, { text: reason, paint: paint.dim }]
    return [hand.after, row] as const
  })
  const rows = withHands(kept, byHand)
  const lines = table(['#', 'story', 'result', 'reason'], rows, paint, columns, true)
  if (last === undefined) return [lines]
  const which = `${String(last.n)} ${oneLine(id)}`
  const hints = stepLines(
    [
      ['', `ralph diff ${which}`, 'see what it had changed'],
      // What was kept is there already.
      ...(keepsWork[last.verdict] ? [] : [['', `ralph restore ${which}`, 'bring that back'] as const]),
    ],
    { indent: 2, column: 2 },
    { paint, columns },
  )
  return [[lines, ...hints].join('\n')]
}

/** A diff of it would show nothing. */
function reasonWords(reason: string, changed: boolean): string {
  if (changed) return reason
  return reason === '' ? 'no file changed' : `${reason} (no file changed)`
}

function earlierCount(
  { change_id: id, earlier }: AttemptList,
  { paint, columns }: HistoryPage,
): readonly string[] {
  if (earlier.length === 0) return []
  const why = `${plural(earlier.length, 'attempt')} of ${plural(new Set(earlier.map(({ run }) => run)).size, 'earlier run')} too`
  const lines = stepLines(
    [['', `ralph attempts ${oneLine(id)} --all`, why]],
    { indent: 2, column: 2 },
    { paint, columns },
  )
  return [lines.join('\n')]
}

/** Their numbers began at 1 too, so they are named with their run. */
function ofEarlierRuns(
  { change_id: id, earlier }: AttemptList,
  { paint, columns }: HistoryPage,
): readonly string[] {
  const last = earlier.at(-1)
  if (last === undefined) return []
  const rows = earlier.map(({ n, story_id: story, verdict, run, run_number: number }, at) => [
    `${String(number)}, ${whenOf(run)}`,
    `#${String(n)}`,
    oneLine(story ?? '?'),
    verdict === undefined ? '?' : verdictCell(verdict, paint),
    {
      text: excerpt(newReason(ofRun(earlier, run), at - earlier.findIndex((each) => each.run === run)), 200),
      paint: paint.dim,
    },
  ])
  const headings = ['earlier run', '#', 'story', 'result', 'reason']
  const lines = table(headings, rows, paint, columns, true)
  const diff = `ralph diff ${String(last.n)} ${oneLine(id)} --run ${String(last.run_number)}`
  const hints = stepLines([['', diff, 'see the last of them']], { indent: 2, column: 2 }, { paint, columns })
  return [[lines, ...hints].join('\n')]
}

/** Numbers of another run say nothing here. */
function ofRun(
  earlier: AttemptList['earlier'],
  run: string,
): readonly { readonly n: number; readonly reason: string }[] {
  return earlier.filter((each) => each.run === run).map(({ n, reason = '' }) => ({ n, reason }))
}

function verdictCell(verdict: Verdict, paint: Paint): Cell {
  const meaning = verdictMeaning(verdict)
  return {
    text: `${symbolOf(meaning)} ${verdictName(verdict)}`,
    paint: (text) => inColourOf(meaning, text, paint),
  }
}
