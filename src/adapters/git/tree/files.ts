// Files of the work tree by git's byte-exact names.
import { accessSync, constants, lstatSync, type Dirent, type Stats } from 'node:fs'
import { lstat, readdir } from '../../files/now.ts'

/** A path as git gave it (latin1: one char per byte) made absolute for the file system. */
export function onDisk(worktree: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${worktree}/`), Buffer.from(path, 'latin1')])
}

/** The same, as text where that has the same bytes: it is taken several times as fast, which counts where thousands are asked for. */
export function placeIn(worktree: string, path: string): string | Buffer {
  return isPlain.test(path) ? `${worktree}/${path}` : onDisk(worktree, path)
}

const isPlain = /^[ -~]*$/

/** Folders below these that hold nothing at all. Repositories of others are not looked into. */
export async function emptyFolders(worktree: string, folders: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const folder of folders) {
    const entries = await entriesOf(onDisk(worktree, folder))
    if (entries === undefined) continue
    const names = entries.map((entry) => ({
      name: entry.name.toString('latin1'),
      isFolder: entry.isDirectory(),
    }))
    if (names.length === 0) found.push(folder)
    if (names.some(({ name }) => name === '.git')) continue
    const below = names.filter(({ isFolder }) => isFolder).map(({ name }) => `${folder}${name}/`)
    found.push(...(await emptyFolders(worktree, below)))
  }
  return found
}

/** One that cannot be looked into counts as full. */
async function entriesOf(folder: Buffer): Promise<Dirent<Buffer>[] | undefined> {
  try {
    return await readdir(folder, { withFileTypes: true, encoding: 'buffer' })
  } catch (error) {
    if (['EACCES', 'ENAMETOOLONG'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

export async function lstatIfThere(
  worktree: string,
  path: string,
): Promise<Awaited<ReturnType<typeof lstat>> | undefined> {
  try {
    return await lstat(onDisk(worktree, path))
  } catch (error) {
    if (isNowhere(error)) return undefined
    throw error
  }
}

/** For thousands of files at a time: the synchronous call is ten times as fast. */
export function lstatNow(worktree: string, path: string): Stats | undefined {
  try {
    return lstatSync(placeIn(worktree, path), { throwIfNoEntry: false })
  } catch (error) {
    if (isNowhere(error)) return undefined
    throw error
  }
}

/** ENOTDIR: its folder is a file now. ENAMETOOLONG: nobody gets there by its name; see unseen.ts. */
function isNowhere(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes((error as NodeJS.ErrnoException).code ?? '')
}

export function parentOf(path: string): string {
  const cut = path.lastIndexOf('/')
  return cut < 0 ? '' : path.slice(0, cut)
}

/** The folders that a path lies in, the nearest first. */
export function above(path: string): string[] {
  const parents: string[] = []
  for (let parent = parentOf(path); parent !== ''; parent = parentOf(parent)) parents.push(parent)
  return parents
}

/** Of paths that are looked at together: whether a link or a file stands where a folder of theirs should be. Through a link one would change what is elsewhere. */
export function beyondFolders(worktree: string): (path: string) => boolean {
  const seen = new Map<string, boolean>()
  const isNone = (folder: string): boolean => {
    const known = seen.get(folder) ?? lstatNow(worktree, folder)?.isDirectory() === false
    seen.set(folder, known)
    return known
  }
  return (path) => above(path).some(isNone)
}

/** Another one once it was written again; empty when it is not there. */
export function diskMark(worktree: string, path: string): string {
  const stats = lstatNow(worktree, path)
  return stats === undefined ? '' : `${stats.ino} ${stats.size} ${stats.ctimeMs}`
}

/** A link, or a file whose bytes can be had. */
export function canRead(worktree: string, path: string): boolean {
  const stats = lstatNow(worktree, path)
  if (stats?.isFile() !== true) return stats?.isSymbolicLink() === true
  try {
    accessSync(onDisk(worktree, path), constants.R_OK)
    return true
  } catch {
    return false
  }
}
