// The files of the git directory that git obeys, found, read and written by their bytes: settings, hooks, info/; those of submodules too.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import * as z from 'zod'
import { mkdir, rename, rm, symlink, writeFile } from '../../files/now.ts'
import { restingMark, writeDurably } from '../../files/whole.ts'
import { isTaken } from '../../process/pid.ts'
import { alternatesFile, shallowFile } from '../formats/borrowed-objects.ts'
import { onDisk } from '../tree/files.ts'
import type { Git } from '../git.ts'
import { exactStatsOf, namesOfFolders, openToRead, statsOf } from '../tree/owner-access.ts'
import type { Store } from '../store.ts'

export const guardedFileSchema = z.object({
  /** Of its bytes; empty for a link, and for what is neither or cannot be read. */
  sha: z.string(),
  mode: z.number(),
  uid: z.number(),
  gid: z.number(),
  link: z.string().optional(),
})
export type GuardedFile = Readonly<z.infer<typeof guardedFileSchema>>
/** By their names in the common git directory, one char per byte. */
export type Guarded = Readonly<Record<string, GuardedFile>>

/** `hooksPath`: the setting, whose folder counts where it lies in the git directory. */
export function findGuarded(git: Git, hooksPath: string | undefined): Guarded {
  const found: Record<string, GuardedFile> = {}
  const common = git.gitCommonDir
  const hooks = hooksPath === undefined ? '' : inside(common, resolve(git.worktree, hooksPath))
  const own = inside(common, git.gitDir)
  const roots = [
    ...ofRepository(common, ''),
    shallowFile,
    alternatesFile,
    ...foldersIn(common, 'worktrees').map((name) => `${name}/config.worktree`),
    ...(own === '' ? [] : [`${own}/info`]),
    ...(hooks === '' ? [] : [hooks]),
  ]
  const walk = (name: string): void => {
    const place = onDisk(common, name)
    const stats = exactStatsOf(place)
    // `git gc` writes info/refs for dumb servers.
    if (stats === undefined || /(^|\/)info\/refs$|(^|\/)config(\.worktree)?\.lock$/.test(name)) return
    if (!stats.isDirectory()) found[name] = guardedAt(place, name, stats)
    else for (const child of readdirSync(place, { encoding: 'latin1' })) walk(`${name}/${child}`)
  }
  for (const root of new Set(roots)) walk(root)
  return found
}

/**
 * Files outside of the git directory that the user's git runs or reads as settings: of the work tree, where they are the work's own, and
 * elsewhere, where a link among the hooks leads. They are only told. By path, with their hashes.
 */
export function findObeyed(
  git: Git,
  hooksPath: string | undefined,
  included: readonly string[],
): Record<string, string> {
  const { worktree, gitCommonDir: common } = git
  const found: Record<string, string> = {}
  const walk = (path: string): void => {
    const place = path.startsWith('/') ? Buffer.from(path, 'latin1') : onDisk(worktree, path)
    const stats = statsOf(place)
    if (stats?.isDirectory() === true)
      for (const child of readdirSync(place, { encoding: 'latin1' })) walk(`${path}/${child}`)
    else if (stats !== undefined) found[path] = guardedAt(place, 'config').sha
  }
  const roots = [
    ...(hooksPath === undefined ? [] : [resolve(worktree, hooksPath)]),
    ...included.map((path) => resolve(common, path)),
  ]
  for (const root of roots) {
    const path = inside(worktree, root)
    if (path !== '' && inside(common, root) === '' && root !== common) walk(path)
  }
  for (const target of linkedFiles(common)) {
    if (inside(common, target) !== '') continue
    const path = inside(worktree, target) || Buffer.from(target).toString('latin1')
    if (found[path] === undefined) walk(path)
  }
  return found
}

/** Where the links among hooks and info/ lead; of a folder that is one itself, the files in it. */
function linkedFiles(common: string): string[] {
  return ['hooks', 'info'].flatMap((name) => {
    const folder = join(common, name)
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return []
    const isLink = linkAt(Buffer.from(folder)) !== undefined
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const file = join(folder, entry.name)
      if (!isLink && !entry.isSymbolicLink()) return []
      return statSync(file, { throwIfNoEntry: false })?.isFile() === true ? [realpathSync(file)] : []
    })
  })
}

/** And of each submodule's repository below `modules/`. */
export function ofRepository(common: string, folder: string): string[] {
  // `commondir` makes git obey the settings of another folder.
  const own = ['config', 'config.worktree', 'hooks', 'info', 'commondir'].map((name) => `${folder}${name}`)
  const modules = (below: string): string[] =>
    foldersIn(common, below).flatMap((name) =>
      statsOf(onDisk(common, `${name}/HEAD`)) === undefined
        ? modules(name)
        : ofRepository(common, `${name}/`),
    )
  return [...own, ...modules(`${folder}modules`)]
}

function foldersIn(common: string, folder: string): string[] {
  const place = onDisk(common, folder)
  if (statsOf(place)?.isDirectory() !== true) return []
  return namesOfFolders(place).map((name) => `${folder}/${name.toString('latin1')}`)
}

/** Empty where it lies elsewhere. */
function inside(common: string, path: string): string {
  const name = relative(common, path)
  return name.startsWith('..') ? '' : Buffer.from(name).toString('latin1')
}

export function isSettingsFile(name: string): boolean {
  return /(^|\/)config(\.worktree)?$/.test(name) && !/(^|\/)(hooks|info)\//.test(name)
}

export function guardedAt(place: Buffer, name: string, stats = exactStatsOf(place)): GuardedFile {
  const mark = stats?.isFile() === true ? restingMark(stats) : ''
  const key = place.toString('latin1')
  const known = seen.get(key)
  if (mark !== '' && known?.mark === mark) return known.file
  const file = guardedNow(place, name)
  if (mark !== '' && file.sha !== '') seen.set(key, { mark, file })
  else seen.delete(key)
  return file
}

/** What was read of files that rest: hooks seldom change, and are looked at three times for each attempt. */
const seen = new Map<string, { readonly mark: string; readonly file: GuardedFile }>()

function guardedNow(place: Buffer, name: string): GuardedFile {
  const { mode = 0, uid = 0, gid = 0 } = statsOf(place) ?? {}
  const link = linkAt(place)
  // A hook may be a link into the work tree, where its content is the work's own.
  const content = link === undefined || isSettingsFile(name) ? contentAt(place) : undefined
  const sha = content === undefined ? '' : hashOf(content)
  return { sha, mode: mode & 0o7777, uid, gid, ...(link !== undefined && { link }) }
}

export function isSameFile(before: GuardedFile | undefined, now: GuardedFile | undefined): boolean {
  if (before === undefined || now === undefined) return before === now
  const sameMode = before.link !== undefined || before.mode === now.mode
  return before.sha === now.sha && before.link === now.link && sameMode
}

export function hashOf(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Of a plain file, or of the one that a link leads to; a pipe is never opened. */
export function contentAt(place: Buffer): Buffer | undefined {
  const stats = statSync(place, { throwIfNoEntry: false })
  return stats?.isFile() === true && openToRead(place, stats) ? readFileSync(place) : undefined
}

export function linkAt(place: Buffer): string | undefined {
  return statsOf(place)?.isSymbolicLink() === true ? readlinkSync(place, { encoding: 'latin1' }) : undefined
}

/** Whatever stands there now. Made among the private files first: a hook that is half written is never among the hooks. */
export async function writeGuarded(
  { folder }: Pick<Store, 'folder'>,
  place: Buffer,
  like: GuardedFile,
  content: Uint8Array | undefined,
): Promise<void> {
  const by = join(folder, 'guarded.tmp')
  await mkdir(place.subarray(0, place.lastIndexOf('/')), { recursive: true })
  const stands = statsOf(place)
  if (like.link !== undefined) {
    if (linkAt(place) !== like.link) {
      await rm(by, { force: true })
      await symlink(Buffer.from(like.link, 'latin1'), by)
      if (stands?.isDirectory() === true) await rm(place, { recursive: true })
      await rename(by, place)
    }
    if (content !== undefined) await writeDurably(realpathSync(place), content)
    return
  }
  if (stands?.isDirectory() === true) await rm(place, { recursive: true })
  if (content !== undefined) await writeDurably(place, content, { rights: like, by })
}

/** Git's own lock on a settings file, so that what the user's git writes meanwhile is not overwritten. Returns its release. */
export async function lockSettings(
  { folder }: Pick<Store, 'folder'>,
  place: Buffer,
): Promise<() => Promise<void>> {
  const lock = Buffer.concat([place, Buffer.from('.lock')])
  for (const waitMs of lockWaitsMs) {
    await pause(waitMs)
    try {
      await writeFile(lock, `ralph ${process.pid}\n`, { flag: 'wx' })
      return () => rm(lock, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  // Writing settings takes no time: its git was killed, or ralph was, just here.
  await mkdir(join(folder, 'stale-locks'), { recursive: true })
  await rename(lock, join(folder, 'stale-locks', basename(lock.toString('latin1'))))
  return () => Promise.resolve()
}

/** Of a ralph that was killed with the lock in its hand. */
export async function dropDeadLocks({ gitCommonDir }: Git, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const lock = onDisk(gitCommonDir, `${name}.lock`)
    const [, pid] = /^ralph (\d+)\n$/.exec(contentAt(lock)?.toString('latin1') ?? '') ?? []
    if (pid !== undefined && !isTaken(Number(pid))) await rm(lock, { force: true })
  }
}

const lockWaitsMs = [0, 50, 100, 200, 400, 800, 1500]
