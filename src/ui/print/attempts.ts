// Every kept attempt as a table, and how to see or bring back one.
import type { AttemptList } from '../app.ts'
import type { Paint } from '../io.ts'
import { verdictName, verdictWord } from '../vocabulary.ts'
import { table } from './table.ts'
import { excerpt, oneLine, shortHash } from './text.ts'

export function attemptsText(list: AttemptList, paint: Paint): string {
  const parts = [...ofThisRun(list, paint), ...ofEarlierRuns(list, paint)]
  return parts.length === 0 ? 'no attempt is kept' : parts.join('\n\n')
}

function ofThisRun({ attempts }: AttemptList, paint: Paint): readonly string[] {
  const last = attempts.at(-1)
  if (last === undefined) return []
  const rows = attempts.map((attempt) => [
    String(attempt.n),
    attempt.story_id,
    String(attempt.attempt),
    { text: verdictName(attempt.verdict), paint: () => verdictWord(attempt.verdict, paint) },
    { text: shortHash(attempt.commit), paint: paint.cyan },
    { text: excerpt(attempt.reason, 70), paint: paint.dim },
  ])
  const hint = `see one: ${paint.bold(`ralph diff ${String(last.n)}`)}   bring it back: ${paint.bold(`ralph restore ${String(last.n)}`)}`
  return [`${table(['n', 'story', 'attempt', 'verdict', 'commit', 'reason'], rows, paint)}\n${hint}`]
}

/** Their numbers began at 1 too, so they are named by their refs. */
function ofEarlierRuns({ earlier }: AttemptList, paint: Paint): readonly string[] {
  const last = earlier.at(-1)
  if (last === undefined) return []
  const rows = earlier.map(({ n, story_id: story, attempt, verdict, commit, reason, run }) => [
    run,
    String(n),
    oneLine(story ?? '?'),
    String(attempt ?? '?'),
    verdict === undefined ? '?' : { text: verdictName(verdict), paint: () => verdictWord(verdict, paint) },
    { text: shortHash(commit), paint: paint.cyan },
    { text: excerpt(reason ?? '', 70), paint: paint.dim },
  ])
  const headings = ['earlier run', 'n', 'story', 'attempt', 'verdict', 'commit', 'reason']
  const hint = `they are under ${last.ref.replace(/\/[^/]+\/attempts\/\d+$/, '/')}   see one: ${paint.bold(`git diff ${shortHash(last.base)} ${last.ref}`)}`
  return [`${table(headings, rows, paint)}\n${hint}`]
}
