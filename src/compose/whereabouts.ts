// Where the work of a run is now, what became of its cleanup, and what its user still has to know: for `ralph status`.
// Long because each fact decides what the others mean; they are asked side by side.
import { firstNames } from '../core/first-names.ts'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { bringingFile } from '../adapters/files/paths.ts'
import { headRef } from '../adapters/git/formats/ref-files.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import type { Git } from '../adapters/git/git.ts'
import type { leftIn } from '../adapters/git/finish/only-in-worktree.ts'
import { checkpointFolder } from '../adapters/git/store.ts'
import { lastingWarnings } from '../core/outcome.ts'
import type { LoopEvent } from '../core/event.ts'
import type { ParkedWork } from '../core/report.ts'
import { hasMerge, provenStories, refusedByGate } from '../core/story.ts'
import type { LandedWork, StatusReport } from '../ui/app.ts'
import type { broughtWork } from './brought.ts'
import type { PlanNow } from './plan-now.ts'
import { isRunning, isTree, needsRepair } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { hasQueue } from './queue-known.ts'

/** Of a run that is not running now. */
export async function whereabouts(site: Site, run: KnownRun): Promise<Partial<StatusReport>> {
  const { git } = site
  if (run.state.phase === 'idle') return {}
  const { branch, home, choice, originalBranch } = run.state
  const worktree = await treeNow(site, run.change, run.state)
  const { lastCheckpoint: checkpoint } = run.state.git
  const finished = run.recall('loop.finished').at(-1)
  // A resume that had nothing to do has begun no branch since.
  const isCleaned = choice === 'cleanup' || run.state.git.cleaned !== undefined
  const isInPlace = branch === originalBranch
  const isMine = home === undefined ? worktree === git.worktree : home === git.worktree
  const isLeft = checkpoint !== undefined && !isCleaned && !isInPlace && branch !== undefined
  const isHere = isMine && (isCleaned || isInPlace)
  const made = isCleaned ? (finished?.commit?.slice(0, 12) ?? '') : ''
  const attempt = run.state.iterations.findLast((each) => each.attempt_ref !== undefined)
  const isEmpty =
    attempt !== undefined && run.recall('attempt.kept').some(({ n, changed }) => n === attempt.n && !changed)
  const [isDirty, squashed, gone, notes, live, isThere, isAncestor, plan, isPlanGone, isKept, landed] =
    await Promise.all([
      isHere && checkpoint !== undefined
        ? hasUncommitted(git).then(async (is) => is && !(await isMerged(git, checkpoint, originalBranch)))
        : undefined,
      made === '' ? undefined : squashedOn(git, made, originalBranch),
      run.state.gone.length === 0
        ? []
        : namedRestores().then(({ stillGone }) => stillGone(git, run.state.gone, checkpoint)),
      notesOf(site, run),
      liveWords(site, run),
      !isLeft || readRef(git, `refs/heads/${branch}`).then((hash) => hash !== undefined),
      isLeft && hasMoved(git, run).then((has) => has && isMerged(git, checkpoint, originalBranch)),
      isHere || checkpoint === undefined
        ? planHere(site, run)
        : run.state.status === 'done' && isWhereItRuns(git, run, false)
          ? planHere(site, run, run.state.root)
          : undefined,
      !needsRepair(run) && isWhereItRuns(git, run, isHere) && isGoneHere(site, run),
      !isEmpty &&
        (attempt?.attempt_ref === undefined ||
          readRef(git, attempt.attempt_ref).then((hash) => hash !== undefined)),
      isLeft && landedHere(site, run),
    ])
  // What else is uncommitted is the user's own.
  const isAllMine = isCleaned && finished !== undefined && broughtNothing(finished)
  const { cleaned } = run.state.git
  const brought =
    isDirty === undefined || squashed !== undefined || isAllMine || isInPlace || cleaned === undefined
      ? undefined
      : await findBrought(git, { change: run.change, cleaned, checkpoint, original: originalBranch })
  const uncommitted =
    (squashed !== undefined || isAllMine) && isHere ? false : (brought?.uncommitted ?? isDirty)
  const told = [...live, ...(uncommitted === false && !isAllMine ? [] : notes)]
  const isForUser = run.state.outcome?.stopReason === 'human' && run.state.settings.done_criteria === 'tasks'
  const yours = isForUser ? await (await import('./plan-now.ts')).yoursNow(site, run) : []
  const only =
    (isCleaned || landed) && home !== undefined && isTree(worktree)
      ? await onlyIn(git, { change: run.change, folder: worktree, home })
      : undefined
  const before = hasMerge(run.state.stories)
    ? (await (await import('./earlier.ts')).runsBefore(site, run)).flatMap(({ past }) => past.iterations)
    : []
  const isRefused = finished?.ok === false && !isCleaned
  const on = headRef(git)?.replace(/^refs\/heads\//, '') ?? ''
  // Before that the next step is a resume, whatever was chosen.
  const isDone = run.state.status === 'done'
  const isKeptBranch = choice === 'keep' && isDone && isLeft && isThere && !isAncestor && !landed
  const kept = isKeptBranch
    ? await (
        await import('./kept-branch.ts')
      ).keptBranch(git, branch, finished?.message ?? '', isMine && on === branch)
    : undefined
  return {
    where: {
      // A run that began nothing may have been given the cleanup of the one before it.
      branch: checkpoint === undefined && run.state.git.cleaned === undefined ? '' : branch,
      checked_out: on,
      ...(kept !== undefined && { kept }),
      ...(home !== undefined && { home, worktree }),
      ...(isCleaned && finished !== undefined && { cleaned_at: finished.time }),
      ...(squashed !== undefined && { squashed: made, squashed_on: squashed }),
      ...(uncommitted !== undefined && { uncommitted }),
      ...brought,
      ...(isCleaned && finished !== undefined && wasMerged(finished) && { is_own_merge: true as const }),
      ...(isAllMine && { is_nothing: true as const }),
      ...(!isThere && { is_gone: true as const }),
      ...(isAncestor && { is_merged: true as const }),
      ...(landed && { landed }),
      ...(!isKept && { is_attempt_gone: true as const }),
      ...(before.length > 0 && { attempts_before: before.length }),
      ...(only !== undefined && { leftover_tree: worktree }),
      ...(only !== undefined && only.length > 0 && { leftover_files: only }),
      ...(plan !== undefined && { plan }),
      ...(isPlanGone && { is_plan_gone: true as const }),
      ...(yours.length > 0 && { yours }),
      ...(isForUser &&
        home === undefined &&
        branch !== on && { switch_there: await safely(git, `git switch ${branch}`) }),
    },
    ...(isRefused &&
      !(await isMerged(git, branch, originalBranch)) && {
        finish_refused: await safely(git, finished.message),
        ...(finished.squash && { squash_refused: true as const }),
      }),
    ...(run.state.gone.length > 0 && { gone }),
    ...(told.length > 0 && { notes: told }),
  }
}

/** Merged, its commits are there, whatever was made of them since. */
async function findBrought(
  git: Git,
  {
    checkpoint = '',
    ...run
  }: Parameters<typeof broughtWork>[1] & { readonly checkpoint?: string | undefined },
): ReturnType<typeof broughtWork> {
  if (await isMerged(git, checkpoint, run.original)) return undefined
  return (await import('./brought.ts')).broughtWork(git, run)
}

/** Seldom needed, and dear to load. */
export async function safely(git: Git, command: string): Promise<string> {
  return (await import('../adapters/git/landing/safe-to-type.ts')).safeToType(git, command)
}

/** A loop's own may have been moved by `git worktree move`. */
async function treeNow(
  { git }: Site,
  change: string,
  { home, worktree }: { readonly home?: string | undefined; readonly worktree: string },
): Promise<string> {
  if (home === undefined || isTree(worktree)) return worktree
  const { loopTree } = await import('../adapters/git/start/worktrees.ts')
  return (await loopTree(git, change))?.worktree ?? worktree
}

/** Seldom needed: only a tree that is left is looked at. */
export async function onlyIn(git: Git, tree: Parameters<typeof leftIn>[1]): ReturnType<typeof leftIn> {
  const [{ leftIn }, { hiddenPaths }] = await Promise.all([
    import('../adapters/git/finish/only-in-worktree.ts'),
    import('./checkpoints.ts'),
  ])
  return await leftIn(git, tree, hiddenPaths)
}

type Finished = Extract<LoopEvent, { type: 'loop.finished' }>

function broughtNothing({ message }: Finished): boolean {
  return message.startsWith('the loop has saved nothing')
}

function wasMerged({ message }: Finished): boolean {
  return message.startsWith('the work was merged into ')
}

/** Where no queue ever ran nothing is loaded. */
export async function landedHere(site: Site, run: KnownRun): Promise<LandedWork | undefined> {
  return hasQueue(site.git) ? (await import('./landed.ts')).landedWork(site, run) : undefined
}

/** Goes after the name of the change. */
export function landedWords({ target, commit, is_pulled: isPulled }: LandedWork): string {
  return isPulled
    ? `has landed on ${target} as ${commit.slice(0, 7)}`
    : `has landed as ${commit.slice(0, 7)}, and your ${target} does not have it yet`
}

export async function parkedHere(site: Site, run: KnownRun): Promise<ParkedWork | undefined> {
  return hasQueue(site.git) ? await (await import('./queue-entry.ts')).parkedWork(site, run) : undefined
}

/** Whether the queue leaves it to a person, whatever comes of a loop now. */
export async function isParkedHere({ git }: Site, change: string): Promise<boolean> {
  return hasQueue(git) && (await import('./queue-entry.ts')).isParked(git.gitCommonDir, change)
}

/** A conflict that the queue has found is brought by the queue, or not at all. */
export async function refuseConflictHere(site: Site, run: KnownRun): Promise<void> {
  if (hasQueue(site.git)) await (await import('./queue-entry.ts')).refuseUnlanded(site, run)
}

/** Dear to load, and seldom what a look is for. `root`: where the work is, else where the user stands. */
export async function planHere(
  site: Site,
  { change, state }: KnownRun,
  root?: string,
): Promise<PlanNow | undefined> {
  // Boxes that an agent has ticked in an attempt which nobody has judged say nothing.
  if (state.settings?.done_criteria !== 'tasks' || state.git.openAttempt !== undefined) return undefined
  const plan = await (await import('./plan-now.ts')).planNow(site, change, root)
  const refused = refusedByGate(state).length
  if (plan === undefined || refused === 0) return plan
  // It counts boxes: some of those that a gate has refused may be unticked again.
  const proven = provenStories(state).filter(({ status }) => status === 'done').length
  return { ...plan, done: Math.min(plan.done, Math.max(proven, plan.done - refused)) }
}

/** Whether a resume would go on in the files as they are now. */
function isWhereItRuns(git: Git, { state: { branch, home, worktree } }: KnownRun, isHere: boolean): boolean {
  if (home !== undefined) return worktree !== undefined && isTree(worktree)
  return isHere || (worktree === git.worktree && headRef(git) === `refs/heads/${branch}`)
}

async function isGoneHere(site: Site, run: KnownRun): Promise<boolean> {
  const { root, settings } = run.state
  // The usual case, without loading anything.
  if (root === undefined || existsSync(join(root, 'openspec', 'changes', run.change))) return false
  return settings?.done_criteria === 'tasks' && (await import('./plan-now.ts')).isPlanGone(site, run)
}

/** What a dead attempt installed is in force for the user's own git; what a finish had begun is there in part. */
export async function liveWords({ git }: Site, run: KnownRun): Promise<string[]> {
  const { change } = run
  if (isRunning(run)) return []
  if (existsSync(bringingFile(git.gitDir)))
    return [
      `a ralph restore was killed half-way here, and files may be missing: until ralph restore or ralph resume ${change} completes it, leave them alone`,
    ]
  if (!needsRepair(run)) return []
  const { openAttempt, pending } = run.state.git
  if (pending?.operation.op === 'finish')
    return [
      `a finish was cut off in the middle: until ralph finish ${change} --cleanup completes it, git status may show changes that are not real`,
    ]
  if (openAttempt === undefined) return []
  const { leftInForce } = await import('../adapters/git/guard/left-in-force.ts')
  const live = await leftInForce({ git, folder: checkpointFolder(git.gitCommonDir, change) })
  if (live.length === 0) return []
  return [
    `the attempt that died left settings or hooks that git uses: ${firstNames(live)}; they stay active until ralph resume ${change} or ralph finish ${change} puts it back`,
  ]
}

/** Undefined where git cannot tell: after a power cut HEAD may lead to an agent's commit that was never on the disk. */
async function hasUncommitted(git: Git): Promise<boolean | undefined> {
  const asked = ['status', '--porcelain', '--ignore-submodules=dirty']
  const { out, code } = await git.run(asked, { accept: [128] })
  return code === 0 ? out !== '' : undefined
}

/** Where the branch that the run began on still is where it was, nothing of the run can be in it: no need to ask git. */
async function hasMoved(git: Git, { state }: KnownRun): Promise<boolean> {
  const { origin, adopted, lastCheckpoint } = state.git
  // What the user put on the run's branch may have been anywhere before.
  if (origin?.ref === undefined || origin.commit === undefined) return true
  if (origin.commit === lastCheckpoint || adopted.length > 0) return true
  return (await readRef(git, origin.ref)) !== origin.commit
}

/** A hook of the user's, or they themselves, may have left the branch or renamed it. */
async function squashedOn(git: Git, commit: string, original: string): Promise<string | undefined> {
  if (original !== '' && (await isMerged(git, commit, original))) return original
  return (await isMerged(git, commit, 'HEAD'))
    ? (headRef(git)?.replace(/^refs\/heads\//, '') ?? '')
    : undefined
}

async function isMerged(git: Git, branch: string, original: string): Promise<boolean> {
  const asked = ['merge-base', '--is-ancestor', branch, original]
  return (await git.run(asked, { accept: [1, 128] })).code === 0
}

/** As the summary of the last loop had them; what the user has agreed to since is settled. */
async function notesOf(site: Site, { change, recall, state }: KnownRun): Promise<string[]> {
  const events = recall('loop.started', 'warning')
  const began = events.findLastIndex((event) => event.type === 'loop.started')
  // What a repair has undone is told before the loop that goes on.
  const told = events.flatMap((event, at) =>
    event.type === 'warning' &&
    lastingWarnings.has(event.code) &&
    (at >= began || event.code === 'undone_after_death')
      ? [event]
      : [],
  )
  if (told.length === 0) return []
  const { git, env } = site
  // Seldom needed, and dear to load.
  const [{ isOffered }, { readSettingsFile }, { userFolder }, { unagreed }] = await Promise.all([
    import('../adapters/git/guard/refused-settings.ts'),
    import('../config/files.ts'),
    import('../config/load.ts'),
    import('./config-trust.ts'),
  ])
  const folder = checkpointFolder(git.gitCommonDir, change)
  const files = {
    project: await readSettingsFile(git.worktree),
    user: await readSettingsFile(userFolder(env)),
  }
  const [isAsked, isLeft] = await Promise.all([
    unagreed(git.gitCommonDir, files).then((doubtful) => doubtful.length > 0),
    isOffered({ git, change, folder }),
  ])
  const now = await Promise.all(
    told.map(async ({ code, message }) => {
      if (code === 'commit_off') return (await isPicked(git, message)) ? undefined : message
      if (!namesRestore.has(code)) return message
      return (await namedRestores()).stillUndone(git, change, message, state.git.lastCheckpoint)
    }),
  )
  const isOpen = (code: string): boolean =>
    code === 'config_changed' ? isAsked : code === 'git_settings' ? isLeft : true
  return [...new Set(told.flatMap(({ code }, at) => (isOpen(code) ? (now[at] ?? []) : [])))]
}

const namesRestore: ReadonlySet<string> = new Set(['hidden_work', 'submodule_swept', 'undone_after_death'])

/** Seldom needed. */
const namedRestores = () => import('./named-restores.ts')

/** Whether what a commit that was taken off brings is there again. */
async function isPicked(git: Git, message: string): Promise<boolean> {
  const [, hash = ''] = /^your commit ([0-9a-f]+) /.exec(message) ?? []
  const asked = await git.run(['cherry', 'HEAD', hash, `${hash}^`], { accept: [128] })
  return hash !== '' && (asked.out === '' ? asked.code === 0 : asked.out.startsWith('-'))
}
