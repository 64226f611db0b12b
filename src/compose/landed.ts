// Whether the work of a run has landed by the merge queue: its journal says so, and git's history agrees.
import { landedRef } from '../adapters/git/landing.ts'
import { readRef } from '../adapters/git/refs.ts'
import { isAncestor } from '../adapters/git/tree.ts'
import type { LandedWork } from '../ui/app.ts'
import { entryNow } from './queue-entry.ts'
import type { KnownRun, Site } from './site.ts'

/** Undefined too where its branch has moved since: then there is work that has not landed. */
export async function landedWork(
  { git }: Site,
  { change, state: run }: KnownRun,
): Promise<LandedWork | undefined> {
  if (run.phase === 'idle' || run.status !== 'done') return undefined
  const { landed } = entryNow(git.gitCommonDir, change) ?? {}
  if (landed?.tip === undefined) return undefined
  const { commit, target, tip } = landed
  const now = await readRef(git, `refs/heads/ralph/${change}`)
  if ((now ?? run.git.lastCheckpoint) !== tip) return undefined
  const [own, kept] = await Promise.all([
    readRef(git, `refs/heads/${target}`),
    readRef(git, landedRef(target)),
  ])
  const isIn = async (ref: string | undefined): Promise<boolean> =>
    ref !== undefined && (await isAncestor(git, commit, ref))
  const isThere = await isIn(own)
  if (!isThere && !(await isIn(kept))) return undefined
  return { commit, target, is_pulled: isThere }
}
