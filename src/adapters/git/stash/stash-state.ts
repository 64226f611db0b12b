// The whole state of the work tree as a stash has it: files, index and new files apart, and all of them in one tree.
import { join } from 'node:path'
import { dropFlags } from '../tree/flags.ts'
import { copyDurably, copyIndex, realIndex } from '../formats/index-file.ts'
import { steadily } from '../formats/ref-files.ts'
import { keptOut } from '../tree/kept-out.ts'
import type { Store } from '../store.ts'
import { lstatNow } from '../tree/files.ts'
import { scanEmptyFolders, scanTree } from '../tree/scan.ts'
import { observe } from '../revert/observe.ts'
import { saveSnapshot, type Observed, type Snapshot } from '../revert/snapshot.ts'
import { storeStash } from './stash-list.ts'
import type { Inside } from '../submodules/submodules.ts'
import { commitTree, entryPath, indexEntries, treeOfIndex, writeTree } from '../tree/tree.ts'

export interface FullState {
  readonly observed: Observed
  /** Tracked and untracked, as in the work tree. */
  readonly tree: string
  readonly isExempt: (path: string) => boolean
}

/** Leaves copies of the user's index in the private folder: `own-index` as it is, `full-index` with the whole tree. */
export async function fullState(store: Store, earlier: Snapshot | undefined): Promise<FullState> {
  return await steadily(store.git, () => stateNow(store, earlier))
}

async function stateNow(store: Store, earlier: Snapshot | undefined): Promise<FullState> {
  await copyIndex(store.git, realIndex(store.git), own(store))
  // What was part of the checkpoint stays so, whatever a story made git ignore since.
  await copyIndex(
    store.git,
    earlier === undefined ? own(store) : join(store.folder, earlier.index),
    full(store),
  )
  await dropFlags(store.git, full(store))
  const observed = await observe(store, full(store))
  const { scan } = observed
  const nested = scan.untracked.filter((path) => path.endsWith('/'))
  const isExempt = keptOut(store, earlier ?? { ignored: [...scan.ignored, ...nested] })
  const forced = earlier === undefined ? [] : await besideIndex(store, own(store), full(store))
  const isThere = (path: string): boolean => {
    const stats = lstatNow(store.git.worktree, path)
    return stats?.isFile() === true || stats?.isSymbolicLink() === true
  }
  const seen = { ...scan, untracked: [...new Set([...scan.untracked, ...forced.filter(isThere)])] }
  const { tree } = await writeTree(store.git, full(store), seen, isExempt)
  // In the user's index a deleted file still fills its folder.
  const empty = scan.deleted.length > 0 ? await scanEmptyFolders(store.git, full(store)) : observed.empty
  return { observed: { ...observed, empty }, tree, isExempt }
}

/** Files that this index names, and the other does not. */
async function besideIndex({ git }: Store, index: string, other: string): Promise<string[]> {
  const [entries, others] = await Promise.all([indexEntries(git, index), indexEntries(git, other)])
  const known = new Set(others.map(entryPath))
  return entries
    .filter((entry) => !/^\S+ 160000 /.test(entry))
    .map(entryPath)
    .filter((path) => !known.has(path))
}

export async function recordState(
  store: Store,
  state: FullState,
  commit: string,
  earlier: Snapshot | undefined,
  inside?: readonly Inside[],
): Promise<void> {
  const indexes = await storeIndexes(store, commit)
  await saveSnapshot(store, state.observed, {
    commit,
    tree: state.tree,
    ...indexes,
    earlier,
    ...(inside && { inside }),
  })
}

/** Of the state that was seen last, under names of their own. */
export async function storeIndexes(
  store: Store,
  commit: string,
): Promise<{ index: string; ownIndex: string }> {
  const names = { index: `index-${commit}-full`, ownIndex: `index-${commit}-own` }
  await copyDurably(store.git, full(store), join(store.folder, names.index))
  const isThere = await copyDurably(store.git, own(store), join(store.folder, names.ownIndex))
  return isThere ? names : { ...names, ownIndex: 'none' }
}

/** The tree of what is staged. */
export async function stagedTree(store: Store): Promise<string> {
  return await treeOfIndex(store.git, own(store))
}

/** The shape of `git stash push -u`, so that plain `git stash apply --index` brings it back without ralph. */
export async function storeEntry(store: Store, state: FullState, name: string): Promise<void> {
  const { git } = store
  const { head } = state.observed.refs
  const tracked = join(store.folder, 'tracked-index')
  await copyIndex(store.git, own(store), tracked)
  await dropFlags(git, tracked)
  const staged = await commitTree(git, await stagedTree(store), [head.commit], `index of ${name}`)
  const untracked = await besideIndex(store, full(store), tracked)
  const scan = await scanTree(git, { index: tracked })
  const { tree } = await writeTree(git, tracked, { ...scan, untracked: [] }, state.isExempt)
  const parents = [head.commit, staged]
  if (untracked.length > 0) {
    const fresh = join(store.folder, 'untracked-index')
    await git.run(['read-tree', '--empty'], { index: fresh })
    const nothing = { changed: [], deleted: [], ignored: [], staged: [], unmerged: [], isBlind: false }
    const written = await writeTree(git, fresh, { ...nothing, untracked }, state.isExempt)
    parents.push(await commitTree(git, written.tree, [], `untracked files of ${name}`))
  }
  await storeStash(git, await commitTree(git, tree, parents, name), name)
}

function own(store: Store): string {
  return join(store.folder, 'own-index')
}

function full(store: Store): string {
  return join(store.folder, 'full-index')
}
