// Back to exactly the snapshot: refs, HEAD, half-done operations, files, index; in this order, each step repeatable.
import { join } from 'node:path'
import { mendGitDirs, removeNewGitDirs } from './git-dirs.ts'
import { installIndex } from './index-file.ts'
import { mendRepository } from './mend.ts'
import { endOperations } from './operations.ts'
import { moveRefs, readRefs, setHead } from './refs.ts'
import { revertTree } from './revert.ts'
import { timeName, type Room } from './room.ts'
import { settleGates } from './settle.ts'
import type { Snapshot } from './snapshot.ts'
import { restoreSubmodules } from './submodules.ts'

export async function restoreSnapshot(room: Room, snapshot: Snapshot): Promise<void> {
  const { git } = room
  await mendGitDirs(room, snapshot)
  const { attempt = 0 } = await room.memory()
  await mendRepository(room, snapshot, attempt)
  await settleGates(room, snapshot)
  const refs = await readRefs(git)
  const aside = (name: string): string =>
    `${room.refs}/moved/${timeName(room)}/${name.replace(/^refs\//, '')}`
  const { ref, commit } = snapshot.head
  const tip = refs.all[ref]
  const back =
    ref === '' || tip === (commit || undefined)
      ? []
      : [
          ...(tip ? [`update ${aside(ref)} ${tip}`] : []),
          commit ? `update ${ref} ${commit}` : `delete ${ref}`,
        ]
  if (refs.head.ref !== ref || (ref === '' && refs.head.commit !== commit))
    await setHead(git, snapshot.head, 'restore')
  await moveRefs(git, 'restore', back)
  await endOperations(git.gitDir)
  await revertTree(room, snapshot)
  await mendGitDirs(room, snapshot)
  await removeNewGitDirs(room, snapshot)
  await restoreSubmodules(room, snapshot)
  await installIndex(git, indexFile(room, snapshot))
}

function indexFile(room: Room, snapshot: Snapshot): string | undefined {
  if (snapshot.own_index === 'none') return undefined
  return join(room.folder, snapshot.own_index === '' ? snapshot.index : snapshot.own_index)
}
