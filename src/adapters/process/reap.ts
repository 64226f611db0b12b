// Ends every process of a run, wherever it went: its group, its children, and all that carry its marker.
import { setTimeout as delay } from 'node:timers/promises'
import { faultCode } from './fault.ts'
import { removeTemps } from './temp.ts'
import { processTable, withMarker, type Birth, type Marker, type ProcessEntry } from './table.ts'

export interface Quarry {
  /** Agents put their shell tools into groups and sessions of their own; only the environment still tells whose they are. */
  readonly marker: Marker
  /** Process group of the leader, while the leader has not been waited for (its number cannot be reused before). */
  readonly group?: number
  /** Start times by pid of all that a look has found: a child may clear its environment and outlive its parents. */
  readonly known?: Map<number, string>
  /** Of the leader: nobody who is older is of the run. */
  readonly since?: Birth
  /** The leader and its child only hold the cage: an end of theirs is a KILL for all in it. */
  readonly isCaged?: boolean
}

/** A signal for all that is left, and how long to wait for its effect. Without one: only waits. */
export interface Rung {
  readonly signal?: NodeJS.Signals
  readonly waitMs: number
  /** Only the group: a leader that is asked kindly ends its tools itself. */
  readonly onlyGroup?: boolean
}

/** What is alive of the run now: group, marker, what was known before, and the children of those, whose environment may have been cleared. */
export function findAlive(
  { marker, group, known, since }: Quarry,
  all = processTable(since),
): ProcessEntry[] {
  const table = all.filter((entry) => entry.pid !== process.pid)
  const found = new Set(withMarker(table, marker))
  for (const entry of table)
    if (entry.group === group || known?.get(entry.pid) === entry.started) found.add(entry)
  // A Set can grow while it is walked: children of children are seen too.
  for (const parent of found) for (const entry of table) if (entry.parent === parent.pid) found.add(entry)
  for (const { pid, started } of found) known?.set(pid, started)
  return [...found]
}

/** Climbs the ladder until nothing is left; resolves with the pids that outlived it. */
export async function reap(quarry: Quarry, ladder: readonly Rung[]): Promise<number[]> {
  for (const { signal, waitMs, onlyGroup } of ladder) {
    const deadline = performance.now() + waitMs
    let pauseMs = 5
    let isFirst = true
    for (;;) {
      const alive = findAlive(quarry)
      if (alive.length === 0) return []
      // KILL is sent again: a process may have forked between the look and the blow.
      if (signal !== undefined && (isFirst || signal === 'SIGKILL')) {
        for (const entry of alive) if (isMeant(entry, quarry, { signal, onlyGroup })) send(entry.pid, signal)
      }
      isFirst = false
      if (performance.now() >= deadline) break
      await delay(pauseMs)
      pauseMs = Math.min(pauseMs * 2, 50)
    }
  }
  return findAlive(quarry).map(({ pid }) => pid)
}

function isMeant(
  { pid, parent, group: own }: ProcessEntry,
  { group, isCaged }: Quarry,
  { signal, onlyGroup }: { readonly signal: NodeJS.Signals; readonly onlyGroup: boolean | undefined },
): boolean {
  if (isCaged === true && signal !== 'SIGKILL' && (pid === group || parent === group)) return false
  return onlyGroup !== true || own === group
}

/** After a crash of ralph: ends whatever still runs of that run, and clears its temp folders. Resolves with what was ended and what could not be. */
export async function reapByMarker(runId: string): Promise<{ ended: number[]; survivors: number[] }> {
  const quarry: Quarry = { marker: { RALPH_RUN_ID: runId } }
  const before = findAlive(quarry).map(({ pid }) => pid)
  const survivors = await reap(quarry, sweepLadder)
  await removeTemps(runId, process.env)
  return { ended: before.filter((pid) => !survivors.includes(pid)), survivors }
}

/** KILL to all of the run at once, without waiting: for a user who has asked twice. */
export function killNow(runId: string): void {
  for (const { pid } of findAlive({ marker: { RALPH_RUN_ID: runId } })) send(pid, 'SIGKILL')
}

/** For what is left when the leader is gone. */
export const sweepLadder: readonly Rung[] = [
  { signal: 'SIGTERM', waitMs: 500 },
  { signal: 'SIGKILL', waitMs: 1000 },
]

/** For one that takes the machine. */
export const killLadder: readonly Rung[] = [{ signal: 'SIGKILL', waitMs: 5000 }]

/** For a leader that still works; the whole takes `graceMs`, KILL at its end. */
export function stopLadder(graceMs: number): readonly Rung[] {
  return [
    { signal: 'SIGINT', waitMs: graceMs * 0.6, onlyGroup: true },
    { signal: 'SIGTERM', waitMs: graceMs * 0.4 },
    { signal: 'SIGKILL', waitMs: 1000 },
  ]
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    // Gone meanwhile, or not ours to end: the next look tells.
    if (!['ESRCH', 'EPERM'].includes(faultCode(error))) throw error
  }
}
