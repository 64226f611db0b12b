// What would land of the user's own: files that were in no commit when the loop began, and are in its first one.
import { firstNames } from '../core/first-names.ts'
import { named } from '../adapters/git/git.ts'
import { ownPart } from '../adapters/git/start/own-part.ts'
import { isOfPlan } from '../adapters/git/tree/plan-path.ts'
import { changedPaths, orEmpty } from '../adapters/git/tree/tree.ts'
import { originName } from '../adapters/git/refs/refs.ts'
import type { Unfit } from '../engine/queue-ports.ts'
import type { KnownRun, Site } from './site.ts'

/** Undefined where there are none: all of them are committed on the target since, or are the plan. */
export async function whyOwn(
  { git }: Site,
  { change, state }: KnownRun,
  base: string,
): Promise<Unfit | undefined> {
  if (state.phase === 'idle' || state.home !== undefined) return undefined
  const { origin, initial, carried } = state.git
  if (origin === undefined || initial === undefined) return undefined
  const part = await ownPart({ git, refs: `refs/ralph/${change}` }, initial)
  const isFirst = carried === undefined || part !== undefined
  const before = await orEmpty(git, isFirst ? origin.commit : `${carried.commit}^2`)
  const [began, since] = await Promise.all([
    changedPaths(git, before, part?.tree ?? initial),
    changedPaths(git, before, base),
  ])
  const isCommitted = new Set(since)
  const own = began.filter((path) => !isOfPlan(change, path) && !isCommitted.has(path))
  if (own.length === 0) return undefined
  return {
    refused: `its first commit (${initial.slice(0, 12)}) holds files that you had not committed when its loop began: ${firstNames(own.map(named))}`,
    hint: `One commit without them, and they are uncommitted again: ralph finish ${change} --squash. Or commit them on ${originName(origin)} first, then: ralph land ${change}`,
  }
}
