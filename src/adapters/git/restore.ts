// Back to exactly the snapshot: refs, HEAD, half-done operations, files, index; in this order, each step repeatable.
import { join } from 'node:path'
import { claimTree, staying, tellClaims } from './claims.ts'
import { keepLate } from './late.ts'
import { mendGitDirs, removeNewGitDirs } from './git-dirs.ts'
import { installIndex } from './index-file.ts'
import { mendRepository } from './mend.ts'
import { endOperations } from './operations.ts'
import { moveRefs, readRefs, setHead } from './refs.ts'
import { revertTree } from './revert.ts'
import { timeName, type Room } from './room.ts'
import { attemptTree } from './keep.ts'
import { keepSubmodules } from './keep-submodules.ts'
import { settleGates } from './settle.ts'
import { mustSnapshot, type Snapshot } from './snapshot.ts'
import { roomOf, submoduleAt } from './submodule.ts'
import { restoreSubmodules } from './submodules.ts'
import { indexTheirs, theirCommits } from './their-commits.ts'
import { commitTree } from './tree.ts'

/** `holder`: the ref that has the tree as it is now. */
export async function restoreSnapshot(room: Room, snapshot: Snapshot, holder: string): Promise<void> {
  const { git } = room
  await mendGitDirs(room, snapshot)
  const claims = await claimTree(room, snapshot)
  await tellClaims(room, claims, holder)
  const { attempt = 0 } = await room.memory()
  await mendRepository(room, snapshot, attempt)
  await settleGates(room, snapshot)
  const refs = await readRefs(git)
  const aside = (name: string): string =>
    `${room.refs}/moved/${timeName(room)}/${name.replace(/^refs\//, '')}`
  const { ref, commit } = snapshot.head
  const tip = refs.all[ref]
  const theirs = await theirCommits(room, snapshot, tip)
  const committed = new Set(theirs?.paths)
  const stays = staying(room, claims)
  const back =
    ref === '' || tip === (commit || undefined) || theirs !== undefined
      ? []
      : [
          ...(tip ? [`update ${aside(ref)} ${tip}`] : []),
          commit ? `update ${ref} ${commit}` : `delete ${ref}`,
        ]
  if (refs.head.ref !== ref || (ref === '' && refs.head.commit !== commit))
    await setHead(git, snapshot.head, 'restore')
  await moveRefs(git, 'restore', back)
  await endOperations(git.gitDir)
  await revertTree(
    room,
    snapshot,
    (path) => committed.has(path) || stays(path),
    (paths) => keepLate(room, snapshot, paths),
  )
  await mendGitDirs(room, snapshot)
  await removeNewGitDirs(room, snapshot)
  await restoreSubmodules(room, snapshot)
  await installIndex(git, indexFile(room, snapshot))
  if (theirs !== undefined) await indexTheirs(git, theirs)
}

function indexFile(room: Room, snapshot: Snapshot): string | undefined {
  if (snapshot.own_index === 'none') return undefined
  return join(room.folder, snapshot.own_index === '' ? snapshot.index : snapshot.own_index)
}

/** A revert that a kill cut off: what was changed since is in no attempt, so it is kept apart before anything else goes. */
export async function restoreFound(room: Room, snapshot: Snapshot): Promise<void> {
  const holder = `${room.refs}/moved/${timeName(room)}/work-tree`
  const { theirs, doubtful } = await claimTree(room, snapshot)
  if (theirs.length + doubtful.length > 0) {
    const { tree } = await attemptTree(room, snapshot)
    const commit = await commitTree(room.git, tree, [snapshot.commit], 'found after the loop had died')
    await moveRefs(room.git, 'repair', [`update ${holder} ${commit}`])
  }
  const { attempt } = await room.memory()
  if (attempt !== undefined) await keepSubmodules(room, attempt, snapshot)
  await restoreSnapshot(room, snapshot, holder)
}

/** Where the attempt is kept that is being reverted. */
export async function keptAs(room: Room): Promise<string> {
  const { openAttempt } = await room.memory()
  return openAttempt === undefined ? `${room.refs}/checkpoint` : `${room.refs}/attempts/${openAttempt}`
}

export async function isAsLeft(room: Room, seen?: Snapshot): Promise<boolean> {
  const { saved, isKept } = await room.memory()
  // It had been saved before the crash, or by the repair: nothing waits for what the tree is now.
  if (saved !== undefined && isKept !== true) return true
  const snapshot = seen ?? (await mustSnapshot(room))
  const { theirs, doubtful, deleted } = await claimTree(room, snapshot)
  if (theirs.length + doubtful.length + deleted.length > 0) return false
  const { all } = await readRefs(room.git)
  if ((await theirCommits(room, snapshot, all[snapshot.head.ref])) !== undefined) return false
  for (const submodule of snapshot.submodules ?? []) {
    const isThere = submoduleAt(room.git, submodule.path) !== undefined
    if (isThere && !(await isAsLeft(roomOf(room, submodule), submodule.snapshot))) return false
  }
  return true
}
