// What the journal remembers of the repository: where the user stood, the last checkpoint, and a step that never ended.
import * as z from 'zod'
import type { EventBody } from '../../core/event.ts'

export const originSchema = z.object({
  kind: z.enum(['branch', 'detached', 'unborn']),
  /** `refs/heads/main`; empty when detached. */
  ref: z.string(),
  /** Where the user stood; empty when unborn. */
  commit: z.string(),
})
/** Where the loop began, and where *cleanup* goes back to. */
export type Origin = z.infer<typeof originSchema>

/** What a cleanup brought from the loop's own work tree into the user's checkout; see carry.ts. */
export const carriedSchema = z.object({
  /** Its tree is what the checkout had then; its parents: the checkout's commit, the loop's tip. */
  commit: z.string(),
  origin: originSchema,
})

export interface Pending {
  readonly op: string
  readonly data: Readonly<Record<string, unknown>>
  readonly steps: readonly string[]
}

export interface Memory {
  readonly origin?: Origin
  /** The "initial state": tells the user's own changes from the loop's. */
  readonly initial?: string
  readonly checkpoint?: string
  readonly pending?: Pending
  /** An agent ran after the last checkpoint, and what it left has not been settled. */
  readonly openAttempt?: number
  /** Commits that others than the agent made on the loop's branch during that attempt: a revert names them. */
  readonly beside: readonly { readonly n: number; readonly hash: string }[]
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
  readonly carried?: z.infer<typeof carriedSchema>
  /** Stories whose retries are used up in this run. */
  readonly usedUp: readonly string[]
}

export const blank: Memory = { usedUp: [], beside: [] }

export function remember(memory: Memory, event: EventBody): Memory {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- of all facts, these few concern git
  switch (event.type) {
    case 'git.began':
      return { ...memory, pending: { op: event.op, data: event.data, steps: [] } }
    case 'git.step': {
      const { pending } = memory
      return pending === undefined
        ? memory
        : { ...memory, pending: { ...pending, steps: [...pending.steps, event.step] } }
    }
    case 'git.ended':
      return memory.pending === undefined ? memory : settled(memory, memory.pending)
    case 'iteration.started':
      return { ...memory, openAttempt: event.n }
    case 'loop.started':
      return { ...memory, usedUp: [] }
    case 'max_retries_exceeded':
      return { ...memory, usedUp: [...memory.usedUp, event.story_id] }
    default:
      return memory
  }
}

/** `key value` steps; the last of its key counts. */
export function stepOf(pending: Pending, key: string): string | undefined {
  return pending.steps.findLast((step) => step.startsWith(`${key} `))?.slice(key.length + 1)
}

function settled(memory: Memory, pending: Pending): Memory {
  const { pending: _pending, ...rest } = memory
  if (pending.steps.includes('undone')) return rest
  const {
    openAttempt: _openAttempt,
    keptHead: _keptHead,
    isKept: _isKept,
    keptMs: _keptMs,
    saved: _saved,
    cleaned: _cleaned,
    ...clean
  } = { ...rest, beside: [] }
  const checkpoint = stepOf(pending, 'checkpoint')
  switch (pending.op) {
    case 'start':
      return {
        ...clean,
        origin: originSchema.parse(pending.data['origin']),
        ...(checkpoint && { initial: checkpoint, checkpoint }),
      }
    case 'save': {
      if (checkpoint === undefined) return clean
      const saved = {
        message: String(pending.data['message']),
        commit: checkpoint,
        before: rest.checkpoint ?? '',
      }
      return { ...clean, checkpoint, saved }
    }
    case 'restore':
    case 'adopt':
      return { ...clean, ...(checkpoint && { checkpoint }) }
    case 'finish': {
      const carried = carriedSchema.optional().parse(pending.data['carried'])
      const cleaned = String(pending.data['time'])
      return { ...blank, usedUp: rest.usedUp, cleaned, ...(carried && { carried }) }
    }
    case 'keep': {
      const head = stepOf(pending, 'head')
      const beside = pending.steps.flatMap((step) => {
        const [key, n, hash = ''] = step.split(' ')
        return key === 'beside' ? [{ n: Number(n), hash }] : []
      })
      return {
        ...rest,
        attempt: Number(pending.data['n']),
        isKept: true,
        keptMs: Number(pending.data['now_ms'] ?? 0),
        beside: [...rest.beside, ...beside],
        ...(head && { keptHead: head }),
      }
    }
    default:
      return rest
  }
}
