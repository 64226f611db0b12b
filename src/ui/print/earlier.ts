// Where the runs are that a new one has replaced: a report that leaves them out says so.
import type { Paint } from '../io.ts'
import { oneLine, plural } from './text.ts'

export function earlierLines(folders: readonly string[], paint: Paint): readonly string[] {
  if (folders.length === 0) return []
  const runs = plural(folders.length, 'earlier run')
  const are = folders.length === 1 ? 'is' : 'are'
  return [
    paint.dim(
      `${runs} ${are} not shown: ralph attempts lists what ${folders.length === 1 ? 'it' : 'they'} tried; journal and transcripts:`,
    ),
    ...folders.map((folder) => paint.dim(`  ${oneLine(folder)}`)),
  ]
}
