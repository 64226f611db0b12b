// stop: asks the running loop to go and waits until it has gone; ends what a dead one has left running.
import { setTimeout as delay } from 'node:timers/promises'
import { inspectLock } from '../adapters/files/lock.ts'
import type { LockState } from '../adapters/files/lock.ts'
import { askToStop } from '../adapters/files/wish-files.ts'
import { RalphError } from '../core/error.ts'
import type { Control, Said } from '../ui/app.ts'
import { chooseRun } from './choose.ts'
import { hasQueue } from './queue-known.ts'
import { isRunning, knownRun, needsRepair } from './site.ts'
import type { KnownRun, Site } from './site.ts'

/** The loop itself promises to be gone 5 s after TERM; this leaves room for a slow disk. */
const patienceMs = 30_000

export async function stopLoop(
  site: Site,
  { change, force, isKey = false }: Parameters<Control['stop']>[0],
): Promise<Said> {
  const run = await chooseRun(site, change, 'running')
  if (run !== undefined && run.damage !== undefined && !isRunning(run)) return stopUnknown(run)
  if (run === undefined || !isRunning(run)) return noLoop(site, run)
  const { lock } = run
  if (lock.held === 'elsewhere') {
    throw new RalphError('locked', `The loop of ${run.change} runs on another host: ${lock.owner.host}.`, {
      hint: `Log in there and type: ralph stop ${run.change}`,
    })
  }
  if (lock.held !== 'alive') return { message: 'No loop is running here.', data: { stopped: false } }
  const { pid, pid_started: started } = lock.owner
  if (force && hasQueue(site.git)) (await import('./queue-entry.ts')).parkKilled(site, run.change)
  if (lock.owner.hosted === true) {
    if (force) throw hosted(run.change, pid)
    askToStop(run.paths.stop, isKey ? 'SIGINT' : 'SIGTERM')
  } else process.kill(pid, force ? 'SIGKILL' : isKey ? 'SIGINT' : 'SIGTERM')
  const deadline = performance.now() + patienceMs
  const isThere =
    lock.owner.hosted === true
      ? (): boolean => holds(inspectLock(run.paths.lock, site.identity), lock.owner.token)
      : (): boolean => site.identity.isAlive(pid, started)
  while (isThere()) {
    if (performance.now() > deadline) {
      throw new RalphError(
        'internal',
        `The loop (pid ${pid}) has been asked to stop, but is still there after ${patienceMs / 1000} s.`,
        {
          hint: `Nothing is lost. ${lock.owner.hosted === true ? 'It runs inside another program: end that' : `To kill it: ralph stop ${run.change} --force`}`,
        },
      )
    }
    await delay(50)
  }
  const after = await knownRun(site, run.change)
  const left = await orphansEnded(site, after)
  if (after.state.status === 'done' && !needsRepair(after)) return stoppedAtQuestion(run.change, pid)
  return {
    message: `Stopped: ${run.change} (pid ${pid})${left.length === 0 ? '' : `; its agent was still running and has been ended (${left.join(', ')})`}.${needsRepair(after) ? '\nIt was killed: what its attempt left is not cleaned up yet.' : putAside(run, after)}`,
    next: `ralph resume ${run.change}`,
    data: { stopped: true, change_id: run.change, pid },
  }
}

function holds(lock: LockState, token: string): boolean {
  return lock.held === 'alive' && lock.owner.token === token
}

/** ralph ends its own loops and agents, nothing else. */
function hosted(change: string, pid: number): RalphError {
  return new RalphError('usage', `The loop of ${change} runs inside another program (pid ${pid}).`, {
    hint: `Nothing was touched. ralph does not kill it: type ralph stop ${change}, or end that program yourself.`,
  })
}

/** It had ended, and only asked where its work goes: there is nothing to resume. */
function stoppedAtQuestion(change: string, pid: number): Said {
  return {
    message: `${change} was done already and was only asking what to do with its work (pid ${pid}); the question is closed, and the work stays where it is.`,
    next: `ralph finish ${change} --cleanup`,
    data: { stopped: true, change_id: change, pid },
  }
}

/** What the stopped attempt had done, the user's own edits beside it too, is not in the tree any more. */
function putAside(before: KnownRun, { change, state, recall }: KnownRun): string {
  const last = state.iterations.at(-1)
  if (last === undefined || last.attempt_ref === undefined || last.verdict !== 'interrupted') return ''
  if (state.iterations.length === before.state.iterations.length) return ''
  const undone = recall('checkpoint.reverted').at(-1)
  if (undone?.n === last.n && undone.files_total === 0)
    return '\nThe work tree is at the checkpoint; the attempt had changed nothing.'
  return `\nThe work tree is back at the checkpoint; what was changed since is kept: ralph diff ${last.n} ${change}; bring it back: ralph restore ${last.n} ${change}`
}

/** Where the journal cannot be read the lock still tells whose the orphans are. */
async function stopUnknown(run: KnownRun): Promise<Said> {
  const { endUnknown } = await import('./damage.ts')
  const ended = await endUnknown(run)
  const left =
    ended.length === 0 ? '' : ` Its agent was still running and has been ended (${ended.join(', ')}).`
  return {
    message: `No loop of ${run.change} is running.${left} ${run.damage}`,
    next: `ralph resume ${run.change}   says how to get everything back; ralph loop ${run.change} --fresh   start over`,
    data: { stopped: false, change_id: run.change, ended_pids: [...ended], problem: run.damage },
  }
}

/** A dead one may have left an agent that runs on. Ending it is all that is done; the work tree is left to who goes on with it. */
async function noLoop(site: Site, run: KnownRun | undefined): Promise<Said> {
  const ended = run === undefined ? [] : await orphansEnded(site, run)
  const data = { stopped: false, change_id: run?.change ?? '', ended_pids: [...ended] }
  if (run === undefined || !needsRepair(run)) return { message: 'No loop is running here.', data }
  const left =
    ended.length === 0 ? '' : ` Its agent was still running and has been ended (${ended.join(', ')}).`
  return {
    message: `No loop is running: the one of ${run.change} had died.${left}`,
    next: `ralph resume ${run.change}   continue; ralph finish ${run.change} --cleanup   take what is saved`,
    data,
  }
}

/** Loaded only for a loop that died: it brings the engine and every adapter with it. */
async function orphansEnded(site: Site, run: KnownRun): Promise<readonly number[]> {
  if (!needsRepair(run) && run.lock.held !== 'dead') return []
  const { endOrphans, sweepLocks } = await import('./recovery.ts')
  await sweepLocks(site, run)
  return endOrphans(site, run)
}
