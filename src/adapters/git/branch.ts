// Checkpoints as commits on a branch of their own, `ralph/<change>`: the default strategy.
import { join } from 'node:path'
import { RalphError } from '../../core/error.ts'
import type { Judged } from '../../core/loop.ts'
import { ownerOfRef } from '../../core/ownership.ts'
import type { Checkpoints, KeptAttempt, SavedCheckpoint } from '../../ports.ts'
import { tellAside } from './aside.ts'
import { finishBranch, redoFinish } from './branch-finish.ts'
import { preflightBranch, redoStart, startBranch } from './branch-start.ts'
import { insistOnConversions } from './conversions.ts'
import { shown } from './git.ts'
import { tellObeyed } from './guarded.ts'
import { copyIndex, installIndex, realIndex } from './index-file.ts'
import { keepAttempt, redoKeep } from './keep.ts'
import { tellSwept } from './keep-submodules.ts'
import { lateCommits } from './late.ts'
import { readLedger } from './ledger.ts'
import { stepOf } from './memory.ts'
import { mendRepository } from './mend.ts'
import { endOperations } from './operations.ts'
import { moveRefs, readRefs, setHead, type Refs } from './refs.ts'
import { tellingReach } from './reach.ts'
import { isAsLeft, keptAs, restoreFound, restoreSnapshot } from './restore.ts'
import { placeOf } from './reunite.ts'
import { nothingToResume, openRoom, timeName, type CheckpointDeps, type Room, savedBefore } from './room.ts'
import { outwaitLocks, patienceMs } from './stale-locks.ts'
import { exempt } from './scan.ts'
import { settled, settleGates } from './settle.ts'
import { isDirty, look } from './sight.ts'
import { lookAt, treeToSave } from './saving.ts'
import {
  advanceSnapshot,
  loadSnapshot,
  mustSnapshot,
  saveSnapshot,
  snapshotIndex,
  type Sight,
  type Snapshot,
} from './snapshot.ts'
import { isInsideSame, isSameInside, lookInside, outwaitInside } from './submodules.ts'
import { commitTree, isAncestor, writeTree } from './tree.ts'
import { watch } from './watch.ts'

export function branchCheckpoints(deps: CheckpointDeps): Checkpoints {
  const room = openRoom(deps)
  return tellingReach(room, {
    preflight: (mode) => preflightBranch(room, mode),
    start: (mode) => startBranch(room, mode),
    ensure: (storyId) => ensure(room, storyId, true),
    watch: (by, n) => watch(room, by, n),
    keep: (n, mayBeSaved = false) => keep(room, n, mayBeSaved),
    look: (since) => lookAt(room, since),
    save: (storyId, message, judged) => save(room, storyId, message, judged),
    isAsLeft: () => isAsLeft(room),
    restore: () => restore(room),
    finish: (choice) => finishBranch(room, choice),
    recover: () => recover(room),
  })
}

async function ensure(room: Room, storyId: string, mayRepair: boolean): Promise<{ commit: string }> {
  const { checkpoint, openAttempt: unsettled } = await room.memory()
  if (checkpoint === undefined) throw nothingToResume(room.change)
  const earlier = await loadSnapshot(room)
  // Before git looks: it would obey what that attempt has left.
  if (unsettled !== undefined) await mendRepository(room, await mustSnapshot(room), unsettled)
  else if (earlier !== undefined) await insistOnConversions(room, earlier)
  const sight = await look(room)
  const branch = branchRef(room)
  const inside = await lookInside(room, earlier?.gitlinks ?? [], earlier)
  const dirty = isDirty(room, sight, earlier) || !isInsideSame(inside, earlier)
  if (sight.refs.head.ref === branch && sight.refs.head.commit === checkpoint && !dirty) {
    const index = await snapshotIndex(room, checkpoint)
    const tree =
      earlier?.commit === checkpoint
        ? earlier.tree
        : await room.git.line(['rev-parse', `${checkpoint}^{tree}`])
    await saveSnapshot(room, sight, { commit: checkpoint, tree, index, ownIndex: '', earlier, inside })
    return { commit: checkpoint }
  }
  if (!mayRepair) {
    throw new RalphError(
      'checkpoint_failed',
      `the work tree does not stay at the checkpoint of ${room.change}`,
      {
        hint: 'Something else is writing to it. End that, then `ralph resume`; nothing was lost.',
        exitCode: 1,
      },
    )
  }
  const { openAttempt } = await room.reread()
  if (openAttempt !== undefined) {
    await keep(room, openAttempt, false)
    await restore(room)
  } else if (sight.refs.head.ref === branch) {
    await adopt(room, sight, storyId)
  } else if (dirty) {
    throw new RalphError(
      'repository_state',
      `the loop works on ralph/${room.change}, but there are changes on ${place(sight)}`,
      {
        hint: `Commit or stash them, \`git switch ralph/${room.change}\`, then \`ralph resume ${room.change}\`.`,
        exitCode: 2,
      },
    )
  } else {
    await restore(room)
  }
  return await ensure(room, storyId, false)
}

/** Changed between two attempts, so by a person: taken into the checkpoint, never reverted. */
async function adopt(room: Room, sight: Sight, storyId: string): Promise<void> {
  const { checkpoint = '' } = await room.memory()
  const { git } = room
  const tip = sight.refs.head.commit
  const earlier = await loadSnapshot(room)
  await room.operate('adopt', { story: storyId, from: checkpoint, to: tip }, async () => {
    const index = join(room.folder, 'attempt-index')
    await copyIndex(realIndex(git), index)
    const { tree } = await writeTree(
      git,
      index,
      sight.scan,
      exempt(room.protectedPaths, earlier?.ignored ?? []),
    )
    const isSame = tip !== '' && tree === (await git.line(['rev-parse', `${tip}^{tree}`]))
    const commit = isSame
      ? tip
      : await commitTree(git, tree, [tip || checkpoint], `changes before ${storyId}`)
    const isLost = tip !== '' && !(await isAncestor(git, checkpoint, tip))
    if (isLost)
      await moveRefs(git, 'archive', [`update ${room.refs}/archive/${timeName(room)} ${checkpoint}`])
    await becomeCheckpoint(room, 'adopt', commit, tree, index)
  })
  const message = `the work tree had changed since the last checkpoint; the changes are now part of it (before story ${storyId})`
  await room.note({ type: 'warning', code: 'changes_adopted', message })
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
  const { keptHead = snapshot.commit, beside, attempt = 0 } = await room.memory()
  const { tree, refs, refused } = await treeToSave(room, snapshot, judged)
  if (refused !== undefined) return { commit: snapshot.commit, changed: false, refused }
  const theirs = await commitBeside(room, snapshot, refs, keptHead)
  const saved = await room.operate('save', { story: storyId, message }, async () => {
    await settleGates(room, snapshot)
    const commit = await commitTree(room.git, tree, [keptHead, theirs], message)
    await becomeCheckpoint(room, 'save', commit, tree, join(room.folder, 'attempt-index'))
    const changed = tree !== snapshot.tree || !isSameInside(snapshot, await mustSnapshot(room))
    return { commit, changed }
  })
  await tellSwept(room, snapshot, await loadSnapshot(room))
  await tellAside(room, 'saved')
  await settled(room, beside, saved.commit)
  await tellObeyed(room, snapshot, attempt)
  if (refs.head.ref !== branchRef(room)) {
    const message = `somebody switched HEAD to ${placeOf(refs.head)} before story ${storyId} was saved; no file had changed, and HEAD is back on ralph/${room.change}`
    await room.note({ type: 'warning', code: 'head_back', message })
  }
  return saved
}

/** A commit that the user made here since the attempt ended: it stays in the history of the branch. Empty when there is none. */
async function commitBeside(room: Room, { commit }: Snapshot, refs: Refs, kept: string): Promise<string> {
  const name = branchRef(room)
  const now = refs.all[name] ?? commit
  if (now === commit || (await isAncestor(room.git, now, kept))) return ''
  const { attempt = 0 } = await room.memory()
  const { owner } = ownerOfRef(room.change, { name, before: commit, now }, await readLedger(room, attempt))
  return owner === 'user' ? now : ''
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

/** From the step on it can only be completed: the commit holds everything. */
async function becomeCheckpoint(
  room: Room,
  op: string,
  commit: string,
  tree: string,
  index: string,
): Promise<void> {
  await snapshotIndex(room, commit, index)
  await room.step(op, 'checkpoint', commit)
  await completeCheckpoint(room, commit, tree)
}

async function completeCheckpoint(room: Room, commit: string, tree: string): Promise<void> {
  const { git } = room
  const refs = await readRefs(git)
  const branch = branchRef(room)
  await moveRefs(git, 'checkpoint', [
    `update ${branch} ${commit}`,
    `update ${room.refs}/checkpoint ${commit}`,
  ])
  if (refs.head.ref !== branch) await setHead(git, { ref: branch, commit }, 'checkpoint')
  await endOperations(git.gitDir)
  await installIndex(git, join(room.folder, `index-${commit}`))
  await advanceSnapshot(room, { ref: branch, commit }, tree, refs)
}

async function redoSave(room: Room, commit: string): Promise<void> {
  const before = await loadSnapshot(room)
  await completeCheckpoint(room, commit, await room.git.line(['rev-parse', `${commit}^{tree}`]))
  if (before !== undefined) await tellSwept(room, before, await loadSnapshot(room))
}

async function recover(room: Room): Promise<string> {
  await outwaitLocks(room, patienceMs)
  await outwaitInside(room, await loadSnapshot(room), patienceMs)
  const { pending, beside } = await room.reread()
  if (pending === undefined) return ''
  const ended = async (what: string): Promise<string> => {
    await room.note({ type: 'git.ended', op: pending.op })
    return what
  }
  const commit = stepOf(pending, 'checkpoint')
  switch (pending.op) {
    case 'start':
      return await ended(await redoStart(room, pending))
    case 'save':
    case 'adopt':
      if (commit === undefined) {
        await room.note({ type: 'git.step', op: pending.op, step: 'undone' })
        return await ended('an unfinished checkpoint was dropped; the work tree is as it was')
      }
      await redoSave(room, commit)
      await tellAside(room, 'saved')
      return await ended(`the checkpoint ${commit.slice(0, 12)} was completed`)
    case 'keep':
      return await ended(await redoKeep(room, pending))
    case 'restore':
      await restoreFound(room, await mustSnapshot(room))
      await tellAside(room, 'reverted')
      await settled(room, beside, (await mustSnapshot(room)).commit)
      return await ended('the revert to the last checkpoint was completed')
    case 'finish':
      return await ended(await redoFinish(room, pending))
    default:
      return await ended('')
  }
}

function branchRef(room: Pick<Room, 'change'>): string {
  return `refs/heads/ralph/${room.change}`
}

function place({ refs }: Sight): string {
  return refs.head.ref === '' ? 'a detached HEAD' : shown(refs.head.ref.replace('refs/heads/', ''))
}
