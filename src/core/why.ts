// `ralph why`: each decision of the last run, its resumes too, with its rule and its inputs, read off the journal.
import type { IterationRecord, LoopEvent } from './event.ts'

export interface Decision {
  readonly time: string
  readonly n?: number
  readonly decision: string
  readonly rule: string
  readonly inputs: Readonly<Record<string, unknown>>
}

export function decisionsOf(events: readonly LoopEvent[]): readonly Decision[] {
  const lastStart = events.findLastIndex((event) => event.type === 'loop.started' && !event.resumed)
  return events.slice(Math.max(0, lastStart)).flatMap((event) => decisionOf(event) ?? [])
}

function decisionOf(event: LoopEvent): Decision | undefined {
  const { time } = event
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- of all facts, these are decisions
  switch (event.type) {
    case 'loop.started': {
      const { max_retries, stall_threshold, done_criteria, gates, agents, checkpoint } = event.settings
      const { max_tokens, max_cost_usd } = event.settings
      return {
        time,
        decision: event.resumed ? 'the run goes on' : 'the run begins',
        rule:
          done_criteria === 'tasks' ? 'done when every runnable task is ticked' : 'done when a human says so',
        inputs: {
          tasks_file: event.tasks_file,
          max_retries,
          stall_threshold,
          gates,
          agents,
          checkpoint,
          ...(max_tokens !== undefined && { max_tokens }),
          ...(max_cost_usd !== undefined && { max_cost_usd }),
        },
      }
    }
    case 'story.started':
      return {
        time,
        decision: `story ${event.story_id} is next`,
        rule: 'the first story in file order with an open task',
        inputs: { index: event.index, total: event.total, completed: event.completed },
      }
    case 'agent.ended':
      return {
        time,
        n: event.n,
        decision: `the agent ended: ${event.ending}`,
        rule: "the agent's own protocol and its exit; the promise only from what the assistant said",
        inputs: {
          promise: event.promise,
          exit_code: event.exit_code,
          signal: event.signal,
          last_words: event.last_words,
        },
      }
    case 'gate.ended':
      return {
        time,
        n: event.n,
        decision: `gate ${event.outcome}: ${event.command}`,
        rule: 'after COMPLETE every gate must pass before the story counts',
        inputs: { exit_code: event.exit_code, duration_ms: event.duration_ms },
      }
    case 'boxes.settled':
      return {
        time,
        n: event.n,
        decision:
          event.ticked_by_ralph > 0
            ? `ralph ticked ${event.ticked_by_ralph} boxes`
            : `${event.remaining + event.not_asked} boxes are left open`,
        rule: 'none ticked after COMPLETE: ralph ticks them; some ticked: the story goes on with the rest',
        inputs: { remaining: event.remaining, not_asked: event.not_asked },
      }
    case 'iteration.ended':
      return {
        time,
        n: event.iteration.n,
        decision: `verdict: ${event.iteration.verdict}`,
        ...verdictRule(event.iteration),
      }
    case 'waiting':
      return {
        time,
        decision: `waits until ${event.until}`,
        rule: "a limit, an overloaded service or a missing network is not the story's fault: no retry is used up",
        inputs: { for: event.for, agent: event.agent },
      }
    case 'warning':
      return { time, decision: `warning: ${event.message}`, rule: event.code, inputs: {} }
    case 'error':
      return { time, decision: `error: ${event.message}`, rule: event.code, inputs: { hint: event.hint } }
    case 'loop.died':
      return {
        time,
        decision: 'the loop had died; its open iteration is recorded',
        rule: 'its process is gone and its journal has no end',
        inputs: { at_ms: event.at_ms, orphans: event.orphans },
      }
    case 'repair.ended':
      return {
        time,
        decision: event.detail,
        rule: 'resume, finish, done and loop --fresh put a dead loop in order',
        inputs: {},
      }
    case 'loop.finished':
      return {
        time,
        decision: `${event.choice}: ${event.message}`,
        rule: 'the completion choice',
        inputs: { ok: event.ok },
      }
    case 'complete':
      return {
        time,
        decision: `ended: ${event.status} (exit code ${event.exit_code})`,
        rule: 'interrupted, done, human needed, limit, stuck by retries, stalled, stuck by iterations: the first that holds',
        inputs: { reason: event.reason, stop_reason: event.stop_reason, ...event.totals },
      }
    default:
      return undefined
  }
}

function verdictRule(iteration: IterationRecord): Pick<Decision, 'rule' | 'inputs'> {
  return {
    rule: rules[iteration.verdict],
    inputs: {
      story_id: iteration.story_id,
      attempt: iteration.attempt,
      reason: iteration.reason,
      commits: iteration.commits.length,
      tokens_used: iteration.tokens_used,
      tokens_source: iteration.tokens_source,
      ...(iteration.tokens_note !== undefined && { tokens_note: iteration.tokens_note }),
    },
  }
}

const rules: Record<IterationRecord['verdict'], string> = {
  complete: 'COMPLETE, gates passed, boxes settled: a checkpoint is saved',
  partial: 'COMPLETE with some boxes open: kept, and one retry is used up',
  progress: 'COMPLETE for all that was asked of a large story: kept, it goes on',
  failed: 'FAILED: restored, and the reason goes into the next prompt',
  gate_failed: 'a gate did not pass: restored, and its output goes into the next prompt',
  none: 'no promise: restored, tried again without added context',
  timeout: 'the iteration timeout ended it: no promise counts',
  idle: 'no output and no child activity: ended, no promise counts',
  crash: 'it crashed without a promise: restored, tried again',
  limit: "the provider's limit: restored, the same attempt runs again",
  fatal: 'login, missing agent or unknown model: no retry can help',
  interrupted: 'stopped: uses no retry',
  budget: 'a tenth over the budget: ended',
  kept: 'manual mode: work without a promise is kept',
  error: 'ralph could not go on: the tree stays as it is',
}
