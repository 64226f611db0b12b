// How many stories of a change are open now, in this checkout or where its work is: what is true of the change, whatever its last run says.
import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { changeDirOf, humanTasks, summariseChange } from '../adapters/openspec/changes.ts'
import { RalphError } from '../core/error.ts'
import { findRootOf } from './root.ts'
import { rootOf } from './run-engine.ts'
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

/** Archived, renamed or deleted since: a resume would not find it. */
export async function isPlanGone(site: Site, { change, state }: KnownRun): Promise<boolean> {
  if (state.root === undefined || existsSync(changeDirOf(state.root, change))) return false
  return (await planNow(site, change)) === undefined
}

/** What a run that stopped for its user still needs of them, in the files that a resume goes on with. */
export async function yoursNow(site: Site, { change, state }: KnownRun): Promise<readonly Yours[]> {
  if (state.phase === 'idle') return []
  const { home } = state
  const [root, tree] =
    home === undefined ? [rootOf(site, state), site.git.worktree] : [state.root, state.worktree]
  try {
    const tasks = await humanTasks(root, change, site.env, tree)
    return tasks.map(({ text, path, line }) => ({
      text,
      at: `${home === undefined ? relative(tree, path) : path}:${line}`,
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
