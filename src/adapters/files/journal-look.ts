// A journal for whoever only looks: the state it comes to, without a replay of what somebody has replayed before.
import type { LoopEvent } from '../../core/event.ts'
import { replay } from '../../core/loop.ts'
import { initialState } from '../../core/state.ts'
import type { LoopState } from '../../core/state.ts'
import { notAFile, parseJournal } from './journal-text.ts'
import { keptStateOf, readKeptState } from './kept-state.ts'
import { readNow } from './now.ts'

type Type = LoopEvent['type']

/** The events of these types, in their order. */
export type Recall = <T extends Type>(...types: readonly T[]) => readonly Extract<LoopEvent, { type: T }>[]

export interface JournalLook {
  readonly state: LoopState
  readonly recall: Recall
  /** Which line is the first that cannot be read, and why: `state` is that before. Empty where all could. */
  readonly damage: string | undefined
}

export async function lookAtJournal(path: string, change: string): Promise<JournalLook> {
  const beside = readKeptState(path)
  const bytes = bytesOf(path)
  if (typeof bytes === 'string') return { state: initialState(change), recall: recallFrom([]), damage: bytes }
  const kept = beside && keptStateOf(beside, change, bytes)
  if (kept === undefined) {
    const { events, damage } = await parseJournal(path, bytes.toString('utf8'))
    return { state: replay(initialState(change), events), recall: recallFrom(events), damage }
  }
  const before = bytes.subarray(0, kept.offset)
  const { events, damage } = await parseJournal(path, bytes.toString('utf8', kept.offset), () =>
    linesIn(before),
  )
  const recallTail = recallFrom(events)
  return {
    state: replay(kept.state, events),
    recall: (...types) => [...recalled(before, types), ...recallTail(...types)],
    damage,
  }
}

export function recallFrom(events: readonly LoopEvent[]): Recall {
  return <T extends Type>(...types: readonly T[]) =>
    events.filter((event): event is Extract<LoopEvent, { type: T }> => isOneOf(types, event))
}

function isOneOf(types: readonly Type[], { type }: LoopEvent): boolean {
  return types.includes(type)
}

/** Or why it has none. */
function bytesOf(path: string): Buffer | string {
  try {
    return readNow(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    return notAFile(error)
  }
}

/** From lines that were judged before: found by their bytes, and only those are parsed. */
function recalled<T extends Type>(
  lines: Buffer,
  types: readonly T[],
): readonly Extract<LoopEvent, { type: T }>[] {
  const starts = new Set<number>()
  for (const type of types) {
    // In a text its quotes would be escaped.
    const key = Buffer.from(`"type":"${type}"`)
    for (let at = lines.indexOf(key); at >= 0; at = lines.indexOf(key, at + key.length))
      starts.add(lines.lastIndexOf(lf, at) + 1)
  }
  const inOrder = Uint32Array.from(starts).sort()
  const events = Array.from(
    inOrder,
    (start) => JSON.parse(lines.toString('utf8', start, lines.indexOf(lf, start))) as LoopEvent,
  )
  // Something within an event may have a type, too.
  return recallFrom(events)(...types)
}

function linesIn(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(lf); at >= 0; at = bytes.indexOf(lf, at + 1)) count += 1
  return count
}

const lf = 0x0a
