// The queue's own files in the common git directory: a journal with one writer, the lock of its supervisor, and wishes of other processes.
import {
  closeSync,
  fdatasyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { RalphError } from '../../core/error.ts'
import { readJson } from '../../core/json.ts'
import { queueEventSchema } from '../../core/queue-event.ts'
import type { QueueBody, QueueEvent } from '../../core/queue-event.ts'
import { shellWord } from '../../core/shell-word.ts'
import { readNow } from './now.ts'
import { ifThereNow, writeNow } from './whole.ts'

export interface QueuePaths {
  readonly root: string
  readonly journal: string
  readonly lock: string
  readonly wishes: string
  readonly logs: string
}

export function queuePaths(gitCommonDir: string): QueuePaths {
  const root = join(gitCommonDir, 'ralph', 'queue')
  return {
    root,
    journal: join(root, 'journal.ndjson'),
    lock: join(root, 'lock.json'),
    wishes: join(root, 'wishes'),
    logs: join(root, 'logs'),
  }
}

/** Only the last line may be torn, by a crash: it was confirmed to nobody. Any other that cannot be read is damage, and is told. */
export function readQueueJournal({ journal }: QueuePaths): readonly QueueEvent[] {
  const text = ifThereNow(() => readNow(journal, 'utf8')) ?? ''
  const lines = text.split('\n')
  const damaged: number[] = []
  const events = lines.flatMap((line, at) => {
    if (line === '') return []
    const event = queueEventSchema().safeParse(readJson(line))
    if (event.success) return [event.data]
    if (at < lines.length - 1) damaged.push(at + 1)
    return []
  })
  if (damaged.length === 0) return events
  const place = shellWord(journal)
  const cut = damaged.map((line) => `-e ${line}d`).join(' ')
  throw new RalphError(
    'journal_unreadable',
    `Line ${damaged[0]} of the queue's journal ${journal} cannot be read.`,
    {
      hint: [
        'Nothing was touched, and all work is on the branches ralph/<change>.',
        // Too many to be typed: it is no journal any more.
        damaged.length > mostCut
          ? ''
          : `To go on with all that waits or is parked, cut out what cannot be read (a copy stays as .old): sed -i.old ${cut} ${place}`,
        `To begin a new queue, which knows nothing of what waits or is parked, or why, move it away: mv ${place} ${shellWord(`${journal}.old`)}`,
      ]
        .filter((text) => text !== '')
        .join('\n'),
    },
  )
}

const mostCut = 20

/** Call with the lock in hand. On the disk before it resolves. */
export function openQueueJournal({ root, journal }: QueuePaths): {
  append(event: QueueEvent): void
  close(): void
} {
  mkdirSync(root, { recursive: true, mode: 0o700 })
  const file = openSync(journal, 'a+', 0o600)
  const bytes = readNow(journal)
  const end = bytes.lastIndexOf(0x0a) + 1
  if (end < bytes.length) ftruncateSync(file, end)
  return {
    append(event) {
      writeFileSync(file, `${JSON.stringify(event)}\n`)
      fdatasyncSync(file)
    },
    close: () => closeSync(file),
  }
}

/** For the supervisor that is running, from another process. */
export function wish({ wishes }: QueuePaths, body: QueueBody): void {
  mkdirSync(wishes, { recursive: true, mode: 0o700 })
  writeNow(
    join(wishes, `${String(Date.now()).padStart(15, '0')}-${randomUUID()}.json`),
    JSON.stringify(body),
    0o600,
  )
}

/** What others may ask for; what has happened only the queue itself says. */
const wished: ReadonlySet<QueueBody['type']> = new Set([
  'entry.added',
  'entry.parked',
  'entry.removed',
  'entry.first',
  'entry.retried',
  'target.followed',
])

/** In the order in which they were made; each is removed once `take` has written it down. */
export function takeWishes({ wishes }: QueuePaths, take: (body: QueueBody) => void): void {
  const names = ifThereNow(() => readdirSync(wishes)) ?? []
  for (const name of names.filter((each) => each.endsWith('.json')).toSorted()) {
    const file = join(wishes, name)
    const body = readJson(readNow(file, 'utf8'))
    const probe = queueEventSchema().safeParse({ ...(body as object), v: 1, seq: 1, time: '' })
    // Its number and its time are the queue's to give.
    if (probe.success && wished.has(probe.data.type)) {
      const { v: _, seq: __, time: ___, ...asked } = probe.data
      take(asked)
    }
    rmSync(file, { force: true })
  }
}
