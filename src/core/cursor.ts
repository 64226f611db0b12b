// A name for every record of a run, private ones and talk too: which run, which line of its journal, and the how manieth talk after it.
import type { LoopEvent } from './event.ts'

export interface Cursor {
  /** `run_id` of the loop that the run began with: a run that `--fresh` has archived keeps its name. */
  readonly run: string
  /** Lines of the journal up to here. They are counted, not numbered by a field, so that old journals have cursors as well. */
  readonly record: number
  /** Talk since that line. A loop that goes on begins with a line, so that lost talk never lends its name to another. */
  readonly talk: number
}

/** Before the first record. */
export const beginning: Cursor = { run: '', record: 0, talk: 0 }

/** What the agent says and does: told to every reader, but not in the journal. */
export type TalkEvent = Extract<LoopEvent, { type: 'agent.message' | 'agent.tool' }>

export function isTalk(event: LoopEvent): event is TalkEvent {
  return event.type === 'agent.message' || event.type === 'agent.tool'
}

export function advance(cursor: Cursor, event: LoopEvent): Cursor {
  if (isTalk(event)) return { ...cursor, talk: cursor.talk + 1 }
  const run = cursor.record === 0 && event.type === 'loop.started' ? event.run_id : cursor.run
  return { run, record: cursor.record + 1, talk: 0 }
}

export function cursorAfter(events: Iterable<LoopEvent>): Cursor {
  let cursor = beginning
  for (const event of events) cursor = advance(cursor, event)
  return cursor
}

/** Of the same run. */
export function isAfter(a: Cursor, b: Cursor): boolean {
  return a.record > b.record || (a.record === b.record && a.talk > b.talk)
}

/** For an address, a header or a command line. */
export function cursorText({ run, record, talk }: Cursor): string {
  return `${run}:${record}.${talk}`
}

export function parseCursor(text: string): Cursor | undefined {
  const parts = /^(.*):(\d{1,15})\.(\d{1,15})$/s.exec(text)
  return parts === null
    ? undefined
    : { run: parts[1] ?? '', record: Number(parts[2]), talk: Number(parts[3]) }
}
