// A lock that says who holds it: pid, start time, boot id and host, so that a dead owner is known and a living one named.
// How it is taken over from a dead one without ever having two owners: docs/decisions/0005-own-lock.md.
import { createHash, randomUUID } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { readJson } from '../../core/json.ts'
import { RalphError } from '../../core/error.ts'
import type { Lock } from '../../ports.ts'
import { isTaken } from '../process/pid.ts'
import { openRegular } from './now.ts'

export interface LockOwner {
  readonly pid: number
  readonly pid_started: string
  readonly boot_id: string
  readonly host: string
  readonly token: string
  readonly change: string
  readonly worktree: string
  readonly since: string
  /** What the processes of its agents carry (RALPH_RUN_ID), so that they can be ended without a journal; none in locks of 0.1. */
  readonly run_id?: string
  readonly purpose?: Purpose
  /** Its process is another program's, which uses ralph as a library. */
  readonly hosted?: true
}

/** Who only writes down that a loop has died is gone in a moment: it is waited for, not refused. */
export type Purpose = 'loop' | 'repair' | 'record'

/** How the lock tells processes apart; from adapters/process. */
export interface Identity {
  readonly pid: number
  readonly started: string
  readonly bootId: string
  isAlive(pid: number, started: string): boolean
}

export type LockState =
  | { readonly held: 'no' }
  /** `broken` lock files count as dead: a file that was linked into place is always whole. */
  | { readonly held: 'dead'; readonly owner?: LockOwner }
  | { readonly held: 'alive'; readonly owner: LockOwner }
  /** Death is never inferred across hosts. */
  | { readonly held: 'elsewhere'; readonly owner: LockOwner }

export function inspectLock(path: string, identity: Identity): LockState {
  const first = readLink(path)
  return first === undefined ? { held: 'no' } : judge(lastLink(path, first, identity), identity)
}

/** One owner's file. Its bytes have a token that is nobody else's; the inode tells two broken ones apart. */
interface Link {
  readonly id: string
  readonly raw: string
}

function readLink(file: string): Link | undefined {
  let handle: number
  try {
    handle = openRegular(file, constants.O_RDONLY)
  } catch (error) {
    // ENOTDIR: an agent has put a file in the place of a folder above it.
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
  try {
    const { ino } = fstatSync(handle)
    const raw = readFileSync(handle, 'utf8')
    return { id: createHash('sha256').update(`${ino} ${raw}`).digest('hex').slice(0, 32), raw }
  } finally {
    closeSync(handle)
  }
}

function judge({ raw }: Link, identity: Identity): LockState {
  const owner = parseOwner(raw)
  if (owner === undefined) return { held: 'dead' }
  if (owner.host !== hostname()) return { held: 'elsewhere', owner }
  const alive = owner.boot_id === identity.bootId && isOwnerAlive(owner, identity)
  return { held: alive ? 'alive' : 'dead', owner }
}

/** Who comes after a dead owner: a file that `link` can make only once. */
function heirOf(path: string, { id }: Link): string {
  return `${path}.after-${id}`
}

/** From the lock itself over the heirs of the dead to the one that counts. */
function lastLink(path: string, first: Link, identity: Identity): Link {
  let last = first
  while (judge(last, identity).held === 'dead') {
    const heir = readLink(heirOf(path, last))
    if (heir === undefined) break
    last = heir
  }
  return last
}

/** Where the OS told no start time the pid alone has to do: better a living lock too many than two loops. */
function isOwnerAlive(owner: LockOwner, identity: Identity): boolean {
  return owner.pid_started === '' ? isTaken(owner.pid) : identity.isAlive(owner.pid, owner.pid_started)
}

/** For a command that must not even begin while somebody holds it; writes nothing. */
export function refuseHeld(path: string, identity: Identity): void {
  const state = inspectLock(path, identity)
  if (state.held === 'alive' && state.owner.purpose === 'record') return
  if (state.held === 'alive' || state.held === 'elsewhere') throw locked(path, state)
}

export function fileLock(
  path: string,
  what: Pick<LockOwner, 'change' | 'worktree' | 'since' | 'run_id' | 'purpose' | 'hosted'>,
  identity: Identity,
): Lock {
  const mine: LockOwner = {
    pid: identity.pid,
    pid_started: identity.started,
    boot_id: identity.bootId,
    host: hostname(),
    token: randomUUID(),
    ...what,
  }
  return {
    acquire: async () => {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      const draft = `${path}.draft-${mine.pid}-${mine.token}`
      try {
        writeFileSync(draft, `${JSON.stringify(mine, null, 2)}\n`, { mode: 0o644, flush: true })
        while (!tryLink(draft, path) && !inherit(path, draft, identity)) await Promise.resolve()
      } finally {
        rmSync(draft, { force: true })
      }
      sweep(path, identity)
      return { release: () => Promise.resolve(release(path, mine.token)) }
    },
  }
}

/** `link` puts the whole file in place or fails: there is never a half-written lock. */
function tryLink(draft: string, path: string): boolean {
  try {
    linkSync(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/**
 * The dead owner's file is never removed to make room: between the look and the removal anybody may have taken its place.
 * Who becomes its heir owns the lock, provided that the lock is still the one that the look began with; only an owner replaces it.
 * Synchronous: what a killed process had asked of another thread could still happen after its death was seen.
 */
function inherit(path: string, draft: string, identity: Identity): boolean {
  const first = readLink(path)
  if (first === undefined) return false
  const last = lastLink(path, first, identity)
  const state = judge(last, identity)
  if (state.held === 'alive' || state.held === 'elsewhere') throw locked(path, state)
  const heir = heirOf(path, last)
  if (!tryLink(draft, heir)) return false
  if (readLink(path)?.id !== first.id) {
    rmSync(heir, { force: true })
    return false
  }
  renameSync(draft, path)
  return true
}

/** By the owner: what heirs and killed takers left. A draft may be that of somebody who is about to be refused. */
function sweep(path: string, identity: Identity): void {
  const name = basename(path)
  for (const entry of readdirSync(dirname(path))) {
    if (!entry.startsWith(`${name}.`)) continue
    const file = join(dirname(path), entry)
    const pid = Number(/^draft-(\d+)-/.exec(entry.slice(name.length + 1))?.[1] ?? 0)
    if (pid === 0 || !(isTaken(pid) || isForeign(file, identity))) rmSync(file, { force: true })
  }
}

function isForeign(file: string, identity: Identity): boolean {
  const draft = readLink(file)
  return draft !== undefined && judge(draft, identity).held === 'elsewhere'
}

/** While it holds the lock nobody else replaces it, so that what is read here is what is removed. */
function release(path: string, token: string): void {
  if (parseOwner(readLink(path)?.raw ?? '')?.token === token) rmSync(path, { force: true })
}

function parseOwner(raw: string): LockOwner | undefined {
  const value = readJson(raw)
  return isOwner(value) ? value : undefined
}

const ownerTexts = ['pid_started', 'boot_id', 'host', 'token', 'change', 'worktree', 'since']

/** By hand: every `ralph status` reads locks, and a schema would take longer to load than to look. */
function isOwner(value: unknown): value is LockOwner {
  if (typeof value !== 'object' || value === null || !('pid' in value)) return false
  const fields = new Map<string, unknown>(Object.entries(value))
  return (
    Number.isSafeInteger(value.pid) &&
    Number(value.pid) > 0 &&
    ownerTexts.every((name) => typeof fields.get(name) === 'string') &&
    typeof (fields.get('run_id') ?? '') === 'string'
  )
}

function locked(
  path: string,
  state: Extract<LockState, { owner: LockOwner; held: 'alive' | 'elsewhere' }>,
): RalphError {
  const { owner } = state
  const where = state.held === 'elsewhere' ? ` on host ${owner.host}` : ''
  const who =
    (owner.purpose ?? 'loop') === 'loop'
      ? 'A loop is running already'
      : 'Another ralph command is repairing a loop'
  return new RalphError(
    'locked',
    `${who}${where}: change ${owner.change} in ${owner.worktree}, pid ${owner.pid}, since ${sinceWords(owner.since)}.`,
    {
      hint:
        state.held === 'elsewhere'
          ? `If you are sure that machine no longer runs it, delete ${path}.`
          : (owner.purpose ?? 'loop') === 'loop'
            ? `Look: ralph status ${owner.change}. Tell its agent something: ralph attach ${owner.change}, then n. Stop it: ralph stop ${owner.change}.`
            : 'Nothing was touched. Type the command again in a moment.',
    },
  )
}

/** As a person says it: of today the clock is enough. */
function sinceWords(stamp: string): string {
  const isToday = new Date(stamp).toDateString() === new Date().toDateString()
  return isToday ? stamp.slice(11, 16) : stamp.slice(0, 16).replace('T', ' ')
}
