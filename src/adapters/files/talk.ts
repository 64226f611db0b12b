// What the agents say, kept beside the journal for readers in other processes: not synced, bounded, never in the way of the loop.
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isTalk } from '../../core/cursor.ts'
import type { Cursor, TalkEvent } from '../../core/cursor.ts'
import type { LoopEvent } from '../../core/event.ts'
import { isRecord, readJson } from '../../core/json.ts'
import type { LoopState } from '../../core/state.ts'
import { growingFile, openToRead } from './growing-file.ts'
import { toEvent } from './journal-text.ts'
import { ifThere } from './whole.ts'

/** What is beyond goes, the oldest first, a file at a time: of an iteration, and of all. */
export interface TalkLimits {
  readonly fileBytes: number
  readonly iterationBytes: number
  readonly totalBytes: number
}

const defaults: TalkLimits = {
  fileBytes: 256 * 1024,
  iterationBytes: 4 * 1024 * 1024,
  totalBytes: 32 * 1024 * 1024,
}
/** Long enough to gather a flood, short enough to be called live. */
const gatherMs = 100
const gatherBytes = 32 * 1024

/** The first line of each file: whose talk it is. Talk after a line that never got into the journal must not pass for another loop's. */
interface TalkHead {
  readonly talk: 1
  readonly loop: string
}

type TalkLine = Pick<Cursor, 'record' | 'talk'> &
  /** So many up to here could not be written. */
  ({ readonly event: TalkEvent } | { readonly dropped: number })

export interface TalkLog {
  /** A reader of the stream; it never throws. */
  readonly read: (event: LoopEvent, state: LoopState, cursor: Cursor) => void
  close(): void
}

/**
 * Synchronous, and before the journal writes what was told next: whoever finds a record there finds all talk before it here.
 * That is a write into the system's cache, at most once in `gatherMs` beside those that a record brings.
 */
export function talkLog(folder: string, limits: TalkLimits = defaults): TalkLog {
  let file: { readonly handle: number; readonly n: number; size: number } | undefined
  let waiting: string[] = []
  let waitingBytes = 0
  let from = { loop: '', n: 0 }
  let last: Cursor | undefined
  let lost: { readonly at: Cursor; readonly count: number } | undefined
  let timer: NodeJS.Timeout | undefined

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (last === undefined || waiting.length === 0) return
    const lines = waiting
    waiting = []
    waitingBytes = 0
    try {
      if (file !== undefined && (file.n !== from.n || file.size > limits.fileBytes)) close()
      file ??= { handle: beginFile(folder, from.n, limits), n: from.n, size: 0 }
      const head = file.size === 0 ? lineOf({ talk: 1, loop: from.loop }) : ''
      const marker =
        lost === undefined ? '' : lineOf({ record: lost.at.record, talk: lost.at.talk, dropped: lost.count })
      file.size = writeWhole(file.handle, file.size, head + marker + lines.join(''))
      lost = undefined
    } catch {
      // A full disk, a folder that an agent closed: the talk is lost and counted, the loop goes on.
      lost = { at: last, count: (lost?.count ?? 0) + lines.length }
    }
  }
  const close = (): void => {
    const open = file
    file = undefined
    if (open !== undefined) closeSync(open.handle)
  }
  return {
    read(event, state, cursor) {
      if (!isTalk(event)) return flush()
      const { runId: loop = '' } = state
      if (event.n !== from.n || loop !== from.loop) flush()
      from = { loop, n: event.n }
      last = cursor
      const line = lineOf({ record: cursor.record, talk: cursor.talk, event })
      waiting.push(line)
      waitingBytes += line.length
      if (waitingBytes >= gatherBytes) flush()
      else timer ??= setTimeout(flush, gatherMs).unref()
    },
    close() {
      flush()
      try {
        close()
      } catch {
        // A disk that went away: there is nothing left to do about it.
      }
    },
  }
}

function lineOf(line: TalkHead | TalkLine): string {
  return `${JSON.stringify(line)}\n`
}

/** Half a line would spoil the one after it. */
function writeWhole(handle: number, size: number, text: string): number {
  const bytes = Buffer.from(text)
  try {
    for (let done = 0; done < bytes.length;)
      done += writeSync(handle, bytes, done, bytes.length - done, size + done)
  } catch (error) {
    ftruncateSync(handle, size)
    throw error
  }
  return size + bytes.length
}

export interface TalkFile {
  readonly path: string
  /** Counted through the whole run: a number that is not there was dropped. */
  readonly number: number
  /** Iteration. */
  readonly n: number
}

/** In the order in which they were written. */
export function talkFiles(
  folder: string,
  names: readonly string[] = readdirSync(folder),
): readonly TalkFile[] {
  const files: TalkFile[] = []
  for (const name of names) {
    const parts = /^(\d{6,})-(\d+)\.ndjson$/.exec(name)
    if (parts !== null)
      files.push({ path: join(folder, name), number: Number(parts[1]), n: Number(parts[2]) })
  }
  return files.sort((a, b) => a.number - b.number)
}

function beginFile(folder: string, n: number, limits: TalkLimits): number {
  // Not the folder above it: a work tree that was taken away is not made again.
  if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 })
  const files = talkFiles(folder)
  const own = files.filter((file) => file.n === n)
  for (const { path } of [...beyond(own, limits.iterationBytes), ...beyond(files, limits.totalBytes)])
    rmSync(path, { force: true })
  const number = String((files.at(-1)?.number ?? 0) + 1).padStart(6, '0')
  return openSync(join(folder, `${number}-${n}.ndjson`), 'wx', 0o600)
}

/** The oldest that have to go, so that another file still fits. */
function beyond(files: readonly TalkFile[], limitBytes: number): readonly TalkFile[] {
  const sizes = files.map(({ path }) => sizeOf(path))
  let total = sizes.reduce((sum, size) => sum + size, 0)
  return files.filter((_, index) => {
    if (total <= limitBytes) return false
    total -= sizes[index] ?? 0
    return true
  })
}

/** Asked for once: what has a successor is written to its end. */
function sizeOf(path: string): number {
  const size = sizes.get(path) ?? statSync(path, { throwIfNoEntry: false })?.size ?? 0
  sizes.set(path, size)
  return size
}

const sizes = new Map<string, number>()

/** A line with the loop whose talk it is; `gap` where something was dropped, undefined while there is nothing new. */
export type TalkPiece = (TalkLine & { readonly loop: string }) | 'gap' | undefined

/** From the oldest that is left, without an end; `--fresh` may move the folder meanwhile. */
export async function* talkPieces(folder: () => string): AsyncGenerator<TalkPiece, never> {
  let listed: { readonly folder: string; readonly files: readonly TalkFile[] } = { folder: '', files: [] }
  /** The folder is listed again only when all that it held has been read. */
  const fileAfter = async (number: number): Promise<TalkFile | undefined> => {
    const isNext = (file: TalkFile): boolean => file.number > number
    const now = folder()
    // None where nobody has said anything yet, or it is just being archived.
    if (listed.folder !== now || !listed.files.some(isNext))
      listed = { folder: now, files: talkFiles(now, (await ifThere(readdir(now))) ?? []) }
    return listed.files.find(isNext)
  }
  for (let last = 0; ;) {
    const next = await fileAfter(last)
    if (next === undefined) {
      yield undefined
      continue
    }
    if (next.number > last + 1) yield 'gap'
    last = next.number
    const file = await ifThere(openToRead(next.path))
    if (file === undefined) {
      yield 'gap'
      continue
    }
    try {
      const lines = growingFile(file)
      let loop: string | undefined
      for (let isOver = false; ;) {
        const line = await lines.next()
        if (line !== undefined) {
          const value = readJson(line)
          if (loop === undefined) loop = loopOf(value)
          else yield await pieceOf(value, loop)
        } else if (isOver) break
        // It was written to its end before the next one began: one more look, and that was all.
        else if ((await fileAfter(last)) !== undefined) isOver = true
        else yield undefined
      }
    } finally {
      await file.close()
    }
  }
}

function loopOf(head: unknown): string {
  return isRecord(head) && typeof head['loop'] === 'string' ? head['loop'] : ''
}

async function pieceOf(value: unknown, loop: string): Promise<TalkPiece> {
  if (!isRecord(value)) return 'gap'
  const { record, talk, dropped } = value
  if (!isCount(record) || !isCount(talk)) return 'gap'
  if (isCount(dropped)) return { loop, record, talk, dropped }
  const event = await toEvent(value['event'])
  return event !== undefined && isTalk(event) ? { loop, record, talk, event } : 'gap'
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value)
}
