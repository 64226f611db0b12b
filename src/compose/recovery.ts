// Finds loops that died without a word and puts them in order before any command goes on.
import { reapByMarker } from '../adapters/process/reap.ts'
import { openStateFile } from '../adapters/files/state-file.ts'
import { stateFile } from '../adapters/files/paths.ts'
import { RalphError } from '../core/error.ts'
import { recover } from '../engine/recover.ts'
import { acquireLocks } from './session.ts'
import { knownRun, needsRecovery } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { keepStateFile } from './state-keeper.ts'
import { siteOf, standingPorts } from './standing-ports.ts'

/** Resolves with one sentence for the user, or nothing when the loop is alive, elsewhere, or ended in order. */
export async function recoverDead(site: Site, run: KnownRun): Promise<string> {
  if (!needsRecovery(run)) return ''
  const there = await placeOf(site, run)
  if (there === undefined) return ''
  const release = await acquireLocks(there, run.change, run.state.runId)
  try {
    // Another command may have been faster.
    const now = await knownRun(there, run.change)
    if (!needsRecovery({ ...now, lock: { held: 'no' } })) return ''
    const { ports, close, bind } = await standingPorts(there, now)
    const { writer } = await openStateFile(stateFile(there.git.worktree), run.paths.archive, run.change)
    const keeper = keepStateFile(writer, there.clock, (error) => {
      throw error
    })
    try {
      const recovered = await recover(
        run.change,
        ports,
        [keeper.read],
        bind,
        async (runId) => (await reapByMarker(runId)).ended,
      )
      await keeper.settle()
      return recovered.detail
    } finally {
      keeper.stop()
      await close()
    }
  } finally {
    await release()
  }
}

/** A work tree that is gone cannot be put in order; commands that need it say so themselves. */
async function placeOf(site: Site, run: KnownRun): Promise<Site | undefined> {
  try {
    return await siteOf(site, run)
  } catch (error) {
    if (error instanceof RalphError && error.code === 'repository_state') return undefined
    throw error
  }
}
