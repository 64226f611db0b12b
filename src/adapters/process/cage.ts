// Puts a command into its cage: looks at what is there, and makes of it the words that stand before the command. See docs/decisions/0016.
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
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import {
  agentHomes,
  caches,
  isOthersVariable,
  movedSecrets,
  registrySettings,
  secrets,
  systemSecrets,
  withoutLogins,
  type AgentHome,
  type HomePlace,
} from '../../core/cage-homes.ts'
import {
  bwrapWords,
  emptied,
  isWithin,
  seatbeltProfile,
  type CageMode,
  type CagePlaces,
} from '../../core/cage.ts'
import { hostOf, type Host } from '../../core/cage-hosts.ts'
import { RalphError } from '../../core/error.ts'
import { openOutlet } from './cage-net.ts'
import { faultCode } from './fault.ts'
import { onPath } from './on-path.ts'
import { makeTemp, removeTemp, tempBase } from './temp.ts'

export interface CageOptions {
  readonly mode: CageMode
  /** `bwrap` or `sandbox-exec`, as it was found before the loop began. */
  readonly program: string
  /** The user's. */
  readonly env: NodeJS.ProcessEnv
  /** The work tree, its git directory, and `sandbox_allow`. */
  readonly writable: readonly string[]
  /** In there. */
  readonly readOnly: () => readonly string[]
  /** In those again. */
  readonly reports: () => readonly string[]
  /** What a strict one may reach besides what its agent needs. */
  readonly hosts: readonly Host[]
  /** What is needed to read from elsewhere. */
  readonly shown: () => readonly string[]
}

/** Who is put into it. */
export interface Inmate {
  /** Absent: a gate, or the set-up. */
  readonly agent?: string
  /** The user's own words, which may start an agent that ralph knows. */
  readonly command?: string
  /** Variables that the user has named for it. */
  readonly keeps?: readonly string[]
  readonly tempDir?: string
  /** What ralph has put somewhere for it. */
  readonly shown?: readonly string[]
}

interface Start {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

export interface Cell extends Pick<Start, 'file' | 'args' | 'env'> {
  /** Whether it says on `statusFd` how the command ended. */
  readonly tells: boolean
  /** Once nothing of it is alive: files that came meanwhile, and are obeyed by later runs outside. */
  leave(): Promise<readonly string[]>
}

export interface Cage {
  readonly mode: CageMode
  /** What it throws is the cage's own fault. */
  enter(start: Start, inmate: Inmate): Cell
}

export function openCage(options: CageOptions): Cage {
  return {
    mode: options.mode,
    enter(start, inmate) {
      try {
        return entered(options, start, inmate)
      } catch (error) {
        throw error instanceof Error ? cageFault(error.message) : error
      }
    },
  }
}

/** As `spawn` would: what stands before the command is always there. */
export function refuseMissing(file: string, env: NodeJS.ProcessEnv): void {
  if (!file.includes('/') && onPath(file, env) === undefined)
    throw Object.assign(new Error(`spawn ${file} ENOENT`), { code: 'ENOENT' })
}

function entered(options: CageOptions, start: Start, inmate: Inmate): Cell {
  const own = realpathSync(makeTemp(start.env['RALPH_RUN_ID'] ?? '', options.env))
  const temp = inmate.tempDir === undefined ? join(own, 'tmp') : realpathSync(inmate.tempDir)
  if (inmate.tempDir === undefined) mkdirSync(temp, { mode: 0o700 })
  const outlet =
    options.mode === 'strict' ? openOutlet(join(own, 'out'), hostsOf(options, inmate)) : undefined
  const seen =
    outlet === undefined ? inmate : { ...inmate, shown: [...(inmate.shown ?? []), join(own, 'out')] }
  const places = placesOf(options, start, seen, { own, temp })
  const [home = '/'] = homesOf(options.env)
  const missing = ownHomes(inmate)
    .flatMap(({ settings }) => settings)
    .map((place) => placeIn(home, place, options.env))
    .filter((path) => !existsSync(path))
  return {
    ...inWords(options, places, start, outlet?.words ?? []),
    env: { ...freedOf(start.env, inmate), ...outlet?.env, TMPDIR: temp },
    async leave() {
      outlet?.close()
      await removeTemp(own)
      return missing.filter((path) => existsSync(path))
    },
  }
}

/** What was to run in it has not run: never goes on without. */
export function cageFault(said: string): RalphError {
  const why = said.trim().split('\n').at(-1) ?? ''
  return new RalphError(
    'sandbox',
    `The sandbox could not be made, so nothing was run in it: ${why || 'it said nothing'}.`,
    {
      hint: 'ralph doctor says what it needs. To go on without it: ralph resume --sandbox off',
    },
  )
}

function inWords(
  { mode, program }: CageOptions,
  places: CagePlaces,
  { file, args, cwd }: Start,
  before: readonly string[],
): Omit<Cell, 'env' | 'leave'> {
  return basename(program) === 'sandbox-exec'
    ? { file: program, args: ['-p', seatbeltProfile(mode, places), ...before, file, ...args], tells: false }
    : {
        file: program,
        args: [
          '--json-status-fd',
          String(statusFd),
          ...bwrapWords(mode, places, cwd),
          ...before,
          file,
          ...args,
        ],
        tells: true,
      }
}

/** Where bubblewrap says that the command has run, and how it ended: without that it has not. */
export const statusFd = 3

function freedOf(env: NodeJS.ProcessEnv, { agent, keeps = [] }: Inmate): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => keeps.includes(name) || !isOthersVariable(name, agent, env)),
  )
}

function placesOf(
  { env, writable, readOnly, reports, shown: needed }: CageOptions,
  start: Start,
  inmate: Inmate,
  { own, temp }: { readonly own: string; readonly temp: string },
): CagePlaces {
  const homes = homesOf(env)
  const first = homes[0] ?? '/'
  const foundIn = (some: readonly string[], places: readonly HomePlace[]): string[] => [
    ...new Set(some.flatMap((home) => places.flatMap((place) => there(placeIn(home, place, env)) ?? []))),
  ]
  const found = (places: readonly HomePlace[]): string[] => foundIn(homes, places)
  const mine = ownHomes(inmate)
  const foreign = Object.values(agentHomes).filter((home) => !mine.includes(home))
  const state = mine.flatMap((home) => home.state).flatMap((place) => made(placeIn(first, place, env)) ?? [])
  const cached = [
    ...caches.slice(0, 2).flatMap((place) => made(placeIn(first, place, env)) ?? []),
    ...foundIn([first], caches),
  ]
  const nothing = join(own, 'nothing')
  writeFileSync(nothing, '', { mode: 0o400 })
  const hidden = [
    ...found([...secrets, ...movedSecrets, ...foreign.flatMap((home) => home.logins)]),
    ...(process.getuid?.() === 0 ? systemSecrets.flatMap((path) => there(path) ?? []) : []),
  ].flatMap((path) => [path, ...linkedFrom(path)])
  const commonTemps = ['/tmp', '/var/tmp', ...(process.platform === 'darwin' ? [tempBase(env)] : [])].flatMap(
    (path) => there(path) ?? [],
  )
  const open = [...writable.flatMap((path) => there(path) ?? []), ...state, ...cached]
  const unseen = [...commonTemps, ...emptied]
  const shown = [
    ...homes,
    ...programFolders(start.env),
    ...namedIn(start.args),
    ...(inmate.shown ?? []),
    ...needed(),
    ...alwaysShown,
  ]
    .flatMap((path) => there(path) ?? [])
    .filter((path) => unseen.some((place) => path !== place && isWithin(path, place)))
  return {
    hiddenFolders: [...emptied.slice(0, 1).flatMap((path) => there(path) ?? []), ...hidden.filter(isFolder)],
    hiddenFiles: hidden.filter((path) => !isFolder(path)),
    shown,
    writable: [...open, ...reports().flatMap((path) => there(path) ?? [])],
    readOnly: [...readOnly(), ...mine.flatMap((home) => found(home.settings))].flatMap(
      (path) => there(path) ?? [],
    ),
    instead: [
      ...mine.flatMap((home) => found(home.copied)).map((at, n) => copied(at, join(own, `copy-${n}`))),
      ...found(registrySettings).map((at, n) => stripped(at, join(own, `registry-${n}`))),
    ],
    temp,
    nothing,
    commonTemps,
  }
}

function copied(at: string, from: string): CagePlaces['instead'][number] {
  copyFileSync(at, from)
  return { at, from, isWritable: true }
}

function stripped(at: string, from: string): CagePlaces['instead'][number] {
  writeFileSync(from, withoutLogins(readFileSync(at, 'utf8')), { mode: 0o600 })
  return { at, from, isWritable: false }
}

function hostsOf({ hosts }: CageOptions, inmate: Inmate): readonly Host[] {
  const own = ownHomes(inmate).flatMap((home) => home.hosts)
  return [...hosts, ...own.flatMap((name) => hostOf(name) ?? [])]
}

/** Of the agent; of a command of the user's, of those that it names. */
function ownHomes({ agent, command = '' }: Inmate): AgentHome[] {
  const words = command.split(/[^\w-]+/)
  return Object.entries(agentHomes).flatMap(([name, home]) =>
    name === agent || ((agent === 'command' || agent === 'acp') && words.includes(name)) ? [home] : [],
  )
}

/** The user's first. Root sees those of all others, too. */
function homesOf(env: NodeJS.ProcessEnv): string[] {
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
  try {
    return readdirSync(folder).map((name) => join(folder, name))
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
  try {
    return realpathSync(path)
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

/** Names of hosts, and the programs of NixOS. */
const alwaysShown = [
  ...['/run/systemd/resolve', '/run/resolvconf', '/run/NetworkManager/resolv.conf', '/run/nscd'],
  ...['/run/current-system', '/run/booted-system', '/run/opengl-driver', '/run/wrappers'],
]
