// A reader of the stream that keeps `.claude/loop-state.json` in step: coalesced, refreshed while the loop lives.
import type { LoopEvent } from '../core/event.ts'
import { toStateFile } from '../core/state-snapshot.ts'
import type { LoopState } from '../core/state.ts'
import type { StateFileWriter } from '../adapters/files/state-file.ts'
import type { Clock } from '../ports.ts'

/** Others take a file older than 60 s for a dead loop's. */
const heartbeatMs = 30_000
/** The agent's talk moves only `last_activity`; it need not cost a write each. */
const talkMs = 2_000

const talk: ReadonlySet<string> = new Set([
  'agent.message',
  'agent.tool',
  'agent.usage',
  'git.step',
  'git.began',
  'git.ended',
])

export interface StateKeeper {
  readonly read: (event: LoopEvent, state: LoopState) => void
  /** Resolves when the file holds the last state that was told; throws what `onFault` threw. */
  settle(): Promise<void>
  stop(): void
}

export function keepStateFile(
  writer: StateFileWriter,
  clock: Clock,
  onFault: (error: unknown) => void,
): StateKeeper {
  let latest: LoopState | undefined
  let writing: Promise<void> | undefined
  let dirty = false
  let talkTimer: NodeJS.Timeout | undefined
  let faulty = false
  let thrown: { readonly error: unknown } | undefined

  const write = (): void => {
    clearTimeout(talkTimer)
    talkTimer = undefined
    dirty = true
    writing ??= drain()
      .catch((error: unknown) => {
        thrown ??= { error }
      })
      .finally(() => {
        writing = undefined
      })
  }
  const drain = async (): Promise<void> => {
    while (dirty && latest !== undefined) {
      dirty = false
      try {
        await writer.write({ ...toStateFile(latest), updated_at: clock.stamp() })
      } catch (error) {
        const isFirst = !faulty
        faulty = true
        if (isFirst) onFault(error)
      }
    }
  }
  const heartbeat = setInterval(write, heartbeatMs)
  heartbeat.unref()

  return {
    read(event, state) {
      latest = state
      if (talk.has(event.type)) talkTimer ??= setTimeout(write, talkMs)
      else write()
    },
    async settle() {
      if (talkTimer !== undefined) write()
      while (writing !== undefined) await writing
      if (thrown !== undefined) throw thrown.error
    },
    stop() {
      clearInterval(heartbeat)
      clearTimeout(talkTimer)
    },
  }
}
