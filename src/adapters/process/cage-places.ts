// Looks at the disk for what a cage has to know: homes and their secrets, caches, programs that lie in strange places.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { userInfo } from 'node:os'
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path'
import {
  agentHomes,
  caches,
  closed,
  movedSecrets,
  namedSockets,
  registrySettings,
  secrets,
  systemSecrets,
  withoutLogins,
  type AgentHome,
  type HomePlace,
} from '../../core/cage-homes.ts'
import { hostOf, type Host } from '../../core/cage-hosts.ts'
import { isWithin, type CagePlaces } from '../../core/cage.ts'
import type { CageOptions, Inmate, Start } from './cage.ts'
import { faultCode } from './fault.ts'
import { tempBase } from './temp.ts'

/** For one that enters now: what is there changes. */
export function placesOf(
  { env, writable, readOnly, reports, shown: needed }: CageOptions,
  start: Start,
  inmate: Inmate,
  { own, temp }: { readonly own: string; readonly temp: string },
): CagePlaces {
  const homes = homesOf(env)
  /** Whoever has none has no places in it. */
  const firstOf = (places: readonly HomePlace[], look: (path: string) => string | undefined): string[] =>
    homes.slice(0, 1).flatMap((home) => places.flatMap((place) => look(placeIn(home, place, env)) ?? []))
  const found = (places: readonly HomePlace[]): string[] => [
    ...new Set(homes.flatMap((home) => places.flatMap((place) => there(placeIn(home, place, env)) ?? []))),
  ]
  const mine = ownHomes(inmate)
  const foreign = Object.values(agentHomes).filter((home) => !mine.includes(home))
  const state = firstOf(
    mine.flatMap((home) => home.state),
    made,
  )
  const cached = [...firstOf(caches.slice(0, 2), made), ...firstOf(caches, there)]
  const allowed = writable.flatMap((path) => there(path) ?? [])
  const nothing = join(own, 'nothing')
  writeFileSync(nothing, '', { mode: 0o400 })
  const foreignLogins = foreign.flatMap((home) => home.logins)
  const hidden = [
    // Where a variable has moved one, the old place may still hold something.
    ...found([
      ...secrets,
      ...[...movedSecrets, ...foreignLogins].flatMap((place) => [place, { path: place.path }]),
    ]),
    ...(process.getuid?.() === 0 ? systemSecrets.flatMap((path) => there(path) ?? []) : []),
    ...namedSockets(env).flatMap((path) => there(path) ?? []),
  ].flatMap((path) => [path, ...linkedFrom(path)])
  const unnamed = homes
    .flatMap((home) =>
      closed.flatMap(({ folder, but }) => unnamedIn(placeIn(home, folder, env), but, folder.path === '')),
    )
    // Whoever may write a folder may see it; what holds a home is no secret of it.
    .filter((path) => !allowed.some((folder) => isWithin(path, folder)))
    .filter((path) => !hidden.includes(path) && !homes.some((home) => isWithin(home, path)))
  const commonTemps = ['/tmp', '/var/tmp', ...(process.platform === 'darwin' ? [tempBase(env)] : [])].flatMap(
    (path) => there(path) ?? [],
  )
  const open = [...allowed, ...state, ...cached]
  const sockets = there('/run') ?? []
  // All of /dev is the cage's own.
  const unseen = [...commonTemps, '/dev/shm'].concat(sockets)
  /** What an earlier one could write it could make a link, too: it is seen there as it is, and leads nowhere else. */
  const isTheirs = (path: string): boolean =>
    foldersAbove(path).some((folder) => open.includes(there(folder) ?? ''))
  /** A link out of there is not followed: outside all is read-only already, or hidden. */
  const isIn = (path: string): boolean => {
    const depth = depthIn(open, path)
    return depth > 0 && depth >= depthIn(hidden, path)
  }
  const shown = [
    ...homes,
    ...programFolders(start.env),
    ...namedIn(start.args),
    ...(inmate.shown ?? []),
    ...needed(),
    ...alwaysShown,
  ]
    .map((path) => ({ path, real: there(path) ?? '' }))
    .filter(
      ({ real }) =>
        unseen.some((place) => real !== place && isWithin(real, place)) ||
        unnamed.some((place) => isWithin(real, place)),
    )
    .filter(({ path }) => !isTheirs(path))
    .map(({ real }) => real)
  return {
    hiddenFolders: [...hidden, ...unnamed].filter(isFolder).concat(sockets),
    hiddenFiles: [...hidden, ...unnamed].filter((path) => !isFolder(path)),
    shown,
    writable: [...open, ...reports().flatMap((path) => there(path) ?? [])],
    readOnly: [
      ...[
        ...readOnly().flatMap((path) => there(path) ?? []),
        ...mine.flatMap((home) => found(home.settings)),
      ].filter(isIn),
      ...(process.getuid?.() === 0 ? rootsOwn : []).flatMap((path) => there(path) ?? []),
    ],
    instead: [
      ...mine
        .flatMap((home) => found(home.copied))
        .filter((path) => depthIn(hidden, path) === 0)
        .map((at, n) => copied(at, join(own, `copy-${n}`))),
      ...found(registrySettings).map((at, n) => stripped(at, join(own, `registry-${n}`))),
    ],
    temp,
    nothing,
    commonTemps,
  }
}

/** Of the deepest place that holds it; 0: of none. */
function depthIn(places: readonly string[], path: string): number {
  return Math.max(0, ...places.filter((place) => isWithin(path, place)).map((place) => place.length))
}

function foldersAbove(path: string): string[] {
  const above = dirname(path)
  return above === path ? [] : [above, ...foldersAbove(above)]
}

/** Of the home itself only what begins with a dot. An empty file hides nothing, and each mount costs. */
function unnamedIn(folder: string, but: ReadonlySet<string>, isHome: boolean): string[] {
  return namesIn(folder)
    .filter((name) => !but.has(name) && (!isHome || name.startsWith('.')))
    .flatMap((name) => there(join(folder, name)) ?? [])
    .filter((path) => {
      const stats = statSync(path, { throwIfNoEntry: false })
      return stats !== undefined && (!stats.isFile() || stats.size > 0)
    })
}

function copied(at: string, from: string): CagePlaces['instead'][number] {
  copyFileSync(at, from)
  return { at, from, isWritable: true }
}

function stripped(at: string, from: string): CagePlaces['instead'][number] {
  writeFileSync(from, withoutLogins(readFileSync(at, 'utf8')), { mode: 0o600 })
  return { at, from, isWritable: false }
}

export function hostsOf({ hosts }: CageOptions, inmate: Inmate): readonly Host[] {
  const own = ownHomes(inmate).flatMap((home) => home.hosts)
  return [...hosts, ...own.flatMap((name) => hostOf(name) ?? [])]
}

/** Of the agent; of a command of the user's, of those that it names. */
export function ownHomes({ agent, command = '' }: Inmate): AgentHome[] {
  const words = command.split(/[^\w-]+/)
  return Object.entries(agentHomes).flatMap(([name, home]) =>
    name === agent || ((agent === 'command' || agent === 'acp') && words.includes(name)) ? [home] : [],
  )
}

/** The user's first. Root sees those of all others, too. */
export function homesOf(env: NodeJS.ProcessEnv): string[] {
  const isRoot = process.getuid?.() === 0
  const named = [env['HOME'] ?? '', registeredHome(), ...(isRoot ? ['/root', ...foldersIn('/home')] : [])]
  return [...new Set(named.filter((path) => isAbsolute(path)).flatMap((path) => there(path) ?? []))]
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
  try {
    return readdirSync(folder)
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
  return isAbsolute(moved) ? join(moved, below) : join(home, path)
}

/** Without links; undefined where it is not there. */
function there(path: string): string | undefined {
  // Most are not there: an error for each would take ten times as long as all else.
  if (!existsSync(path)) return undefined
  try {
    return realpathSync.native(path)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP'].includes(faultCode(error))) return undefined
    throw error
  }
}

/** An agent that has never run has none yet, and could not make it. */
function made(path: string): string | undefined {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch {
    // Not ours to make.
  }
  return there(path)
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** Keys that a manager of dotfiles keeps elsewhere, and links to. */
function linkedFrom(folder: string): string[] {
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

/** Scripts of the user's that are called by their whole path. */
function namedIn(args: readonly string[]): string[] {
  return args.flatMap((arg) => arg.match(/(?<![\w/.~-])\/[\w@%+:,./-]+/g) ?? [])
}

/** With what lies beside a `bin`: `lib`, or the packages. */
function programFolders(env: NodeJS.ProcessEnv): string[] {
  const folders = [
    ...(env['PATH'] ?? '').split(delimiter).filter((path) => isAbsolute(path)),
    dirname(process.execPath),
  ]
  return folders.flatMap((folder) =>
    /^\.?bin$/.test(basename(folder)) ? [folder, dirname(folder)] : [folder],
  )
}

/** Where root could set what the kernel runs, also without any rights. */
const rootsOwn = ['/proc/sys', '/proc/sysrq-trigger', '/proc/fs']

/** Names of hosts, and the programs of NixOS. */
const alwaysShown = [
  'systemd/resolve, resolvconf, NetworkManager/resolv.conf, nscd',
  'current-system, booted-system, opengl-driver, wrappers',
].flatMap((line) => line.split(', ').map((name) => `/run/${name}`))
