// The state of a run as of a line of its journal, kept beside it by whoever writes that: a look replays only what came after.
// A cache, never synced: whoever cannot be sure of it reads the whole journal.
import { createHash } from 'node:crypto'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { isRecord, readJson } from '../../core/json.ts'
import type { LoopEvent } from '../../core/event.ts'
import type { LoopState } from '../../core/state.ts'
import { readNow } from './now.ts'

/** What the core is made of: another one would come to another state. */
declare const RALPH_CORE: string | undefined
const core = typeof RALPH_CORE === 'undefined' ? 'source' : RALPH_CORE

/** Some twenty iterations: so much is replayed in a few milliseconds, and written seldom. */
const strideBytes = 65_536

/** Beside its journal. */
export function keptStateFile(journal: string): string {
  return `${journal}.state`
}

export interface StateKeeper {
  /** Lines that are in the journal now. */
  add(lines: Buffer): void
  /** The state after the last of them, where it is worth it. */
  keep(event: LoopEvent, state: LoopState): void
}

/** `base` is what the journal had before. */
export function stateKeeper(journal: string, base: Buffer): StateKeeper {
  const hash = createHash(digest).update(base)
  let { length } = base
  let keptAt = length
  return {
    add(lines) {
      hash.update(lines)
      length += lines.length
    },
    keep({ type }, state) {
      // Between two iterations talk has left no trace in the state: it is what a replay comes to.
      const isDue =
        type === 'complete'
          ? length >= strideBytes
          : type === 'iteration.ended' && length - keptAt >= strideBytes
      const body = isDue ? textOf(state) : undefined
      if (body === undefined) return
      const head = { v: 1, core, offset: length, journal: hash.copy().digest('hex'), state: hashOf(body) }
      write(keptStateFile(journal), `${JSON.stringify(head)}\n${body}`)
      keptAt = length
    },
  }
}

/** Undefined where JSON would not give it back as it is: a time without end is none in JSON. What is long has been JSON already. */
function textOf({ iterations, stories, ...rest }: LoopState): string | undefined {
  let isWhole = true
  const text = JSON.stringify(rest, (_, value: unknown) => {
    if (typeof value === 'number' && !Number.isFinite(value)) isWhole = false
    return value
  })
  return isWhole ? `[${text},${JSON.stringify(stories)},${JSON.stringify(iterations)}]` : undefined
}

/** Never throws: its lines are in the journal already. */
function write(file: string, text: string): void {
  const draft = `${file}.${process.pid}.tmp`
  try {
    writeFileSync(draft, text, { mode: 0o600 })
    renameSync(draft, file)
  } catch {
    // A full disk, or a folder that an agent has closed: the journal tells all of it.
    discard(draft)
  }
}

function discard(draft: string): void {
  try {
    rmSync(draft, { force: true })
  } catch {
    // In a closed folder nothing can be taken away either.
  }
}

export interface KeptState {
  readonly state: LoopState
  /** Where in the journal what came after it begins. */
  readonly offset: number
}

/** What is kept beside the journal, and not yet believed. To be read before the journal, which is written first. */
export function readKeptState(journal: string): Buffer | undefined {
  try {
    return readNow(keptStateFile(journal))
  } catch {
    // None, or none that can be read.
    return undefined
  }
}

/** Only where every byte of it, and of the journal up to there, is as it was written. */
export function keptStateOf(bytes: Buffer, change: string, journal: Buffer): KeptState | undefined {
  const end = bytes.indexOf('\n')
  const head = end < 0 ? undefined : readJson(bytes.toString('utf8', 0, end))
  if (!isRecord(head) || head['v'] !== 1 || head['core'] !== core) return undefined
  const { offset } = head
  if (typeof offset !== 'number' || !(offset <= journal.length)) return undefined
  const body = bytes.subarray(end + 1)
  if (head['state'] !== hashOf(body) || head['journal'] !== hashOf(journal.subarray(0, offset)))
    return undefined
  const [rest, stories, iterations] = JSON.parse(body.toString('utf8')) as [
    Omit<LoopState, 'stories' | 'iterations'>,
    LoopState['stories'],
    LoopState['iterations'],
  ]
  const state = { ...rest, stories, iterations } as LoopState
  return state.changeId === change ? { state, offset } : undefined
}

/** Against damage, not against an attack: whoever can write here can write the journal. */
const digest = 'sha1'

function hashOf(bytes: string | Buffer): string {
  return createHash(digest).update(bytes).digest('hex')
}
