// Takes files and folders out of the work tree, whatever permissions their owner gave them.
import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rename, rm, rmdir, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { copyAll, within } from '../../files/copy.ts'
import { onDisk, parentOf } from './files.ts'
import { namesOfFolders, openAbove, openWithin, statsOf } from './owner-access.ts'

/** Removes a file or folder, then the folders above it that became empty, as git does. */
export async function removePath(worktree: string, path: string): Promise<void> {
  const bare = path.replace(/\/$/, '')
  const place = onDisk(worktree, bare)
  openAbove(worktree, [bare])
  try {
    await rm(place, { recursive: true, force: true })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (code === 'ENAMETOOLONG') {
      if (await lifted(place, place)) return await removePath(worktree, path)
      return
    }
    // A folder's own permissions must not save it from a revert. ENOTDIR: Node's word for a file that cannot be removed.
    if (!['EACCES', 'EPERM', 'ENOTDIR'].includes(code)) throw error
    openWithin(place)
    await removeEach(place)
  }
  await pruneAbove(worktree, bare)
}

/** A folder deep within `top` is put at its top, so that what lies in it has a path again. False where there is none. */
async function lifted(top: Buffer, folder: Buffer): Promise<boolean> {
  for (const name of namesOfFolders(folder)) {
    const inner = within(folder, name)
    if (inner.length > top.length + 2_000) {
      await rename(inner, within(top, Buffer.from(randomUUID())))
      return true
    }
    if (await lifted(top, inner)) return true
  }
  return false
}

/** One by one: what cannot be removed is named by the error. */
async function removeEach(place: Buffer): Promise<void> {
  const stats = statsOf(place)
  if (stats === undefined) return
  if (!stats.isDirectory()) return await unlink(place)
  for (const name of await readdir(place, { encoding: 'buffer' })) await removeEach(within(place, name))
  await rmdir(place)
}

export async function pruneAbove(worktree: string, path: string): Promise<void> {
  for (let parent = parentOf(path); parent !== ''; parent = parentOf(parent)) {
    try {
      await rmdir(onDisk(worktree, parent))
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code
      if (code === 'ENOENT') continue
      // Busy: something is mounted there.
      if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EBUSY'].includes(code ?? '')) return
      throw error
    }
  }
}

/** Moves a folder out of the work tree; across file systems it is copied first. */
export async function moveAway(worktree: string, path: string, to: string): Promise<void> {
  const from = onDisk(worktree, path.replace(/\/$/, ''))
  await mkdir(dirname(to), { recursive: true })
  openAbove(worktree, [path])
  openWithin(from)
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await copyAll(from, to)
    await rm(from, { recursive: true, force: true })
  }
  await pruneAbove(worktree, path.replace(/\/$/, ''))
}
