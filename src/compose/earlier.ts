// The runs that a new one has replaced, numbered from the first: what history, attempts and diff call "run 1".
import { join } from 'node:path'
import { lookAtJournal } from '../adapters/files/journal-look.ts'
import { listEarlier } from '../adapters/git/attempt/attempts.ts'
import { RalphError } from '../core/error.ts'
import { gateTimes } from '../core/hand-work.ts'
import type { LoopState } from '../core/state.ts'
import { hasMerge } from '../core/story.ts'
import { archivedRuns } from './site.ts'
import type { KnownRun, Site } from './site.ts'

export interface EarlierRun {
  readonly number: number
  /** The time of its start; of a run whose journal is gone only its refs have it. */
  readonly name: string
  readonly folder: string
}

export async function earlierRuns(site: Site, run: KnownRun): Promise<readonly EarlierRun[]> {
  const refs = await listEarlier(site.git, run.change)
  const names = [...new Set([...archivedRuns(run), ...refs.map((ref) => ref.run)])].toSorted()
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
  })
}

/** The runs whose work this one was made to put together with what landed meanwhile, the first one first. */
export async function runsBefore(
  site: Site,
  run: KnownRun,
): Promise<readonly (EarlierRun & { readonly past: Awaited<ReturnType<typeof pastState>> })[]> {
  if (!hasMerge(run.state.stories)) return []
  const found: (EarlierRun & { past: Awaited<ReturnType<typeof pastState>> })[] = []
  for (const each of (await earlierRuns(site, run)).toReversed()) {
    const past = await pastState(run, each)
    if (past.phase === 'idle') break
    found.unshift({ ...each, past })
    if (!hasMerge(past.stories)) break
  }
  return found
}

/** Of a damaged journal, or another version's, what can be read. */
export async function pastState(
  { change }: KnownRun,
  { folder }: EarlierRun,
): Promise<LoopState & Pick<KnownRun, 'recall'> & { readonly gates_ms: ReadonlyMap<number, number> }> {
  const { state, recall } = await lookAtJournal(join(folder, 'journal.ndjson'), change)
  return { ...state, recall, gates_ms: gateTimes(recall('gate.ended', 'iteration.ended')) }
}
