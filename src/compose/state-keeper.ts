// A reader of the stream that keeps `.claude/loop-state.json` in step: coalesced, refreshed while the loop lives.
import type { LoopEvent } from '../core/event.ts'
import { toStateFile } from '../core/state-snapshot.ts'
import type { LoopState } from '../core/state.ts'
import type { StateFileWriter } from '../adapters/files/state-file.ts'
import type { Cancel, Clock } from '../ports.ts'

/** Others take a file older than 60 s for a dead loop's. */
const heartbeatMs = 30_000
/** What is no news need not cost a write of its own. */
const patienceMs = 2_000

/** Of what is mostly followed by news: a story is over, and the next one begins. */
const soonMs = 150

/** What others wait for. Of a story that is two: it begins, and its agent runs; that it is over comes with the next one, or soon. */
const news: ReadonlySet<string> = new Set([
  'loop.started',
  'iteration.started',
  'agent.started',
  'waiting',
  'wait.ended',
  'note.added',
  'stop.requested',
  'pause.requested',
  'pause.lifted',
  'choice.needed',
  'human.done',
  'merge.refused',
  'error',
  'complete',
  'loop.died',
])

export interface StateKeeper {
  readonly read: (event: LoopEvent, state: LoopState) => void
  /** Resolves when the file holds the last state that was told; throws what `onFault` threw. */
  settle(): Promise<void>
  stop(): void
}

export function keepStateFile(
  writer: StateFileWriter,
  clock: Pick<Clock, 'stamp' | 'after'>,
  onFault: (error: unknown) => void,
): StateKeeper {
  let latest: LoopState | undefined
  let writing: Promise<void> | undefined
  let dirty = false
  let patience: Cancel | undefined
  let rest: Cancel | undefined
  let faulty = false
  let thrown: { readonly error: unknown } | undefined

  const write = (): void => {
    patience?.()
    patience = undefined
    dirty = latest !== undefined
    if (rest === undefined) flush()
  }
  const flush = (): void => {
    rest?.()
    rest = undefined
    writing ??= drain()
      .catch((error: unknown) => {
        thrown ??= { error }
      })
      .finally(() => {
        writing = undefined
      })
  }
  const drain = async (): Promise<void> => {
    while (dirty && rest === undefined && latest !== undefined) {
      dirty = false
      const { iterations } = latest
      try {
        await writer.write({ ...toStateFile(latest), updated_at: clock.stamp() })
      } catch (error) {
        const isFirst = !faulty
        faulty = true
        if (isFirst) onFault(error)
      }
      // It is written whole: the longer it is, the more seldom.
      rest = clock.after(Math.min(iterations.length, patienceMs), flush)
    }
  }
  const beat = (): void => {
    write()
    heartbeat = clock.after(heartbeatMs, beat)
  }
  let heartbeat = clock.after(heartbeatMs, beat)

  return {
    read(event, state) {
      latest = state
      if (news.has(event.type)) return write()
      const isSoon = event.type === 'iteration.ended'
      if (isSoon) patience?.()
      if (isSoon || patience === undefined) patience = clock.after(isSoon ? soonMs : patienceMs, write)
    },
    async settle() {
      if (patience !== undefined) write()
      while (dirty || writing !== undefined) {
        flush()
        await writing
      }
      if (thrown !== undefined) throw thrown.error
    },
    stop() {
      for (const cancel of [heartbeat, patience, rest]) cancel?.()
    },
  }
}
