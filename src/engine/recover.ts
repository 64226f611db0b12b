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
 * A loop that ended well is left alone, but a half-done `ralph finish` is brought to its end all the same, and so is an
 * iteration that an error had cut off: nobody may read the boxes of its tree before.
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
  if (state.phase === 'ended') {
    const settled = await settle(loop, ports)
    return { state: loop.state, detail: [repaired, settled].filter((part) => part !== '').join('; ') }
  }
  const detail = [
    `the loop (pid ${state.pid}) had died`,
    ended.length > 0 ? `its agent was still running and has been ended (${ended.join(', ')})` : '',
    state.current === undefined ? '' : `iteration ${state.current.n} was still open and is recorded now`,
    repaired,
  ]
    .filter((part) => part !== '')
    .join('; ')
  await loop.tell({ type: 'loop.recovered', detail })
  await loop.run()
  // It may have died of the error itself, before it could say that it had ended.
  const settled = await settle(loop, ports)
  return { state: loop.state, detail: settled === '' ? detail : `${detail}; ${settled}` }
}

async function settle({ state, tell }: Loop, { checkpoints, spec }: Ports): Promise<string> {
  if (state.unsettled === undefined) return ''
  const { n, storyId, message } = state.unsettled
  if (message !== undefined) {
    const saved = await checkpoints.save(storyId, message)
    await tell({ type: 'checkpoint.saved', n, story_id: storyId, message, ...saved })
    return `iteration ${n} was complete when its checkpoint failed; it is saved now`
  }
  const { ref } = await checkpoints.keep(n)
  const { commit } = await checkpoints.restore()
  await spec.putBack()
  await tell({ type: 'checkpoint.reverted', n, commit })
  return `iteration ${n} was cut off by an error; what it left is kept as ${ref}, and the work tree is back at the checkpoint`
}
