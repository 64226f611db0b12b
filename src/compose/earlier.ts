// The runs that a new one has replaced, numbered from the first: what history, attempts and diff call "run 1".
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readJournal } from '../adapters/files/journal.ts'
import { listEarlier } from '../adapters/git/attempts.ts'
import { RalphError } from '../core/error.ts'
import { replay } from '../core/loop.ts'
import { initialState } from '../core/state.ts'
import type { LoopState } from '../core/state.ts'
import type { KnownRun, Site } from './site.ts'

export interface EarlierRun {
  readonly number: number
  /** The time of its start; of a run whose journal is gone only its refs have it. */
  readonly name: string
  readonly folder: string
}

/** The folders alone, for a look that must be quick. */
export async function archivedRuns({ paths }: KnownRun): Promise<readonly string[]> {
  const found = await readdir(paths.archive, { withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    },
  )
  // Beside them: state files of other changes that stood in this work tree.
  return found.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).toSorted()
}

export async function earlierRuns(site: Site, run: KnownRun): Promise<readonly EarlierRun[]> {
  const refs = await listEarlier(site.git, run.change)
  const names = [...new Set([...(await archivedRuns(run)), ...refs.map((ref) => ref.run)])].toSorted()
  return names.map((name, at) => ({ number: at + 1, name, folder: join(run.paths.archive, name) }))
}

export async function earlierRun(site: Site, run: KnownRun, number: number): Promise<EarlierRun> {
  const runs = await earlierRuns(site, run)
  const found = runs.find((each) => each.number === number)
  if (found !== undefined) return found
  throw new RalphError('usage', `${run.change} has no earlier run ${number}.`, {
    hint:
      runs.length === 0
        ? `It has none: ralph history ${run.change} shows the only one.`
        : `Its earlier runs are 1 to ${runs.length}: ralph history ${run.change} --all`,
    exitCode: 2,
  })
}

/** Of a damaged journal, or another version's, what can be read. */
export async function pastState({ change }: KnownRun, { folder }: EarlierRun): Promise<LoopState> {
  const { events } = await readJournal(join(folder, 'journal.ndjson'))
  return replay(initialState(change), events)
}
