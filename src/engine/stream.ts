// The one stream of a run: here every fact is stamped, reduced, written into the journal and told to the readers, in this order.
import { advance, isTalk } from '../core/cursor.ts'
import type { Cursor } from '../core/cursor.ts'
import type { EventBody, LoopEvent } from '../core/event.ts'
import type { Command } from '../core/loop.ts'
import { reduce } from '../core/loop.ts'
import { isPublic } from '../core/public-events.ts'
import type { LoopState } from '../core/state.ts'
import type { Clock, Journal } from '../ports.ts'

/** A reader of the stream: called for every event, in order, with the state after it and its name. It must not throw. */
export type Reader = (event: LoopEvent, state: LoopState, cursor: Cursor) => void

/** What moves the run: it hears of each command as it becomes due, and of each event that the journal did not take. */
interface Driver {
  due(command: Command): void
  refused(error: unknown): void
}

export interface Stream {
  readonly state: LoopState
  /** Without a line in the journal there is no run that a resume could go on with. */
  readonly isRecorded: boolean
  /** Stamps the body, reduces it, tells the readers; resolves when the journal has it. */
  readonly tell: (body: EventBody) => Promise<void>
  /** Resolves when the journal has all that was told, or has refused it; never rejects. */
  settled(): Promise<void>
  follow(readers: readonly Reader[], driver?: Driver): void
}

export function openStream(
  { journal, clock }: { readonly journal: Journal; readonly clock: Clock },
  from: { readonly state: LoopState; readonly seq: number; readonly cursor: Cursor },
): Stream {
  let { state, seq, cursor } = from
  let isRecorded = seq > 0
  let written: Promise<unknown> = Promise.resolve()
  const drivers: Driver[] = []
  const readers: Reader[] = []
  const nothing = Promise.resolve()
  const publish = (event: LoopEvent): void => {
    cursor = advance(cursor, event)
    for (const read of readers) read(event, state, cursor)
  }
  return {
    get state() {
      return state
    },
    get isRecorded() {
      return isRecorded
    },
    tell(body) {
      // Numbered without gaps for whoever reads the stream; private facts stand under the number before them.
      if (isPublic(body)) seq += 1
      const event: LoopEvent = { v: 1, seq, time: clock.stamp(), change_id: state.changeId, ...body }
      const reduced = reduce(state, event)
      state = reduced.state
      for (const command of reduced.commands) for (const driver of drivers) driver.due(command)
      // The journal does not keep it, so there is nothing to wait for: a flood of it must not make a chain of promises.
      if (isTalk(event)) {
        publish(event)
        return nothing
      }
      const appended = journal.append(event, state)
      const recorded = appended.then(
        () => {
          isRecorded = true
        },
        (error: unknown) => {
          for (const driver of drivers) driver.refused(error)
        },
      )
      written = Promise.all([written, recorded])
      publish(event)
      return appended
    },
    async settled() {
      let seen: Promise<unknown>
      do {
        seen = written
        await seen
      } while (seen !== written)
    },
    follow(more, driver) {
      readers.push(...more)
      if (driver !== undefined) drivers.push(driver)
    },
  }
}
