// Every kept attempt as a table, and how to see or bring back one.
import type { AttemptList } from '../app.ts'
import type { Paint } from '../io.ts'
import { inColourOf, symbolOf, verdictMeaning, verdictName } from '../vocabulary.ts'
import type { Verdict } from '../../core/event.ts'
import { storyName } from './describe.ts'
import { whenOf } from './history.ts'
import type { HistoryPage } from './history.ts'
import { table } from './table.ts'
import type { Cell } from './table.ts'
import { clip, excerpt, oneLine } from './text.ts'

export function attemptsText(list: AttemptList, page: HistoryPage): string {
  const parts = [...ofThisRun(list, page), ...ofEarlierRuns(list, page)]
  const { paint } = page
  return parts.length === 0
    ? `no attempt of ${oneLine(list.change_id)} is kept`
    : `${paint.bold(oneLine(list.change_id))}\n${parts.join('\n\n')}`
}

function ofThisRun(
  { change_id: id, attempts, stories }: AttemptList,
  { paint, columns }: HistoryPage,
): readonly string[] {
  const last = attempts.at(-1)
  if (last === undefined) return []
  const rows = attempts.map(({ n, story_id: of, attempt, verdict, reason }) => [
    `#${String(n)}`,
    clip(storyName(of, stories.find((story) => story.id === of)?.title ?? ''), 28),
    String(attempt),
    verdictCell(verdict, paint),
    { text: excerpt(reason, 200), paint: paint.dim },
  ])
  const lines = table(['#', 'story', 'try', 'result', 'reason'], rows, paint, columns)
  const which = `${String(last.n)} ${oneLine(id)}`
  const hint = `see one: ${paint.bold(`ralph diff ${which}`)}   bring it back: ${paint.bold(`ralph restore ${which}`)}`
  return [`${lines}\n${hint}`]
}

/** Their numbers began at 1 too, so they are named with their run. */
function ofEarlierRuns(
  { change_id: id, earlier }: AttemptList,
  { paint, columns }: HistoryPage,
): readonly string[] {
  const last = earlier.at(-1)
  if (last === undefined) return []
  const rows = earlier.map(({ n, story_id: story, attempt, verdict, reason, run, run_number: number }) => [
    `${String(number)}, ${whenOf(run)}`,
    `#${String(n)}`,
    oneLine(story ?? '?'),
    String(attempt ?? '?'),
    verdict === undefined ? '?' : verdictCell(verdict, paint),
    { text: excerpt(reason ?? '', 200), paint: paint.dim },
  ])
  const headings = ['earlier run', '#', 'story', 'try', 'result', 'reason']
  const lines = table(headings, rows, paint, columns)
  const hint = `see one: ${paint.bold(`ralph diff ${String(last.n)} ${oneLine(id)} --run ${String(last.run_number)}`)}   they are under ${last.ref.replace(/\/[^/]+\/attempts\/\d+$/, '/')}`
  return [`${lines}\n${hint}`]
}

function verdictCell(verdict: Verdict, paint: Paint): Cell {
  const meaning = verdictMeaning(verdict)
  return {
    text: `${symbolOf(meaning)} ${verdictName(verdict)}`,
    paint: (text) => inColourOf(meaning, text, paint),
  }
}
