// What the journal remembers of the repository: where the user stood, the last checkpoint, and a git operation that never ended.
import type { EventBody } from './event.ts'
import { operationOf } from './git-facts.ts'
import type { Carried, Head, Operation } from './git-facts.ts'

/** A commit that others than the agent made on the loop's branch during an attempt: a revert names it. */
interface BesideCommit {
  readonly n: number
  readonly hash: string
}

export interface Pending {
  readonly operation: Operation
  readonly checkpoint?: string
  readonly head?: string
  readonly beside: readonly BesideCommit[]
  readonly isUndone: boolean
}

export interface GitMemory {
  /** Where the loop began, and where *cleanup* goes back to. */
  readonly origin?: Head
  /** The "initial state": tells the user's own changes from the loop's. */
  readonly initial?: string
  /** What a revert goes back to. */
  readonly checkpoint?: string
  /** The one that was told last: it outlasts a cleanup, and with stashes it is the one that was taken since. */
  readonly lastCheckpoint?: string
  readonly pending?: Pending
  /** An agent ran after the last checkpoint, and what it left has not been settled. */
  readonly openAttempt?: number
  readonly beside: readonly BesideCommit[]
  /** Where that agent left HEAD, if that descends from the checkpoint. */
  readonly keptHead?: string
  /** The last attempt that was kept. */
  readonly attempt?: number
  /** It waits for its save or revert. */
  readonly isKept?: boolean
  /** When that began: what is newer may be in no ref. */
  readonly keptMs?: number
  /** The last save, and the checkpoint before it: a save that is asked for again after a crash is this one. */
  readonly saved?: { readonly message: string; readonly commit: string; readonly before: string }
  /** The name of the archive, after a cleanup. */
  readonly cleaned?: string
  /** Of the last cleanup of this run, if the loop had a work tree of its own. */
  readonly carried?: Carried
  /** The checkpoints since the initial one; `n`: the attempt that one holds the work of. */
  readonly later: readonly { readonly n?: number; readonly commit: string }[]
  /** Stories whose retries are used up in this run. */
  readonly usedUp: readonly string[]
  /** Moves of the loop's branch between two attempts, by somebody else. */
  readonly adopted: readonly { readonly from: string; readonly to: string }[]
}

export const blankMemory: GitMemory = { usedUp: [], beside: [], adopted: [], later: [] }

export function remember(memory: GitMemory, event: EventBody): GitMemory {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- of all facts, these few concern git
  switch (event.type) {
    case 'git.began':
      return { ...memory, pending: { operation: operationOf(event), beside: [], isUndone: false } }
    case 'git.step':
      return memory.pending === undefined ? memory : { ...memory, pending: stepped(memory.pending, event) }
    case 'git.ended':
      return memory.pending === undefined ? memory : settled(memory, memory.pending)
    case 'checkpoint.saved':
    case 'checkpoint.verified':
    case 'checkpoint.reverted':
      return memory.lastCheckpoint === event.commit ? memory : { ...memory, lastCheckpoint: event.commit }
    case 'iteration.started':
      return { ...memory, openAttempt: event.n }
    case 'loop.started':
      return event.resumed ? { ...memory, usedUp: [] } : blankMemory
    case 'max_retries_exceeded':
      return { ...memory, usedUp: [...memory.usedUp, event.story_id] }
    default:
      return memory
  }
}

function settled(memory: GitMemory, { operation, ...done }: Pending): GitMemory {
  const { pending: _pending, ...rest } = memory
  if (done.isUndone) return rest
  const {
    openAttempt: _openAttempt,
    keptHead: _keptHead,
    isKept: _isKept,
    keptMs: _keptMs,
    saved: _saved,
    cleaned: _cleaned,
    ...clean
  } = { ...rest, beside: [] }
  const { checkpoint } = done
  const later = checkpoint === undefined ? rest.later : [...rest.later, { commit: checkpoint }]
  switch (operation.op) {
    case 'start':
      return {
        ...clean,
        origin: operation.origin,
        ...(checkpoint !== undefined && { initial: checkpoint, checkpoint }),
      }
    case 'save': {
      if (checkpoint === undefined) return clean
      const saved = { message: operation.message, commit: checkpoint, before: rest.checkpoint ?? checkpoint }
      const holds = rest.attempt === undefined ? {} : { n: rest.attempt }
      return { ...clean, checkpoint, saved, later: [...rest.later, { ...holds, commit: checkpoint }] }
    }
    case 'restore':
      return { ...clean, later, ...(checkpoint !== undefined && { checkpoint }) }
    case 'adopt': {
      const { from, to } = operation
      const adopted = from === to || to === undefined ? clean.adopted : [...clean.adopted, { from, to }]
      return { ...clean, adopted, later, ...(checkpoint !== undefined && { checkpoint }) }
    }
    case 'finish': {
      const { usedUp, lastCheckpoint } = rest
      return {
        ...blankMemory,
        usedUp,
        ...(lastCheckpoint !== undefined && { lastCheckpoint }),
        cleaned: operation.time,
        ...('carried' in operation && { carried: operation.carried }),
      }
    }
    case 'keep':
      return {
        ...rest,
        attempt: operation.n,
        isKept: true,
        keptMs: operation.now_ms ?? 0,
        beside: [...rest.beside, ...done.beside],
        ...(done.head !== undefined && { keptHead: done.head }),
      }
    case 'rename':
      return { ...clean, initial: operation.initial, checkpoint: operation.checkpoint }
    case 'take':
      return { ...rest, later }
    case 'unknown':
      return rest
  }
}

function stepped(pending: Pending, { step }: { readonly step: string }): Pending {
  const [did, first = '', hash = ''] = step.split(' ')
  if (did === 'checkpoint') return { ...pending, checkpoint: first }
  if (did === 'head') return { ...pending, head: first }
  if (did === 'beside') return { ...pending, beside: [...pending.beside, { n: Number(first), hash }] }
  return did === 'undone' ? { ...pending, isUndone: true } : pending
}
