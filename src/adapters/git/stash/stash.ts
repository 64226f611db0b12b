// Checkpoints as stash entries: the loop stays on the user's branch and commits nothing.
import { mkdir } from '../../files/now.ts'
import { join } from 'node:path'
import { refuseLockFiles } from '../guard/stale-locks.ts'
import { RalphError } from '../../../core/error.ts'
import { startMessage } from '../../../core/git-facts.ts'
import type { Pending } from '../../../core/git-memory.ts'
import type { Checkpoints, FinishChoice, FinishReport, PreflightReport } from '../../../ports.ts'
import { adoptedWords } from '../attempt/adopted.ts'
import { tellAside } from '../guard/refused-settings.ts'
import { attemptMoves } from '../attempt/attempts.ts'
import type { StartMode } from '../start/branch-start.ts'
import { insistOnConversions } from '../tree/conversions.ts'
import { dropFlags, refuseHiddenEdits } from '../tree/flags.ts'
import { goneAtEnd } from '../attempt/lost-files.ts'
import { shown } from '../git.ts'
import { releaseSubmodules, toldInside } from '../submodules/finish-submodules.ts'
import { realIndex, takeFrom } from '../formats/index-file.ts'
import { tellSwept } from '../submodules/keep-submodules.ts'
import { mendRepository } from '../guard/mend.ts'
import { isEdited } from '../revert/observe.ts'
import { unpin } from '../refs/pins.ts'
import { doubtful, refuseName, refuseReadOnly, refuseState } from '../start/preflight.ts'
import { moveRefs, originName, readRefs } from '../refs/refs.ts'
import { nothingToResume, timeName, type CheckpointDeps, type Store } from '../store.ts'
import { scanTree } from '../tree/scan.ts'
import { loadSnapshot, requireSnapshot, type Snapshot } from '../revert/snapshot.ts'
import { replaceIndex } from '../attempt/staged.ts'
import { keepDropped } from './dropped.ts'
import { dropStashes, ownStashes, readStashLog, stashEntries } from './stash-list.ts'
import { fullState, recordState, storeEntry, type FullState } from './stash-state.ts'
import { isInsideSame, lookInside } from '../submodules/submodules.ts'
import { changedPaths, commitTree, orEmpty } from '../tree/tree.ts'
import { checkpointsBy, drop, keep, restore, type SavePlan } from '../strategy.ts'

export function stashCheckpoints(deps: CheckpointDeps): Checkpoints {
  return checkpointsBy({ preflight, start, ensure, planSave, finish, redo }, deps)
}

async function preflight(store: Store, mode: StartMode): Promise<PreflightReport> {
  const { git, change } = store
  refuseName(change)
  refuseReadOnly(git)
  await refuseLockFiles(git, change)
  const [refs, scan] = await Promise.all([readRefs(git), scanTree(git)])
  const branch = originName(refs.head)
  const report = { worktree: git.worktree, originalBranch: branch, branch }
  const { checkpoint, openAttempt } = store.memory()
  if (mode === 'resume' && checkpoint !== undefined) {
    // What an attempt left that was cut off is found without that index.
    if (openAttempt === undefined) await refuseHiddenEdits(git)
    return { ...report, warnings: [] }
  }
  if (refs.head.commit === undefined || store.home !== undefined) {
    const what =
      store.home === undefined ? 'a stash needs a first commit' : 'it cannot be combined with --worktree'
    throw new RalphError('repository_state', `--checkpoint stash cannot be used here: ${what}`, {
      hint: 'Use --checkpoint branch, the default. Nothing was touched.',
    })
  }
  await refuseState(git, scan, change)
  return { ...report, warnings: await doubtful(git, scan, store.protectedPaths) }
}

async function start(store: Store, mode: StartMode): Promise<{ commit: string }> {
  if (mode === 'resume') {
    const { checkpoint } = store.memory()
    if (checkpoint !== undefined) return { commit: checkpoint }
  }
  await mkdir(store.folder, { recursive: true })
  const { head: origin } = await readRefs(store.git)
  return await store.operate({ op: 'start', origin }, async () => {
    if (mode !== 'resume') {
      await moveRefs(store.git, 'archive', await attemptMoves(store.git, store.change, timeName(store)))
    }
    return { commit: await recordNow(store, 'start', startMessage) }
  })
}

async function ensure(store: Store, storyId: string, byHand = false): Promise<{ commit: string }> {
  const { checkpoint, openAttempt } = store.memory()
  const snapshot = await loadSnapshot(store)
  if (checkpoint === undefined || snapshot === undefined) throw nothingToResume(store.change)
  // Before git looks: it would obey what that attempt has left.
  if (openAttempt !== undefined) await mendRepository(store, snapshot, openAttempt)
  else await insistOnConversions(store, snapshot)
  const now = await fullState(store, snapshot)
  const inside = await lookInside(store, snapshot.gitlinks, snapshot)
  const isSame =
    now.tree === snapshot.tree &&
    now.observed.refs.head.commit === snapshot.head.commit &&
    isInsideSame(inside, snapshot) &&
    !(openAttempt !== undefined && (await isEdited(store, snapshot)))
  if (!isSame && openAttempt !== undefined) {
    await keep(store, openAttempt, false)
    await restore(store)
    return await ensure(store, storyId, byHand)
  }
  const isOurs = (message: string): boolean => message === entryName(store, storyId)
  if (isSame && (await ownStashes(store.git, isOurs)).size > 0) {
    await recordState(store, now, snapshot.commit, snapshot, inside)
    return { commit: snapshot.commit }
  }
  const commit = await store.operate({ op: 'take', story: storyId }, () => retake(store, storyId, true, now))
  if (!isSame) {
    const heads = { from: snapshot.head.commit, to: now.observed.refs.head.commit }
    const message = await adoptedWords(store.git, { from: snapshot.commit, to: commit }, heads, {
      storyId,
      byHand,
    })
    await store.note({ type: 'warning', code: 'changes_adopted', message })
  }
  return { commit }
}

/** An older entry of the same name (of an earlier run) is kept under a ref before the new one takes its place. */
async function retake(store: Store, storyId: string, isOlder: boolean, seen?: FullState): Promise<string> {
  const name = entryName(store, storyId)
  const old = isOlder ? [...(await ownStashes(store.git, (message) => message === name))] : []
  const aside = old.map((hash) => `update ${store.refs}/archive/stash-${hash.slice(0, 12)} ${hash}`)
  await moveRefs(store.git, 'archive', aside)
  await dropStashes(store.git, (message) => message === name)
  return await recordNow(store, 'take', name, seen)
}

async function recordNow(
  store: Store,
  op: 'start' | 'take',
  message: string,
  seen?: FullState,
): Promise<string> {
  const earlier = op === 'start' ? undefined : await loadSnapshot(store)
  const now = seen ?? (await fullState(store, earlier))
  const isSame =
    earlier !== undefined &&
    earlier.tree === now.tree &&
    earlier.head.commit === now.observed.refs.head.commit
  const commit = isSame
    ? earlier.commit
    : await commitTree(store.git, now.tree, [now.observed.refs.head.commit], message)
  await store.step(op, { did: 'checkpoint', commit })
  await moveRefs(store.git, 'checkpoint', [`update ${store.refs}/checkpoint ${commit}`])
  if (op === 'take') await storeEntry(store, now, message)
  const stashLog = await readStashLog(store.git)
  const refs = await readRefs(store.git)
  await recordState(store, { ...now, observed: { ...now.observed, stashLog, refs } }, commit, earlier)
  return commit
}

function planSave(store: Store, storyId: string, snapshot: Snapshot): Promise<SavePlan> {
  return Promise.resolve({
    parents: [snapshot.head.commit, snapshot.commit],
    // On a branch of the user's they stay.
    beside: store.memory().beside,
    async complete(commit) {
      await store.step('save', { did: 'checkpoint', commit })
      await completeSave(store, storyId, commit, snapshot)
    },
  })
}

/** The index is the user's again: what the agent did is in the tree, unstaged, and committed nowhere. */
async function completeSave(
  store: Store,
  storyId: string,
  commit: string,
  snapshot: Snapshot,
): Promise<void> {
  await moveRefs(store.git, 'checkpoint', [`update ${store.refs}/checkpoint ${commit}`])
  const own = join(store.folder, snapshot.own_index ?? snapshot.index)
  await replaceIndex(store, { next: own, snapshot })
  const { head } = await readRefs(store.git)
  // The user has committed meanwhile: what git put into the index then, it has again.
  if (head.commit !== snapshot.head.commit)
    await takeFrom(
      store.git,
      realIndex(store.git),
      head.commit,
      await changedPaths(
        store.git,
        await orEmpty(store.git, snapshot.head.commit),
        await orEmpty(store.git, head.commit),
      ),
    )
  // The user's flag is not for the loop's work: `git status` has to show it.
  await dropFlags(store.git, realIndex(store.git), await changedPaths(store.git, snapshot.tree, commit))
  await dropStashes(store.git, (message) => message === entryName(store, storyId))
  await recordState(store, await fullState(store, snapshot), commit, snapshot)
}

export function hasNoCommits(change: string, choice: 'squash' | 'rename'): RalphError {
  return new RalphError(
    'usage',
    `The run of ${change} uses --checkpoint stash: it has no commits to ${choice}.`,
    {
      hint: `Nothing was touched. The work is in your tree: ralph finish ${change} --cleanup, then git add and git commit.`,
    },
  )
}

async function finish(store: Store, choice: FinishChoice): Promise<FinishReport> {
  if (choice === 'squash' || choice === 'rename') throw hasNoCommits(store.change, choice)
  const { git } = store
  const { origin, initial, checkpoint, cleaned } = store.memory()
  if (origin === undefined || initial === undefined || checkpoint === undefined) {
    const message = [
      cleaned === undefined
        ? `nothing is left to finish for ${store.change}`
        : `nothing is left to finish for ${store.change}: its work is in the work tree, and its last state is archived as ${store.refs}/archive/${cleaned}`,
      ...(await entriesLeft(store)),
    ].join('; ')
    return { message, userPaths: [], loopPaths: [] }
  }
  const [loopPaths, startPaths] = await Promise.all([
    changedPaths(git, initial, checkpoint),
    changedPaths(git, await orEmpty(git, origin.commit), initial),
  ])
  const touched = new Set(loopPaths)
  const gone = await goneAtEnd(store, await orEmpty(git, origin.commit), checkpoint)
  const report = {
    ...(gone.length > 0 && { gone }),
    userPaths: startPaths.filter((path) => !touched.has(path)).map(shown),
    loopPaths: loopPaths.map(shown),
  }
  const inside = await toldInside(store, await loadSnapshot(store))
  if (choice !== 'later') {
    const plan = { tip: checkpoint, time: timeName(store) }
    await store.operate({ op: 'finish', ...plan }, () => performFinish(store, plan.tip, plan.time))
  }
  const message = [
    'the work is in the work tree, uncommitted',
    `nothing was committed for it; each attempt is kept as it was: ralph attempts ${store.change}`,
    ...(await entriesLeft(store)),
    ...inside,
  ].join('; ')
  return { message, ...report }
}

/** In the user's own list, so that is said. */
async function entriesLeft(store: Store): Promise<string[]> {
  const own = entryName(store, '')
  const made = await ownStashes(store.git, (message) => message.startsWith(own))
  return stashEntries(await readStashLog(store.git)).flatMap(({ hash, message }, at) =>
    made.has(hash)
      ? [
          `stash@{${at}} (${message}) is the state before story ${message.slice(own.length)}, kept for inspection; when you no longer need it: ${dropCommand(hash)}`,
        ]
      : [],
  )
}

/** By its hash: until it is typed, the entry may have another place in the list, or none. */
function dropCommand(hash: string): string {
  return `git stash drop "$(git stash list --format='%gd %H' | sed -n 's/ ${hash}$//p')"`
}

async function performFinish(store: Store, tip: string, time: string): Promise<void> {
  const { usedUp } = store.memory()
  const snapshot = await loadSnapshot(store)
  if (snapshot !== undefined) await keepDropped(store, snapshot)
  const stay = new Set(usedUp.map((storyId) => entryName(store, storyId)))
  await moveRefs(store.git, 'archive', [`update ${store.refs}/archive/${time} ${tip}`])
  await dropStashes(store.git, (message) => message.startsWith(entryName(store, '')) && !stay.has(message))
  await moveRefs(store.git, 'finish', [`delete ${store.refs}/checkpoint`])
  await unpin(store)
  await releaseSubmodules(store, snapshot, time)
}

async function redo(store: Store, pending: Pending): Promise<string> {
  const { operation, checkpoint: commit } = pending
  switch (operation.op) {
    case 'take':
      await retake(store, operation.story, commit === undefined)
      return 'the checkpoint was completed'
    case 'save': {
      if (commit === undefined) return await drop(store, pending, 'save')
      const before = await requireSnapshot(store)
      await completeSave(store, operation.story, commit, before)
      await tellSwept(store, before, await loadSnapshot(store))
      await tellAside(store, 'saved')
      return 'the checkpoint was completed'
    }
    case 'finish':
      await performFinish(store, operation.tip, operation.time)
      return 'the end of the loop was completed'
    case 'start':
    case 'adopt':
    case 'keep':
    case 'restore':
    case 'rename':
    case 'unknown':
      return await drop(store, pending, operation.op)
  }
}

function entryName(store: Store, storyId: string): string {
  return `ralph:${store.change}:${storyId}`
}
