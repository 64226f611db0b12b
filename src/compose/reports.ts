// What the reporting commands show, read off the journals: they compute, and never write a run's files.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { stateFile } from '../adapters/files/paths.ts'
import { readStateFile } from '../adapters/files/state-reader.ts'
import { toStateFile } from '../core/state-snapshot.ts'
import { decisionsOf } from '../core/why.ts'
import type { Decisions, History, StatusReport } from '../ui/app.ts'
import { must } from './choose.ts'
import { isRunning, knownRun, knownRuns, needsRecovery } from './site.ts'
import type { KnownRun, Site } from './site.ts'

export async function statusOf(site: Site, change: string | undefined): Promise<readonly StatusReport[]> {
  const runs = change === undefined ? await knownRuns(site) : [await must(site, change)]
  return Promise.all(
    runs.map(async (run) => {
      const now = needsRecovery(run) ? await recovered(site, run) : run
      if (!isRunning(now)) return { ...toStateFile(now.state), alive: false }
      // The talk of the agent is not in the journal: only the file of a living loop knows its last sign.
      const file = await readStateFile(stateFile(now.state.worktree))
      return { ...(file?.change_id === now.change ? file : toStateFile(now.state)), alive: true }
    }),
  )
}

/** Loaded only for a loop that died: it brings the engine and every adapter with it. */
async function recovered(site: Site, run: KnownRun): Promise<KnownRun> {
  const { recoverDead } = await import('./recovery.ts')
  await recoverDead(site, run)
  return knownRun(site, run.change)
}

export async function historyOf(site: Site, change: string | undefined): Promise<History> {
  const run = await must(site, change)
  return {
    change_id: run.change,
    iterations: run.state.iterations,
    earlier_runs: await earlierRuns(run),
  }
}

export async function whyOf(site: Site, change: string | undefined): Promise<Decisions> {
  const run = await must(site, change)
  return {
    change_id: run.change,
    decisions: decisionsOf(run.events),
    earlier_runs: await earlierRuns(run),
  }
}

async function earlierRuns({ paths }: KnownRun): Promise<readonly string[]> {
  const names = await readdir(paths.archive).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names.toSorted((a, b) => a.localeCompare(b)).map((name) => join(paths.archive, name))
}
