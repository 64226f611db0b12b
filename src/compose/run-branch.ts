// Where a run goes on: the work tree stands on the branch of the run, so that the plan is the run's own.
import { safeToType } from '../adapters/git/landing/safe-to-type.ts'
import { firstNames } from '../core/first-names.ts'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { checkOut } from '../adapters/git/tree/check-out.ts'
import { named, shown } from '../adapters/git/git.ts'
import { howToEnd, operationTimes, refuseHalfDone } from '../adapters/git/start/operations.ts'
import { headRef, headText } from '../adapters/git/formats/ref-files.ts'
import { moveRefs, readRef, shortName } from '../adapters/git/refs/refs.ts'
import { sweepTree } from '../adapters/git/guard/stale-locks.ts'
import { exempt } from '../adapters/git/tree/scan.ts'
import { refuseTaken } from '../adapters/git/refs/branch-in-use.ts'
import { shellWord } from '../core/shell-word.ts'
import type { CleanupPlan } from '../core/git-facts.ts'
import { RalphError } from '../core/error.ts'
import { ownerOfPath } from '../core/ownership.ts'
import type { LoopState } from '../core/state.ts'
import { hiddenPaths } from './checkpoints.ts'
import type { KnownRun, Site } from './site.ts'

/**
 * Before a resume reads anything. Switches where nothing can be lost by it; refuses, with nothing touched, where the user has changes
 * on another branch. A run without a checkpoint (settled by a cleanup, or killed before its first) goes on from where the user
 * stands: a branch of its name is that of the run before.
 */
export async function checkOutRunBranch(site: Site, { change, state }: KnownRun): Promise<void> {
  const { git, warn } = site
  if (state.settings?.checkpoint === 'stash' || state.git.checkpoint === undefined) return
  const branch = `ralph/${change}`
  if (state.home !== undefined) await sweepTree(git)
  // What an attempt has left half done is put in order with it.
  if (state.git.openAttempt === undefined && state.git.pending === undefined)
    await refuseHalfDone(git, 'repository_state', `ralph resume ${change}`)
  const stood = headRef(git)
  const place =
    stood === undefined ? `--detach ${headText(git.gitDir).slice(0, 12)}` : shellWord(shortName(stood))
  const isGone = (await readRef(git, `refs/heads/${branch}`)) === undefined
  if (!(await goTo(site, change, branch, state.git.checkpoint))) return
  const back = await safeToType(git, `${git.typed} switch ${place}`)
  const made = `${branch} was gone (deleted or renamed), and is made again at ${state.git.checkpoint.slice(0, 12)}; `
  warn(
    `${isGone ? made : ''}this checkout goes to ${branch}, where the run of ${change} continues; to go back afterwards: ${back}`,
  )
}

/**
 * Before a repair. A user who has left the loop's branch since the loop died, or begun a merge there, works on something else: it
 * goes back only where nothing is uncommitted. True when it had to.
 */
export async function returnToRun(
  site: Site,
  { changeId, absence, branch, originalBranch, git: { checkpoint, pending } }: LoopState,
): Promise<boolean> {
  const { git } = site
  if (absence === undefined || branch === undefined) return false
  const isTheirs = (changedMs: number): boolean => ownerOfPath({ changedMs }, absence).owner === 'user'
  const begun = operationTimes(git.gitDir).find(({ changedMs }) => isTheirs(changedMs))
  if (begun !== undefined) {
    throw new RalphError('repository_state', `You are in the middle of a ${begun.name} in ${git.worktree}.`, {
      hint: `Nothing in it was touched. End it (${howToEnd(git.typed, begun.name)}), then type the command again.`,
    })
  }
  const isMoved = isTheirs(statSync(join(git.gitDir, 'HEAD')).ctimeMs)
  const isFinish = pending?.operation.op === 'finish'
  const headTo = isFinish && 'head' in pending.operation ? (pending.operation as CleanupPlan).head : undefined
  // It was the cleanup that moved HEAD; whatever the user has done there since stays.
  if (headTo !== undefined && headTo.ref === headRef(git)) return false
  // A cleanup that moves no HEAD was begun where the work goes: what it has brought so far is there.
  const place = isFinish && headTo === undefined ? originalBranch : branch
  return isMoved && checkpoint !== undefined && (await goTo(site, changeId, place))
}

/** `branch` may be a commit. Where it is gone, it is made again at `at`. */
async function goTo({ git, warn }: Site, change: string, branch: string, at?: string): Promise<boolean> {
  const head = headRef(git)
  const isGone = (await readRef(git, `refs/heads/${branch}`)) === undefined
  if (head === `refs/heads/${branch}` || (isGone && at === undefined)) return false
  const place = head === undefined ? 'a detached HEAD' : shortName(head)
  const how = ['--no-renames', '--ignore-submodules=dirty', '--untracked-files=all']
  const isOwn = exempt(hiddenPaths, [])
  const changes = (await git.list(['status', '--porcelain', '-z', ...how])).filter(
    (field) => !isOwn(field.slice(3)),
  )
  if (changes.length > 0) {
    throw new RalphError(
      'repository_state',
      `The run of ${change} is on ${branch}, and there are changes on ${place}${git.typed === 'git' ? '' : ` in ${git.worktree}`}: ${changedNames(changes)}.`,
      {
        hint: `Nothing was touched. After a kill some of them may be its agent's, which your switch took along. To continue: \`${git.typed} stash -u\` (or commit what is yours)${isGone ? '' : `, \`${git.typed} switch ${branch}\``}, then type the command again.`,
      },
    )
  }
  refuseTaken(git, `refs/heads/${branch}`, {
    code: 'repository_state',
    safe: 'Nothing was touched.',
    next: 'type the command again',
  })
  if (isGone) await moveRefs(git, 'resume', [`create refs/heads/${branch} ${at}`])
  // Whoever had it and is gone is no reason.
  const what = `The run of ${change} is on ${branch}, which`
  const left = await checkOut(git, ['--ignore-other-worktrees', branch], what, change)
  if (left !== '') warn(left)
  return true
}

/** After a repair that had to go to the loop's branch, for a user who begins anew from where they stood (`head` as HEAD had it). */
export async function backToPlace({ git, warn }: Site, change: string, head: string): Promise<void> {
  if (headText(git.gitDir) === head) return
  const place = shown(head.replace(/^ref: refs\/heads\//, ''))
  const left = await checkOut(git, [place], place, change)
  if (left !== '') warn(left)
}

/** From `git status --porcelain -z --no-renames`. */
function changedNames(fields: readonly string[]): string {
  return firstNames(
    fields.map((field) => named(field.slice(3))),
    10,
  )
}
