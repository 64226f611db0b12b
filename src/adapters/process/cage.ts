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
import { once } from '../../core/once.ts'
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
  /** Those of the arguments that make the cage; the command comes behind them. */
  readonly making: readonly string[]
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
  enter(start: Start, inmate: Inmate, expected?: Expected): Cell
  /** Whether one like it has entered before. */
  knows(agent: string): boolean
  /** For an agent like one that has entered before. A guess, from what that one's was made of: whoever enters looks, and knows whether it was right. */
  expect(inmate: Inmate): Expected | undefined
}

/** A cage for one who comes soon. */
export interface Expected extends Omit<Cell, 'leave' | 'tells'> {
  readonly cwd: string
  readonly own: OwnFolder
  /** What it has on the disk and open. */
  drop(): Promise<void>
}

/** The last cage of an agent: of which words, and which of them are another's each time. */
interface Known extends Omit<Expected, 'own' | 'drop' | 'filter'> {
  readonly names: readonly string[]
  /** Files in its own folder. */
  readonly copies: readonly string[]
}

export function openCage(given: CageOptions): Cage {
  // A copy: each name that is asked for in the process's own takes longer than most of what a look at the disk asks.
  const options = { ...given, env: { ...given.env } }
  const known = new Map<string, Known>()
  return {
    mode: options.mode,
    enter(start, inmate, expected) {
      try {
        const cell = entered(options, start, inmate, expected)
        if (inmate.agent !== undefined) known.set(inmate.agent, knownOf(options, cell, start.cwd, inmate))
        return cell
      } catch (error) {
        throw error instanceof Error ? cageFault(error.message) : error
      }
    },
    // A strict one has a way out of its own, which is made for one command; and only the kernel of Linux says what is mounted.
    knows: (agent) =>
      known.has(agent) && options.mode !== 'strict' && basename(options.program) !== 'sandbox-exec',
    expect(inmate) {
      const last = known.get(inmate.agent ?? '')
      if (last === undefined) return undefined
      try {
        return expectedAfter(last, options, inmate)
      } catch {
        // Whoever enters meets it, too, and says so.
        return undefined
      }
    },
  }
}

/** What is another one in each cage, in the same order. */
function namesIn({ reports }: CageOptions, { tempDir = '', shown = [] }: Inmate): readonly string[] {
  return [tempDir, ...shown, ...reports()]
    .filter((path) => path !== '')
    .map((path) => (existsSync(path) ? realpathSync(path) : path))
}

function knownOf(options: CageOptions, cell: Entered, cwd: string, inmate: Inmate): Known {
  const { file, args, making, env, own } = cell
  const folder = own.made()
  const copies =
    folder === undefined ? [] : making.filter((word) => word !== folder && isWithin(word, folder))
  return { file, args, making, env, cwd, copies, names: [...namesIn(options, inmate), ...copies] }
}

function expectedAfter(last: Known, options: CageOptions, inmate: Inmate): Expected | undefined {
  const own = ownFolder(last.env['RALPH_RUN_ID'] ?? '', options.env)
  // What they hold is written by the look of the one who enters: a mount is on the file, whatever is in it.
  const copies = last.copies.map((path) => own.path(basename(path)))
  for (const path of copies) writeFileSync(path, '', { mode: 0o600 })
  const names = [...namesIn(options, inmate), ...copies]
  const filter = openFilter(options.mode, own)
  const drop = once(async () => {
    if (filter !== undefined) closeSync(filter)
    await own.remove()
  })
  const now = (word: string): string => {
    const at = last.names.findIndex((name) => isWithin(word, name))
    const [was, is] = [last.names[at], names[at]]
    return was === undefined || is === undefined ? word : is + word.slice(was.length)
  }
  const { file, args, env, cwd } = last
  return { file, args, making: last.making.map(now), env, cwd, own, filter, drop }
}

/** As `spawn` would: what stands before the command is always there. */
export function refuseMissing(file: string, env: NodeJS.ProcessEnv): void {
  if (!file.includes('/') && onPath(file, env) === undefined)
    throw Object.assign(new Error(`spawn ${file} ENOENT`), { code: 'ENOENT' })
}

interface Entered extends Cell {
  readonly own: OwnFolder
}

function entered(options: CageOptions, start: Start, inmate: Inmate, expected?: Expected): Entered {
  makeOwnApart()
  const own = expected?.own ?? ownFolder(start.env['RALPH_RUN_ID'] ?? '', options.env)
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
  // Not the one that is expected: it is read to its end by whoever is given it.
  const filter = isBubblewrap ? openFilter(options.mode, own) : undefined
  return {
    own,
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
  /** Undefined where nothing needed it. */
  made(): string | undefined
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
    made: () => own,
    same(name, bytes) {
      const kept = keptFile(name, bytes)
      if (kept !== undefined) return kept
      writeFileSync(path(name), bytes, { mode: 0o400 })
      return path(name)
    },
    async remove() {
      const gone = own
      own = undefined
      if (gone !== undefined) await removeTemp(gone)
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
): Pick<Cell, 'file' | 'args' | 'making' | 'tells'> {
  const isBubblewrap = basename(program) !== 'sandbox-exec'
  const making = isBubblewrap
    ? [
        '--json-status-fd',
        String(statusFd),
        ...(isFiltered ? ['--seccomp', String(filterFd)] : []),
        ...bwrapWords(mode, places, cwd, memoryBytes),
      ]
    : ['-p', seatbeltProfile(mode, places)]
  return { file: program, args: [...making, ...before, file, ...args], making, tells: isBubblewrap }
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
