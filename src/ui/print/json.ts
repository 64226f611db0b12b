// `--json`: the public events as NDJSON, and not a byte besides on stdout.
import { isTalk } from '../../core/cursor.ts'
import { isPublic } from '../../core/public-events.ts'
import type { LoopEvent } from '../../core/event.ts'
import type { Output } from '../io.ts'
import { gathered } from './gathered.ts'
import type { Printer } from './printer.ts'
import { oneLine } from './text.ts'

/**
 * Node keeps what a reader has not taken, without end: from here on the agent waits for the reader, as in any pipeline. Undefined: there
 * is room.
 */
export function roomIn(stdout: Output): () => Promise<void> | undefined {
  let waiting: Promise<void> | undefined
  return () => {
    if ((stdout.writableLength ?? 0) < mostWaiting) return undefined
    waiting ??= new Promise((resolve) => {
      // A reader that went away takes nothing any more; the loop hears of that by itself.
      const ends = ['drain', 'error', 'close']
      const done = (): void => {
        waiting = undefined
        for (const end of ends) stdout.off(end, done)
        resolve()
      }
      for (const end of ends) stdout.on(end, done)
    })
    return waiting
  }
}

const mostWaiting = 1024 ** 2

/** Warnings go to stderr as well: contract 6 promises them there whatever stdout is. */
export function jsonPrinter(stdout: Output, stderr: Output): Printer {
  const talk = gathered((text) => stdout.write(text))
  return {
    tell(event: LoopEvent): void {
      if (isTalk(event)) return talk.add(`${JSON.stringify(event)}\n`)
      talk.flush()
      if (isPublic(event)) stdout.write(`${JSON.stringify(event)}\n`)
      // What a repair has to say is there already: it is said before anything is undone.
      if (event.type === 'warning' && event.code !== 'repaired')
        stderr.write(`warning: ${oneLine(event.message)}\n`)
    },
    pause: talk.flush,
    close: talk.flush,
  }
}
