// The verdict table of contract 4: what an agent's ending and its promise mean for the attempt.
import type { AgentEnded, AgentEnding, Settings, Verdict } from './event.ts'

export interface Judgement {
  readonly verdict: Verdict
  readonly reason: string
  /** Whether the reason goes into the next prompt of this story. */
  readonly tellsNext: boolean
}

/**
 * `specLost` is there when the agent destroyed the plan: whatever it promised, nothing is done then.
 * A `complete` from here still has to pass the gates.
 */
export function judge(ended: AgentEnded, specLost: string | undefined, limits: Limits): Judgement {
  const judged = judgedBy(ended, specLost, limits)
  if (ended.reached === undefined || judged.reason === '') return judged
  return { ...judged, reason: `it reached ${ended.reached.join(' and ')}: ${judged.reason}` }
}

type Limits = Pick<Settings, 'iteration_timeout_min' | 'idle_timeout_min'>

function judgedBy(ended: AgentEnded, specLost: string | undefined, limits: Limits): Judgement {
  const byEnding = unconditional[ended.ending]
  if (byEnding !== undefined) return { verdict: byEnding, reason: describe(ended, limits), tellsNext: false }
  if (ended.promise.kind === 'failed')
    return { verdict: 'failed', reason: ended.promise.reason || 'the agent gave no reason', tellsNext: true }
  if (ended.promise.kind === 'complete') {
    return specLost === undefined
      ? { verdict: 'complete', reason: '', tellsNext: false }
      : { verdict: 'failed', reason: specLost, tellsNext: true }
  }
  return {
    verdict: ended.ending === 'crash' ? 'crash' : 'none',
    reason: describe(ended, limits),
    tellsNext: false,
  }
}

/** Endings that carry no verdict of the agent's, whatever it printed. */
const unconditional: Partial<Record<AgentEnding, Verdict>> = {
  stopped: 'interrupted',
  budget: 'budget',
  timeout: 'timeout',
  idle: 'idle',
  limit: 'limit',
  overloaded: 'limit',
  offline: 'limit',
  auth: 'fatal',
  missing: 'fatal',
  model: 'fatal',
}

const phrases: Record<Exclude<AgentEnding, 'timeout' | 'idle'>, string> = {
  finished:
    'the agent did not say whether it was done (it must say <promise>COMPLETE</promise> on a line of its own)',
  crash: 'the agent crashed',
  stopped: 'stopped',
  budget: 'the budget was used up while the agent worked',
  no_turn: 'the agent never asked its model',
  question: 'the agent asked a question and stopped',
  refused_permission: 'the agent was refused a permission and stopped',
  limit: 'usage limit reached',
  overloaded: 'the service is overloaded',
  offline: 'no connection to the service',
  auth: "the agent's login is missing or expired",
  missing: 'the agent is not installed',
  model: 'the agent does not know this model',
}

function phraseOf({ ending, unpaid }: AgentEnded, limits: Limits): string {
  if (unpaid === true) return "the agent's account has no credit, or its bill is not paid"
  if (ending === 'timeout')
    return `the agent took longer than ${minutes(limits.iteration_timeout_min)} (--iteration-timeout)`
  if (ending === 'idle')
    return `the agent was silent and did nothing for ${minutes(limits.idle_timeout_min)} (--idle-timeout)`
  return phrases[ending]
}

export function minutes(count: number): string {
  if (count < 1) return `${String(Math.round(count * 60))} s`
  return `${String(count)} ${count === 1 ? 'minute' : 'minutes'}`
}

/** Their last words are what the agent said, not what went wrong. */
const talking: ReadonlySet<AgentEnding> = new Set([
  'finished',
  'timeout',
  'idle',
  'question',
  'refused_permission',
])
/** Whose cause is ralph's own: what the agent happened to say then explains nothing. */
const wordless: ReadonlySet<AgentEnding> = new Set(['stopped', 'budget'])
/** Of the provider's: its words say what it is, and how the agent's program went on to exit says nothing. */
const providers: ReadonlySet<AgentEnding> = new Set(['limit', 'overloaded', 'offline'])
/** The signal is ralph's own. */
const endedByRalph: ReadonlySet<AgentEnding> = new Set(['timeout', 'idle'])

function describe(ended: AgentEnded, limits: Limits): string {
  const exit = endedByRalph.has(ended.ending)
    ? ''
    : ended.signal !== undefined
      ? ` (signal ${ended.signal})`
      : ended.exit_code !== undefined && ended.exit_code !== 0
        ? ` (exit code ${ended.exit_code})`
        : ''
  const phrase = phraseOf(ended, limits)
  if (wordless.has(ended.ending)) return phrase
  const words = ended.last_words.trim()
  if (words === '') return `${phrase}${exit}`
  if (providers.has(ended.ending) && ended.unpaid !== true) return `${phrase}: ${words}`
  return talking.has(ended.ending) ? `${phrase}${exit}; it said: ${words}` : `${phrase}${exit}: ${words}`
}
