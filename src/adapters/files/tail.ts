// Follows a run that another process writes, or has written: what was told, in its order, each record once. It writes nothing.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { advance, beginning, isAfter } from '../../core/cursor.ts'
import type { Cursor } from '../../core/cursor.ts'
import { reduce } from '../../core/loop.ts'
import { initialState, isUnrepaired } from '../../core/state.ts'
import type { LoopState } from '../../core/state.ts'
import type { FollowRequest, Told } from '../../ports.ts'
import type { RunPaths } from './paths.ts'
import { openSource, sourcesOf } from './run-files.ts'
import type { Entry, OpenedRun, Place, Source } from './run-files.ts'

/** `fs.watch` loses appends, and not every file system has it. A look that finds nothing new reads no byte. */
const lookMs = 100

/** `isRunning` is asked before each look: what a loop told before it went away is there by then. */
export async function* follow(
  paths: RunPaths,
  change: string,
  isRunning: () => boolean,
  { from, until, stop }: FollowRequest,
): AsyncGenerator<Told, void> {
  const tail = openTail(paths, change, { ...(from !== undefined && { from }) })
  let said: string | undefined
  try {
    while (!stop.aborted) {
      const runs = isRunning()
      for (;;) {
        const told = await tail.next()
        if (told === undefined) break
        yield told
        if (stop.aborted) return
      }
      const { state, cursor } = tail
      const loop = runs ? 'running' : restOf(state)
      if (loop !== said) yield { type: 'loop', loop, state, cursor }
      said = loop
      if (until === 'now' || (until === 'end' && !runs)) return
      await delay(lookMs, undefined, { signal: stop }).catch(() => undefined)
    }
  } finally {
    await tail.close()
  }
}

function restOf(state: LoopState): 'ended' | 'dead' | 'none' {
  if (state.phase === 'idle') return 'none'
  return state.phase === 'ended' && !isUnrepaired(state) ? 'ended' : 'dead'
}

export interface Tail {
  /** As of the last that was told. */
  readonly state: LoopState
  readonly cursor: Cursor
  /** Why it can go no further; empty where it can. */
  readonly damage: string | undefined
  /** The next that is there by now; undefined where there is nothing new. */
  next(): Promise<Told | undefined>
  close(): Promise<void>
}

export function openTail(
  paths: RunPaths,
  change: string,
  { from, talk = true }: { readonly from?: Cursor; readonly talk?: boolean } = {},
): Tail {
  let state = initialState(change)
  let cursor = beginning
  /** Up to here it was told before: read once more for the state, and not told again. */
  let known = from === undefined || from.record === 0 ? undefined : from
  let hasUntoldGap = false
  let run: OpenedRun | undefined
  const told: Told[] = []

  const tell = (what: Fact): void => void told.push({ ...what, state, cursor })
  const enter = async (next: Source): Promise<void> => {
    await run?.close()
    run = await openSource(next, talk, whereIs)
    state = initialState(change)
    cursor = { ...beginning, run: next.run }
    hasUntoldGap = false
  }
  /** The run that `from` names, wherever it is, or the one that is there now. */
  const begin = async (): Promise<boolean> => {
    const sources = await sourcesOf(paths)
    const meant = known === undefined ? undefined : sources.find((each) => each.run === known?.run)
    const next = meant ?? sources.find((each) => !each.isArchived)
    if (next === undefined) return false
    await enter(next)
    if (known !== undefined && meant === undefined) {
      known = undefined
      tell({ type: 'run_began', isLost: true })
    }
    return true
  }
  /** `--fresh` moves the journal first and its talk then: in between nothing is told, for the talk cannot be found. */
  const whereIs = async (at: OpenedRun): Promise<Place> => {
    const lacksTalk = (folder: string): boolean =>
      !existsSync(join(folder, 'talk')) && existsSync(paths.talk) && !existsSync(paths.journal)
    if (at.isArchived) return lacksTalk(at.folder) ? 'on the way' : 'here'
    if (!(await at.isReplaced())) return 'here'
    const sources = await sourcesOf(paths)
    const own = sources.find((each) => each.isArchived && each.run === cursor.run)
    // Removed or written anew by somebody else.
    if (own === undefined) return 'here'
    if (lacksTalk(own.folder)) return 'on the way'
    at.archivedTo(own.folder)
    return 'moved'
  }
  /** At the end of what is there: somebody may have written it anew, and `--fresh` may have begun another run. */
  const goOn = async (at: OpenedRun): Promise<boolean> => {
    if (!at.isArchived && !(await at.isReplaced())) return false
    const sources = await sourcesOf(paths)
    const current = sources.find((each) => !each.isArchived)
    if (at.isArchived) {
      const next = sources[sources.findIndex(({ folder }) => folder === at.folder) + 1]
      if (next === undefined) return false
      await enter(next)
      tell({ type: 'run_began', isLost: false })
    } else if (current === undefined) {
      // It is just being archived, or its first line is being written.
      return false
    } else if (cursor.record > 0 && current.run !== cursor.run) {
      // First the rest of the old one, then whatever came after it.
      if ((await whereIs(at)) !== 'here') return true
      await enter(current)
      tell({ type: 'run_began', isLost: true })
    } else {
      if (known === undefined || isAfter(cursor, known)) known = cursor
      await enter(current)
    }
    return true
  }
  const hear = (entry: Entry): void => {
    if (entry === 'gap' || 'dropped' in entry) {
      if (known === undefined)
        tell({ type: 'talk_dropped', ...(entry !== 'gap' && { pieces: entry.dropped }) })
      else hasUntoldGap = true
      return
    }
    if ('damage' in entry) return tell({ type: 'journal_damaged', message: entry.damage })
    const next = 'talk' in entry ? { ...cursor, talk: entry.talk } : advance(cursor, entry.event)
    const isNew = known === undefined || isAfter(next, known)
    if (isNew && hasUntoldGap) tell({ type: 'talk_dropped' })
    hasUntoldGap = false
    state = reduce(state, entry.event).state
    cursor = next
    if (!isNew) return
    known = undefined
    tell({ type: 'event', event: entry.event })
  }
  /** All that was told before has been read again, or is not there any more. */
  const catchUp = (at: OpenedRun): void => {
    if (known === undefined || at.damage() !== undefined) return
    const missing = known.record - cursor.record
    known = undefined
    if (missing > 0)
      tell({
        type: 'journal_cut',
        message: `The journal ${at.path} is ${missing} records shorter than it was.`,
      })
  }
  return {
    get state() {
      return state
    },
    get cursor() {
      return cursor
    },
    get damage() {
      return run?.damage()
    },
    async next() {
      while (told.length === 0) {
        if (run === undefined) {
          if (!(await begin())) return undefined
          continue
        }
        const { value: entry } = await run.entries.next()
        if (entry === 'on the way') return undefined
        if (entry !== undefined) hear(entry)
        else {
          catchUp(run)
          if (told.length === 0 && !(await goOn(run))) return undefined
        }
      }
      return told.shift()
    },
    async close() {
      await run?.close()
    },
  }
}

type Fact = Told extends infer T ? (T extends Told ? Omit<T, 'state' | 'cursor'> : never) : never
