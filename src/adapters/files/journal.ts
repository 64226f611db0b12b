// The journal: one JSON line per event, written before the next command runs, on the disk before anything that a power cut must not forget.
import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  ftruncateSync,
  openSync,
  writeFileSync,
  type BigIntStats,
} from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { isTalk } from '../../core/cursor.ts'
import { readJson } from '../../core/json.ts'
import type { LoopEvent } from '../../core/event.ts'
import type { LoopState } from '../../core/state.ts'
import type { Journal } from '../../ports.ts'
import { stateKeeper } from './kept-state.ts'
import { link, mkdir, readFile, rename, stat, writeFile } from './now.ts'
import { ifThere } from './whole.ts'

export interface JournalOptions {
  /** Makes room on a full disk and says whether it did; see reserve.ts. */
  readonly spend?: (error: unknown) => boolean
  /** Told once for each time that somebody else has changed the file under the writer. */
  readonly onChanged?: (message: string) => void
}

/**
 * From its first append on the writer goes by what it has read and written itself, not by the file: an agent can write to that.
 * A file that is not as it was left is kept beside, and written anew.
 */
export function fileJournal(
  path: string,
  { spend = () => false, onChanged = () => undefined }: JournalOptions = {},
): Journal & { close(): Promise<void> } {
  let own: OwnFile | undefined
  let waiting: Entry[] = []
  let flushing: Promise<void> | undefined

  const write = async (entries: readonly Entry[]): Promise<void> => {
    own ??= await openOwn(path)
    await look(own)
    await own.append(entries)
  }
  const look = async (file: OwnFile): Promise<void> => {
    const what = await file.mend()
    if (what !== '')
      onChanged(`another program has changed the journal ${path} while ralph wrote it; ${what}`)
  }
  // Group commit: what is appended while a sync runs goes out with the next one.
  const flush = async (): Promise<void> => {
    const entries = waiting
    waiting = []
    flushing = undefined
    try {
      await write(entries).catch((error: unknown) => {
        if (!spend(error)) throw error
        return write(entries)
      })
    } catch (error) {
      // Tried again with the next one: a journal may end too early, but has no gap.
      waiting.unshift(...entries)
      throw error
    }
  }

  let last = Promise.resolve()
  return {
    append(event, after) {
      if (isTalk(event)) return Promise.resolve()
      waiting.push({ event, after })
      if (flushing === undefined) {
        flushing = last.then(flush)
        last = flushing.catch(() => undefined)
      }
      return flushing
    },
    async close() {
      await last
      if (own === undefined) return
      try {
        await look(own)
      } catch (error) {
        onChanged(`the journal ${path} cannot be maintained any more: ${(error as Error).message}`)
      }
      own.close()
    },
  }
}

interface Entry {
  readonly event: LoopEvent
  readonly after: LoopState | undefined
}

/** The file as this process has read and written it. */
interface OwnFile {
  append(entries: readonly Entry[]): Promise<void>
  /** Says what became of a file that is not as it was left; empty where it is. */
  mend(): Promise<string>
  close(): void
}

async function openOwn(path: string): Promise<OwnFile> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  let file: number | undefined = openSync(path, appending, 0o600)
  const base = await closedTail(path, file)
  const kept = keptBytes(base)
  const states = stateKeeper(path, base)
  let mark = markOf(fstatSync(file, { bigint: true }))
  const opened = (): number => (file ??= openSync(path, appending, 0o600))
  const close = (): void => {
    if (file !== undefined) closeSync(file)
    file = undefined
  }
  /** Not where somebody wrote to it since the last look: the next one tells. */
  const remark = (handle: number): void => {
    const now = fstatSync(handle, { bigint: true })
    if (now.size === BigInt(kept.length)) mark = markOf(now)
  }
  return {
    async append(entries) {
      const handle = opened()
      const { size } = fstatSync(handle)
      const each = entries.map((entry) => ({
        ...entry,
        line: Buffer.from(`${JSON.stringify(entry.event)}\n`),
      }))
      const lines = Buffer.concat(each.map(({ line }) => line))
      try {
        writeFileSync(handle, lines)
        if (!entries.every(({ event }) => mayWait(event))) await datasync(handle)
      } catch (error) {
        // Half a line would spoil the one after it.
        file = undefined
        try {
          ftruncateSync(handle, size)
          remark(handle)
          closeSync(handle)
        } catch {
          // What broke the append is told.
        }
        throw error
      }
      kept.add(lines)
      remark(handle)
      for (const { line, event, after } of each) {
        states.add(line)
        if (after !== undefined) states.keep(event, after)
      }
    },
    async mend() {
      let now: BigIntStats | undefined
      try {
        now = await ifThere(stat(path, { bigint: true }))
      } catch (error) {
        // An agent that closed the folders: the handle is still open, and the next look tells.
        if ((error as NodeJS.ErrnoException).code === 'EACCES') return ''
        throw error
      }
      // Without its folder all of ralph's data was removed: a journal alone would only pretend that a run is there.
      if (now === undefined && (await ifThere(stat(dirname(path)))) === undefined) return ''
      if (now !== undefined && markOf(now) === mark) return ''
      const whole = kept.whole()
      if (now?.isFile() === true && whole.equals(await readFile(path))) {
        // Touched, or copied by a backup.
        close()
        mark = markOf(now)
        return ''
      }
      const draft = `${path}.${process.pid}.tmp`
      await writeFile(draft, whole, { mode: 0o600, flush: true })
      const aside = now === undefined ? '' : await keptBeside(path)
      await rename(draft, path)
      close()
      mark = markOf(fstatSync(opened(), { bigint: true }))
      return `it is written again${aside === '' ? '' : `, and what was found there is kept as ${aside}`}`
    },
    close,
  }
}

/** In large pieces: each line apart would hold a slab of Node's of 8 KB, 70 KB for each iteration of a long run. */
function keptBytes(base: Buffer): { readonly length: number; add(bytes: Buffer): void; whole(): Buffer } {
  const full = [base]
  let { length } = base
  let piece = Buffer.alloc(0)
  let used = 0
  return {
    get length() {
      return length
    },
    add(bytes) {
      if (bytes.length > piece.length - used) {
        full.push(piece.subarray(0, used))
        piece = Buffer.allocUnsafeSlow(Math.max(pieceBytes, bytes.length))
        used = 0
      }
      used += bytes.copy(piece, used)
      length += bytes.length
    },
    whole: () => Buffer.concat([...full, piece.subarray(0, used)]),
  }
}

const pieceBytes = 65_536

/** Whether it is enough that the next sync takes it along: after a power cut, what is done without it is done again, or is told by git. */
function mayWait(event: LoopEvent): boolean {
  return event.type === 'git.began' ? hasStep.has(event.op) : taggingAlong.has(event.type)
}

const taggingAlong: ReadonlySet<string> = new Set([
  'plan.read',
  'story.started',
  'checkpoint.verified',
  'agent.started',
  'agent.session',
  'claim.made',
  'claim.judged',
  'claim.stirred',
  'failure.reported',
  'progress.reported',
  'agent.ended',
  'attempt.kept',
  'gate.started',
  'gate.ended',
  'baseline.started',
  'baseline.ended',
  'boxes.settled',
  'git.ended',
  'checkpoint.saved',
  'checkpoint.reverted',
  'warning',
])

/** Nothing is changed before their first step is recorded. */
const hasStep: ReadonlySet<string> = new Set(['adopt', 'save'])

const datasync = promisify(fdatasync)

/** Not a wait for ever where a pipe is in its place. */
const appending = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK

function markOf({ ino, size, mtimeNs }: BigIntStats): string {
  return [ino, size, mtimeNs].join(' ')
}

/** Linked, not moved: there is a journal at any time. */
async function keptBeside(path: string): Promise<string> {
  for (let n = 1; ; n += 1) {
    const aside = `${path}.changed-${n}`
    try {
      await link(path, aside)
      return aside
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/** A crash may have torn the last line: it was never confirmed to anybody, and would be taken for damage once another follows. */
async function closedTail(path: string, file: number): Promise<Buffer> {
  const { size } = fstatSync(file)
  const bytes = size === 0 ? Buffer.alloc(0) : await readFile(path)
  const end = bytes.lastIndexOf(0x0a) + 1
  if (end === bytes.length) return bytes
  if (readJson(bytes.subarray(end).toString('utf8')) === undefined) {
    ftruncateSync(file, end)
    return bytes.subarray(0, end)
  }
  writeFileSync(file, '\n')
  return Buffer.concat([bytes, Buffer.from('\n')])
}
