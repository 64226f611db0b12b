// Brings guarded bytes back; what stood in their place is set aside in ralph's private folder, never thrown away.
import { mkdtemp, rm } from 'node:fs/promises'
import { lstatSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ownerOfPath, type Absence } from '../../core/ownership.ts'
import { copyAll } from '../files/copy.ts'
import { chmod, lstat, mkdir, readFile, readlink, rename, symlink } from '../files/now.ts'
import { lstatIfThere } from '../files/whole.ts'
import { shellWord } from '../../core/shell-word.ts'
import { asideIn, isTemporary, replaceWhole, writeWhole } from './files.ts'
import { archivedNames, readBlob, type Guarded, type GuardedTree } from './guard.ts'
import { hashOf, namesIn, type TreeEntry } from './tree.ts'

/** In a repair: what the user has changed since the loop died. */
export function stays(absence: Absence | undefined): (path: string) => boolean {
  return (path) => {
    const stat = absence && lstatSync(path, { throwIfNoEntry: false })
    return !!stat && ownerOfPath({ changedMs: stat.ctimeMs }, absence).owner === 'user'
  }
}

/** Everything back to the guarded bytes, extra files gone, but for what stays. Idempotent: a second run finds nothing to do. */
export async function restoreAll(
  guardDir: string,
  guarded: Guarded,
  changeDir: string,
  isTheirs: (path: string) => boolean,
): Promise<void> {
  const wasMoved = await takeOutOfArchive(guardDir, guarded, changeDir)
  await restoreLinks(guardDir, guarded)
  for (const tree of guarded.trees) {
    const isWanted = (path: string): boolean => !isTheirs(join(tree.base, path))
    await restoreTree(guardDir, tree, isWanted)
    await removeExtras(guardDir, tree, isWanted)
  }
  if (wasMoved !== '' && guarded.specs !== undefined) {
    await restoreTree(guardDir, guarded.specs)
    await removeExtras(guardDir, guarded.specs, () => true)
  }
}

/** `path` is relative to its tree; `aside` is where what stood there is kept, empty where nothing did. */
export interface Replaced {
  readonly path: string
  readonly aside: string
  /** Nothing stood there. */
  readonly isRemoved?: boolean
}

/** What differed and is restored; extra files stay. */
export async function restoreTree(
  guardDir: string,
  tree: GuardedTree,
  isWanted: (path: string) => boolean = () => true,
): Promise<readonly Replaced[]> {
  const restored: Replaced[] = []
  for (const entry of tree.entries) {
    if (entry.kind !== 'folder' && !isWanted(entry.path)) continue
    const isRemoved = (await lstatIfThere(join(tree.base, entry.path))) === undefined
    const aside = await restoreEntry(guardDir, tree.base, entry)
    if (aside !== undefined) restored.push({ path: entry.path, aside, isRemoved })
  }
  return restored
}

/** Removes what was not there at guard time; empty folders go with it. */
export async function removeExtras(
  guardDir: string,
  tree: GuardedTree,
  isWanted: (path: string) => boolean,
): Promise<readonly Replaced[]> {
  const known = new Set(tree.entries.map((entry) => entry.path))
  const removed: Replaced[] = []
  const sweep = async (path: string): Promise<void> => {
    if ((await lstatIfThere(join(tree.base, path)))?.isDirectory() !== true) return
    for (const name of await namesIn(join(tree.base, path))) {
      const child = path === '' ? name : `${path}/${name}`
      const here = join(tree.base, child)
      if (name === '.git') continue
      if (isTemporary(name)) await rm(here, { force: true })
      else if (known.has(child)) await sweep(child)
      else if (isWanted(child)) removed.push({ path: child, aside: await setAside(guardDir, here) })
      else await sweep(child)
    }
  }
  await sweep('')
  return removed
}

/** Where what stood there is kept; undefined when nothing had to be changed. */
async function restoreEntry(guardDir: string, base: string, entry: TreeEntry): Promise<string | undefined> {
  const path = join(base, entry.path)
  const now = await lstatIfThere(path)
  const putAside = async (): Promise<string> => (now === undefined ? '' : setAside(guardDir, path))
  if (entry.kind === 'folder') {
    if (now?.isDirectory() !== true) {
      const aside = await putAside()
      await makeFolder(guardDir, path)
      await chmod(path, entry.mode)
      return aside
    }
    if ((now.mode & 0o7777) !== entry.mode) await chmod(path, entry.mode)
    return undefined
  }
  if (entry.kind === 'link') {
    if (now?.isSymbolicLink() === true && (await readlink(path)) === entry.target) return undefined
    const aside = await putAside()
    await makeFolder(guardDir, dirname(path))
    await symlink(entry.target, path)
    return aside
  }
  if (now?.isFile() === true) {
    // A mode that keeps ralph from reading is the agent's doing; the bytes below it may be untouched.
    if ((now.mode & 0o7777) !== entry.mode) await chmod(path, entry.mode)
    if (hashOf(await readFile(path)) === entry.hash)
      return (now.mode & 0o7777) === entry.mode ? undefined : ''
  }
  const aside = await putAside()
  await makeFolder(guardDir, dirname(path))
  const isBack = await replaceWhole(
    guardDir,
    path,
    undefined,
    await readBlob(guardDir, entry.hash),
    entry.mode,
  )
  // Saved once more meanwhile: that goes aside, too.
  return isBack ? aside : await restoreEntry(guardDir, base, entry)
}

/** A file where a folder on the way should be is set aside first. */
async function makeFolder(guardDir: string, path: string): Promise<void> {
  for (let step = path; dirname(step) !== step; step = dirname(step)) {
    const stats = await lstatIfThere(step)
    if (stats === undefined) continue
    if (!stats.isDirectory() && !stats.isSymbolicLink()) await setAside(guardDir, step)
    break
  }
  await mkdir(path, { recursive: true })
}

/** Links on the way to the change are what they were; one that has come where a folder was would lead the rest astray. */
export async function restoreLinks(guardDir: string, guarded: Guarded): Promise<void> {
  const changes = dirname(guarded.changeDir)
  for (const path of [dirname(changes), changes, guarded.changeDir]) {
    const isOld = guarded.links.some((link) => link.path === path)
    if (!isOld && (await lstatIfThere(path))?.isSymbolicLink() === true) await setAside(guardDir, path)
  }
  for (const { path, target } of guarded.links) {
    await restoreEntry(guardDir, dirname(path), { kind: 'link', path: basename(path), target })
  }
}

/** The name under archive/ that the change was moved or copied to, or ''. A moved folder comes back, a copy is set aside. */
export async function takeOutOfArchive(
  guardDir: string,
  guarded: Guarded,
  changeDir: string,
): Promise<string> {
  const change = basename(changeDir)
  let moved = ''
  for (const name of await archivedNames(changeDir)) {
    const isOwn = name === change || name.replace(/^\d{4}-\d{2}-\d{2}-/, '') === change
    if (!isOwn || guarded.archived.includes(name)) continue
    moved = name
    const path = join(dirname(changeDir), 'archive', name)
    if ((await lstatIfThere(changeDir)) === undefined) await rename(path, changeDir)
    else await setAside(guardDir, path)
  }
  return moved
}

/** What the folder of the change is called now; empty where it is in its place, or nowhere. */
export async function renamedTo(changeDir: string, { trees: [tree] }: Guarded): Promise<string> {
  if (tree === undefined || (await lstatIfThere(changeDir)) !== undefined) return ''
  const files = tree.entries.flatMap((entry) => (entry.kind === 'file' ? [entry] : []))
  for (const name of await namesIn(dirname(changeDir)).catch(() => [])) {
    const there = await Promise.all(
      files.map(async ({ path, hash }) => {
        const bytes = await readFile(join(dirname(changeDir), name, path)).catch(() => undefined)
        // What tools write into every change tells none from another.
        const isOwn = bytes !== undefined && bytes.length > 0 && !basename(path).startsWith('.')
        return { isThere: bytes !== undefined, isSame: isOwn && hashOf(bytes) === hash }
      }),
    )
    if (there.every(({ isThere }) => isThere) && there.some(({ isSame }) => isSame)) return name
  }
  return ''
}

/** Moves a file or folder into the private folder, and says where; same bytes are kept once. */
export async function setAside(guardDir: string, path: string): Promise<string> {
  const stats = await lstat(path)
  // An agent may have taken its own rights away; nothing can be kept that cannot be read.
  if (!stats.isSymbolicLink()) await chmod(path, (stats.mode & 0o7777) | 0o700)
  const folder = asideIn(guardDir)
  await mkdir(folder, { recursive: true })
  const to = join(await mkdtemp(join(folder, 'moved-')), basename(path))
  try {
    await rename(path, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await copyAll(path, to)
    await rm(path, { recursive: true, force: true })
  }
  if (!stats.isFile()) return to
  const bytes = await readFile(to)
  const kept = await keepAside(guardDir, basename(path), bytes)
  // An editor that had it open may have written more into it.
  if (!(await readFile(to)).equals(bytes)) return to
  await rm(dirname(to), { recursive: true })
  return kept
}

export async function keepAside(guardDir: string, name: string, bytes: Uint8Array): Promise<string> {
  const folder = asideIn(guardDir)
  await mkdir(folder, { recursive: true })
  const kept = join(folder, `${hashOf(Buffer.from(bytes)).slice(0, 16)}-${name}`)
  await writeWhole(kept, bytes, 0o600)
  return kept
}

/** The same for a file whose boxes are ticked meanwhile: merged, not copied over them. */
export async function ifItWasYours(
  guardDir: string,
  aside: string,
  path: string,
  before: Uint8Array,
): Promise<string> {
  const base = await keepAside(guardDir, basename(path), before)
  return `. If it was you: git merge-file ${[path, base, aside].map(shellWord).join(' ')}`
}

/** For whoever finds an edit of theirs undone. */
export function ifItWasYou(aside: string, path: string): string {
  return aside === '' ? '' : `. If it was you: cp -r ${shellWord(aside)} ${shellWord(path)}`
}
