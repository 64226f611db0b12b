// What the agents of a run said and did, attempt by attempt, folded from its events; bounded, because agents talk in floods.
import type { IterationRecord, LoopEvent } from '../../core/event.ts'
import { limitedElsewhere } from '../print/describe.ts'
import type { Turnout } from '../print/describe.ts'
import { agentName } from '../vocabulary.ts'

type Of<Type extends LoopEvent['type']> = Extract<LoopEvent, { type: Type }>

export type Entry =
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'tool'; readonly name: string; readonly input: string; readonly time: string }
  | { readonly kind: 'gate'; readonly gate: Of<'gate.ended'> }
  | { readonly kind: 'baseline'; readonly baseline: Of<'baseline.ended'> }
  | { readonly kind: 'claim'; readonly claim: Of<'claim.judged'> }
  | { readonly kind: 'said'; readonly text: string }
  | { readonly kind: 'turnout'; readonly iteration: IterationRecord; readonly turnout: Turnout }
  | { readonly kind: 'wait'; readonly wait: Of<'waiting'> }
  | { readonly kind: 'warning'; readonly text: string }

interface GateRun {
  readonly command: string
  readonly started: string
  readonly ended?: Of<'gate.ended'>
}

export interface Attempt {
  readonly n: number
  readonly storyId: string
  readonly started: Of<'iteration.started'>
  /** Its agent, as people call it. */
  readonly who: string
  readonly entries: readonly Entry[]
  /** Of what was said. */
  readonly chars: number
  /** How many entries are not kept here any more. */
  readonly dropped: number
  readonly gates: readonly GateRun[]
  readonly turnout: Turnout
  readonly record?: IterationRecord
}

export interface Feed {
  /** What the user's own agent is called, since the last start. */
  readonly program: string | undefined
  readonly attempts: readonly Attempt[]
  /** Before the first attempt, and what belongs to none. */
  readonly loose: readonly Entry[]
}

export const emptyFeed: Feed = { program: undefined, attempts: [], loose: [] }

const mostEntries = 2_000
const mostChars = 512 * 1024
/** Of all attempts together: the talk of the oldest goes first. */
const mostCharsOfAll = 8 * 1024 * 1024
const longestMessage = 20_000

export interface Fed {
  readonly feed: Feed
  /** What fell out at the beginning, by attempt. */
  readonly gone: ReadonlyMap<number, readonly Entry[]>
}

/** Many at once: what is copied for one is copied for all of them. */
export function fed(feed: Feed, events: readonly LoopEvent[]): Fed {
  const attempts = new Map<number, Draft>()
  let loose: Entry[] | undefined
  let { program } = feed
  const order = [...feed.attempts]
  const draft = (n: number): Draft | undefined => {
    const known = attempts.get(n)
    if (known !== undefined) return known
    const found = order.find((attempt) => attempt.n === n)
    if (found === undefined) return undefined
    const made = { ...found, entries: [...found.entries], gates: [...found.gates] }
    attempts.set(n, made)
    return made
  }
  for (const each of events) {
    const event = each.type === 'waiting' ? { ...each, agent: agentName(each.agent, program) } : each
    if (event.type === 'loop.started') {
      program = event.agent_program
      if (!event.resumed) {
        order.length = 0
        attempts.clear()
        loose = []
      }
    }
    if (event.type === 'iteration.started') {
      const blank = blankAttempt(event, program)
      order.push(blank)
      attempts.set(event.n, { ...blank, entries: [], gates: [] })
      continue
    }
    const n = event.type === 'iteration.ended' ? event.iteration.n : 'n' in event ? event.n : undefined
    const own = n === undefined ? order.at(-1) : order.find((attempt) => attempt.n === n)
    const target = own === undefined ? undefined : draft(own.n)
    if (target !== undefined) apply(target, event)
    else {
      const entry = entryOf(event, {})
      if (entry !== undefined) (loose ??= [...feed.loose]).push(entry)
    }
  }
  const gone = new Map<number, readonly Entry[]>()
  for (const each of attempts.values()) {
    const dropped = trim(each)
    if (dropped.length > 0) gone.set(each.n, dropped)
  }
  const all = order.map((attempt) => attempts.get(attempt.n) ?? attempt)
  return {
    feed: { program, attempts: withinAll(all), loose: loose?.slice(-mostEntries) ?? feed.loose },
    gone,
  }
}

type Draft = {
  -readonly [Key in keyof Attempt]: Attempt[Key]
} & { entries: Entry[]; gates: GateRun[] }

function blankAttempt(started: Of<'iteration.started'>, program: string | undefined): Attempt {
  return {
    n: started.n,
    storyId: started.story_id,
    started,
    who: agentName(started.agent, program),
    entries: [],
    chars: 0,
    dropped: 0,
    gates: [],
    turnout: {},
  }
}

function apply(draft: Draft, event: LoopEvent): void {
  if (event.type === 'gate.started') draft.gates.push({ command: event.command, started: event.time })
  if (event.type === 'gate.ended') {
    const at = draft.gates.findLastIndex((gate) => gate.command === event.command)
    const started = draft.gates[at]?.started ?? event.time
    draft.gates.splice(at === -1 ? draft.gates.length : at, at === -1 ? 0 : 1, {
      command: event.command,
      started,
      ended: event,
    })
  }
  if (event.type === 'attempt.kept') draft.turnout = { ...draft.turnout, hasChanged: event.changed }
  if (event.type === 'checkpoint.saved') draft.turnout = { ...draft.turnout, saved: event }
  if (event.type === 'checkpoint.reverted') draft.turnout = { ...draft.turnout, reverted: event }
  const told = event.type === 'iteration.ended' ? { ...event, iteration: withGates(event, draft) } : event
  if (told.type === 'iteration.ended') draft.record = told.iteration
  const entry = entryOf(told, draft.turnout)
  if (entry === undefined) return
  draft.entries.push(entry)
  draft.chars += charsOf(entry)
}

/** How long it took: the agent, and the gates after it. */
function withGates({ iteration }: Of<'iteration.ended'>, { gates }: Pick<Attempt, 'gates'>): IterationRecord {
  const ended = gates.flatMap((gate) => (gate.ended?.claim === undefined ? (gate.ended ?? []) : []))
  const duration_ms = ended.reduce((sum, gate) => sum + gate.duration_ms, iteration.duration_ms)
  return { ...iteration, duration_ms }
}

function entryOf(event: LoopEvent, turnout: Turnout): Entry | undefined {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the others are told elsewhere on the screen
  switch (event.type) {
    case 'agent.message':
      return { kind: 'message', text: event.text.slice(0, longestMessage) }
    case 'agent.tool':
      return { kind: 'tool', name: event.name, input: event.input.slice(0, 1000), time: event.time }
    case 'gate.ended':
      return event.claim === undefined ? { kind: 'gate', gate: event } : undefined
    case 'baseline.started':
      return { kind: 'said', text: `${event.command} runs once without the agent's work` }
    case 'baseline.ended':
      return event.outcome === 'unknown' ? undefined : { kind: 'baseline', baseline: event }
    case 'claim.judged':
      return { kind: 'claim', claim: event }
    case 'failure.reported':
      return { kind: 'said', text: `the agent reports a failure: ${event.reason}` }
    case 'progress.reported':
      return { kind: 'said', text: `now: ${event.task}` }
    case 'iteration.ended':
      return { kind: 'turnout', iteration: event.iteration, turnout }
    case 'login.limited':
      return { kind: 'said', text: limitedElsewhere(event) }
    case 'waiting':
      return { kind: 'wait', wait: event }
    case 'warning':
    case 'error':
      // The line at the top says it.
      return event.code === 'retries' ? undefined : { kind: 'warning', text: event.message }
    default:
      return undefined
  }
}

function charsOf(entry: Entry): number {
  return entry.kind === 'message' ? entry.text.length : entry.kind === 'tool' ? entry.input.length : 0
}

function trim(draft: Draft): readonly Entry[] {
  let from = Math.max(0, draft.entries.length - mostEntries)
  let { chars } = draft
  for (const entry of draft.entries.slice(0, from)) chars -= charsOf(entry)
  while (chars > mostChars && from < draft.entries.length - 1) {
    const entry = draft.entries[from]
    if (entry !== undefined) chars -= charsOf(entry)
    from += 1
  }
  const gone = draft.entries.slice(0, from)
  draft.entries = draft.entries.slice(from)
  draft.chars = chars
  draft.dropped += gone.length
  return gone
}

function withinAll(attempts: readonly Attempt[]): readonly Attempt[] {
  let room = mostCharsOfAll
  return attempts
    .toReversed()
    .map((attempt) => {
      room -= attempt.chars
      if (room >= 0 || attempt.chars === 0) return attempt
      const kept = attempt.entries.filter(({ kind }) => kind !== 'message' && kind !== 'tool')
      const dropped = attempt.dropped + attempt.entries.length - kept.length
      return { ...attempt, entries: kept, chars: 0, dropped }
    })
    .toReversed()
}
