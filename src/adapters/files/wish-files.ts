// What is asked of a running loop from another process: each wish is a file beside its journal, which the loop looks for.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { RunPaths } from './paths.ts'
import { readNow } from './now.ts'
import { writeDurably, writeNow } from './whole.ts'

type WishPaths = Pick<RunPaths, 'pause' | 'notes' | 'skip' | 'stop'>

/** A person's words for the next prompt. */
export interface Note {
  /** In the order in which they were written. */
  readonly id: string
  readonly text: string
}

const lookMs = 500

export function isPaused(path: string): boolean {
  return existsSync(path)
}

export function setPaused(path: string, isWanted: boolean): void {
  if (isWanted) writeNow(path, '', 0o600)
  else rmSync(path, { force: true })
}

/** Whole and durable before anybody is told that it is there. */
export async function leaveNote(folder: string, { id, text }: Note): Promise<void> {
  await writeDurably(join(folder, `${id}.txt`), text, { rights: { mode: 0o600 } })
}

export function hasNote(folder: string, id: string): boolean {
  return existsSync(join(folder, `${id}.txt`))
}

function notesIn(folder: string): readonly Note[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.endsWith('.txt'))
    .toSorted()
    .map((name) => ({ id: name.slice(0, -'.txt'.length), text: readNow(join(folder, name), 'utf8') }))
}

/** Of the wait that ends at this time, and no other. */
export function askToSkip(path: string, untilMs: number): void {
  writeNow(path, String(untilMs), 0o600)
}

function askedToSkip(path: string): number | undefined {
  if (!existsSync(path)) return undefined
  const untilMs = Number(readNow(path, 'utf8'))
  rmSync(path, { force: true })
  return untilMs
}

type StopSignal = 'SIGINT' | 'SIGTERM'

/** Of a loop whose process is not ralph's: a signal would be for its program. */
export function askToStop(path: string, signal: StopSignal): void {
  writeNow(path, signal, 0o600)
}

function askedToStop(path: string): StopSignal | undefined {
  if (!existsSync(path)) return undefined
  const signal = readNow(path, 'utf8')
  rmSync(path, { force: true })
  return signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM'
}

export interface Wished {
  pause(isWanted: boolean): void
  /** Resolves once the journal has it; false where the loop takes none any more. */
  note(note: Note): Promise<boolean>
  skipWait(untilMs: number): void
  stop(signal: StopSignal): void
}

/** Tells at each look; a loop that waits for nothing else is kept alive by it. Returns what ends it. */
export function watchWishes({ pause, notes, skip, stop }: WishPaths, tell: Wished): () => void {
  const taken = new Set<string>()
  const take = (note: Note): void => {
    taken.add(note.id)
    tell.note(note).then(
      (isTaken) => {
        if (isTaken) rmSync(join(notes, `${note.id}.txt`), { force: true })
      },
      // The journal cannot be written: the loop ends by that, and the note stays for the next.
      () => undefined,
    )
  }
  const look = (): void => {
    tell.pause(isPaused(pause))
    for (const note of notesIn(notes)) if (!taken.has(note.id)) take(note)
    const untilMs = askedToSkip(skip)
    if (untilMs !== undefined) tell.skipWait(untilMs)
    const signal = askedToStop(stop)
    if (signal !== undefined) tell.stop(signal)
  }
  const timer = setInterval(look, lookMs)
  return () => clearInterval(timer)
}
