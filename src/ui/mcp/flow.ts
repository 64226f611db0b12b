// How much a client may ask at once: what comes in is read only as fast as it is answered, so that a flood waits in the client's own pipe.
import { once } from 'node:events'
import type { Output } from '../io.ts'

export interface Flow {
  /** Few at a time; the others wait, in order. */
  run<Answer>(work: () => Promise<Answer>): Promise<Answer>
  /** The same bytes, the next ones only when there is room for what they ask. */
  throttled(input: AsyncIterable<Uint8Array | string>): AsyncIterable<Uint8Array>
  /** Everything that was begun has ended. */
  idle(): Promise<void>
}

/** Looks at the same repository: more of them at once would not be quicker. */
const most = 4
/** Waiting to be read by the client. */
const mostBytes = 256 * 1024
/** At once: a piece of a pipe can hold hundreds of questions. */
const pieceBytes = 4096

export function flowTo(stdout: Output): Flow {
  let running = 0
  const waiting: (() => void)[] = []
  const ended: (() => void)[] = []
  let wake = (): void => undefined
  const next = (): void => {
    running -= 1
    for (const tell of ended.splice(0)) tell()
    waiting.shift()?.()
    if (waiting.length === 0) wake()
  }
  const room = async (): Promise<void> => {
    // Those that have just come in begin to wait only now.
    await new Promise(setImmediate)
    if (waiting.length > 0) await new Promise<void>((resolve) => (wake = resolve))
    // One that never reads waits here; one that has gone is an error that the transport hears, too.
    if ((stdout.writableLength ?? 0) > mostBytes) await once(stdout, 'drain').catch(() => undefined)
  }
  const idle = async (): Promise<void> => {
    // What was read last is not begun yet, and what has ended is not written yet.
    for (let quiet = 0; quiet < 10; quiet += 1) {
      await new Promise(setImmediate)
      if (running > 0) {
        quiet = 0
        await new Promise<void>((resolve) => ended.push(resolve))
      }
    }
  }
  return {
    async run(work) {
      if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve))
      running += 1
      try {
        return await work()
      } finally {
        next()
      }
    },
    async *throttled(input) {
      for await (const chunk of input) {
        const bytes = Buffer.from(chunk)
        for (let at = 0; at < bytes.length; at += pieceBytes) {
          yield bytes.subarray(at, at + pieceBytes)
          await room()
        }
      }
      // Whoever closes its end after the last question still wants the answers.
      await idle()
    },
    idle,
  }
}
