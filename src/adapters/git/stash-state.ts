// The whole state of the work tree as a stash has it: files, index and new files apart, and all of them in one tree.
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { copyIndex, realIndex } from './index-file.ts'
import type { Room } from './room.ts'
import { exempt, scanEmptyFolders } from './scan.ts'
import { look } from './sight.ts'
import { saveSnapshot, type Sight, type Snapshot } from './snapshot.ts'
import { storeStash } from './stash-list.ts'
import type { Inside } from './submodules.ts'
import { commitTree, writeTree } from './tree.ts'

export interface FullState {
  readonly sight: Sight
  /** Tracked and untracked, as in the work tree. */
  readonly tree: string
  readonly isExempt: (path: string) => boolean
}

/** Leaves copies of the user's index in the private folder: `own-index` as it is, `full-index` with the whole tree. */
export async function fullState(room: Room, earlier: Snapshot | undefined): Promise<FullState> {
  const sight = await look(room)
  const nested = earlier === undefined ? sight.scan.untracked.filter((path) => path.endsWith('/')) : []
  const isExempt = exempt(room.protectedPaths, [...(earlier?.ignored ?? sight.scan.ignored), ...nested])
  await copyIndex(realIndex(room.git), own(room))
  await copyIndex(own(room), full(room))
  const { tree } = await writeTree(room.git, full(room), sight.scan, isExempt)
  // In the user's index a deleted file still fills its folder.
  const empty = sight.scan.deleted.length > 0 ? await scanEmptyFolders(room.git, full(room)) : sight.empty
  return { sight: { ...sight, empty }, tree, isExempt }
}

export async function recordState(
  room: Room,
  state: FullState,
  commit: string,
  earlier: Snapshot | undefined,
  inside?: readonly Inside[],
): Promise<void> {
  const indexes = await storeIndexes(room, commit)
  await saveSnapshot(room, state.sight, {
    commit,
    tree: state.tree,
    ...indexes,
    earlier,
    ...(inside && { inside }),
  })
}

/** Of the state that was seen last, under names of their own. */
export async function storeIndexes(room: Room, commit: string): Promise<{ index: string; ownIndex: string }> {
  const names = { index: `index-${commit}-full`, ownIndex: `index-${commit}-own` }
  await copyIndex(full(room), join(room.folder, names.index))
  const isThere = await copyIndex(own(room), join(room.folder, names.ownIndex))
  return isThere ? names : { ...names, ownIndex: 'none' }
}

/** The tree of what is staged. */
export async function stagedTree(room: Room): Promise<string> {
  return await room.git.line(['write-tree'], { index: own(room) })
}

/** The shape of `git stash push -u`, so that plain `git stash apply --index` brings it back without ralph. */
export async function storeEntry(room: Room, state: FullState, name: string): Promise<void> {
  const { git } = room
  const { head } = state.sight.refs
  const tracked = join(room.folder, 'tracked-index')
  await copyFile(own(room), tracked)
  const staged = await commitTree(git, await stagedTree(room), [head.commit], `index of ${name}`)
  const { tree } = await writeTree(git, tracked, { ...state.sight.scan, untracked: [] }, state.isExempt)
  const isPlain = (path: string): boolean => !path.endsWith('/') && !state.isExempt(path)
  const untracked = state.sight.scan.untracked.filter(isPlain)
  const parents = [head.commit, staged]
  if (untracked.length > 0) {
    const fresh = join(room.folder, 'untracked-index')
    await git.run(['read-tree', '--empty'], { index: fresh })
    const nothing = { changed: [], deleted: [], ignored: [], staged: [], unmerged: [], isBlind: false }
    const written = await writeTree(git, fresh, { ...nothing, untracked }, state.isExempt)
    parents.push(await commitTree(git, written.tree, [], `untracked files of ${name}`))
  }
  await storeStash(git, await commitTree(git, tree, parents, name), name)
}

function own(room: Room): string {
  return join(room.folder, 'own-index')
}

function full(room: Room): string {
  return join(room.folder, 'full-index')
}
