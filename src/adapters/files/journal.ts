// The journal: one JSON line per event, durable before the next command runs, readable after any crash.
import { mkdir, open, readFile } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { LoopEvent } from '../../core/event.ts'
import { RalphError } from '../../core/error.ts'
import { isSurelyEvent } from '../../core/shape.ts'
import type { Journal } from '../../ports.ts'

const talk: ReadonlySet<string> = new Set(['agent.message', 'agent.tool'])

/** `spend` makes room on a full disk and says whether it did; see reserve.ts. */
export function fileJournal(
  path: string,
  spend: (error: unknown) => boolean = () => false,
): Journal & { close(): Promise<void> } {
  let handle: FileHandle | undefined
  let waiting: string[] = []
  let flushing: Promise<void> | undefined

  const openForAppend = async (): Promise<FileHandle> => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const file = await open(path, 'a', 0o600)
    try {
      // A crash may have torn the last line; a newline keeps the next record whole.
      if (!(await endsWithNewline(path))) await file.appendFile('\n')
      return file
    } catch (error) {
      await file.close()
      throw error
    }
  }
  const write = async (lines: string): Promise<void> => {
    const file = (handle ??= await openForAppend())
    const { size } = await file.stat()
    try {
      await file.appendFile(lines)
      await file.datasync()
    } catch (error) {
      // Half a line would spoil the one after it. Where even this fails, opening it anew closes the line.
      handle = undefined
      await file.truncate(size).catch(() => undefined)
      await file.close().catch(() => undefined)
      throw error
    }
  }
  // Group commit: what is appended while a sync runs goes out with the next one.
  const flush = async (): Promise<void> => {
    const lines = waiting
    waiting = []
    flushing = undefined
    try {
      await write(lines.join('')).catch((error: unknown) => {
        if (!spend(error)) throw error
        return write(lines.join(''))
      })
    } catch (error) {
      // Tried again with the next one: a journal may end too early, but has no gap.
      waiting.unshift(...lines)
      throw error
    }
  }

  let last = Promise.resolve()
  return {
    append(event) {
      if (talk.has(event.type)) return Promise.resolve()
      waiting.push(`${JSON.stringify(event)}\n`)
      if (flushing === undefined) {
        flushing = last.then(flush)
        last = flushing.catch(() => undefined)
      }
      return flushing
    },
    read: () => readJournal(path),
    async close() {
      await last
      await handle?.close()
    },
  }
}

async function endsWithNewline(path: string): Promise<boolean> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    if (size === 0) return true
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
    return buffer[0] === 0x0a
  } finally {
    await file.close()
  }
}

/** A torn line can only be one that a crash cut off: the last, or one that a later start closed with a newline. */
export async function readJournal(path: string): Promise<readonly LoopEvent[]> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  const events: LoopEvent[] = []
  const lines = text.split('\n')
  for (const [index, line] of lines.entries()) {
    if (line === '') continue
    const value = toJson(line)
    if (value === undefined) continue
    const event = isSurelyEvent(value) ? value : await judged(value)
    if (event === undefined) throw unreadable(path, index + 1)
    events.push(event)
  }
  return events
}

/** The schemas are loaded only for what the quick look did not know. */
async function judged(value: unknown): Promise<LoopEvent | undefined> {
  const { bodySchema, envelopeSchema } = await import('../../core/event.ts')
  const body = bodySchema.safeParse(value)
  const envelope = envelopeSchema.safeParse(value)
  return body.success && envelope.success ? { ...body.data, ...envelope.data } : undefined
}

function toJson(line: string): unknown {
  try {
    return JSON.parse(line) as unknown
  } catch {
    return undefined
  }
}

function unreadable(path: string, line: number): RalphError {
  return new RalphError(
    'journal_unreadable',
    `Line ${line} of the journal ${path} is not an event of this version.`,
    {
      hint: 'Nothing was touched. It may have been written by a newer ralph: update, or start over with --fresh (the journal is archived, not deleted).',
      exitCode: 1,
    },
  )
}
