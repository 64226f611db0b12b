// What the merge queue knows of one change, for those who only ask about that change.
import { queuePaths, readQueueJournal } from '../adapters/files/queue-files.ts'
import { RalphError } from '../core/error.ts'
import { replayQueue } from '../core/queue.ts'
import type { Entry } from '../core/queue.ts'

/** A queue that cannot be read hides no run: its own commands say what is wrong. */
function entryNow(gitCommonDir: string, change: string): Entry | undefined {
  try {
    const { entries } = replayQueue(readQueueJournal(queuePaths(gitCommonDir)))
    return entries.find((entry) => entry.change === change)
  } catch (error) {
    if (error instanceof RalphError && error.code === 'journal_unreadable') return undefined
    throw error
  }
}

/** What an agent is to put together now, from the repository's root. */
export function pathsInConflict(gitCommonDir: string, change: string): readonly string[] {
  return entryNow(gitCommonDir, change)?.conflict?.paths ?? []
}
