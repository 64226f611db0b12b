// Puts a command into its cage: looks at what is there, and makes of it the words that stand before the command. See docs/decisions/0017.
import { closeSync, existsSync, mkdirSync, openSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { callFilter } from '../../core/cage-filter.ts'
import { isOthersVariable, type GitSettingFound } from '../../core/cage-homes.ts'
import type { Host } from '../../core/cage-hosts.ts'
import {
  bwrapWords,
  isWithin,
  seatbeltProfile,
  tempSeen,
  type CageMode,
  type CagePlaces,
} from '../../core/cage.ts'
import { RalphError } from '../../core/error.ts'
import { openOutlet } from './cage-net.ts'
import { homesOf, inOneLook, placeIn } from './cage-home.ts'
import { hasMoved, makeOwnApart, ownLinks } from './cage-own.ts'
import { hostsOf, ownHomes, placesOf } from './cage-places.ts'
import { onPath } from './on-path.ts'
import { keptFile, makeTemp, removeTemp } from './temp.ts'

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
  /** In there, copies of ralph's own: some may be of what cannot be seen. */
  readonly hidden: () => readonly string[]
  /** In those again. */
  readonly reports: () => readonly string[]
  /** What a strict one may reach besides what its agent needs. */
  readonly hosts: readonly Host[]
  /** The user's own settings of git, and the first of the files that it begins with. */
  readonly git: { readonly file: string | undefined; readonly settings: readonly GitSettingFound[] }
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

export interface Start {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** What its files in memory may take together with it. */
  readonly memoryBytes?: number | undefined
}

export interface Cell extends Pick<Start, 'file' | 'args' | 'env'> {
  /** Whether it says on `statusFd` how the command ended. */
  readonly tells: boolean
  /** What it is to have open as `filterFd`, until it is left. */
  readonly filter?: number | undefined
  /** Once nothing of it is alive: files that came meanwhile, and are obeyed by later runs outside. */
  leave(): Promise<readonly string[]>
}

export interface Cage {
  readonly mode: CageMode
  /** What it throws is the cage's own fault. */
  enter(start: Start, inmate: Inmate): Cell
}

export function openCage(given: CageOptions): Cage {
  // A copy: each name that is asked for in the process's own takes longer than most of what a look at the disk asks.
  const options = { ...given, env: { ...given.env } }
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
  makeOwnApart()
  const own = ownFolder(start.env['RALPH_RUN_ID'] ?? '', options.env)
  const temp = inmate.tempDir === undefined ? own.path('tmp') : realpathSync(inmate.tempDir)
  if (inmate.tempDir === undefined) mkdirSync(temp, { mode: 0o700 })
  const out = options.mode === 'strict' ? own.path('out') : undefined
  const outlet = out === undefined ? undefined : openOutlet(out, hostsOf(options, inmate))
  const seen = out === undefined ? inmate : { ...inmate, shown: [...(inmate.shown ?? []), out] }
  const places = inOneLook(() => placesOf(options, start, seen, { room: own, temp }))
  const missing = homesOf(options.env)
    .slice(0, 1)
    .flatMap((home) =>
      ownHomes(inmate).flatMap(({ settings }) => settings.map((place) => placeIn(home, place, options.env))),
    )
    .filter((path) => !existsSync(path))
  const links = [...ownLinks()].filter(([path]) => options.writable.some((folder) => isWithin(path, folder)))
  const isBubblewrap = basename(options.program) !== 'sandbox-exec'
  const filter = isBubblewrap ? openFilter(options.mode, own) : undefined
  return {
    ...inWords(options, places, start, { before: outlet?.words ?? [], isFiltered: filter !== undefined }),
    filter,
    env: {
      ...freedOf(start.env, inmate),
      ...outlet?.env,
      TMPDIR: isBubblewrap ? tempSeen(places) : temp,
    },
    async leave() {
      outlet?.close()
      if (filter !== undefined) closeSync(filter)
      await own.remove()
      return [...missing.filter((path) => existsSync(path)), ...links.filter(hasMoved).map(([path]) => path)]
    },
  }
}

/** For what one cage alone has. Made when it is first needed: an agent with a TMPDIR and no secrets to cut out of a file needs none. */
export interface OwnFolder {
  path(name: string): string
  /** The same bytes in each cage: as long as a loop goes on they are written once. */
  same(name: string, bytes: Uint8Array): string
  /** What a gate has left may be much. */
  remove(): Promise<void>
}

function ownFolder(runId: string, env: NodeJS.ProcessEnv): OwnFolder {
  let own: string | undefined
  const path = (name: string): string => join((own ??= realpathSync(makeTemp(runId, env))), name)
  return {
    path,
    same(name, bytes) {
      const kept = keptFile(name, bytes)
      if (kept !== undefined) return kept
      writeFileSync(path(name), bytes, { mode: 0o400 })
      return path(name)
    },
    async remove() {
      if (own !== undefined) await removeTemp(own)
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
      hint: 'ralph doctor says what it needs. To continue without it: ralph resume --sandbox off',
    },
  )
}

function inWords(
  { mode, program }: CageOptions,
  places: CagePlaces,
  { file, args, cwd, memoryBytes }: Start,
  { before, isFiltered }: { readonly before: readonly string[]; readonly isFiltered: boolean },
): Omit<Cell, 'env' | 'filter' | 'leave'> {
  return basename(program) === 'sandbox-exec'
    ? { file: program, args: ['-p', seatbeltProfile(mode, places), ...before, file, ...args], tells: false }
    : {
        file: program,
        args: [
          '--json-status-fd',
          String(statusFd),
          ...(isFiltered ? ['--seccomp', String(filterFd)] : []),
          ...bwrapWords(mode, places, cwd, memoryBytes),
          ...before,
          file,
          ...args,
        ],
        tells: true,
      }
}

/** Where bubblewrap says that the command has run, and how it ended: without that it has not. */
export const statusFd = 3
/** Where it reads what it filters the inmate's calls by. */
export const filterFd = 4

function openFilter(mode: CageMode, own: OwnFolder): number | undefined {
  const filter = callFilter(mode, process.arch)
  return filter === undefined ? undefined : openSync(own.same(`filter-${mode}`, filter), 'r')
}

function freedOf(env: NodeJS.ProcessEnv, { agent, keeps = [] }: Inmate): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => keeps.includes(name) || !isOthersVariable(name, agent, env)),
  )
}
