// `--json`: the public events as NDJSON, and not a byte besides on stdout.
import { publicEventTypes } from '../../core/event.ts'
import type { LoopEvent } from '../../core/event.ts'
import type { Output } from '../io.ts'
import type { Printer } from './printer.ts'
import { oneLine } from './text.ts'

/** Warnings go to stderr as well: contract 6 promises them there whatever stdout is. */
export function jsonPrinter(stdout: Output, stderr: Output): Printer {
  return {
    tell(event: LoopEvent): void {
      if (publicEventTypes.includes(event.type)) stdout.write(`${JSON.stringify(event)}\n`)
      if (event.type === 'warning') stderr.write(`warning: ${oneLine(event.message)}\n`)
    },
    pause: () => undefined,
    close: () => undefined,
  }
}
