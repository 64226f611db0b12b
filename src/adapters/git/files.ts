// Files of the work tree by git's byte-exact names, and durable writes for ralph's own.
import { lstat, mkdir, open, readdir, rename, type FileHandle } from 'node:fs/promises'
import { lstatSync, statSync, type Dirent, type Stats } from 'node:fs'

/** A path as git gave it (latin1: one char per byte) made absolute for the file system. */
export function onDisk(worktree: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${worktree}/`), Buffer.from(path, 'latin1')])
}

/** Who may do what with a file, and whose it is. */
export interface FileRights {
  readonly mode: number
  readonly uid?: number
  readonly gid?: number
}

/** By one rename. The rights are those asked for, else those of the file that it replaces: a 0600 file with a token in it stays 0600. */
export async function writeDurably(
  file: string | Buffer,
  content: string | Uint8Array,
  /** `by`: the file to rename, on the same file system; beside it where nothing is said. */
  asked: { readonly rights?: FileRights; readonly by?: string } = {},
): Promise<void> {
  const place = Buffer.from(file)
  const folder = place.subarray(0, Math.max(1, place.lastIndexOf('/')))
  await mkdir(folder, { recursive: true })
  const rights = asked.rights ?? rightsOf(place)
  const temporary = Buffer.from(asked.by ?? Buffer.concat([place, Buffer.from(`.${process.pid}.tmp`)]))
  const handle = await open(temporary, 'w', rights === undefined ? 0o666 : rights.mode & 0o700)
  try {
    await handle.writeFile(content)
    if (rights !== undefined) await giveRights(handle, rights)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(temporary, place)
  // The name too: after a power cut there is the old content or the new.
  const named = await open(folder, 'r')
  try {
    await named.sync()
  } finally {
    await named.close()
  }
}

/** The owner only where that is ours to say. */
async function giveRights(handle: FileHandle, { mode, uid, gid }: FileRights): Promise<void> {
  const { uid: ownUid, gid: ownGid } = await handle.stat()
  const isOthers = (uid ?? ownUid) !== ownUid || (gid ?? ownGid) !== ownGid
  if (isOthers)
    await handle.chown(uid ?? ownUid, gid ?? ownGid).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
    })
  await handle.chmod(mode)
}

function rightsOf(place: Buffer): FileRights | undefined {
  const stats = statSync(place, { throwIfNoEntry: false })
  return stats?.isFile() === true ? { mode: stats.mode & 0o7777, uid: stats.uid, gid: stats.gid } : undefined
}

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
    return lstatSync(onDisk(worktree, path), { throwIfNoEntry: false })
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
