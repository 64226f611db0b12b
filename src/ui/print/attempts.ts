// Every kept attempt as a table, and how to see or bring back one.
import type { AttemptList } from '../app.ts'
import type { Paint } from '../io.ts'
import { verdictWord, verdictWords } from './describe.ts'
import { table } from './table.ts'
import { excerpt, shortHash } from './text.ts'

export function attemptsText({ attempts }: AttemptList, paint: Paint): string {
  const last = attempts.at(-1)
  if (last === undefined) return 'no attempt is kept'
  const rows = attempts.map((attempt) => [
    String(attempt.n),
    attempt.story_id,
    String(attempt.attempt),
    { text: verdictWords[attempt.verdict], paint: () => verdictWord(attempt.verdict, paint) },
    { text: shortHash(attempt.commit), paint: paint.cyan },
    { text: excerpt(attempt.reason, 70), paint: paint.dim },
  ])
  const hint = `see one: ${paint.bold(`ralph diff ${String(last.n)}`)}   bring it back: ${paint.bold(`ralph restore ${String(last.n)}`)}`
  return `${table(['n', 'story', 'attempt', 'verdict', 'commit', 'reason'], rows, paint)}\n${hint}`
}
