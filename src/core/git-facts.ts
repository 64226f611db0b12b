// What git writes ahead: its operations and their steps, and how the journal spells them.
import type { EventBody } from './event.ts'

/** So spelled, for then nobody can compare it with an empty text. */
export type RefName = `refs/${string}`

/** Where HEAD is: on a branch (`refs/heads/main`), which may have no commit yet, or on a commit alone. */
export type Head =
  | { readonly ref: RefName; readonly commit?: string | undefined }
  | { readonly ref?: undefined; readonly commit: string }

/** What a cleanup brought from the loop's own work tree into the user's checkout; see carry.ts. */
export interface Carried {
  /** Its tree is what the checkout had then; its parents: the checkout's commit, the loop's tip. */
  readonly commit: string
  /** Where the loop began. */
  readonly origin: Head
}

/** How a cleanup brings the work of `ralph/<change>` back: all that is needed to carry it out, or to go on with it after a crash. */
export interface CleanupPlan {
  readonly tip: string
  readonly time: string
  /** To carry files between; absent when they are in place already. */
  readonly trees?: { readonly from: string; readonly to: string }
  /** Where HEAD goes; absent when it stays. */
  readonly head?: Head
  /** What becomes of the index: the prepared file, none at all, or as it is. */
  readonly index: 'prepared' | 'none' | 'as_is'
  /** With a work tree of its own: what the user's checkout has of the work from here on. */
  readonly carried?: Carried
  readonly squash?: SquashPlan
}

/** One commit of the loop's work, made where the cleanup brings it. */
export interface SquashPlan {
  readonly message: string
  /** What it holds. */
  readonly tree: string
  /** Its parent; absent when it is the first. */
  readonly onto?: string | undefined
  /** Files of the plan, not committed when the loop began: it has ticked them, so they are in the commit. */
  readonly plan?: readonly string[]
}

/** The checkpoint that a run begins with, or begins again with after a cleanup. */
export const startMessage = 'initial state'

/** A multi-step change of the repository, with what is needed to complete or to undo it. */
export type Operation =
  /** `previous`: the tip of an earlier run's branch. With stashes there is no `time` either. */
  | {
      readonly op: 'start'
      readonly origin: Head
      readonly previous?: string | undefined
      readonly time?: string
    }
  | { readonly op: 'take'; readonly story: string }
  | { readonly op: 'adopt'; readonly story: string; readonly from: string; readonly to?: string | undefined }
  | { readonly op: 'save'; readonly story: string; readonly message: string }
  | { readonly op: 'keep'; readonly n: number; readonly commit: string; readonly now_ms?: number }
  | { readonly op: 'restore'; readonly commit: string }
  /** With stashes the work is in place already. */
  | { readonly op: 'finish'; readonly tip: string; readonly time: string }
  | ({ readonly op: 'finish' } & CleanupPlan)
  /** The branch from one tip to another with the same trees. */
  | {
      readonly op: 'rename'
      readonly from: string
      readonly to: string
      /** As they are called on the new one. */
      readonly initial: string
      readonly checkpoint: string
      readonly time: string
    }
  /** Of another version of ralph. */
  | { readonly op: 'unknown'; readonly name: string }

export type Step =
  /** From here on it can only be completed: the commit holds everything. */
  | { readonly did: 'checkpoint'; readonly commit: string }
  /** Where the agent left HEAD, and that it descends from the checkpoint. */
  | { readonly did: 'head'; readonly commit: string }
  | { readonly did: 'beside'; readonly n: number; readonly hash: string }
  /** The repository is as it was before. */
  | { readonly did: 'undone' }

export function beganEvent({ op, ...data }: Operation): EventBody {
  return { type: 'git.began', op, data }
}

export function stepEvent(op: Operation['op'], step: Step): EventBody {
  return { type: 'git.step', op, step: textOf(step) }
}

function textOf(step: Step): string {
  switch (step.did) {
    case 'checkpoint':
    case 'head':
      return `${step.did} ${step.commit}`
    case 'beside':
      return `beside ${step.n} ${step.hash}`
    case 'undone':
      return 'undone'
  }
}

type Fields = Readonly<Record<string, unknown>>

export function operationOf({ op, data }: { readonly op: string; readonly data: Fields }): Operation {
  const operation: unknown = { ...asWrittenNow(op, data), op }
  return isOperation(operation) ? operation : { op: 'unknown', name: op }
}

/** Earlier versions wrote an empty text where there was none, and the trees of a cleanup one by one. */
function asWrittenNow(op: string, { from, to, ...data }: Fields): Fields {
  if (op !== 'finish') return withoutEmpty({ ...data, from, to })
  return withoutEmpty(from === undefined || from === '' ? data : { trees: { from, to }, ...data })
}

const mayBeNone = new Set(['ref', 'commit', 'onto', 'previous', 'from', 'to'])

function withoutEmpty(data: Fields): Fields {
  const inner = (value: unknown): unknown =>
    isFields(value) && !Array.isArray(value) ? withoutEmpty(value) : value
  const there = Object.entries(data).filter(
    ([name, value]) => value !== undefined && !(value === '' && mayBeNone.has(name)),
  )
  return Object.fromEntries(there.map(([name, value]) => [name, inner(value)]))
}

function isOperation(value: unknown): value is Operation {
  if (!isFields(value)) return false
  switch (value['op'] as Operation['op']) {
    case 'start':
      return isHead(value['origin'])
    case 'take':
      return hasTexts(value, 'story')
    case 'adopt':
      return hasTexts(value, 'story', 'from')
    case 'save':
      return hasTexts(value, 'story', 'message')
    case 'keep':
      return typeof value['n'] === 'number'
    case 'restore':
      return hasTexts(value, 'commit')
    case 'finish':
      return hasTexts(value, 'tip', 'time') && (value['index'] === undefined || isCleanup(value))
    case 'rename':
      return hasTexts(value, 'from', 'to', 'initial', 'checkpoint', 'time')
    case 'unknown':
    default:
      return false
  }
}

function isCleanup({ trees, head, carried, squash, index }: Fields): boolean {
  return (
    (trees === undefined || hasTexts(trees, 'from', 'to')) &&
    (head === undefined || isHead(head)) &&
    (carried === undefined || (isFields(carried) && isHead(carried['origin']) && 'commit' in carried)) &&
    (squash === undefined || isFields(squash)) &&
    ['prepared', 'none', 'as_is'].includes(String(index))
  )
}

/** As a file has it; undefined for anything else. */
export function headOf(value: unknown): Head | undefined {
  const head = isFields(value) ? withoutEmpty(value) : undefined
  return isHead(head) ? head : undefined
}

function isHead(value: unknown): value is Head {
  return hasTexts(value, 'ref') || hasTexts(value, 'commit')
}

function hasTexts(value: unknown, ...names: readonly string[]): boolean {
  return isFields(value) && names.every((name) => typeof value[name] === 'string')
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}
