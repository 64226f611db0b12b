// How many stories of a change are open now, in this checkout or where its work is: what is true of the change, whatever its last run says.
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { changeDirOf, humanTasks, summariseChange } from '../adapters/openspec/changes.ts'
import { RalphError } from '../core/error.ts'
import { ownStories } from '../core/story.ts'
import { findRootOf, rootOf } from './root.ts'
import type { KnownRun, Site } from './site.ts'

export interface PlanNow {
  readonly open: number
  readonly done: number
  readonly total: number
}

/** Undefined where there is no plan to count: archived since, without tasks, or not readable. */
export async function planNow(site: Site, change: string, root?: string): Promise<PlanNow | undefined> {
  try {
    const found = await summariseChange(root ?? (await findRootOf(site)), change, site.env)
    if (found.problem !== '' || found.stories_total === 0) return undefined
    return { open: found.stories_open, done: found.stories_done, total: found.stories_total }
  } catch (error) {
    if (error instanceof RalphError) return undefined
    throw error
  }
}

/** A run that was to put two changes together has taken the place of the change's own: then the plan in its tree counts. Before the first run: the plan here. */
export async function storiesNow(
  site: Site,
  { change, state }: KnownRun,
): Promise<Pick<PlanNow, 'done' | 'total'>> {
  const { settings, home, root, stories } = state
  const isApart = settings?.done_criteria === 'manual' && home !== undefined
  const isUnread = stories.length === 0
  const plan = isUnread || (isApart && root !== undefined) ? await planNow(site, change, root) : undefined
  const own = ownStories(stories)
  return plan ?? { done: own.filter(({ status }) => status === 'done').length, total: own.length }
}

/** Archived, renamed or deleted since: a resume would not find it. */
export async function isPlanGone(site: Site, { change, state }: KnownRun): Promise<boolean> {
  if (state.root === undefined || existsSync(changeDirOf(state.root, change))) return false
  return (await planNow(site, change)) === undefined
}

/** What a run that stopped for its user still needs of them, in the files that a resume goes on with. */
export async function yoursNow(site: Site, { change, state }: KnownRun): Promise<readonly Yours[]> {
  if (state.phase === 'idle') return []
  if (state.home === undefined) return yoursIn(site, change, rootOf(site, state), site.git.worktree)
  const there = await yoursIn(site, change, state.root, state.worktree)
  // Once its work is in the user's checkout, a tick there counts too.
  if (there.length === 0 || state.git.cleaned === undefined) return there
  return yoursIn(site, change, homeRoot(state.home, state), state.home)
}

/** Of a run whose work was brought from a tree of its own, and which waits for its user: whether nothing is left where the work is now. */
export async function isDoneAtHome(site: Site, run: KnownRun): Promise<boolean> {
  const { state, change } = run
  if (state.phase === 'idle' || state.home === undefined || state.git.cleaned === undefined) return false
  if (state.outcome?.stopReason !== 'human' || state.settings.done_criteria !== 'tasks') return false
  const plan = await planNow(site, change, homeRoot(state.home, state))
  return plan !== undefined && plan.done === plan.total
}

function homeRoot(
  home: string,
  { root, worktree }: { readonly root: string; readonly worktree: string },
): string {
  const inside = relative(worktree, root)
  return inside.startsWith('..') ? root : join(home, inside)
}

async function yoursIn(site: Site, change: string, root: string, tree: string): Promise<readonly Yours[]> {
  try {
    const tasks = await humanTasks(root, change, site.env, tree)
    return tasks.map(({ text, path, line }) => ({
      text,
      at: `${tree === site.git.worktree ? relative(tree, path) : path}:${line}`,
    }))
  } catch (error) {
    if (error instanceof RalphError) return []
    throw error
  }
}

interface Yours {
  readonly text: string
  /** The file and the line of its box. */
  readonly at: string
}
