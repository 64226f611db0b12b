// Files of the work tree by git's byte-exact names, and durable writes for ralph's own.
import { lstat, mkdir, open, readdir, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { lstatSync, type Dirent, type Stats } from 'node:fs'

/** A path as git gave it (latin1: one char per byte) made absolute for the file system. */
export function onDisk(worktree: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${worktree}/`), Buffer.from(path, 'latin1')])
}

export async function writeDurably(file: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  const temporary = `${file}.${process.pid}.tmp`
  const handle = await open(temporary, 'w')
  try {
    await handle.writeFile(content)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(temporary, file)
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
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return undefined
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
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}

/** For thousands of files at a time: the synchronous call is ten times as fast. */
export function lstatNow(worktree: string, path: string): Stats | undefined {
  try {
    return lstatSync(onDisk(worktree, path), { throwIfNoEntry: false })
  } catch (error) {
    // Its folder is a file now.
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined
    throw error
  }
}

export function parentOf(path: string): string {
  const cut = path.lastIndexOf('/')
  return cut < 0 ? '' : path.slice(0, cut)
}
