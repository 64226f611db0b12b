// What the loops of this machine tell one another about a login that is at its limit, and which of them asks first after the reset (Q16).
// A help, never a hindrance: what cannot be read or written, or tells an impossible time, is as if it were not there.
import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { RalphError } from '../../core/error.ts'
import { isRecord, readJson } from '../../core/json.ts'
import { longestLimitMs } from '../../core/limits.ts'
import type { Clock, Logins } from '../../ports.ts'
import { faultCode } from '../process/fault.ts'
import { fileLock, inspectLock } from './lock.ts'
import type { Identity } from './lock.ts'
import { writeDurably } from './whole.ts'

export interface LedgerOptions {
  readonly folder: string
  /** Who pays for an agent's calls; undefined: nobody knows, so it is shared with no other loop. */
  readonly accountOf: (agent: string) => string | undefined
  /** Its own word keeps no loop waiting: who resumes it wants to ask. */
  readonly loop: { readonly id: string; readonly change: string; readonly worktree: string }
  readonly clock: Clock
  readonly identity: Identity
}

/** How long the others let one loop go first: an agent that has said nothing by then may be at work on something long. */
const firstMs = 60_000

interface Entry {
  readonly untilMs: number
  readonly loop: string
}

/** The ledger is no place for names of folders. */
export function loopIdOf(journal: string): string {
  return hashed(journal)
}

function hashed(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/** `$XDG_STATE_HOME/ralph/logins`: one for all repositories. */
export function loginsFolder(env: NodeJS.ProcessEnv): string {
  const state = env['XDG_STATE_HOME'] ?? ''
  const base = isAbsolute(state) ? state : join(env['HOME'] || homedir(), '.local', 'state')
  return join(base, 'ralph', 'logins')
}

export function loginLedger({ folder, accountOf, loop, clock, identity }: LedgerOptions): Logins {
  const fileOf = (agent: string): string | undefined => {
    const account = accountOf(agent)
    if (account === undefined) return undefined
    return join(folder, hashed(`${agent}\0${account}`))
  }
  const read = (file: string): Entry | undefined => {
    const entry = harmless(() => readJson(readFileSync(`${file}.json`, 'utf8')))
    if (!isRecord(entry)) return undefined
    const [untilMs, sinceMs] = [timeIn(entry['until']), timeIn(entry['since'])]
    const nowMs = clock.now()
    // A stamp has whole seconds.
    const isPossible =
      sinceMs <= nowMs + 1000 && untilMs <= nowMs + longestLimitMs && untilMs > nowMs - staleMs
    return isPossible ? { untilMs, loop: String(entry['loop']) } : undefined
  }
  /** Until when another loop may go first; undefined: none does. */
  const firstUntil = (file: string): number | undefined => {
    const first = harmless(() => inspectLock(`${file}.first`, identity))
    if (first === undefined || first.held === 'no' || first.held === 'dead') return undefined
    const nowMs = clock.now()
    const sinceMs = timeIn(first.owner.since)
    return sinceMs <= nowMs + 1000 && sinceMs + firstMs > nowMs ? sinceMs + firstMs : undefined
  }
  /** Of each agent that this loop asks while its login counts as limited: what its answer settles. */
  const asking = new Map<string, { readonly untilMs: number; readonly release: () => Promise<void> }>()
  /** What this loop waits for; nothing where the others could not be told of it. */
  const awaited = new Map<string, 'reset' | 'first'>()
  /** What a human did not want to wait for. */
  const passedOver = new Map<string, number>()
  const leave = async (agent: string): Promise<void> => {
    const mine = asking.get(agent)
    asking.delete(agent)
    await harmlessly(async () => mine?.release())
  }

  const look = async (agent: string): Promise<number | undefined> => {
    awaited.delete(agent)
    const file = fileOf(agent)
    const entry = file === undefined ? undefined : read(file)
    if (file === undefined || entry === undefined) return undefined
    const { untilMs } = entry
    if (untilMs > clock.now()) {
      if (entry.loop !== loop.id && passedOver.get(agent) !== untilMs) {
        awaited.set(agent, 'reset')
        return untilMs
      }
      asking.set(agent, { untilMs, release: () => Promise.resolve() })
      return undefined
    }
    const { change, worktree } = loop
    const lock = fileLock(`${file}.first`, { change, worktree, since: clock.stamp() }, identity)
    const held = await harmlessly(() => lock.acquire())
    if (held === undefined) {
      const firstsMs = firstUntil(file)
      if (firstsMs === undefined) asking.set(agent, { untilMs, release: () => Promise.resolve() })
      else awaited.set(agent, 'first')
      return firstsMs
    }
    asking.set(agent, { untilMs, release: () => held.release() })
    // Between the look and the lock another one may have gone first and come back.
    if (read(file)?.untilMs === untilMs) return undefined
    await leave(agent)
    return look(agent)
  }

  return {
    look,
    async freed(agent, stop) {
      const file = fileOf(agent)
      const what = awaited.get(agent)
      if (file === undefined || what === undefined) return false
      while (!stop.aborted) {
        if (read(file) === undefined || (what === 'first' && firstUntil(file) === undefined)) return true
        await clock.until(clock.now() + 500, stop)
      }
      return false
    },
    async limited(agent, untilMs) {
      const file = fileOf(agent)
      if (file === undefined) return
      passedOver.delete(agent)
      await harmlessly(async () => {
        const others = read(file)
        if (others === undefined || others.untilMs < untilMs) {
          const [until, since] = [new Date(untilMs), new Date(clock.now())].map((date) => date.toISOString())
          mkdirSync(folder, { recursive: true, mode: 0o700 })
          await writeDurably(`${file}.json`, `${JSON.stringify({ until, since, agent, loop: loop.id })}\n`, {
            by: `${file}.${randomUUID()}.tmp`,
            isCache: true,
          })
        }
        awaited.set(agent, 'reset')
      })
      await leave(agent)
    },
    passOver(agent) {
      const file = fileOf(agent)
      const entry = file === undefined ? undefined : read(file)
      if (entry !== undefined) passedOver.set(agent, entry.untilMs)
    },
    async answered(agent) {
      const file = fileOf(agent)
      const mine = asking.get(agent)
      if (file === undefined || mine === undefined) return
      // Not what another loop was told meanwhile.
      if (read(file)?.untilMs === mine.untilMs) harmless(() => rmSync(`${file}.json`, { force: true }))
      await leave(agent)
    },
    leave,
  }
}

/** For who runs no agent. */
export const noLogins: Logins = {
  look: () => Promise.resolve(undefined),
  freed: () => Promise.resolve(false),
  limited: () => Promise.resolve(),
  passOver: () => undefined,
  answered: () => Promise.resolve(),
  leave: () => Promise.resolve(),
}

/** A limit that nobody has asked about for a day after its end says nothing about who should go first. */
const staleMs = 86_400_000

function timeIn(value: unknown): number {
  return typeof value === 'string' ? Date.parse(value) : Number.NaN
}

/** What the disk refuses, and a lock that another one has, are no errors here; a bug is. */
function harmless<T>(deed: () => T): T | undefined {
  try {
    return deed()
  } catch (error) {
    if (faultCode(error) === '' && !(error instanceof RalphError)) throw error
    return undefined
  }
}

async function harmlessly<T>(deed: () => Promise<T>): Promise<T | undefined> {
  try {
    return await deed()
  } catch (error) {
    if (faultCode(error) === '' && !(error instanceof RalphError)) throw error
    return undefined
  }
}
