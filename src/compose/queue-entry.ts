// What the merge queue knows of one change, for those who only ask about that change.
import { queuePaths, readQueueJournal } from '../adapters/files/queue-files.ts'
import { RalphError } from '../core/error.ts'
import { replayQueue } from '../core/queue.ts'
import type { Entry } from '../core/queue.ts'
import type { ParkedWork } from '../ui/app.ts'
import { isRunning } from './site.ts'
import type { KnownRun } from './site.ts'

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

/** Why the queue does not land it: what its run says of itself is not the whole truth then. */
export function parkedWork(gitCommonDir: string, run: KnownRun): ParkedWork | undefined {
  const { choice, status } = run.state
  if (isRunning(run) || choice === 'cleanup') return undefined
  const { state, why, hint, unresolved } = entryNow(gitCommonDir, run.change) ?? {}
  // A loop that ended by its own fault tells that better.
  if (state === 'parked' && (unresolved !== undefined || status === 'done'))
    return { why: why ?? '', hint: hint ?? '' }
  if (unresolved === undefined || state === 'removed') return undefined
  return { why: `conflict in ${unresolved.paths.join(', ')}`, hint: 'To go on: ralph up' }
}
