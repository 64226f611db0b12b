// A journal as it is read: its lines as events, up to the first that is damaged.
import { RalphError } from '../../core/error.ts'
import { readJson } from '../../core/json.ts'
import type { LoopEvent } from '../../core/event.ts'
import { isSurelyEvent } from '../../core/shape.ts'
import { readNow } from './now.ts'

export interface JournalText {
  readonly events: readonly LoopEvent[]
  /** Which line is the first that cannot be read, and why; the events are those before it. Empty where all could. */
  readonly damage: string | undefined
}

export async function readJournal(path: string): Promise<JournalText> {
  try {
    return await parseJournal(path, readNow(path).toString('utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { events: [], damage: undefined }
    return { events: [], damage: notAFile(error) }
  }
}

/** A folder or a pipe in its place has no line that can be read; any other trouble throws. */
export function notAFile(error: unknown): string {
  if (error instanceof RalphError && error.code === 'disk') return error.message
  throw error
}

/** Only the last line may be torn, and only if it has no end: a crash cut it off. */
export async function parseJournal(
  path: string,
  text: string,
  linesBefore = (): number => 0,
): Promise<JournalText> {
  const events: LoopEvent[] = []
  const lines = text.split('\n')
  for (const [index, line] of lines.entries()) {
    if (line === '') continue
    const value = readJson(line)
    const event = isSurelyEvent(value) ? value : await judged(value)
    if (event !== undefined) events.push(event)
    else if (index < lines.length - 1)
      return { events, damage: damageOf(path, linesBefore() + index + 1, line) }
  }
  return { events, damage: undefined }
}

export function damageOf(path: string, line: number, text: string): string {
  const what =
    readJson(text) === undefined
      ? 'is damaged (it is not JSON)'
      : 'is not an event that this version of ralph knows'
  return `Line ${line} of the journal ${path} ${what}.`
}

/** The schemas are loaded only for what the quick look did not know. */
export async function toEvent(value: unknown): Promise<LoopEvent | undefined> {
  return isSurelyEvent(value) ? value : judged(value)
}

async function judged(value: unknown): Promise<LoopEvent | undefined> {
  const { bodySchema, envelopeSchema } = await import('../../core/event.ts')
  const body = bodySchema.safeParse(value)
  const envelope = envelopeSchema.safeParse(value)
  return body.success && envelope.success ? { ...body.data, ...envelope.data } : undefined
}
