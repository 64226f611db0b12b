// `ralph why`: each decision of the last run, its resumes too, with its rule and its inputs, read off the journal.
import { baselineWords } from './baseline.ts'
import { claimWords } from './claim-words.ts'
import type { Baseline, IterationRecord, LoopEvent } from './event.ts'
import { isSilent, tellingLines } from './gate-failure.ts'

export interface Decision {
  readonly time: string
  /** Iteration; absent for what belongs to the whole loop. */
  readonly n?: number
  /** What was decided: "attempt 2 failed", "stopped: stuck". */
  readonly decision: string
  readonly rule: string
  readonly inputs: Readonly<Record<string, unknown>>
}

/** Of all facts, these are decisions. */
export const decisive = [
  'loop.started',
  'story.started',
  'claim.judged',
  'failure.reported',
  'agent.ended',
  'gate.ended',
  'baseline.ended',
  'boxes.settled',
  'iteration.ended',
  'waiting',
  'warning',
  'error',
  'loop.died',
  'repair.ended',
  'loop.finished',
  'complete',
] as const

type DecisiveEvent = Extract<LoopEvent, { type: (typeof decisive)[number] }>

export function isDecisive(event: LoopEvent): event is DecisiveEvent {
  return decisive.some((type) => type === event.type)
}

export function decisionsOf(events: readonly DecisiveEvent[]): readonly Decision[] {
  const lastStart = events.findLastIndex((event) => event.type === 'loop.started' && !event.resumed)
  return events.slice(Math.max(0, lastStart)).map(decisionOf)
}

/** The gate that ended the last attempt, and what it said about it. */
export interface FailedGate {
  readonly command: string
  /** The stories that a person had ticked, where it judged those. */
  readonly by_hand?: readonly string[]
  readonly exit_code?: number
  /** The failing test. */
  readonly what?: string
  readonly lines: readonly string[]
  /** It has printed nothing. */
  readonly is_silent?: true
  /** What it says without the agent's work, where that is known. */
  readonly baseline?: Baseline
}

export function failedGateOf(events: readonly LoopEvent[], n: number): FailedGate | undefined {
  const gate = events
    .filter((event) => event.type === 'gate.ended')
    .findLast(({ claim }) => claim === undefined)
  if (gate?.outcome !== 'failed' || gate.n !== n) return undefined
  const { command, exit_code } = gate
  return {
    command,
    ...(exit_code !== undefined && { exit_code }),
    ...(isSilent(gate) && { is_silent: true as const }),
    ...tellingLines(gate, mostLines),
  }
}

const mostLines = 5

type Why = readonly [decision: string, rule: string, inputs?: Decision['inputs']]

function decisionOf(event: DecisiveEvent): Decision {
  const [decision, rule, inputs = {}] = whyOf(event)
  const n = event.type === 'iteration.ended' ? event.iteration.n : 'n' in event ? event.n : undefined
  return { time: event.time, ...(n !== undefined && { n }), decision, rule, inputs }
}

function whyOf(event: DecisiveEvent): Why {
  switch (event.type) {
    case 'loop.started': {
      const { max_retries, stall_threshold, done_criteria, gates, agents, checkpoint } = event.settings
      const { max_tokens, max_cost_usd } = event.settings
      return [
        event.resumed ? 'the run continues' : 'the run begins',
        done_criteria === 'tasks'
          ? 'done when every task that an agent can do is ticked'
          : 'done when you say so',
        {
          tasks_file: event.tasks_file,
          max_retries,
          stall_threshold,
          gates,
          agents,
          checkpoint,
          ...(max_tokens !== undefined && { max_tokens }),
          ...(max_cost_usd !== undefined && { max_cost_usd }),
        },
      ]
    }
    case 'story.started': {
      const { index, total, completed } = event
      const rule = 'the first story in file order with an open task'
      return [`story ${event.story_id} is next`, rule, { index, total, completed }]
    }
    case 'agent.ended': {
      const { promise, exit_code, signal, last_words } = event
      const rule = "the agent's own protocol and its exit; the promise only from what the assistant said"
      return [`the agent ended: ${event.ending}`, rule, { promise, exit_code, signal, last_words }]
    }
    case 'claim.judged': {
      const { claim, outcome, reason } = event
      const rule =
        'a claim is accepted when no box was forgotten and every gate passes; the verdict comes later'
      return [claimWords(event), rule, { claim, outcome, reason }]
    }
    case 'failure.reported':
      return [`the agent reports a failure: ${event.reason}`, 'the last report of the agent counts']
    case 'gate.ended': {
      const { exit_code, duration_ms, claim } = event
      const rule =
        claim === undefined
          ? 'every gate must pass before the story counts'
          : `run for claim ${claim} of the agent, which waits for it`
      return [`gate ${event.outcome}: ${event.command}`, rule, { exit_code, duration_ms }]
    }
    case 'baseline.ended': {
      const { command, outcome, exit_code, duration_ms, reason } = event
      const words = outcome === 'unknown' ? "without the agent's work: not known" : baselineWords[outcome]
      const rule = 'a gate that failed is run once in a loop without the work, before the next attempt'
      return [`${command} ${words}`, rule, { exit_code, duration_ms, reason }]
    }
    case 'boxes.settled': {
      const { remaining, not_asked, ticked_by_ralph: ticked } = event
      const left =
        remaining + not_asked === 1 ? '1 box is left open' : `${remaining + not_asked} boxes are left open`
      const rule = 'none ticked: ralph ticks them; some ticked: the story continues with the rest'
      return [
        ticked > 0 ? `ralph ticked ${ticked} ${ticked === 1 ? 'box' : 'boxes'}` : left,
        rule,
        { remaining, not_asked },
      ]
    }
    case 'iteration.ended': {
      const { verdict } = event.iteration
      return [`verdict: ${verdict}`, rules[verdict], inputsOf(event.iteration)]
    }
    case 'waiting': {
      if (event.for === 'pause') return ['paused', 'ralph pause: before the next attempt, until ralph resume']
      const rule =
        "a limit, an overloaded service or a missing network is not the story's fault: no retry is used up"
      return [`waits until ${event.until}`, rule, { for: event.for, agent: event.agent }]
    }
    case 'warning':
      return [`warning: ${event.message}`, event.code]
    case 'error':
      return [`error: ${event.message}`, event.code, { hint: event.hint }]
    case 'loop.died': {
      const { at_ms, orphans } = event
      const rule = 'its process is gone and its journal has no end'
      return ['the loop had died; its open attempt is recorded', rule, { at_ms, orphans }]
    }
    case 'repair.ended':
      return [event.detail, 'resume, finish, done and loop --fresh repair a dead loop']
    case 'loop.finished':
      return [`${event.choice}: ${event.message}`, 'the completion choice', { ok: event.ok }]
    case 'complete': {
      const { reason, stop_reason, totals } = event
      const rule =
        'interrupted, done, human needed, limit, stuck by retries, stalled, stuck by iterations: the first that holds'
      const end = `ended: ${event.status} (exit code ${event.exit_code})`
      return [end, rule, { reason, stop_reason, ...totals }]
    }
  }
}

function inputsOf(iteration: IterationRecord): Decision['inputs'] {
  const { story_id, attempt, reason, tokens_used, tokens_source, tokens_note } = iteration
  const inputs = { story_id, attempt, reason, commits: iteration.commits.length, tokens_used, tokens_source }
  return tokens_note === undefined ? inputs : { ...inputs, tokens_note }
}

const rules: Record<IterationRecord['verdict'], string> = {
  complete: 'the agent says complete, every gate passed, every box is ticked: saved',
  partial: 'the agent says complete, and some boxes are open: saved, and one retry is used up',
  progress: 'all that was asked of a large story is done: saved, and it continues',
  failed: 'the agent says failed: undone, and a retry is told its reason',
  gate_failed: 'a gate did not pass: undone, and a retry is told its output',
  none: 'the agent says neither complete nor failed: undone; the next prompt says no more than this one',
  timeout: 'it ran into --iteration-timeout: what it says does not count',
  idle: 'it printed nothing and did nothing: ended, and what it says does not count',
  crash: 'it crashed: undone, and one retry is used up',
  limit: "the provider's limit: undone, and the same attempt runs again",
  fatal: 'login, missing agent or unknown model: no retry can help',
  interrupted: 'stopped: uses no retry',
  budget: 'a tenth over the budget: ended',
  kept: 'you decide when it is done: until then all work is saved',
  refused:
    'the merge queue did not accept what it made of both sides: saved, and the next try continues with it',
  error: 'ralph could not continue: the files stay as they are',
}
