// What of a home is on the disk now: where its places lie, what in it may be seen, which caches are used.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  type Dirent,
} from 'node:fs'
import { userInfo } from 'node:os'
import { basename, dirname, isAbsolute, join, normalize } from 'node:path'
import type { Cache, HomePlace } from '../../core/cage-homes.ts'
import { isWithin } from '../../core/cage.ts'
import type { Start } from './cage.ts'
import { faultCode } from './fault.ts'
import { onPath } from './on-path.ts'

/** The user's first. */
export function homesOf(env: NodeJS.ProcessEnv): string[] {
  return realOnes([env['HOME'] ?? '', registeredHome(), ...(isRoot() ? ['/root'] : [])])
}

/** Of other users, in which root could read all. */
export function othersHomes(homes: readonly string[]): string[] {
  return isRoot() ? realOnes(foldersIn('/home')).filter((path) => !homes.includes(path)) : []
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

function realOnes(paths: readonly string[]): string[] {
  return [...new Set(paths.filter((path) => isAbsolute(path)).flatMap((path) => there(path) ?? []))]
}

function registeredHome(): string {
  try {
    return userInfo().homedir
  } catch {
    // A user whom the system does not know.
    return ''
  }
}

function foldersIn(folder: string): string[] {
  return namesIn(folder).map((name) => join(folder, name))
}

function namesIn(folder: string): string[] {
  return entriesIn(folder).map(({ name }) => name)
}

function entriesIn(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

export function placeIn(
  home: string,
  { path, variable, below = '' }: HomePlace,
  env: NodeJS.ProcessEnv,
): string {
  const moved = variable === undefined ? '' : (env[variable] ?? '')
  if (isAbsolute(moved)) return join(moved, below)
  // Whole already: `join` for hundreds of them took as long as all that asks the disk.
  return path === '' ? home : `${home === '/' ? '' : home}/${path}`
}

/**
 * Places in homes, without those that the lists of a home and of the folder in it say are not there: of hundreds most are not, and to ask for each
 * took a third of all. One that cannot be listed says nothing; where names are the same in capitals the list has to know them, too.
 */
export function placesIn(
  homes: readonly string[],
  env: NodeJS.ProcessEnv,
): (places: readonly HomePlace[]) => string[] {
  const lists = new Map<string, ReadonlySet<string>>()
  const holds = (folder: string, name: string): boolean => {
    const names = lists.get(folder) ?? new Set(namesIn(folder).map(inSmall))
    lists.set(folder, names)
    return names.size === 0 || names.has(name)
  }
  return (places) =>
    homes.flatMap((home) =>
      places
        .filter(({ path, variable }) => {
          if (variable !== undefined && env[variable]) return true
          const [first, second, folder] = beginOf(path)
          return holds(home, first) && (second === '' || holds(`${home}/${folder}`, second))
        })
        .map((place) => placeIn(home, place, env)),
    )
}

type Begin = readonly [first: string, second: string, folder: string]

function beginOf(path: string): Begin {
  const known = begins.get(path)
  if (known !== undefined) return known
  const [folder = '', second = ''] = path.split('/')
  const begin: Begin = [inSmall(folder), inSmall(second), folder]
  begins.set(path, begin)
  return begin
}

/** Of what is always the same some hundred. */
const begins = new Map<string, Begin>()

function inSmall(name: string): string {
  return name.toLowerCase()
}

/** Without links; undefined where it is not there. */
export function there(path: string): string | undefined {
  if (seen?.has(path) === true) return seen.get(path)
  const real = realOf(path)
  seen?.set(path, real)
  return real
}

function realOf(path: string): string | undefined {
  try {
    // Step by step where the folder above is known: to resolve all of each path anew took twice as long.
    if (seen === undefined || !isPlain(path)) return existsSync(path) ? realpathSync.native(path) : undefined
    const above = there(dirname(path))
    if (above === undefined) return undefined
    const at = above === '/' ? `/${basename(path)}` : `${above}/${basename(path)}`
    const stats = lstatSync(at, { throwIfNoEntry: false })
    return stats?.isSymbolicLink() === true ? realpathSync.native(at) : stats && at
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP'].includes(faultCode(error))) return undefined
    throw error
  }
}

/** Whose last part is a name in what stands before it; macOS has more than one for a name. */
function isPlain(path: string): boolean {
  return (
    path !== '/' &&
    process.platform === 'linux' &&
    isAbsolute(path) &&
    normalize(path) === path &&
    !path.endsWith('/')
  )
}

/** For one look, in which nobody else has a turn: what is there, and where it leads, is asked once; the folders above each place a hundred times. */
export function inOneLook<T>(look: () => T): T {
  seen = new Map()
  try {
    return look()
  } finally {
    seen = undefined
  }
}

let seen: Map<string, string | undefined> | undefined

/** An agent that has never run has none yet, and could not make it. */
export function made(path: string): string | undefined {
  const known = there(path)
  if (known !== undefined) return known
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch {
    // Not ours to make.
  }
  // What was looked for in vain above is there now.
  for (const [each, real] of seen ?? []) if (real === undefined) seen?.delete(each)
  return there(path)
}

export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** Keys that a manager of dotfiles keeps elsewhere, and links to. */
export function linkedFrom(folder: string): string[] {
  if (!isFolder(folder)) return []
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isSymbolicLink())
      .flatMap((entry) => there(join(folder, entry.name)) ?? [])
      .filter((path) => !isWithin(path, folder) && statSync(path).isFile())
  } catch {
    return []
  }
}

/** Sockets that some program listens at, by their names: a mount that is read-only keeps nobody from connecting. */
export function boundSockets(): string[] {
  const names = textOf('/proc/net/unix').matchAll(/ (\/.*)$/gm)
  return [...new Set([...names].map(([, path = '']) => path))].filter(isSocket)
}

/** Where nobody of this user may look (another user's folder), nobody of this user can connect either. */
function isSocket(path: string): boolean {
  try {
    return lstatSync(path).isSocket()
  } catch {
    return false
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

interface Half {
  readonly folder: string
  readonly hidden: readonly string[]
  readonly kept: readonly string[]
  /** Of those that are kept. */
  readonly links: ReadonlySet<string>
}

/**
 * What of a folder is hidden, and what is not; of the home itself only what begins with a dot is. Where that takes fewer mounts all of it is an empty
 * folder with what can be seen in it: then what comes there meanwhile is not seen either.
 */
export function halved(
  path: string,
  but: ReadonlySet<string>,
  isHome: boolean,
  written: ReadonlySet<string>,
): Half[] {
  const folder = there(path)
  if (folder === undefined) return []
  const entries = entriesIn(folder)
  const isKept = ({ name }: Dirent): boolean => but.has(name) || (isHome && !name.startsWith('.'))
  const kept = entries.filter(isKept)
  const pathsOf = (some: readonly Dirent[]): string[] => some.map(({ name }) => join(folder, name))
  const hidden = pathsOf(
    // A link that an agent may have made hides nothing elsewhere.
    entries.filter((entry) => !isKept(entry) && !(written.has(folder) && entry.isSymbolicLink())),
  )
    .flatMap((path) => there(path) ?? [])
    // An empty file hides nothing, and each mount costs.
    .filter((each) => {
      const stats = statSync(each, { throwIfNoEntry: false })
      return stats !== undefined && (!stats.isFile() || stats.size > 0)
    })
  const links = new Set(pathsOf(kept.filter((entry) => entry.isSymbolicLink())))
  return [{ folder, hidden, kept: pathsOf(kept), links }]
}

/** In binds: ten folders are hidden in the time of one file. */
export function costOf(hidden: readonly string[]): number {
  return hidden.reduce((sum, path) => sum + (isFolder(path) ? 0.1 : 1), 0)
}

export function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
}

/** Or will be: others of its tool are there, or the tool itself. */
export function isUsed(path: string, { by = [] }: Cache, { env, cwd }: Start): boolean {
  const isThere = (each: string): boolean => there(each) !== undefined
  const isNext = isThere(dirname(path))
  return (
    (isNext && (by.length > 0 || isThere(path))) ||
    by.some((name) => isInstalled(name, env) || isThere(join(cwd, name)))
  )
}

function isInstalled(name: string, env: NodeJS.ProcessEnv): boolean {
  const key = `${name} ${env['PATH'] ?? ''}`
  const is = installed.get(key) ?? onPath(name, env) !== undefined
  installed.set(key, is)
  return is
}

/** To look for each of them along all of PATH takes longer than all else. */
const installed = new Map<string, boolean>()
