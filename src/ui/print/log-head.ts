// The line that says whose words follow in a log: which story, which attempt.
import type { LoggedAttempt } from '../app.ts'
import type { Io } from '../io.ts'
import { isTerminal, paintFor } from '../io.ts'
import { legible, mark } from '../vocabulary.ts'
import { storyTitle } from './describe.ts'
import { entryLines } from './layout.ts'
import { clockTime, oneLine } from './text.ts'

export function logHead(
  { change_id: change, n, story_id: id, title, index, total, attempt, started }: LoggedAttempt,
  { stdout, env }: Pick<Io, 'stdout' | 'env'>,
): readonly string[] {
  const paint = paintFor(stdout, env)
  const place = index === 0 ? '' : `${String(index)}/${String(total)} `
  const again = attempt === 1 ? '' : `, try ${String(attempt)}`
  const columns = isTerminal(stdout) ? Math.max(20, stdout.columns ?? 80) : undefined
  return entryLines(
    {
      sign: mark('working', paint),
      text: `${place}${storyTitle(id, title)}${again}`,
      style: paint.bold,
      right: `#${String(n)} of ${oneLine(change)}   ${clockTime(started)}`,
    },
    { paint, columns },
  ).map((line) => legible(line, env))
}
