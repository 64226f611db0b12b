// Loops that died without a word: their death is recorded by commands that look, their trees are put in order by commands that may.
import { lastSign } from '../adapters/files/heartbeat.ts'
import { findAlive, reapByMarker } from '../adapters/process/reap.ts'
import { RalphError } from '../core/error.ts'
import { recordDeath, repair } from '../engine/recover.ts'
import type { Loop, Ports } from '../engine/run.ts'
import type { Reader } from '../engine/stream.ts'
import { openRun } from './open-run.ts'
import type { OpenRun } from './open-run.ts'
import { hasDied, isDead, knownRuns, needsRepair } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { returnToRun } from './run-branch.ts'
import { withEngine } from './run-engine.ts'

/** What a look finds of a run whose loop has died and that nobody has put in order yet. */
export interface Dead {
  readonly diedMs: number
  /** What still runs of it. */
  readonly orphans: readonly number[]
}

export function deathOf(run: KnownRun): Dead | undefined {
  const { absence, runId } = run.state
  if (!hasDied(run)) return undefined
  const diedMs = absence?.diedMs ?? (lastSign(run.paths.sign) || lastSign(run.paths.journal))
  return { diedMs, orphans: orphansOf(runId) }
}

function orphansOf(runId: string | undefined): number[] {
  return runId === undefined ? [] : findAlive({ marker: { RALPH_RUN_ID: runId } }).map(({ pid }) => pid)
}

/** For `status` and `doctor`: the journal and the state file, nothing else. What the world does not allow is left to a later command. */
export async function recordDeaths(site: Site, changes?: readonly string[]): Promise<boolean> {
  const runs = await knownRuns(site)
  const dead = runs.filter((run) => isDead(run) && changes?.includes(run.change) !== false)
  for (const run of dead) await recordOne(site, run)
  return dead.length > 0
}

async function recordOne(site: Site, run: KnownRun): Promise<void> {
  try {
    await inRecord(site, run, async (loop, ports, held) => {
      const death = { lastSignMs: held.lastSignMs, orphans: orphansOf(loop.state.runId) }
      await recordDeath(loop, ports.clock, death)
    })
  } catch (error) {
    // A full disk, another user's files, a command that is at it already: a look must be possible all the same.
    if (!isOfTheWorld(error)) throw error
  }
}

/** For `stop`: ends what outlived its loop and writes down when, since until then it may have changed the tree. */
export async function endOrphans(site: Site, run: KnownRun): Promise<readonly number[]> {
  const { runId } = run.state
  if (runId === undefined || deathOf(run) === undefined) return []
  const { ended } = await reapByMarker(runId)
  try {
    await inRecord(site, run, async (loop, { clock }, held) => {
      await recordDeath(loop, clock, { lastSignMs: held.lastSignMs, orphans: ended })
      if (ended.length > 0) await loop.tell({ type: 'orphans.ended', now_ms: clock.now(), pids: [...ended] })
    })
  } catch (error) {
    // Another command is at the run: it has its own way to record the death.
    if (!(error instanceof RalphError) || error.code !== 'locked') throw error
  }
  return ended
}

async function inRecord(
  site: Site,
  { change }: KnownRun,
  work: (loop: Loop, ports: Ports, held: OpenRun) => Promise<void>,
): Promise<void> {
  await openRun(site, change, { purpose: 'record' }, async (held) => {
    const there = await enterTree(held)
    if (there !== undefined && held.run.state.phase !== 'idle' && held.run.damage === undefined)
      await withEngine(there, held, (loop, ports) => work(loop, ports, held))
  })
}

/**
 * For `resume`, `finish`, `done` and `loop --fresh`, with the run in hand. Resolves with one sentence for the user, empty when there was
 * nothing to do; what it must say before it undoes anything goes to `warn` at once.
 */
export async function repairRun(
  held: OpenRun,
  warn: (message: string, code: string) => void,
): Promise<string> {
  if (!needsRepair(held.run)) return ''
  const there = await enterTree(held)
  if (there === undefined) return ''
  const { lastSignMs } = held
  const { runId } = held.run.state
  const listen: Reader = (event) => {
    if (event.type === 'warning') warn(event.message, event.code)
  }
  const detail = await withEngine(
    there,
    held,
    (loop, ports) =>
      repair(loop, ports, {
        lastSignMs,
        beat: () => held.beat(),
        orphans: orphansOf(runId),
        reap: async () => (runId === undefined ? [] : (await reapByMarker(runId)).ended),
        returnToRun: (state) => returnToRun(there, state),
      }),
    [listen],
  )
  held.repaired(detail)
  return detail
}

/** Of a loop that was killed after its last word: nothing is left to do but to take its locks away. */
export async function sweepLocks(site: Site, run: KnownRun): Promise<void> {
  if (run.lock.held !== 'dead' || needsRepair(run)) return
  await openRun(site, run.change, { purpose: 'record' }, enterTree)
}

/** A work tree that is gone cannot be put in order; commands that need it say so themselves. */
export async function enterTree(held: OpenRun): Promise<Site | undefined> {
  try {
    return await held.enterOwn()
  } catch (error) {
    if (error instanceof RalphError && error.code === 'repository_state') return undefined
    throw error
  }
}

/** Not a bug: what a user can mend. */
function isOfTheWorld(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof RalphError || 'errno' in cause) return true
  return false
}
