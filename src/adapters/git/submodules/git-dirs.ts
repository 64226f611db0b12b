// Copies of the git directories of submodules: they lie where an agent may delete them with everything that the user has not pushed.
import { mkdir, rename } from '../../files/now.ts'
import { createHash } from 'node:crypto'
import {
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  type Dirent,
} from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { shown } from '../git.ts'
import { timeName, type Store } from '../store.ts'
import type { Snapshot, Submodule } from '../revert/snapshot.ts'
import { freeName, isGitDir, repositoryOf } from './submodule.ts'

/** Makes the copies what the originals are now; names them from the repository's own git directory. */
export async function mirrorGitDirs(
  store: Store,
  snapshot: Snapshot,
  earlier: Snapshot | undefined,
): Promise<string[]> {
  const places = placesOf(store, snapshot.submodules ?? [])
  for (const place of earlier?.git_dirs ?? []) if (!places.includes(place)) await setAside(store, place)
  for (const place of places) mirror(original(store, place), mirrorOf(store, place))
  return places
}

/** Puts back those that are gone or gutted. Idempotent; needs no git. */
export async function mendGitDirs(store: Store, { git_dirs = [] }: Snapshot): Promise<void> {
  for (const place of git_dirs) {
    const dir = original(store, place)
    const stands = lstatSync(dir, { throwIfNoEntry: false })
    if (stands?.isDirectory() === true && isGitDir(dir)) continue
    if (!existsSync(mirrorOf(store, place)) || !isReal(dirname(dir))) continue
    if (stands !== undefined) await moveTo(dir, asideOf(store, place))
    const half = `${dir}.ralph`
    rmSync(half, { recursive: true, force: true })
    mirror(mirrorOf(store, place), half)
    renameSync(half, dir)
  }
}

/** Those that the attempt made: `git submodule add` of the next one would stumble over them. */
export async function removeNewGitDirs(store: Store, { git_dirs, submodules = [] }: Snapshot): Promise<void> {
  if (git_dirs === undefined) return
  const known = new Set(git_dirs)
  for (const place of placesOf(store, submodules)) {
    if (known.has(place)) continue
    await moveTo(original(store, place), asideOf(store, place))
    await forgetSection(store, place)
  }
}

async function forgetSection({ git }: Store, place: string): Promise<void> {
  const name = place.replace(/^modules\//, '')
  await git.run(['config', '--local', '--remove-section', `submodule.${name}`], { accept: [128] })
}

/** Before a repository that the attempt made is moved away: what a `.git` file of its names goes with it. */
export async function gatherGitDir(store: Store, { git_dirs }: Snapshot, path: string): Promise<void> {
  const folder = join(store.git.worktree, shown(path))
  const file = join(folder, '.git')
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return
  const link = readFileSync(file).toString('latin1')
  const { gitDir } = repositoryOf(store.git.worktree, path, link)
  const place = relative(store.git.gitDir, gitDir)
  if (!place.startsWith('modules/') || git_dirs?.includes(place) !== false || !isGitDir(gitDir)) return
  rmSync(file)
  renameSync(gitDir, file)
  await store.git.run(['config', '--file', join(file, 'config'), '--unset', 'core.worktree'], { accept: [5] })
  await forgetSection(store, place)
}

export function dropMirrors(store: Store): void {
  rmSync(mirrorsOf(store), { recursive: true, force: true })
}

async function setAside(store: Store, place: string): Promise<void> {
  if (!existsSync(mirrorOf(store, place))) return
  const to = asideOf(store, place)
  await moveTo(mirrorOf(store, place), to)
  const message = `the git directory of a submodule is gone (${original(store, place)}); a copy with all of its commits is kept as ${to}`
  await store.note({ type: 'warning', code: 'submodule_gone', message })
}

function placesOf({ git }: Store, submodules: readonly Submodule[]): string[] {
  const all = [...gitDirsBelow(join(git.gitDir, 'modules')), ...embedded(git.worktree, submodules)]
  return [...new Set(all.map((dir) => relative(git.gitDir, dir)))]
}

function gitDirsBelow(folder: string): string[] {
  const entries = existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : []
  if (isGitDir(folder)) return [folder, ...gitDirsBelow(join(folder, 'modules'))]
  return entries
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => gitDirsBelow(join(folder, name)))
}

function embedded(worktree: string, submodules: readonly Submodule[]): string[] {
  return submodules.flatMap(({ path, link, snapshot }) => {
    const { gitDir, worktree: inner } = repositoryOf(worktree, path, link)
    const own = link === null ? [gitDir, ...gitDirsBelow(join(gitDir, 'modules'))] : []
    return [...own, ...embedded(inner, snapshot.submodules ?? [])]
  })
}

/** Nothing is written beyond a link, or where a file is in the way. */
function isReal(folder: string): boolean {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  if (stats !== undefined) return stats.isDirectory() && realpathSync(folder) === folder
  if (!isReal(dirname(folder))) return false
  mkdirSync(folder)
  return true
}

/** Objects never change, so they are shared; the few other files are copied. Only what is new or different is touched. */
function mirror(from: string, to: string, isShared = false, isTop = true): void {
  mkdirSync(to, { recursive: true })
  const there = new Set(readdirSync(to))
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const { name } = entry
    if ((isTop && apart.has(name)) || name.endsWith('.lock')) continue
    const isThere = there.delete(name)
    const [source, target] = [join(from, name), join(to, name)]
    if (entry.isDirectory()) mirror(source, target, isShared || (isTop && shared.has(name)), false)
    else mirrorFile(entry, source, target, isShared, isThere)
  }
  for (const name of there) rmSync(join(to, name), { recursive: true, force: true })
}

/** Submodules inside have copies of their own; a loop of the submodule's own is not this one's business. */
const apart = new Set(['modules', 'ralph'])
const shared = new Set(['objects', 'lfs'])

function mirrorFile(entry: Dirent, from: string, to: string, isShared: boolean, isThere: boolean): void {
  try {
    if (entry.isSymbolicLink()) {
      rmSync(to, { force: true })
      symlinkSync(readlinkSync(from), to)
    } else if (isShared) {
      if (!isThere) share(from, to)
    } else if (entry.isFile() && !(isThere && isAlike(from, to))) copy(from, to)
  } catch (error) {
    // A git of the user's has taken it away meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function share(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch (error) {
    if (!['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? ''))
      throw error
    copy(from, to)
  }
}

function copy(from: string, to: string): void {
  const { atime, mtime } = lstatSync(from)
  rmSync(to, { force: true })
  copyFileSync(from, to, constants.COPYFILE_FICLONE)
  utimesSync(to, atime, mtime)
}

function isAlike(one: string, other: string): boolean {
  const [a, b] = [lstatSync(one), lstatSync(other)]
  return a.size === b.size && Math.trunc(a.mtimeMs) === Math.trunc(b.mtimeMs)
}

function original(store: Store, place: string): string {
  return resolve(store.git.gitDir, place)
}

/** Apart from the checkpoint's own files: nobody has to look through all of these. */
function mirrorsOf({ git, change }: Store): string {
  return join(git.gitCommonDir, 'ralph', 'git-dirs', change)
}

function mirrorOf(store: Store, place: string): string {
  return join(mirrorsOf(store), createHash('sha1').update(place).digest('hex').slice(0, 12))
}

function asideOf(store: Store, place: string): string {
  const name = basename(place) === '.git' ? basename(dirname(place)) : basename(place)
  return join(store.folder, 'nested', `${timeName(store)}-git`, name)
}

async function moveTo(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  await rename(from, freeName(to))
}
