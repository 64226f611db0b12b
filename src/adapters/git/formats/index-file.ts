// Copies of git's index: taken as bytes, installed under git's own lock, so that no command sees half of one.
import {
  closeSync,
  constants as fsConstants,
  openSync,
  readFileSync,
  readSync,
  statSync,
  existsSync,
  readdirSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { RalphError } from '../../../core/error.ts'
import { copyFile, drop, link, rename, rm, stat, utimes } from '../../files/now.ts'
import { syncFiles } from '../../files/whole.ts'
import type { Git } from '../git.ts'
import { lockedFile } from '../guard/stale-locks.ts'
import { joined } from '../tree/tree.ts'

/** False when there is no index yet (a repository without a commit). */
export async function copyIndex(git: Git, from: string, to: string, isDurable = false): Promise<boolean> {
  try {
    const isOne = dirname(from) === dirname(to) && (await isLinked(from, `${to}.link`))
    const temporary = isOne ? `${to}.link` : `${to}.tmp`
    if (!isOne) {
      // Shares the blocks where the file system can.
      await copyFile(from, temporary, fsConstants.COPYFILE_FICLONE)
      if (isSplit(temporary, dirname(from))) await makeWhole(git, temporary)
      await keepTime(from, temporary)
    }
    if (isDurable) await syncFiles([temporary])
    await rename(temporary, to)
    // A rename does nothing where both are names of one file already.
    if (isOne) await drop(temporary)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    await rm(to, { force: true })
    return false
  }
}

/** A copy that a record will name: git does not sync what it writes there. */
export async function copyDurably(git: Git, from: string, to: string): Promise<boolean> {
  return await copyIndex(git, from, to, true)
}

/**
 * Among ralph's own two names of one file will do: it replaces an index, as git does, and never writes into one; nobody writes to a name
 * that ends in `.link`. Who writes into the repository's own nobody knows. False where the disk has no such thing.
 */
async function isLinked(from: string, to: string): Promise<boolean> {
  // Of a kill in this moment.
  await drop(to)
  try {
    await link(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw error
    return false
  }
}

/** Byte by byte, and of one time: then it is on the disk, too, for a copy is synced before it counts. */
export function isSameIndex(one: string, other: string): boolean {
  const [a, b] = [one, other].map((file) => statSync(file, { throwIfNoEntry: false }))
  if (a === undefined || b === undefined || a.size !== b.size) return false
  if (a.ino === b.ino && a.dev === b.dev) return true
  // A time goes to the disk with what a float makes of it.
  return Math.abs(a.mtimeMs - b.mtimeMs) < 2 && areSame(one, other, a.size)
}

/** Piece by piece: a large one would be garbage that is dear to collect. */
function areSame(one: string, other: string, size: number): boolean {
  const [a, b] = [Buffer.allocUnsafe(pieceBytes), Buffer.allocUnsafe(pieceBytes)]
  const files = [openSync(one, 'r'), openSync(other, 'r')] as const
  try {
    for (let at = 0; at < size;) {
      const length = readSync(files[0], a, 0, pieceBytes, at)
      if (length === 0 || readSync(files[1], b, 0, pieceBytes, at) !== length) return false
      if (a.compare(b, 0, length, 0, length) !== 0) return false
      at += length
    }
    return true
  } finally {
    for (const file of files) closeSync(file)
  }
}

const pieceBytes = 256 * 1024

/** Makes `from` the repository's index; without `from` there is none afterwards. `look`: once nobody can stage any more. */
export async function installIndex(
  git: Git,
  from: string | undefined,
  look: () => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  const index = realIndex(git)
  const lock = `${index}.lock`
  await takeLock(git, lock)
  try {
    await look()
    if (from === undefined) {
      await rm(index, { force: true })
    } else {
      await copyFile(from, lock)
      await keepTime(from, lock)
      await syncFiles([lock])
      await rename(lock, index)
    }
  } finally {
    await drop(lock)
  }
}

/** These paths as the commit, if there is one, has them; the others stay. */
export async function takeFrom(
  git: Git,
  index: string,
  commit: string | undefined,
  paths: readonly string[],
): Promise<void> {
  if (paths.length === 0) return
  const entries = commit === undefined ? [] : await git.list(['ls-tree', '-r', '-z', '--full-tree', commit])
  const wanted = new Set(paths)
  const back = entries.filter((entry) => wanted.has(entry.slice(entry.indexOf('\t') + 1)))
  await git.run(['update-index', '--force-remove', '-z', '--stdin'], { index, input: joined(paths) })
  if (back.length > 0)
    await git.run(['update-index', '--replace', '-z', '--index-info'], { index, input: joined(back) })
}

export function realIndex(git: Git): string {
  return join(git.gitDir, 'index')
}

/**
 * A copy gets the time of its source, rounded down: git trusts an entry only if the file is older than the index,
 * and a younger copy would hide a change made in the same clock tick.
 */
async function keepTime(from: string, to: string): Promise<void> {
  const { mtimeMs } = await stat(from)
  const seconds = Math.floor(mtimeMs) / 1000
  await utimes(to, seconds, seconds)
}

/** As git itself takes it: nobody else writes what it stands for. */
export async function takeLock(git: Git, lock: string): Promise<void> {
  for (const waitMs of [50, 100, 200, 400, 800, 1500, 3000, 0]) {
    try {
      closeSync(openSync(lock, 'wx'))
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      await pause(waitMs)
    }
  }
  const { message, hint } = lockedFile(git, lock)
  throw new RalphError('checkpoint_failed', message, { hint })
}

/** `core.splitIndex`, `git update-index --split-index`. Hardly anybody has one, and the look for the second file, in this folder, is a short one. */
export function isSplit(index: string, folder: string): boolean {
  const isBeside = readdirSync(folder).some((name) => name.startsWith('sharedindex.'))
  return isBeside && existsSync(index) && readFileSync(index).includes('link')
}

export async function makeWhole(git: Git, copy: string): Promise<void> {
  await git.run(['update-index', '--no-split-index', '--force-write-index'], { index: copy })
}
