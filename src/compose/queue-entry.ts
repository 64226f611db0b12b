// What the merge queue knows of one change, for those who only ask about that change.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { inspectLock } from '../adapters/files/lock.ts'
import { queuePaths, readQueueJournal, wish } from '../adapters/files/queue-files.ts'
import { isIn } from '../adapters/git/landing/landing.ts'
import type { Git } from '../adapters/git/git.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import { shellWord } from '../core/shell-word.ts'
import { RalphError } from '../core/error.ts'
import { bothChanged, byHand, parked, parkedSince } from '../core/queue-due.ts'
import { replayQueue } from '../core/queue.ts'
import type { Entry } from '../core/queue.ts'
import type { ParkedWork } from '../core/report.ts'
import { isRunning, isTree } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { upFrom, upHere } from './up-here.ts'

/** A queue that cannot be read hides no run: its own commands say what is wrong. */
function entryNow(gitCommonDir: string, change: string): Entry | undefined {
  try {
    const { entries } = replayQueue(readQueueJournal(queuePaths(gitCommonDir)))
    return entries.find((entry) => entry.change === change)
  } catch (error) {
    if (error instanceof RalphError && error.code === 'journal_unreadable') return undefined
    throw error
  }
}

/** Who kills a loop beside `ralph up` does not want it back: a queue takes up what it finds dead. */
export function parkKilled({ git, identity }: Site, change: string): void {
  const paths = queuePaths(git.gitCommonDir)
  const { state } = entryNow(git.gitCommonDir, change) ?? {}
  const isQueued = state === 'running' || state === 'resolving'
  if (isQueued && inspectLock(paths.lock, identity).held === 'alive')
    wish(
      paths,
      parked(change, 'human', 'its loop was stopped', `To continue it: ralph queue retry ${change}`),
    )
}

/** Whoever goes on with it by hand should know how it lands. */
export function isParked(gitCommonDir: string, change: string): boolean {
  return entryNow(gitCommonDir, change)?.state === 'parked'
}

/** What an agent is to put together now, from the repository's root. */
export function pathsInConflict(gitCommonDir: string, change: string): readonly string[] {
  return entryNow(gitCommonDir, change)?.conflict?.paths ?? []
}

/** The log that says why it is parked; undefined where it is not, or another reason is told. */
export function landingLog(gitCommonDir: string, change: string): string | undefined {
  const { state, hint = '' } = entryNow(gitCommonDir, change) ?? {}
  const path = logOfLanding(gitCommonDir, change)
  return state === 'parked' && hint.includes(path) && existsSync(path) ? path : undefined
}

/** What the commands of its landing printed. */
export function logOfLanding(gitCommonDir: string, change: string): string {
  return join(queuePaths(gitCommonDir).logs, `${change}.log`)
}

/** It has a conflict that no accepted merge has ended. */
export function isUnmerged(gitCommonDir: string, change: string): boolean {
  const { state, unresolved } = entryNow(gitCommonDir, change) ?? {}
  return unresolved !== undefined && state !== 'removed'
}

/** Why the queue does not land it: what its run says of itself is not the whole truth then. */
export async function parkedWork(site: Site, run: KnownRun): Promise<ParkedWork | undefined> {
  const { git } = site
  const { choice, status, outcome } = run.state
  if (isRunning(run) || choice === 'cleanup') return undefined
  const entry = entryNow(git.gitCommonDir, run.change)
  const { state, unresolved } = entry ?? {}
  if (entry !== undefined && state === 'parked') {
    const { why, hint } =
      parkedSince(entry, {
        loop: 'ended',
        ...(run.state.phase !== 'idle' && { run: run.state.runId }),
        exitCode: status === 'done' ? 0 : (outcome?.exitCode ?? 1),
        ...(outcome !== undefined && { reason: outcome.reason }),
      }) ?? entry
    return { why, hint, ...(unresolved === undefined && status !== 'done' && { byLoop: true }) }
  }
  if (unresolved === undefined) return undefined
  const what = bothChanged(unresolved.paths)
  const isLeft = await isAsLeft(git, run, unresolved.marked)
  if (state !== 'removed') {
    const { held } = inspectLock(queuePaths(git.gitCommonDir).lock, site.identity)
    const next = isLeft ? 'both sides are merged then' : 'your merge of both sides is looked at then'
    return held === 'alive' || held === 'elsewhere'
      ? {
          why: `${what}; ralph up is at work on it`,
          hint: 'To watch it: ralph queue --watch',
          waits: true,
        }
      : {
          why: `${what}; it waits for ralph up: ${next}`,
          hint: `To go on: ${await upHere(site, 'ralph up')}`,
          waits: true,
        }
  }
  // What was refused is not right because nobody waits for it any more.
  if (!isLeft) return undefined
  const { folder } = folderOf(run)
  const up = `ralph up ${run.change}`
  // Its steps begin in that folder.
  const again = folder === undefined ? up : await upFrom(site, run, up)
  return {
    why: `${what}; no merge of both was accepted`,
    hint: byHand(run.change, unresolved.paths, folder, { again }),
  }
}

/** Whether its branch stands on the markers of a conflict as a loop has left it: no commit of anybody's is on them. */
export async function isAsLeft(git: Git, { change, state }: KnownRun, marked: string): Promise<boolean> {
  const ref = `refs/heads/ralph/${change}`
  const tip = await readRef(git, ref)
  if (tip === undefined || !(await isIn(git, marked, ref))) return false
  return tip === marked || tip === state.git.lastCheckpoint
}

/** Git would bring such a branch without a conflict, and with it what was refused. */
export async function refuseConflict(site: Site, run: KnownRun): Promise<void> {
  const { git } = site
  const { unresolved } = entryNow(git.gitCommonDir, run.change) ?? {}
  if (unresolved === undefined || !(await isAsLeft(git, run, unresolved.marked))) return
  const parked = await parkedWork(site, run)
  if (parked !== undefined) throw parkedError(run.change, parked)
}

/** A loop that only merges has saved nothing of its own: what a person has committed on top of it comes by the queue alone. */
export async function refuseUnlanded(site: Site, run: KnownRun): Promise<void> {
  const { unresolved } = entryNow(site.git.gitCommonDir, run.change) ?? {}
  if (unresolved === undefined) return
  const parked = await parkedWork(site, run)
  throw parkedError(
    run.change,
    parked ?? {
      why: `${bothChanged(unresolved.paths)}; your merge of both has not landed yet`,
      hint: `To land it: ${await upHere(site, `ralph up ${run.change}`)}`,
    },
  )
}

export function parkedError(change: string, { why, hint, waits }: ParkedWork): RalphError {
  const how = waits === true ? 'is' : 'is parked'
  return new RalphError('usage', `${change} ${how} in the merge queue: ${why}.`, {
    hint: `Nothing was touched. ${hint}`,
  })
}

/** Of a run in a work tree of its own. */
export function folderOf({ state }: KnownRun): { readonly folder?: string } {
  const isOwn = state.phase !== 'idle' && state.home !== undefined && isTree(state.worktree)
  return isOwn ? { folder: shellWord(state.worktree) } : {}
}
