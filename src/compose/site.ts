// Where a command stands: the repository, its private data, this process, and the loops that are known there.
import { existsSync, readdirSync, statSync } from 'node:fs'
import type { Dirent } from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { shellWord } from '../core/shell-word.ts'
import { bootId, isAlive, processIdentity } from '../adapters/process/table.ts'
import { inspectLock } from '../adapters/files/lock.ts'
import type { Identity, LockState } from '../adapters/files/lock.ts'
import { changesDir, runPaths } from '../adapters/files/paths.ts'
import type { RunPaths } from '../adapters/files/paths.ts'
import { readJournal } from '../adapters/files/journal-text.ts'
import { lookAtJournal, recallFrom } from '../adapters/files/journal-look.ts'
import type { Recall } from '../adapters/files/journal-look.ts'
import { openTail } from '../adapters/files/tail.ts'
import type { Tail } from '../adapters/files/tail.ts'
import { findRepository } from '../adapters/git/repository.ts'
import { gitIn } from '../adapters/git/git.ts'
import type { Git } from '../adapters/git/git.ts'
import { systemClock } from '../adapters/clock.ts'
import { again, RalphError } from '../core/error.ts'
import { replay } from '../core/loop.ts'
import { initialState } from '../core/state.ts'
import type { LoopState } from '../core/state.ts'
import type { LoopEvent } from '../core/event.ts'
import type { Clock } from '../ports.ts'
import { archivingName, putAway } from './archiving.ts'

export interface Site {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly git: Git
  /** The work tree that the user types in; `git` may be that of another. */
  readonly asked: string
  readonly identity: Identity
  readonly clock: Clock
  /** Whether somebody sits there who can answer. */
  readonly isTerminal: boolean
  /** What must not be kept to itself, said at once: what is undone next must have been named before. */
  readonly warn: (message: string) => void
}

/** One command may take this long unless `--command-timeout` says otherwise. */
const commandTimeoutMs = 60_000

export async function openSite(
  cwd: string,
  env: NodeJS.ProcessEnv,
  options: Partial<Pick<Site, 'isTerminal' | 'warn' | 'asked'>> & { readonly timeoutMs?: number } = {},
): Promise<Site> {
  const settings = { timeoutMs: options.timeoutMs ?? commandTimeoutMs, env }
  const repository = await findRepository(cwd, settings)
  const asked = options.asked ?? repository.worktree
  refuseNoFolder(repository.gitCommonDir)
  return {
    cwd,
    env,
    git: gitIn(repository, { ...settings, asked }),
    asked,
    identity: { pid: process.pid, started: processIdentity(process.pid), bootId: bootId(), isAlive },
    clock: systemClock,
    isTerminal: options.isTerminal ?? false,
    warn: options.warn ?? (() => undefined),
  }
}

function refuseNoFolder(gitCommonDir: string): void {
  const folder = join(gitCommonDir, 'ralph')
  const stats = statSync(folder, { throwIfNoEntry: false })
  if (stats === undefined || stats.isDirectory()) return
  throw new RalphError('repository_state', `${folder} is not a folder, and ralph keeps its own data there.`, {
    hint: `Nothing was touched. Move it away: mv ${shellWord(folder)} ${shellWord(`${folder}.old`)}; then ${again}.`,
  })
}

export function pathsOf(site: Site, change: string): RunPaths {
  return runPaths(site.git.gitCommonDir, change)
}

/** A run as its journal tells it, and whether its process is there. */
export interface KnownRun {
  readonly change: string
  readonly paths: RunPaths
  readonly recall: Recall
  readonly state: LoopState
  readonly lock: LockState
  /** Why the journal could not be read to its end: `state` is the one before. Empty where it could. */
  readonly damage: string | undefined
}

/** For a look, and for the choice of a run: what its loop has replayed is not replayed again. */
export async function knownRun(site: Site, change: string): Promise<KnownRun> {
  const paths = pathsOf(site, change)
  return await withLock(site, paths, async () => {
    const lookThere = (there: RunPaths) =>
      lookAtJournal(there.journal, change).catch((error: unknown) => {
        throw unreadable(error, there.journal)
      })
    const look = await lookThere(paths)
    const away = isKnown(look) ? undefined : putAway(paths)
    return away === undefined
      ? { change, paths, ...look }
      : { change, paths: away, ...(await lookThere(away)) }
  })
}

/** Journal and lock go together where the lock is the same before and after: a loop that began or ended meanwhile would look dead. */
async function withLock<T extends object>(
  site: Site,
  { lock: path }: RunPaths,
  look: () => Promise<T>,
): Promise<T & { readonly lock: LockState }> {
  let before = inspectLock(path, site.identity)
  for (;;) {
    const found = await look()
    const lock = inspectLock(path, site.identity)
    if (isDeepStrictEqual(lock, before)) return { ...found, lock }
    before = lock
  }
}

/** From every line of the journal, and from nothing else: for whoever goes on with it. */
export interface WholeRun extends KnownRun {
  readonly events: readonly LoopEvent[]
}

export async function wholeRun(site: Site, change: string): Promise<WholeRun> {
  const paths = pathsOf(site, change)
  const { events, damage } = await readJournal(paths.journal).catch((error: unknown) => {
    throw unreadable(error, paths.journal)
  })
  const lock = inspectLock(paths.lock, site.identity)
  const state = replay(initialState(change), events)
  return { change, paths, events, recall: recallFrom(events), state, lock, damage }
}

export type Knowing = (change: string) => Promise<KnownRun>

/** For the parts of one look: a journal that has not changed since is not read again. */
export function remembering(site: Site): Knowing {
  const seen = new Map<string, { readonly mark: string; readonly run: KnownRun }>()
  return async (change) => {
    const paths = pathsOf(site, change)
    return await withLock(site, paths, async () => {
      const mark = markOf(paths.journal)
      const before = seen.get(change)
      if (before !== undefined && before.mark === mark && mark !== '') return before.run
      const run = await knownRun(site, change)
      seen.set(change, { mark, run })
      return run
    })
  }
}

function markOf(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? '' : [stats.ino, stats.size, stats.mtimeNs].join(' ')
}

/** For whoever looks again and again: each time only what the journals have gained is read. */
export function knowing(site: Site): { readonly known: Knowing; readonly close: () => Promise<void> } {
  const seen = new Map<string, { readonly tail: Tail; readonly events: LoopEvent[] }>()
  /** One look after the other. */
  let last: Promise<unknown> = Promise.resolve()
  const look: Knowing = async (change) => {
    const paths = pathsOf(site, change)
    if (archivingName(paths) !== undefined) return await knownRun(site, change)
    const { tail, events } = seen.get(change) ?? {
      tail: openTail(paths, change, { talk: false }),
      events: [],
    }
    seen.set(change, { tail, events })
    return await withLock(site, paths, async () => {
      try {
        for (let told = await tail.next(); told !== undefined; told = await tail.next()) {
          if (told.type === 'event') events.push(told.event)
          // Another run, or what is left of this one.
          else events.length = Math.min(events.length, told.cursor.record)
        }
      } catch (error) {
        throw unreadable(error, paths.journal)
      }
      return { change, paths, recall: recallFrom([...events]), state: tail.state, damage: tail.damage }
    })
  }
  return {
    known(change) {
      const looked = last.then(() => look(change))
      last = looked.catch(() => undefined)
      return looked
    },
    async close() {
      await last
      await Promise.all([...seen.values()].map(({ tail }) => tail.close()))
    },
  }
}

/** Who may not read the journal cannot know the run; everything in it stays as it is. */
function unreadable(error: unknown, path: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  if (code !== 'EACCES' && code !== 'EPERM') return error
  return new RalphError('journal_unreadable', `The journal ${path} cannot be read: ${message}`, {
    hint: `Nothing was touched, and the checkpoints are in git. Give yourself access (chmod -R u+rwX ${dirname(path)}, or sudo chown -R "$USER" ${dirname(path)} if it is another user's), then type the command again.`,
    cause: error,
  })
}

/** Every change of this repository that ever had a loop, the latest activity first. */
export async function knownRuns(
  site: Site,
  known: Knowing = (change) => knownRun(site, change),
): Promise<readonly KnownRun[]> {
  const runs = await Promise.all(runNames(site).map(known))
  return runs.filter(isKnown).sort((a, b) => b.state.updatedAt.localeCompare(a.state.updatedAt))
}

/** Of every change that ever ran here, read or not. */
export function runNames(site: Site): readonly string[] {
  return namesIn(changesDir(site.git.gitCommonDir))
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    // None yet.
    return []
  }
}

/** Runs of a change before this one: their names in its archive. */
export function archivedRuns({ paths }: KnownRun): readonly string[] {
  try {
    const found = readdirSync(paths.archive, { withFileTypes: true })
    // Beside them: state files of other changes that stood in this work tree, and this run itself where its archiving was cut off.
    const isBefore = (entry: Dirent): boolean =>
      entry.isDirectory() && join(paths.archive, entry.name) !== dirname(paths.journal)
    return found.flatMap((entry) => (isBefore(entry) ? [entry.name] : [])).toSorted()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

export function isKnown({ state, damage }: Pick<KnownRun, 'state' | 'damage'>): boolean {
  return state.phase !== 'idle' || damage !== undefined
}

/** Its loop; a command that records a death or puts a run in order is no loop. */
export function isRunning({ lock }: Pick<KnownRun, 'lock'>): boolean {
  return lock.held === 'elsewhere' || (lock.held === 'alive' && (lock.owner.purpose ?? 'loop') === 'loop')
}

/** A loop that has not ended, and whose process is surely gone. */
export function isDead(run: KnownRun): boolean {
  // Of a damaged journal nobody knows the end.
  return (
    run.damage === undefined && run.state.phase !== 'idle' && run.state.phase !== 'ended' && !isRunning(run)
  )
}

/** What only a command that may repair puts in order: a dead loop, an attempt that is neither saved nor reverted, a git step half done. */
export function needsRepair(run: KnownRun): boolean {
  if (isDead(run)) return true
  if (run.damage !== undefined || run.state.phase !== 'ended' || isRunning(run)) return false
  return run.state.unsettled !== undefined || run.state.git.pending !== undefined
}

/** Killed, and nobody has put its work tree in order since. */
export function hasDied(run: KnownRun): boolean {
  return isDead(run) || (run.state.absence !== undefined && needsRepair(run))
}

/** Done, cleaned up, and its own work tree removed, as a cleanup advises: nothing is missing. */
export function isSettled({ state }: KnownRun): boolean {
  return (
    state.status === 'done' &&
    state.choice === 'cleanup' &&
    state.home !== undefined &&
    !isTree(state.worktree)
  )
}

/** A folder of the user's in the place of a work tree that was removed is none. */
export function isTree(worktree: string): boolean {
  return existsSync(join(worktree, '.git'))
}
