// A lock that says who holds it: pid, start time, boot id and host, so that a dead owner is known and a living one named.
import { createHash, randomUUID } from 'node:crypto'
import { link, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { RalphError } from '../../core/error.ts'
import type { Lock } from '../../ports.ts'

export interface LockOwner {
  readonly pid: number
  readonly pid_started: string
  readonly boot_id: string
  readonly host: string
  readonly token: string
  readonly change: string
  readonly worktree: string
  readonly since: string
}

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
  | { readonly held: 'dead'; readonly owner?: LockOwner; readonly raw: string }
  | { readonly held: 'alive'; readonly owner: LockOwner }
  /** Death is never inferred across hosts. */
  | { readonly held: 'elsewhere'; readonly owner: LockOwner }

export async function inspectLock(path: string, identity: Identity): Promise<LockState> {
  let raw: string
  try {
    raw = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { held: 'no' }
    throw error
  }
  const owner = parseOwner(raw)
  if (owner === undefined) return { held: 'dead', raw }
  if (owner.host !== hostname()) return { held: 'elsewhere', owner }
  const alive = owner.boot_id === identity.bootId && isOwnerAlive(owner, identity)
  return alive ? { held: 'alive', owner } : { held: 'dead', owner, raw }
}

/** Where the OS told no start time the pid alone has to do: better a living lock too many than two loops. */
function isOwnerAlive(owner: LockOwner, identity: Identity): boolean {
  if (owner.pid_started !== '') return identity.isAlive(owner.pid, owner.pid_started)
  try {
    process.kill(owner.pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** For a command that must not even begin while somebody holds it; writes nothing. */
export async function refuseHeld(path: string, identity: Identity): Promise<void> {
  const state = await inspectLock(path, identity)
  if (state.held === 'alive' || state.held === 'elsewhere') throw locked(path, state)
}

export function fileLock(
  path: string,
  what: { readonly change: string; readonly worktree: string; readonly since: string },
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
    async acquire() {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      const draft = `${path}.${mine.token}`
      try {
        await writeFile(draft, `${JSON.stringify(mine, null, 2)}\n`, { mode: 0o644, flush: true })
        while (!(await tryLink(draft, path))) {
          const state = await inspectLock(path, identity)
          if (state.held === 'alive' || state.held === 'elsewhere') throw locked(path, state)
          if (state.held === 'dead') await removeDead(path, state.raw, draft)
        }
      } finally {
        await rm(draft, { force: true })
      }
      return { release: () => release(path, mine.token) }
    },
  }
}

/** `link` puts the whole file in place or fails: there is never a half-written lock. */
async function tryLink(draft: string, path: string): Promise<boolean> {
  try {
    await link(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** A claim that outlives this was left by a process that died while it held it. */
const claimMs = 10_000

/**
 * Only who holds the claim on exactly these bytes may remove them, and looks again before doing so:
 * without it the slower of two could remove the lock that the faster has just taken.
 */
async function removeDead(path: string, raw: string, draft: string): Promise<void> {
  const claim = `${path}.claim-${createHash('sha256').update(raw).digest('hex').slice(0, 16)}`
  if (!(await tryLink(draft, claim))) {
    const age =
      Date.now() -
      (await stat(claim).then(
        (found) => found.ctimeMs,
        () => Date.now(),
      ))
    if (age > claimMs) await rm(claim, { force: true })
    else await delay(5)
    return
  }
  try {
    const now = await readFile(path, 'utf8').catch(() => undefined)
    if (now === raw) await rm(path, { force: true })
  } finally {
    await rm(claim, { force: true })
  }
}

async function release(path: string, token: string): Promise<void> {
  const raw = await readFile(path, 'utf8').catch(() => '')
  if (parseOwner(raw)?.token === token) await rm(path, { force: true })
}

function parseOwner(raw: string): LockOwner | undefined {
  try {
    const value: unknown = JSON.parse(raw)
    return isOwner(value) ? value : undefined
  } catch {
    return undefined
  }
}

const ownerTexts = ['pid_started', 'boot_id', 'host', 'token', 'change', 'worktree', 'since']

/** By hand: every `ralph status` reads locks, and a schema would take longer to load than to look. */
function isOwner(value: unknown): value is LockOwner {
  if (typeof value !== 'object' || value === null || !('pid' in value)) return false
  const fields = new Map<string, unknown>(Object.entries(value))
  return (
    Number.isSafeInteger(value.pid) &&
    Number(value.pid) > 0 &&
    ownerTexts.every((name) => typeof fields.get(name) === 'string')
  )
}

function locked(
  path: string,
  state: Extract<LockState, { owner: LockOwner; held: 'alive' | 'elsewhere' }>,
): RalphError {
  const { owner } = state
  const where = state.held === 'elsewhere' ? ` on host ${owner.host}` : ''
  return new RalphError(
    'locked',
    `Another loop is running${where}: change ${owner.change} in ${owner.worktree}, pid ${owner.pid}, since ${owner.since}.`,
    {
      hint:
        state.held === 'elsewhere'
          ? `If that machine is surely not running it any more, delete ${path}.`
          : `Look: ralph status ${owner.change}. Stop it: ralph stop ${owner.change}.`,
      exitCode: 7,
    },
  )
}
