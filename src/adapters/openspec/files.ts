// Small file steps of the OpenSpec room: a write that is whole or not there, a read that tells "missing" from "unreadable".
import { lstat, open, readFile, rename, stat, type FileHandle } from 'node:fs/promises'
import type { Stats } from 'node:fs'
import { basename, dirname, join } from 'node:path'

const temporary = /^\..+\.ralph-tmp$/

/** Left by a ralph that was killed in mid-write; the name is fixed per file, so there is never more than one. */
export function isTemporary(name: string): boolean {
  return temporary.test(name)
}

/** Replaces the file in one step; after a crash the old bytes are there or the new ones. A symlink is replaced, not followed. */
export async function writeWhole(path: string, bytes: Uint8Array, mode: number): Promise<void> {
  const scratch = join(dirname(path), `.${basename(path)}.ralph-tmp`)
  const handle = await open(scratch, 'w', mode)
  try {
    await handle.writeFile(bytes)
    await handle.chmod(mode)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(scratch, path)
  await syncFolder(dirname(path))
}

/** A rename is durable only when its folder is. */
export async function syncFolder(path: string): Promise<void> {
  const handle: FileHandle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

export function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/** A pipe or a device that an agent put in a file's place would be read for ever. */
export async function readRegular(path: string): Promise<Buffer> {
  if (!(await stat(path)).isFile()) throw new Error(`${path} is not a regular file`)
  return readFile(path)
}

/** Undefined when it is not there; any other trouble throws. */
export async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readRegular(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

export async function lstatIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}
