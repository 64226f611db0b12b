// Folders and files without the permissions that their own owner needs: opened for ralph's own work, never wider than for the owner.
import {
  accessSync,
  chmodSync,
  constants,
  lstatSync,
  readdirSync,
  type BigIntStats,
  type Stats,
} from 'node:fs'
import { join } from 'node:path'
import { within } from '../../files/copy.ts'
import { onDisk, parentOf } from './files.ts'
import type { Repository } from '../git.ts'

/** What stood there before, to be put back. */
export interface Opened {
  readonly place: Buffer
  readonly mode: number
}

/** The folders above these paths, the work tree's root too: what lies in them can be written and removed. Throws where another user's stop it. */
export function openAbove(worktree: string, paths: readonly string[]): Opened[] {
  const opened: Opened[] = []
  const seen = new Map<string, boolean>()
  const open = (folder: string): boolean => {
    const known = seen.get(folder)
    if (known !== undefined) return known
    // Beyond a link nothing is ralph's.
    const isInside = folder === '' || open(parentOf(folder))
    const place = placeOf(worktree, folder)
    const stats = isInside ? statsOf(place) : undefined
    const isFolder = stats?.isDirectory() === true
    if (isFolder) {
      const before = openFolder(place, stats)
      if (before !== undefined) opened.push({ place, mode: before })
    }
    seen.set(folder, isFolder)
    return isFolder
  }
  const parents = new Set(paths.map((path) => parentOf(path.replace(/\/$/, ''))))
  for (const parent of parents)
    if (open(parent)) accessSync(placeOf(worktree, parent), constants.W_OK | constants.X_OK)
  return opened
}

/** A folder and all folders in it. Of another user's nothing is changed. */
export function openWithin(place: Buffer): void {
  const stats = statsOf(place)
  if (stats?.isDirectory() !== true) return
  openFolder(place, stats)
  for (const name of namesOfFolders(place)) openWithin(within(place, name))
}

/** The git directory, where an agent's `chmod -R a-w .` went through it too; objects stay read-only, as git makes them. */
export function openRepository({ worktree, gitDir, gitCommonDir }: Repository): void {
  openOwn(Buffer.from(worktree))
  const kept = ['', 'objects', 'refs', 'refs/heads', 'logs', 'ralph', 'ralph/checkpoints']
  const asked = [gitDir, ...kept.map((name) => join(gitCommonDir, name))]
  if (asked.map((place) => openOwn(Buffer.from(place))).includes(true))
    for (const place of new Set([gitDir, gitCommonDir])) openAll(Buffer.from(place))
}

/** For reading; undefined when that was not needed. Throws where the file is another user's. */
export function openFile(place: Buffer): Opened | undefined {
  const { mode } = lstatSync(place)
  if ((mode & 0o400) !== 0) {
    accessSync(place, constants.R_OK)
    return undefined
  }
  chmodSync(place, (mode & 0o7777) | 0o400)
  return { place, mode: mode & 0o7777 }
}

/** Whether it can be read now. One that has a second name somewhere is not touched. */
export function openToRead(place: Buffer, stats: Stats): boolean {
  if ((stats.mode & 0o400) === 0 && isOwn(stats) && stats.nlink === 1)
    chmodSync(place, (stats.mode & 0o7777) | 0o400)
  return isAccessible(place, constants.R_OK)
}

export function putBackOpened(opened: readonly Opened[]): void {
  for (const { place, mode } of opened) if (statsOf(place) !== undefined) chmodSync(place, mode)
}

/** Its mode before, if it had to be. Nothing happens where it is another user's: who needs it will be told. */
export function openFolder(place: Buffer, stats: Stats): number | undefined {
  const mode = stats.mode & 0o7777
  if ((mode & 0o700) === 0o700 || !isOwn(stats)) return undefined
  chmodSync(place, mode | 0o700)
  return mode
}

export function isOwn({ uid }: Stats): boolean {
  const own = process.geteuid?.()
  return own === 0 || own === uid
}

function openOwn(place: Buffer): boolean {
  const stats = statsOf(place)
  return stats?.isDirectory() === true && openFolder(place, stats) !== undefined
}

function openAll(place: Buffer): void {
  openOwn(place)
  if (!isOpen(place)) return
  for (const entry of readdirSync(place, { withFileTypes: true, encoding: 'buffer' })) {
    const inner = within(place, entry.name)
    if (entry.isDirectory()) openAll(inner)
    else if (entry.isFile() && !inner.includes('/objects/')) openForWriting(inner)
  }
}

function openForWriting(place: Buffer): void {
  const stats = lstatSync(place)
  if ((stats.mode & 0o600) !== 0o600 && isOwn(stats)) chmodSync(place, (stats.mode & 0o7777) | 0o600)
}

export function isOpen(place: Buffer): boolean {
  return isAccessible(place, constants.R_OK | constants.X_OK)
}

function isAccessible(place: Buffer, how: number): boolean {
  try {
    accessSync(place, how)
    return true
  } catch {
    return false
  }
}

/** None where it cannot be looked into. */
export function namesOfFolders(place: Buffer): Buffer[] {
  if (!isOpen(place)) return []
  const entries = readdirSync(place, { withFileTypes: true, encoding: 'buffer' })
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
}

export function placeOf(worktree: string, folder: string): Buffer {
  return folder === '' ? Buffer.from(worktree) : onDisk(worktree, folder.replace(/\/$/, ''))
}

/** Of the thing itself, not of what a link points to; undefined where there is nothing to be seen. */
export function statsOf(place: Buffer | string): Stats | undefined {
  return ifReachable(() => lstatSync(place, { throwIfNoEntry: false }))
}

/** With all digits of its times. */
export function exactStatsOf(place: Buffer | string): BigIntStats | undefined {
  return ifReachable(() => lstatSync(place, { bigint: true, throwIfNoEntry: false }))
}

function ifReachable<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOTDIR' || code === 'EACCES' || code === 'ENAMETOOLONG') return undefined
    throw error
  }
}
