// Ignored files and repositories inside the work tree that somebody moved while an attempt ran: known again by their inodes, and put back.
import { readdirSync } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { above, beyondFolders, lstatNow, onDisk, parentOf } from '../tree/files.ts'
import { named, type Git } from '../git.ts'
import {
  exactStatsOf,
  isOpen,
  openAbove,
  openFolder,
  placeOf,
  putBackOpened,
  statsOf,
} from '../tree/owner-access.ts'
import { pruneAbove } from '../tree/remove.ts'
import { exempt } from '../tree/scan.ts'
import type { Snapshot } from './snapshot.ts'
import type { Store } from '../store.ts'
import { outermost } from '../submodules/submodule.ts'

/** Without a slash at the end. */
export interface MovedFile {
  readonly was: string
  readonly now: string
  readonly isFolder: boolean
}

/** By path, what tells each of them from all others; folders first, for most lies in them. `known`: folders of tracked files. */
export function rememberPlaces(
  git: Git,
  paths: readonly string[],
  known: readonly string[],
): Record<string, string> {
  const isKnown = new Set(known)
  const folders = paths.filter((path) => path.endsWith('/')).map((path) => path.slice(0, -1))
  const files = paths.filter((path) => !path.endsWith('/'))
  const around = new Set(paths.flatMap((path) => above(path.replace(/\/$/, ''))))
  const all = new Set([...folders, ...[...around].filter((folder) => !isKnown.has(folder)), ...files])
  const marks = [...all].slice(0, mostPlaces).map((path) => [path, markAt(git, path)] as const)
  return Object.fromEntries(marks.filter(([, mark]) => mark !== ''))
}

/** Those that are not where they were, and lie somewhere among or in what git sees now (`seen`: untracked and ignored paths). */
export function findMoved(store: Store, snapshot: Snapshot, seen: readonly string[]): MovedFile[] {
  const { git } = store
  const missing = new Map(
    Object.entries(snapshot.places ?? {}).flatMap(([path, mark]) =>
      markAt(git, path) === mark ? [] : [[mark, path] as const],
    ),
  )
  if (missing.size === 0) return []
  const isKnown = exempt(store.protectedPaths, snapshot.ignored)
  const asked = new Set<string>()
  const found: MovedFile[] = []
  let looks = 0
  /** False where there is no point in looking further down. */
  const isElse = (path: string): boolean => {
    if (asked.has(path)) return !found.some(({ now }) => now === path)
    asked.add(path)
    looks += 1
    const mark = markAt(git, path)
    const was = missing.get(mark)
    if (was === undefined) return true
    missing.delete(mark)
    found.push({ was, now: path, isFolder: mark.startsWith('folder') })
    return false
  }
  const within = (folder: string): void => {
    const place = placeOf(git.worktree, folder)
    if (looks >= mostLooks || statsOf(place)?.isDirectory() !== true || !isOpen(place)) return
    for (const entry of readdirSync(place, { withFileTypes: true, encoding: 'buffer' })) {
      const path = `${folder}/${entry.name.toString('latin1')}`
      if (entry.name.toString() !== '.git' && isElse(path) && entry.isDirectory()) within(path)
    }
  }
  for (const path of seen) {
    const bare = path.replace(/\/$/, '')
    // The outer first: what lies in a folder that was moved has moved with it.
    const isNew = [...above(bare).reverse(), bare].every(isElse)
    if (isNew && path.endsWith('/') && !isKnown(path)) within(bare)
  }
  return found
}

/** Whether it is back: not where something stands in its place, or on another device. */
export async function putBackMoved(store: Store, { was, now, isFolder }: MovedFile): Promise<boolean> {
  const { worktree } = store.git
  const inTheWay = lstatNow(worktree, was)
  const isFree = inTheWay === undefined || (isFolder && inTheWay.isDirectory())
  if (!isFree || beyondFolders(worktree)(was)) return false
  await mkdir(placeOf(worktree, parentOf(was)), { recursive: true })
  return await renamed(store, now, onDisk(worktree, was))
}

export async function tellPutBack(store: Store, moved: readonly MovedFile[]): Promise<void> {
  const more = moved.length - mostLines
  const messages = moved.slice(0, mostLines).map(({ was, now, isFolder }) => {
    const [from, to] = [now, was].map((path) => `${named(path)}${isFolder ? '/' : ''}`)
    return `${to} was moved to ${from} while the attempt ran; it is back in its place`
  })
  for (const message of [...messages, ...(more > 0 ? [`so are ${more} more that were moved`] : [])])
    await outermost(store).note({ type: 'warning', code: 'moved_back', message })
}

/** Within one device, whatever the permissions of its owner's folders are. */
export async function renamed({ git }: Store, path: string, to: Buffer): Promise<boolean> {
  const from = onDisk(git.worktree, path)
  openAbove(git.worktree, [path])
  const stats = statsOf(from)
  // A folder that goes to another one is written to: the name of its parent is in it.
  const mode = stats?.isDirectory() === true ? openFolder(from, stats) : undefined
  try {
    await rename(from, to)
    if (mode !== undefined) putBackOpened([{ place: to, mode }])
  } catch (error) {
    if (mode !== undefined) putBackOpened([{ place: from, mode }])
    // EBUSY: something is mounted there. ENOTEMPTY and EEXIST: a folder with something in it stands in the way.
    if (['EXDEV', 'EBUSY', 'ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return false
    throw error
  }
  await pruneAbove(git.worktree, path)
  return true
}

/** Empty where there is nothing, or no time of birth: a number alone may be another's by now. */
function markAt({ worktree }: Pick<Git, 'worktree'>, path: string): string {
  const stats = exactStatsOf(onDisk(worktree, path))
  if (stats === undefined || stats.birthtimeNs === 0n) return ''
  if (!stats.isDirectory() && !stats.isFile()) return ''
  return `${stats.isDirectory() ? 'folder' : 'file'} ${stats.dev} ${stats.ino} ${stats.birthtimeNs}`
}

const mostLines = 10
const mostPlaces = 1_000
const mostLooks = 20_000
