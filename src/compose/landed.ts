// Whether the work of a run has landed by the merge queue: its journal says so, and git's history agrees.
import type { Git } from '../adapters/git/git.ts'
import { hasAllOf, hasLandedOn } from '../adapters/git/landing/landing.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import { RalphError } from '../core/error.ts'
import type { StartedState } from '../core/state.ts'
import type { Entry } from '../core/queue.ts'
import type { LandedWork } from '../ui/app.ts'
import { queueNow } from './queue-state.ts'
import type { KnownRun, Site } from './site.ts'

/** Undefined too where its branch has moved since: then there is work that has not landed. One that is gone moves no more. */
export async function landedWork(
  { git }: Site,
  { change, state: run }: KnownRun,
): Promise<LandedWork | undefined> {
  if (run.phase === 'idle' || run.status !== 'done') return undefined
  const { landed } = (await entryOf(git, change)) ?? {}
  if (landed?.tip === undefined) return undefined
  const { commit, target, tip } = landed
  const now = await readRef(git, `refs/heads/ralph/${change}`)
  if (now === undefined ? run.git.lastCheckpoint !== tip && !(await isOfRun(git, commit, run)) : now !== tip)
    return undefined
  if (!(await hasLandedOn(git, target, commit))) return undefined
  const own = await readRef(git, `refs/heads/${target}`)
  return { commit, target, is_pulled: own !== undefined && (await hasAllOf(git, own, commit)) }
}

/** Of a branch that is gone: no later run has saved anything, or the commit itself says that it is of the last one. */
async function isOfRun(git: Git, commit: string, { runId }: StartedState): Promise<boolean> {
  const asked = ['log', '-1', '--format=%(trailers:key=Ralph-Run,valueonly)', commit]
  const { out, code } = await git.run(asked, { accept: [128] })
  return code === 0 && out.trim() === runId
}

/** A queue that cannot be read hides no run: its own commands say what is wrong. */
async function entryOf(git: Git, change: string): Promise<Entry | undefined> {
  try {
    return (await queueNow(git)).entries.find((entry) => entry.change === change)
  } catch (error) {
    if (error instanceof RalphError && error.code === 'journal_unreadable') return undefined
    throw error
  }
}
