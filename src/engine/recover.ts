// Puts a dead loop in order: its half-done git step is completed or undone, its open iteration recorded, its end written.
import { initialState } from '../core/state.ts'
import type { LoopState } from '../core/state.ts'
import { replay } from '../core/loop.ts'
import type { Loop, Ports, Reader } from './run.ts'
import { createLoop } from './run.ts'

export interface Recovered {
  readonly state: LoopState
  /** One sentence for the user; empty when there was nothing to do. */
  readonly detail: string
}

/**
 * Call with the dead loop's locks held. `reap` ends what is left of its agent and says which processes it ended.
 * A loop that ended well is left alone, but a half-done `ralph finish` is brought to its end all the same.
 */
export async function recover(
  changeId: string,
  ports: Ports,
  readers: readonly Reader[],
  /** Hands the engine's `tell` to the adapters that write ahead. */
  bind: (tell: Loop['tell']) => void,
  reap: (runId: string) => Promise<readonly number[]>,
): Promise<Recovered> {
  const events = await ports.journal.read()
  const state = replay(initialState(changeId), events)
  if (state.phase === 'idle') return { state, detail: '' }
  const loop = createLoop(ports, { state, seq: events.at(-1)?.seq ?? 0 }, readers)
  bind(loop.tell)
  const ended = state.phase === 'ended' ? [] : await reap(state.runId)
  const repaired = await ports.checkpoints.recover()
  if (state.phase === 'ended') return { state, detail: repaired }
  const detail = [
    `the loop (pid ${state.pid}) had died`,
    ended.length > 0 ? `its agent was still running and has been ended (${ended.join(', ')})` : '',
    state.current === undefined ? '' : `iteration ${state.current.n} was still open and is recorded now`,
    repaired,
  ]
    .filter((part) => part !== '')
    .join('; ')
  await loop.tell({ type: 'loop.recovered', detail })
  return { state: await loop.run(), detail }
}
