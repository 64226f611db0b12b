// Lines for a pipe or a log: one per event, no escape bytes unless colours were forced.
import { isTalk } from '../../core/cursor.ts'
import type { LoopEvent } from '../../core/event.ts'
import { lastingWarnings } from '../../core/outcome.ts'
import type { Io } from '../io.ts'
import { paintFor } from '../io.ts'
import { describe } from './describe.ts'
import type { Line } from './describe.ts'
import { gathered } from './gathered.ts'
import type { Printer } from './printer.ts'
import { summary } from './summary.ts'
import type { Ending, Started } from './summary.ts'

export function plainPrinter(io: Pick<Io, 'stdout' | 'stderr' | 'env'>): Printer {
  const lines = createLines(io)
  const talk = gathered((text) => io.stdout.write(text))
  return {
    tell(event): void {
      if (!isTalk(event)) talk.flush()
      for (const { text, to } of lines(event)) {
        if (isTalk(event)) talk.add(`${text}\n`)
        else io[to].write(`${text}\n`)
      }
    },
    pause: talk.flush,
    close: talk.flush,
  }
}

/** Remembers what the summary needs; the terminal's printer uses it as well. */
export function createLines(
  io: Pick<Io, 'stdout' | 'stderr' | 'env'>,
): (event: LoopEvent) => readonly Line[] {
  const paint = { stdout: paintFor(io.stdout, io.env), stderr: paintFor(io.stderr, io.env) }
  let started: Started | undefined
  let finished: Ending['finished']
  let lastFailed: number | undefined
  let begun = false
  const lasting = new Set<string>()
  return (event) => {
    if (event.type === 'loop.started') started = event
    if (event.type === 'checkpoint.saved' || (event.type === 'loop.started' && event.resumed)) begun = true
    // A start that failed half-way has changed something, unless it was undone.
    if (event.type === 'git.began' && event.op === 'start') begun = true
    if (event.type === 'git.step' && event.op === 'start' && event.step === 'undone') begun = false
    if (event.type === 'warning' && lastingWarnings.has(event.code)) lasting.add(event.message)
    if (event.type === 'loop.finished') finished = { ok: event.ok, message: event.message }
    if (event.type === 'iteration.ended') {
      const { verdict, n, attempt_ref: ref } = event.iteration
      lastFailed = verdict === 'complete' || verdict === 'kept' || ref === undefined ? undefined : n
    }
    if (event.type === 'complete') {
      const ending = {
        complete: event,
        begun,
        lasting: [...lasting],
        ...(started && { started }),
        ...(finished && { finished }),
        ...(lastFailed !== undefined && { lastFailed }),
      }
      return summary(ending, paint.stdout).map((text) => ({ text, to: 'stdout' }))
    }
    const line = describe(
      event,
      event.type === 'warning' || event.type === 'error' ? paint.stderr : paint.stdout,
    )
    return line === undefined ? [] : [line]
  }
}
