// Checkpoints as stash entries: the loop stays on the user's branch and commits nothing.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { outwaitLocks, patienceMs, refuseLockFiles } from './stale-locks.ts'
import { RalphError } from '../../core/error.ts'
import type { Judged } from '../../core/loop.ts'
import type { Checkpoints, FinishReport, KeptAttempt, PreflightReport, SavedCheckpoint } from '../../ports.ts'
import { tellAside } from './aside.ts'
import { attemptMoves } from './attempts.ts'
import type { StartMode } from './branch-start.ts'
import { insistOnConversions } from './conversions.ts'
import { shown } from './git.ts'
import { tellObeyed } from './guarded.ts'
import { releaseSubmodules, toldInside } from './finish-submodules.ts'
import { installIndex, realIndex, takeFrom } from './index-file.ts'
import { keepAttempt, redoKeep } from './keep.ts'
import { lateCommits } from './late.ts'
import { tellSwept } from './keep-submodules.ts'
import { stepOf, type Pending } from './memory.ts'
import { mendRepository } from './mend.ts'
import { unpin } from './pins.ts'
import { doubtful, refuseName, refuseReadOnly, refuseState } from './preflight.ts'
import { moveRefs, readRefs } from './refs.ts'
import { tellingReach } from './reach.ts'
import { isAsLeft, keptAs, restoreFound, restoreSnapshot } from './restore.ts'
import { nothingToResume, openRoom, timeName, type CheckpointDeps, type Room, savedBefore } from './room.ts'
import { scanTree } from './scan.ts'
import { settled, settleGates } from './settle.ts'
import { lookAt, treeToSave } from './saving.ts'
import { loadSnapshot, mustSnapshot, type Snapshot } from './snapshot.ts'
import { dropStashes, readStashLog, stashEntries } from './stash-list.ts'
import { fullState, recordState, storeEntry, type FullState } from './stash-state.ts'
import { isInsideSame, isSameInside, lookInside, outwaitInside } from './submodules.ts'
import { changedPaths, commitTree } from './tree.ts'
import { watch } from './watch.ts'

export function stashCheckpoints(deps: CheckpointDeps): Checkpoints {
  const room = openRoom(deps)
  return tellingReach(room, {
    preflight: (mode) => preflight(room, mode),
    start: (mode) => start(room, mode),
    ensure: (storyId) => ensure(room, storyId),
    watch: (by, n) => watch(room, by, n),
    keep: (n, mayBeSaved = false) => keep(room, n, mayBeSaved),
    look: (since) => lookAt(room, since),
    save: (storyId, message, judged) => save(room, storyId, message, judged),
    isAsLeft: () => isAsLeft(room),
    restore: () => restore(room),
    finish: (choice) => finish(room, choice),
    recover: () => recover(room),
  })
}

async function preflight(room: Room, mode: StartMode): Promise<PreflightReport> {
  const { git, change } = room
  await refuseName(git, change)
  refuseReadOnly(git)
  await refuseLockFiles(git, change)
  const [refs, scan, memory] = await Promise.all([readRefs(git), scanTree(git), room.reread()])
  const branch = refs.head.ref === '' ? refs.head.commit : refs.head.ref.replace('refs/heads/', '')
  const report = { worktree: git.worktree, originalBranch: branch, branch }
  if (mode === 'resume' && memory.checkpoint !== undefined) return { ...report, warnings: [] }
  if (refs.head.commit === '' || room.home !== undefined) {
    const what =
      room.home === undefined
        ? 'a stash needs a commit to stand on'
        : 'a work tree of its own has no use for stashes'
    throw new RalphError('repository_state', `--checkpoint stash cannot be used here: ${what}`, {
      hint: 'Use --checkpoint branch, the default. Nothing was touched.',
      exitCode: 2,
    })
  }
  await refuseState(git, scan, change)
  return { ...report, warnings: await doubtful(git, scan, room.protectedPaths) }
}

async function start(room: Room, mode: StartMode): Promise<{ commit: string }> {
  if (mode === 'resume') {
    const { checkpoint } = await room.reread()
    if (checkpoint !== undefined) return { commit: checkpoint }
  }
  await mkdir(room.folder, { recursive: true })
  const { head } = await readRefs(room.git)
  const origin = { kind: head.ref === '' ? 'detached' : 'branch', ref: head.ref, commit: head.commit }
  return await room.operate('start', { origin }, async () => {
    if (mode !== 'resume') {
      await moveRefs(room.git, 'archive', await attemptMoves(room.git, room.change, timeName(room)))
    }
    return { commit: await recordNow(room, 'start', 'initial state') }
  })
}

async function ensure(room: Room, storyId: string): Promise<{ commit: string }> {
  const { checkpoint, openAttempt: unsettled } = await room.memory()
  const snapshot = await loadSnapshot(room)
  if (checkpoint === undefined || snapshot === undefined) throw nothingToResume(room.change)
  // Before git looks: it would obey what that attempt has left.
  if (unsettled !== undefined) await mendRepository(room, snapshot, unsettled)
  else await insistOnConversions(room, snapshot)
  const now = await fullState(room, snapshot)
  const inside = await lookInside(room, snapshot.gitlinks, snapshot)
  const isSame =
    now.tree === snapshot.tree &&
    now.sight.refs.head.commit === snapshot.head.commit &&
    isInsideSame(inside, snapshot)
  if (!isSame && (await room.reread()).openAttempt !== undefined) {
    const { openAttempt = 0 } = await room.memory()
    await keep(room, openAttempt, false)
    await restore(room)
    return await ensure(room, storyId)
  }
  const entries = stashEntries(await readStashLog(room.git))
  if (isSame && entries.some(({ message }) => message === entryName(room, storyId))) {
    await recordState(room, now, snapshot.commit, snapshot, inside)
    return { commit: snapshot.commit }
  }
  const commit = await room.operate('take', { story: storyId }, () => retake(room, storyId, true, now))
  if (!isSame) {
    const message = `the work tree had changed since the last checkpoint; the changes are now part of it (before story ${storyId})`
    await room.note({ type: 'warning', code: 'changes_adopted', message })
  }
  return { commit }
}

/** An older entry of the same name (of an earlier run) is kept under a ref before the new one takes its place. */
async function retake(room: Room, storyId: string, isOlder: boolean, seen?: FullState): Promise<string> {
  const name = entryName(room, storyId)
  const entries = stashEntries(await readStashLog(room.git))
  const old = isOlder ? entries.filter(({ message }) => message === name) : []
  const aside = old.map(({ hash }) => `update ${room.refs}/archive/stash-${hash.slice(0, 12)} ${hash}`)
  await moveRefs(room.git, 'archive', aside)
  await dropStashes(room.git, (message) => message === name)
  return await recordNow(room, 'take', name, seen)
}

async function recordNow(room: Room, op: string, message: string, seen?: FullState): Promise<string> {
  const earlier = op === 'start' ? undefined : await loadSnapshot(room)
  const now = seen ?? (await fullState(room, earlier))
  const isSame =
    earlier !== undefined && earlier.tree === now.tree && earlier.head.commit === now.sight.refs.head.commit
  const commit = isSame
    ? earlier.commit
    : await commitTree(room.git, now.tree, [now.sight.refs.head.commit], message)
  await room.step(op, 'checkpoint', commit)
  await moveRefs(room.git, 'checkpoint', [`update ${room.refs}/checkpoint ${commit}`])
  if (op === 'take') await storeEntry(room, now, message)
  const stashLog = await readStashLog(room.git)
  const refs = await readRefs(room.git)
  await recordState(room, { ...now, sight: { ...now.sight, stashLog, refs } }, commit, earlier)
  return commit
}

async function keep(room: Room, n: number, mayBeSaved: boolean): Promise<KeptAttempt> {
  const snapshot = await mustSnapshot(room)
  const data = { n, commit: snapshot.commit, now_ms: room.clock.now() }
  return await room.operate('keep', data, () => keepAttempt(room, n, snapshot, mayBeSaved))
}

async function save(
  room: Room,
  storyId: string,
  message: string,
  judged: Judged | undefined,
): Promise<SavedCheckpoint> {
  const again = await savedBefore(room, message)
  if (again !== undefined) return again
  const snapshot = await mustSnapshot(room)
  const { attempt = 0 } = await room.memory()
  const { tree, refused } = await treeToSave(room, snapshot, judged)
  if (refused !== undefined) return { commit: snapshot.commit, changed: false, refused }
  const saved = await room.operate('save', { story: storyId, message }, async () => {
    await settleGates(room, snapshot)
    const commit = await commitTree(room.git, tree, [snapshot.head.commit, snapshot.commit], message)
    await room.step('save', 'checkpoint', commit)
    await completeSave(room, storyId, commit, snapshot)
    const changed = tree !== snapshot.tree || !isSameInside(snapshot, await mustSnapshot(room))
    return { commit, changed }
  })
  await tellSwept(room, snapshot, await loadSnapshot(room))
  await tellAside(room, 'saved')
  await settled(room, [], saved.commit)
  await tellObeyed(room, snapshot, attempt)
  return saved
}

/** The index is the user's again: what the agent did is in the tree, unstaged, and committed nowhere. */
async function completeSave(room: Room, storyId: string, commit: string, snapshot: Snapshot): Promise<void> {
  await moveRefs(room.git, 'checkpoint', [`update ${room.refs}/checkpoint ${commit}`])
  await installIndex(room.git, join(room.folder, snapshot.own_index))
  const { head } = await readRefs(room.git)
  // The user has committed meanwhile: what git put into the index then, it has again.
  if (head.commit !== snapshot.head.commit)
    await takeFrom(
      room.git,
      realIndex(room.git),
      head.commit,
      await changedPaths(room.git, snapshot.head.commit, head.commit),
    )
  await dropStashes(room.git, (message) => message === entryName(room, storyId))
  await recordState(room, await fullState(room, snapshot), commit, snapshot)
}

async function restore(room: Room): Promise<{ commit: string }> {
  const snapshot = await mustSnapshot(room)
  const { beside } = await room.memory()
  const holder = await keptAs(room)
  const late = await lateCommits(room, snapshot)
  await room.operate('restore', { commit: snapshot.commit }, () => restoreSnapshot(room, snapshot, holder))
  await tellAside(room, 'reverted')
  await settled(room, [...beside, ...late], snapshot.commit)
  return { commit: snapshot.commit }
}

async function finish(room: Room, choice: 'cleanup' | 'keep' | 'later'): Promise<FinishReport> {
  const { git } = room
  const { origin, initial, checkpoint, cleaned } = await room.reread()
  if (origin === undefined || initial === undefined || checkpoint === undefined) {
    const message =
      cleaned === undefined
        ? `nothing is left to finish for ${room.change}`
        : `${room.change} is finished, nothing is left to do; the work is in the work tree, its last state is archived as ${room.refs}/archive/${cleaned}`
    return { message, userPaths: [], loopPaths: [] }
  }
  const [loopPaths, startPaths] = await Promise.all([
    changedPaths(git, initial, checkpoint),
    changedPaths(git, origin.commit, initial),
  ])
  const touched = new Set(loopPaths)
  const report = {
    userPaths: startPaths.filter((path) => !touched.has(path)).map(shown),
    loopPaths: loopPaths.map(shown),
  }
  const inside = await toldInside(room, await loadSnapshot(room))
  if (choice !== 'later') {
    const plan = { tip: checkpoint, time: timeName(room) }
    await room.operate('finish', plan, () => performFinish(room, plan.tip, plan.time))
  }
  const message = [
    'the work is in the work tree, uncommitted',
    'nothing was committed for it',
    ...inside,
  ].join('; ')
  return { message, ...report }
}

async function performFinish(room: Room, tip: string, time: string): Promise<void> {
  const { usedUp } = await room.memory()
  const stay = new Set(usedUp.map((storyId) => entryName(room, storyId)))
  await moveRefs(room.git, 'archive', [`update ${room.refs}/archive/${time} ${tip}`])
  await dropStashes(room.git, (message) => message.startsWith(entryName(room, '')) && !stay.has(message))
  await moveRefs(room.git, 'finish', [`delete ${room.refs}/checkpoint`])
  await unpin(room)
  await releaseSubmodules(room, await loadSnapshot(room), time)
}

async function recover(room: Room): Promise<string> {
  await outwaitLocks(room, patienceMs)
  await outwaitInside(room, await loadSnapshot(room), patienceMs)
  const { pending } = await room.reread()
  if (pending === undefined) return ''
  const what = await redo(room, pending)
  await room.note({ type: 'git.ended', op: pending.op })
  return what
}

async function redo(room: Room, pending: Pending): Promise<string> {
  const commit = stepOf(pending, 'checkpoint')
  const undone = async (): Promise<string> => {
    await room.note({ type: 'git.step', op: pending.op, step: 'undone' })
    return `an unfinished ${pending.op} was dropped; the work tree is as it was`
  }
  switch (pending.op) {
    case 'take':
      await retake(room, z.string().parse(pending.data['story']), commit === undefined)
      return 'the checkpoint was completed'
    case 'save': {
      if (commit === undefined) return await undone()
      const before = await mustSnapshot(room)
      await completeSave(room, z.string().parse(pending.data['story']), commit, before)
      await tellSwept(room, before, await loadSnapshot(room))
      await tellAside(room, 'saved')
      return 'the checkpoint was completed'
    }
    case 'keep':
      return await redoKeep(room, pending)
    case 'restore':
      await restoreFound(room, await mustSnapshot(room))
      await tellAside(room, 'reverted')
      await settled(room, (await room.memory()).beside, (await mustSnapshot(room)).commit)
      return 'the revert to the last checkpoint was completed'
    case 'finish':
      await performFinish(room, z.string().parse(pending.data['tip']), z.string().parse(pending.data['time']))
      return 'the end of the loop was completed'
    default:
      return await undone()
  }
}

function entryName(room: Room, storyId: string): string {
  return `ralph:${room.change}:${storyId}`
}
