// Makes the work tree byte for byte what a snapshot holds; ignored and protected files are not touched.
import { existsSync } from 'node:fs'
import { mkdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import { isExact, putBackBytes } from '../tree/exact-bytes.ts'
import { above, diskMark, lstatIfThere, lstatNow, onDisk } from '../tree/files.ts'
import { named } from '../git.ts'
import { gatherGitDir } from '../submodules/git-dirs.ts'
import { hiddenByAgent, holdsExempt } from '../tree/hidden-by-agent.ts'
import { changesJustKept } from '../attempt/just-kept.ts'
import { keptOut } from '../tree/kept-out.ts'
import { scanOpened } from '../tree/unreadable.ts'
import { openFolders, putBackFolderModes, putBackModes } from '../tree/modes.ts'
import { openAbove } from '../tree/owner-access.ts'
import { findMoved, putBackMoved, tellPutBack, type MovedFile } from './moved-files.ts'
import { pruneAbove, removePath } from '../tree/remove.ts'
import { asideOf, isAllHeld, type PutAside } from './set-aside.ts'
import type { Store } from '../store.ts'
import { scanEmptyFolders, type Scan } from '../tree/scan.ts'
import { bareNames, folderNames, nestedRepositories, treeFolders, type Snapshot } from './snapshot.ts'
import type { TreeChange, TreeFolder } from '../formats/objects.ts'
import { absentPaths } from '../tree/sparse.ts'
import { takeOut } from './taken-out.ts'
import { syncPaths } from '../formats/sync.ts'
import { withSameTree } from '../tree/tree.ts'
import { forgetOtherSizes, writeBack } from './write-back.ts'
import { putBackUnignored } from '../tree/unignored.ts'
import { removeDeep, removeSpecial } from '../tree/unseen.ts'

/**
 * Idempotent. Each round may bring to light what an edited .gitignore hid in the round before. In a repair `stays` is what the user
 * has changed since the loop died.
 */
export async function revertTree(
  store: Store,
  snapshot: Snapshot,
  stays: (path: string) => boolean,
  /** Called with what is about to go or to be overwritten. */
  goes: (paths: readonly string[]) => Promise<void>,
  /** What a ref of ralph's holds, asked after that: nothing else is ever deleted. */
  holds: () => Promise<(path: string) => boolean>,
): Promise<void> {
  const { git } = store
  const index = join(store.folder, snapshot.index)
  const isNeverTouched = keptOut(store, snapshot)
  const isExempt = (path: string): boolean => isNeverTouched(path) || stays(path)
  // Git makes the folder of a submodule, but never moves what stands in it: that comes after.
  const submodules = new Set((snapshot.submodules ?? []).map(({ path }) => path))
  const isInside = (path: string): boolean =>
    submodules.has(path) && lstatNow(git.worktree, path)?.isDirectory() === true
  const folders = await treeFolders(git, snapshot.tree)
  const names = folderNames(folders, snapshot.empty)
  const absent = await absentPaths(git, index, snapshot.outside)
  openFolders(git, names)
  await removeDeep(store, snapshot, names)
  // Before git looks: a repository that goes away under it makes it fail.
  const putAside = asideOf(store)
  await removeNested(store, snapshot, folders, stays, putAside)
  let left: string[] = []
  const written = new Set<string>()
  /** On another device: it cannot be put aside. */
  const inPlace: string[] = []
  for (let round = 0; round < 5; round += 1) {
    const unseen = round === 1 ? await removeSpecial(store, snapshot, stays) : undefined
    const [scan, empty] = await Promise.all([
      round === 0 ? firstLook(store, snapshot, index) : scanOpened(git, { index }),
      round > 0 ? scanEmptyFolders(git, index, unseen) : [],
    ])
    // Once the checkpoint's own rules are back in place, git says exactly what the agent's rules still hide.
    const hidden = round > 0 ? await hiddenByAgent(store, snapshot, scan.ignored) : []
    const superfluous = [
      ...scan.untracked.filter((path) => !isExempt(path)),
      ...hidden.filter((path) => !stays(path) && !(path.endsWith('/') && holdsExempt(store, snapshot, path))),
    ]
    const clear = round === 2 && store.absence?.() === undefined ? putAside : undefined
    const { back: returned, waiting } = await putBackAll(store, snapshot, scan, superfluous, stays, clear)
    const isReturned = within(returned.map(({ now }) => now))
    const isWaiting = within(round < 3 ? waiting.map(({ now }) => now) : [])
    const extra = superfluous.filter(
      (path) => !isReturned(path) && !isWaiting(path) && !within(inPlace)(path),
    )
    // What git has brought back and still calls another: by rules that came after the checkpoint took these bytes.
    const isBack = (path: string): boolean => written.has(path) && isExact(git, snapshot, path)
    // A whole one that a sparse checkout leaves out does not differ in git's eyes.
    const outside = [...absent].filter((path) => lstatNow(git.worktree, path) !== undefined)
    const inside = [...scan.changed, ...scan.deleted].filter((path) => !absent.has(path))
    const wrong = [...inside, ...outside].filter(
      (path) => !isExempt(path) && !isInside(path) && !isBack(path),
    )
    left = [...extra, ...wrong, ...[...returned, ...waiting].map(({ now }) => now)]
    if (round > 0)
      await settleEmptyFolders(
        store,
        snapshot,
        empty.filter((folder) => !stays(folder)),
      )
    if (left.length === 0 && round > 0) {
      await putBackBytes(store, snapshot, stays)
      await putBackUnignored(store, snapshot, stays)
      putBackModes(git, snapshot, stays)
      putBackFolderModes(git, snapshot, names)
      await forgetOtherSizes(store, snapshot, [...written])
      // Else a power cut could leave them empty, and nobody would know that it was no edit.
      await syncPaths(git, [...written])
      return
    }
    const marks = new Map(left.map((path) => [path, diskMark(git.worktree, path)]))
    await goes(left)
    // Written once more in this very moment: the next round takes it.
    const isResting = (path: string): boolean => diskMark(git.worktree, path) === marks.get(path)
    const isHeld = extra.length + wrong.length > 0 ? await holds() : () => true
    const take = (paths: readonly string[]): void => takeOut(store, paths, isResting)
    // An attempt may be deleted; what was the user's before it may not.
    const isGiven = (path: string): boolean => !waiting.some(({ now }) => within([now])(path))
    const files = new Set(extra.filter((path) => !path.endsWith('/') && isGiven(path) && isHeld(path)))
    const removed = [...files, ...wrong.filter((path) => absent.has(path))]
    take(removed)
    for (const path of removed) await pruneAbove(git.worktree, path)
    const topOf = topFolder(store, snapshot, names, [...scan.untracked, ...hidden].filter(stays))
    for (const path of extra) {
      if (files.has(path) || !isResting(path)) continue
      if (path.endsWith('/') && existsSync(onDisk(git.worktree, `${path}.git`))) {
        await gatherGitDir(store, snapshot, path.slice(0, -1))
        await putAside({ path, isRepository: true })
        continue
      }
      const moved = waiting.find(({ now }) => within([now])(path))
      if (isGiven(path) && path.endsWith('/') && (await isAllHeld(store, path, isHeld)))
        await removePath(git.worktree, path)
      else {
        const { now: top, was } = moved ?? { now: topOf(path), was: undefined }
        if (within(inPlace)(path) || (await putAside({ path: top, was }))) continue
        inPlace.push(top)
      }
    }
    const back = wrong.filter((path) => !absent.has(path) && isResting(path))
    await clearTheWay(store, back, isHeld, putAside)
    await withSameTree(index, () => writeBack(store, index, back, take))
    for (const path of back) written.add(path)
    if (round > 0) await putBackBytes(store, snapshot, (path) => !back.includes(path))
  }
  throw new RalphError(
    'checkpoint_failed',
    `the work tree could not be brought back to its checkpoint; still different: ${left.slice(0, 5).map(named).join(', ')}`,
    {
      hint: `The attempt is kept: see \`ralph attempts ${store.change}\`. Fix or remove these files, then \`ralph resume\`.`,
    },
  )
}

/** What lay elsewhere at the checkpoint. Of what would not go anyway, only what has kept its name, or is a folder: the rest may be as it should. */
async function putBackAll(
  store: Store,
  snapshot: Snapshot,
  scan: Pick<Scan, 'changed' | 'untracked' | 'ignored'>,
  superfluous: readonly string[],
  stays: (path: string) => boolean,
  /** For what stands in the place and does not go by itself. In a repair that may be the user's, and stays. */
  clear: PutAside | undefined,
): Promise<{ back: MovedFile[]; waiting: MovedFile[] }> {
  const back: MovedFile[] = []
  const waiting: MovedFile[] = []
  for (const moved of findMoved(store, snapshot, [...scan.changed, ...scan.untracked, ...scan.ignored])) {
    const isThere = within([moved.now])
    const isHolder = superfluous.some((path) => path.endsWith('/') && within([path.slice(0, -1)])(moved.now))
    // In the place of a tracked file, which is about to come back.
    const goes = isHolder || [...superfluous, ...scan.changed].some((path) => isThere(path))
    if (stays(moved.now) || !(goes || moved.isFolder || leaf(moved.now) === leaf(moved.was))) continue
    const put = (): Promise<boolean> => putBackMoved(store, moved)
    const isClear = async (): Promise<boolean> =>
      goes && (await clear?.({ path: moved.was, isInTheWay: true })) === true
    if ((await put()) || ((await isClear()) && (await put()))) back.push(moved)
    else if (goes) waiting.push(moved)
  }
  await tellPutBack(store, back)
  return { back, waiting }
}

/** Whether a path is one of these or lies in one. */
function within(folders: readonly string[]): (path: string) => boolean {
  return (path) =>
    folders.some((folder) => path === folder || path === `${folder}/` || path.startsWith(`${folder}/`))
}

/** The outermost folder of a path that came with it as a whole, so that it is moved in one go. */
function topFolder(
  store: Store,
  snapshot: Snapshot,
  folders: readonly string[],
  staying: readonly string[],
): (path: string) => string {
  const known = new Set(folders)
  const old = [...staying, ...snapshot.special, ...snapshot.deep, ...bareNames(snapshot.nested)]
  return (path) => {
    const bare = path.replace(/\/$/, '')
    const isNew = (folder: string): boolean =>
      !known.has(folder) &&
      !holdsExempt(store, snapshot, `${folder}/`) &&
      !old.some((each) => each.startsWith(`${folder}/`))
    return above(bare).reverse().find(isNew) ?? bare
  }
}

/** Git deletes what stands where a file has to be, with all that lies in it. */
async function clearTheWay(
  store: Store,
  paths: readonly string[],
  isHeld: (path: string) => boolean,
  putAside: PutAside,
): Promise<void> {
  const { worktree } = store.git
  const blockers = paths.flatMap((path) => {
    const file = above(path).find((folder) => {
      const stats = lstatNow(worktree, folder)
      return stats !== undefined && !stats.isDirectory()
    })
    if (file !== undefined) return [file]
    return lstatNow(worktree, path)?.isDirectory() === true ? [`${path}/`] : []
  })
  for (const path of new Set(blockers)) if (!(await isAllHeld(store, path, isHeld))) await putAside({ path })
}

/** What to begin with: as the attempt was kept, where nobody has touched that since. */
async function firstLook(
  store: Store,
  snapshot: Snapshot,
  index: string,
): Promise<Pick<Scan, 'changed' | 'deleted' | 'untracked' | 'ignored'>> {
  const { attempt = 0 } = store.memory()
  const isSparse = snapshot.outside !== undefined
  const known = isSparse ? undefined : await changesJustKept(store, snapshot, attempt)
  if (known === undefined) return await scanOpened(store.git, { index })
  const paths = (isWanted: (each: TreeChange) => boolean): string[] =>
    known.filter(isWanted).map(({ path }) => path)
  return {
    changed: paths(({ from, to }) => from !== undefined && to !== undefined),
    deleted: paths(({ to }) => to === undefined),
    untracked: paths(({ from }) => from === undefined),
    ignored: [],
  }
}

async function removeNested(
  store: Store,
  snapshot: Snapshot,
  folders: readonly TreeFolder[],
  stays: (path: string) => boolean,
  putAside: PutAside,
): Promise<void> {
  const { worktree } = store.git
  const submodules = (snapshot.submodules ?? []).map(({ path }) => `${path}/`)
  // Of submodules only what is checked out now counts: `nested` may be older.
  const known = new Set([...snapshot.nested.filter((path) => !path.endsWith('/')), ...submodules])
  for (const folder of nestedRepositories(store.git, folders)) {
    if (known.has(folder) || stays(`${folder.replace(/\/$/, '')}/.git`)) continue
    if (folder.endsWith('/')) {
      await gatherGitDir(store, snapshot, folder.slice(0, -1))
      await putAside({ path: folder, isRepository: true })
      await mkdir(onDisk(worktree, folder), { recursive: true })
    } else await putAside({ path: `${folder}/.git`, isRepository: true })
  }
}

async function settleEmptyFolders(store: Store, snapshot: Snapshot, now: readonly string[]): Promise<void> {
  const before = new Set(snapshot.empty)
  const extra = now.filter((folder) => !before.has(folder))
  for (const folder of extra.sort().reverse()) await removeEmpty(store, folder, before)
  for (const folder of snapshot.empty) {
    if ((await lstatIfThere(store.git.worktree, folder.slice(0, -1))) === undefined) {
      openAbove(store.git.worktree, [folder])
      await mkdir(onDisk(store.git.worktree, folder), { recursive: true })
    }
  }
}

/** Upwards as far as folders are empty and were not there before. */
async function removeEmpty(store: Store, folder: string, before: ReadonlySet<string>): Promise<void> {
  openAbove(store.git.worktree, [folder])
  for (let path = folder; path !== '' && !before.has(path); path = path.replace(/[^/]*\/$/, '')) {
    try {
      await rmdir(onDisk(store.git.worktree, path.slice(0, -1)))
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code
      if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR') return
      if (code !== 'ENOENT') throw error
    }
  }
}

function leaf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
