// `--json`: the public events as NDJSON, and not a byte besides on stdout.
import { isTalk } from '../../core/cursor.ts'
import { isPublic } from '../../core/event.ts'
import type { LoopEvent } from '../../core/event.ts'
import type { Output } from '../io.ts'
import { gathered } from './gathered.ts'
import type { Printer } from './printer.ts'
import { oneLine } from './text.ts'

/** Warnings go to stderr as well: contract 6 promises them there whatever stdout is. */
export function jsonPrinter(stdout: Output, stderr: Output): Printer {
  const talk = gathered((text) => stdout.write(text))
  return {
    tell(event: LoopEvent): void {
      if (isTalk(event)) return talk.add(`${JSON.stringify(event)}\n`)
      talk.flush()
      if (isPublic(event)) stdout.write(`${JSON.stringify(event)}\n`)
      if (event.type === 'warning') stderr.write(`warning: ${oneLine(event.message)}\n`)
    },
    pause: talk.flush,
    close: talk.flush,
  }
}
