// How the changes of the merge queue stand now: open, landed, planned again, and what their loops say.
import { existsSync, statfsSync } from 'node:fs'
import { relative } from 'node:path'
import { isIn, landedByGit } from '../adapters/git/landing/landing.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import { changeDirOf, listChanges } from '../adapters/openspec/changes.ts'
import { noRoom, type LoopFacts } from '../core/queue-due.ts'
import { doubtsOf } from '../core/weakness.ts'
import { totalCostUsd } from '../core/state.ts'
import { landedWork } from './landed.ts'
import { changedSince } from './plan-files.ts'
import { folderOf } from './queue-entry.ts'
import { findRootOf } from './root.ts'
import { isDead, isRunning, knownRun } from './site.ts'
import type { KnownRun, Site } from './site.ts'

export async function openChanges(site: Site): Promise<readonly string[]> {
  const changes = await listChanges(await findRootOf(site), site.env)
  return changes
    .filter(({ tasks_done: done, tasks_total: total }) => total > 0 && done < total)
    .map(({ name }) => name)
}

export async function hasLanded(site: Site, change: string, target?: string): Promise<boolean> {
  const work = await landedWork(site, await knownRun(site, change))
  return work !== undefined && (target === undefined || work.target === target)
}

/** The checkout has what its last run has landed, and a plan of this name that is another one. */
export async function isPlannedAgain(site: Site, change: string): Promise<boolean> {
  const { git } = site
  const { state } = await knownRun(site, change)
  if (state.status !== 'done') return false
  const landed = (await landedByGit(git, ['HEAD'])).find((each) => each.change === change)
  if (landed === undefined || landed.run !== state.runId) return false
  const folder = changeDirOf(await findRootOf(site), change)
  if (!existsSync(folder)) return false
  const path = relative(git.worktree, folder)
  // An archived plan is there no longer: what has its name is a new one, unless nobody had committed it and it lies there still.
  if ((await git.line(['ls-tree', '--full-tree', landed.commit, '--', path])) === '') {
    const [edited] = await changedSince(git, path, state.git.initial === undefined ? [] : [state.git.initial])
    return edited === undefined || edited.length > 0
  }
  return (await git.run(['diff', '--quiet', landed.commit, '--', folder], { accept: [1] })).code === 1
}

export async function loopFacts(site: Site, change: string, marked?: string): Promise<LoopFacts> {
  const run = await knownRun(site, change)
  const { state } = run
  const tip = await readRef(site.git, `refs/heads/ralph/${change}`)
  const doubts = doubtsOf(state)
  const common = {
    isApart: state.phase === 'idle' || state.home !== undefined,
    costUsd: totalCostUsd(state) ?? 0,
    ...(doubts.length > 0 && { weakened: doubts }),
    ...(state.phase !== 'idle' && { run: state.runId }),
    ...(state.phase !== 'idle' && state.setUp !== undefined && { setUp: state.setUp }),
    ...(tip !== undefined && { tip }),
    ...folderOf(run),
    ...(marked !== undefined && { isMerge: await isIn(site.git, marked, `refs/heads/ralph/${change}`) }),
  }
  if (isRunning(run)) return { ...common, loop: 'running' }
  if (run.damage !== undefined) return { ...common, loop: 'ended', exitCode: 1, reason: run.damage }
  if (state.phase === 'idle') return { ...common, loop: 'none' }
  if (isDead(run)) return { ...common, loop: 'dead' }
  if (await isPlannedAgain(site, change)) return { ...common, isApart: true, loop: 'none' }
  const left = common.isApart || tip !== undefined ? undefined : await leftHere(site, run)
  if (left === 'stories') return { ...common, isApart: true, loop: 'none' }
  const { outcome } = state
  return {
    ...common,
    ...(left !== undefined && { left }),
    loop: 'ended',
    exitCode: state.status === 'done' ? 0 : (outcome?.exitCode ?? 1),
    reason: outcome?.reason ?? 'its loop failed',
    isShort: outcome?.stopReason === 'budget',
  }
}

/** Of a run that was finished in the user's checkout; undefined where it was not. */
async function leftHere(
  site: Site,
  { change, state }: KnownRun,
): Promise<'stories' | 'uncommitted' | 'nothing' | undefined> {
  const isTaken = state.choice === 'cleanup' && state.settings?.checkpoint === 'branch'
  if (state.status !== 'done' && !isTaken) return undefined
  const root = await findRootOf(site)
  const { out } = await site.git.run(['status', '--porcelain', '--', changeDirOf(root, change)])
  // Its ticks would be taken along into the new worktree, and what they stand for would not.
  if (out !== '') return 'uncommitted'
  return (await openChanges(site)).includes(change) ? 'stories' : 'nothing'
}

/** Room for one more work tree with what its gates make. */
const leastFreeBytes = 512 * 1024 * 1024

export function lowDisk({ git }: Site): string {
  const { bavail, bsize } = statfsSync(git.gitCommonDir)
  const free = bavail * bsize
  if (free >= leastFreeBytes) return ''
  const mb = (bytes: number): string => `${Math.floor(bytes / 1024 / 1024)} MB`
  return `${noRoom}: ${mb(leastFreeBytes)} needed, ${mb(free)} free`
}
