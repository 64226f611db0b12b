// What an attempt left, as `keep` has just seen it: where nothing has touched that since, nobody need look at the whole tree again for it.
import { lstatSync } from 'node:fs'
import { ifThereNow, markOf } from '../../files/whole.ts'
import { beyondFolders, lstatNow, onDisk } from '../tree/files.ts'
import type { Git } from '../git.ts'
import type { TreeChange } from '../formats/objects.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { indexMark, treeChanges } from '../tree/tree.ts'

interface Look {
  readonly mayBeSaved: boolean
  readonly base: string
  readonly n: number
  readonly tree: string
  /** Of the index that holds the tree. */
  readonly index: string
  /** How each file stood that the attempt had changed. */
  readonly marks: ReadonlyMap<string, string>
}

const looks = new Map<string, Look>()

/** At the end of `keep`. `paths`: all that differ from the checkpoint. */
export function rememberLook(
  store: Store,
  {
    paths,
    index,
    ...look
  }: {
    mayBeSaved: boolean
    base: string
    n: number
    tree: string
    index: string
    paths: readonly string[]
  },
): void {
  const marks = new Map(paths.map((path) => [path, markAt(store.git, path)]))
  looks.set(store.folder, { ...look, index: indexMark(index), marks })
}

/** Before a gate or anybody else may write. */
export function forgetLook(store: Store): void {
  looks.delete(store.folder)
}

/** The tree that was kept, if every file of the attempt but this one is as it was kept. Asked once. */
export function treeJustKept(
  store: Store,
  { base, n, index, but }: { base: string; n: number; index: string; but: string },
): string | undefined {
  const look = looks.get(store.folder)
  looks.delete(store.folder)
  if (look?.mayBeSaved !== true || look.base !== base || look.n !== n) return undefined
  if (look.index === '' || look.index !== indexMark(index)) return undefined
  for (const [path, mark] of look.marks)
    if (path !== but && markAt(store.git, path) !== mark) return undefined
  return look.tree
}

/**
 * What the attempt has done to the checkpoint's tree, if every file of it is as it was kept: what a revert begins with. What else has
 * changed since it finds when it looks whether all is back.
 */
export async function changesJustKept(
  store: Store,
  { commit, tree }: Snapshot,
  n: number,
): Promise<readonly TreeChange[] | undefined> {
  const { git } = store
  const look = looks.get(store.folder)
  looks.delete(store.folder)
  if (look?.base !== commit || look.n !== n || store.absence?.() !== undefined) return undefined
  const changes = await treeChanges(git, tree, look.tree)
  const isBeyond = beyondFolders(git.worktree)
  // In the place of a file there may be a folder by now, with more in it than the file's name tells.
  const isAsKept = changes.every(
    ({ path }) =>
      look.marks.get(path) === markAt(git, path) &&
      lstatNow(git.worktree, path)?.isDirectory() !== true &&
      !isBeyond(path),
  )
  return isAsKept ? changes : undefined
}

/** Empty where there is nothing. */
function markAt(git: Git, path: string): string {
  const stats = ifThereNow(() =>
    lstatSync(onDisk(git.worktree, path), { bigint: true, throwIfNoEntry: false }),
  )
  return stats === undefined ? '' : `${markOf(stats)} ${stats.mode}`
}
