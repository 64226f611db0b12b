// A run as it lies on the disk, in its own place or in the archive: its journal and what was said, in one order. Read only.
import { readdir, stat } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { LoopEvent } from '../../core/event.ts'
import { readJson } from '../../core/json.ts'
import { isSurelyEvent } from '../../core/shape.ts'
import { growingFile, openToRead } from './growing-file.ts'
import type { GrowingFile } from './growing-file.ts'
import { damageOf, toEvent } from './journal-text.ts'
import type { RunPaths } from './paths.ts'
import { talkPieces } from './talk.ts'
import type { TalkPiece } from './talk.ts'
import { ifThere } from './whole.ts'

/** A journal on the disk: of the run that is there, or of one in the archive. */
export interface Source {
  readonly folder: string
  readonly isArchived: boolean
  /** As cursors name it; empty where its first line cannot be read. */
  readonly run: string
  readonly time: number
}

/** In the order in which they began. */
export async function sourcesOf(paths: RunPaths): Promise<readonly Source[]> {
  const names = (await ifThere(readdir(paths.archive))) ?? []
  const archived = await Promise.all(names.map((name) => sourceIn(join(paths.archive, name), true)))
  const current = await sourceIn(paths.root, false)
  return [
    ...archived
      .filter((each) => each !== undefined)
      .toSorted((a, b) => a.time - b.time || a.folder.localeCompare(b.folder)),
    ...(current === undefined ? [] : [current]),
  ]
}

async function sourceIn(folder: string, isArchived: boolean): Promise<Source | undefined> {
  const file = await ifThere(openToRead(join(folder, journalName)))
  if (file === undefined) return undefined
  try {
    const line = await journalLines(file).next()
    if (line === undefined) return undefined
    const event = await toEvent(readJson(line))
    const run = event?.type === 'loop.started' ? event.run_id : ''
    return { folder, isArchived, run, time: event === undefined ? 0 : Date.parse(event.time) }
  } finally {
    await file.close()
  }
}

const journalName = 'journal.ndjson'

/** An object that has its last brace is whole, with or without its line feed. */
function journalLines(file: FileHandle): GrowingFile {
  return growingFile(file, (rest) => isSurelyEvent(readJson(rest)))
}

export interface OpenedRun {
  readonly path: string
  readonly folder: string
  readonly isArchived: boolean
  /** Whether there is another file in its place, or less of it than has been read. */
  isReplaced(): Promise<boolean>
  /** Of its journal; empty where there is none. */
  damage(): string | undefined
  readonly entries: AsyncGenerator<Entry | 'on the way' | undefined, never>
  /** The journal stays open; the talk is somewhere else. */
  archivedTo(folder: string): void
  close(): Promise<void>
}

export type Place = 'here' | 'moved' | 'on the way'

export async function openSource(
  source: Source,
  withTalk: boolean,
  whereIs: (at: OpenedRun) => Promise<Place>,
): Promise<OpenedRun> {
  const path = join(source.folder, journalName)
  const file = await openToRead(path)
  const { ino: inode } = await file.stat({ bigint: true })
  const lines = journalLines(file)
  let { folder, isArchived } = source
  let damage: string | undefined
  const talk = withTalk ? talkPieces(() => join(folder, 'talk')) : silence()
  const onDamage = (line: string): string => (damage = damageOf(path, lines.lineNumber, line))
  const opened: OpenedRun = {
    path,
    get folder() {
      return folder
    },
    get isArchived() {
      return isArchived
    },
    async isReplaced() {
      const now = await ifThere(stat(path, { bigint: true }))
      return now === undefined || now.ino !== inode || now.size < lines.offset
    },
    damage: () => damage,
    entries: entriesOf(lines, talk, () => whereIs(opened), onDamage),
    archivedTo(to) {
      folder = to
      isArchived = true
    },
    async close() {
      await opened.entries.return(undefined as never)
      await talk.return(undefined as never)
      await file.close()
    },
  }
  return opened
}

async function* silence(): AsyncGenerator<TalkPiece, never> {
  for (;;) yield undefined
}

/** A record of the journal, what was said since it, or what cannot be told. */
export type Entry =
  | { readonly event: LoopEvent }
  | { readonly event: LoopEvent; readonly talk: number }
  | { readonly dropped: number }
  | 'gap'
  | { readonly damage: string }

/** Journal and talk in the one order in which they were told; undefined while there is nothing new. */
async function* entriesOf(
  journal: GrowingFile,
  talk: AsyncGenerator<TalkPiece, never>,
  whereIs: () => Promise<Place>,
  onDamage: (line: string) => string,
): AsyncGenerator<Entry | 'on the way' | undefined, never> {
  let line: string | undefined
  let record = 0
  let loop = ''
  let piece: TalkPiece
  let isGap = false
  /** Looks at the journal after which all talk before its lines has been read, from the right place. */
  let allTalkAt = 0
  let rightAt = 0
  for (;;) {
    if (line === undefined) {
      if (journal.isSpent && (await whereIs()) === 'on the way') {
        yield 'on the way'
        continue
      }
      line = await journal.next()
    }
    // What was said since the last record is in its file before the next record is in the journal.
    for (;;) {
      if (piece === undefined && allTalkAt < journal.looks) {
        piece = (await talk.next()).value
        if (piece === undefined) allTalkAt = journal.looks
      }
      if (piece === undefined || (piece !== 'gap' && piece.record > record)) break
      // Said after a record that never got into the journal: a loop that came later has its number.
      const isStale = piece !== 'gap' && 'event' in piece && (piece.record < record || piece.loop !== loop)
      const wasGap = isGap
      isGap = isStale || piece === 'gap'
      if (!isGap) yield piece
      else if (!wasGap) yield 'gap'
      piece = undefined
    }
    if (line === undefined) {
      yield undefined
      continue
    }
    if (rightAt < journal.looks) {
      const place = await whereIs()
      if (place === 'here') rightAt = journal.looks
      else {
        allTalkAt = 0
        if (place === 'on the way') yield place
        continue
      }
    }
    const text: string = line
    line = undefined
    if (text === '') continue
    const event = await toEvent(readJson(text))
    if (event === undefined) {
      yield { damage: onDamage(text) }
      for (;;) yield undefined
    }
    record += 1
    if (event.type === 'loop.started') loop = event.run_id
    yield { event }
  }
}
