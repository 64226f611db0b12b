// What comes next when the loop is between two iterations: the rules and the precedence of contract 3.
import type { AgentEnding, IterationRecord, Verdict } from './event.ts'
import { isRed } from './baseline.ts'
import { firstBack, pickAgent, untilOf } from './limits.ts'
import { outcome, stopExits, stoppedBy } from './outcome.ts'
import { onwardFrom, onwardHint } from './onward.ts'
import { hasMerge } from './story.ts'
import type { StartedState, Outcome } from './state.ts'
import { selectedStories } from './state.ts'
import { overshoots } from './usage.ts'
import { minutes } from './verdict.ts'

export type Decision =
  | { readonly go: 'story'; readonly storyId: string }
  | {
      readonly go: 'wait'
      readonly for: 'limit' | 'overloaded' | 'offline'
      readonly untilMs: number
      readonly agent: string
    }
  | { readonly go: 'confirm' }
  | { readonly go: 'end'; readonly outcome: Outcome }

const end = (result: Outcome): Decision => ({ go: 'end', outcome: result })

/** The iteration that has just ended, with what its agent said; absent before the first one and after a wait. */
export interface LastIteration {
  readonly record: IterationRecord
  readonly ending: AgentEnding
  /** With `auth`: not the login but the bill. */
  readonly isUnpaid?: boolean
}

/** Interrupted, done, human needed, limit, stuck by retries, stalled, stuck by iterations; else the next story. */
export function decide(state: StartedState, last?: LastIteration): Decision {
  const resume = `ralph resume ${state.changeId}`
  if (state.stop !== undefined) return end(interruptedOutcome(state))
  const finished = isManual(state) ? manualEnd(state, last) : tasksEnd(state)
  if (finished !== undefined) return finished
  const limited = limitEnd(state, last)
  if (limited !== undefined) return limited

  const { settings } = state
  const story = selectedStories(state).find((candidate) => candidate.status === 'open')
  if (story === undefined) {
    return end(outcome('error', 'the loop has no story to run', `Type: ralph show ${state.changeId}`))
  }
  const failedStory = last?.record.story_id ?? story.id
  const gate = state.failure?.gate?.gate ?? ''
  if (!isManual(state) && (state.retries[failedStory] ?? 0) > settings.max_retries) {
    const why = `Story ${failedStory} failed ${failures(state, failedStory)}; last: ${last?.record.reason ?? 'see ralph history'}`
    return end(
      outcome(
        'retries',
        why,
        isRed(state.baselines[gate])
          ? `${gate} fails without the agent's work, too: fix that first, then type: ${resume}`
          : onwardHint(onwardFrom(state, 'retries', why)),
        { storyId: failedStory },
      ),
    )
  }
  if (state.commitless >= settings.stall_threshold) {
    const count = state.commitless
    const why = last?.record.reason ?? ''
    const said = `No progress: ${count} attempts in a row kept nothing${why === '' ? '.' : `; last: ${why}`}`
    return end(outcome('stall', said, onwardHint(onwardFrom(state, 'stall', said))))
  }
  if (state.iterations.length >= state.maxIterations) {
    const { maxIterations: most, iterations } = state
    const made =
      iterations.length > most ? `; the run has made ${iterations.length}, and all of them count` : ''
    const said = `The limit of ${most} ${most === 1 ? 'attempt' : 'attempts'} is reached${made}.`
    return end(outcome('iterations', said, onwardHint(onwardFrom(state, 'iterations', said))))
  }
  return { go: 'story', storyId: story.id }
}

/** Those before a resume count, too: who reads "once" would take it for the first. */
function failures({ iterations, settings }: StartedState, storyId: string): string {
  const all = iterations.filter(
    (each) => each.story_id === storyId && !isBlameless(each.verdict) && !kept.has(each.verdict),
  ).length
  const now = times(settings.max_retries + 1)
  return all > settings.max_retries + 1 ? `${now} more (${times(all)} in all)` : now
}

const kept: ReadonlySet<Verdict> = new Set(['complete', 'progress', 'kept'])

function tasksEnd(state: StartedState): Decision | undefined {
  const stories = selectedStories(state)
  if (stories.some((story) => story.status === 'open')) return undefined
  if (stories.some((story) => story.status === 'human')) {
    return end(
      outcome(
        'human',
        `Only tasks for a person are left: ${state.humanTasks.join('; ')}.`,
        `Do them, tick their boxes${state.home === undefined ? '' : ` in ${state.worktree}/${state.tasksFile}`}, then type: ralph resume ${state.changeId}`,
      ),
    )
  }
  const done = stories.filter((story) => story.status === 'done').length
  const others = state.stories.filter((story) => story.status === 'open').length
  const rest =
    others > 0
      ? ` Only the stories named by --story were run; ${others === 1 ? 'one other is' : `${others} others are`} open.`
      : ''
  return end(
    outcome(
      'done',
      `${done} of ${stories.length} ${stories.length === 1 ? 'story' : 'stories'} complete.${rest}`,
      '',
    ),
  )
}

function manualEnd(state: StartedState, last: LastIteration | undefined): Decision | undefined {
  return last?.record.verdict === 'complete' ? { go: 'confirm' } : undefined
}

function limitEnd(state: StartedState, last: LastIteration | undefined): Decision | undefined {
  if (last?.record.verdict === 'budget') return overBudget(state, last.record.reason)
  // A fallback that cannot run is left out; a login or model of the first agent is the user's to mend, before another is paid.
  const isFirst = last?.record.agent === state.settings.agents[0] && last?.ending !== 'missing'
  if (last?.record.verdict === 'fatal' && (isFirst || firstBack(state) === undefined))
    return end(fatalOutcome(state, last))
  // Before any wait: six hours for a reset, only to find the budget used up, would be six hours lost.
  const over = overshoots(state.settings, state.iterations)
  if (over !== '') return overBudget(state, over)
  return last?.record.verdict === 'limit' || last?.record.verdict === 'fatal'
    ? waitAfter(state, last)
    : undefined
}

/** Another loop was told that this agent's login is at its limit. */
export function decideElsewhere(state: StartedState, storyId: string, why: string): Decision {
  if (state.stop !== undefined) return end(interruptedOutcome(state))
  const back = limitedFirst(state)
  return back === undefined ? { go: 'story', storyId } : waitOrEnd(state, 'limit', back, why)
}

/** Nothing where another agent can take over at once. */
function waitAfter(state: StartedState, { record, ending }: LastIteration): Decision | undefined {
  const { agent, reason, verdict } = record
  // No other agent helps while the network is away, and an overloaded service is back in seconds.
  if (ending === 'overloaded' || ending === 'offline')
    return waitOrEnd(state, ending, { agent, untilMs: untilOf(state, agent) }, reason)
  const back = limitedFirst(state)
  if (back === undefined) return undefined
  return waitOrEnd(
    state,
    'limit',
    back,
    verdict === 'limit' ? reason : `${back.agent} is at its limit, and ${reason}`,
  )
}

/** Who is back first, where nobody can be asked now. */
function limitedFirst(state: StartedState): ReturnType<typeof firstBack> {
  return pickAgent(state) === undefined ? firstBack(state) : undefined
}

function waitOrEnd(
  state: StartedState,
  cause: 'limit' | 'overloaded' | 'offline',
  awaited: { readonly agent: string; readonly untilMs: number },
  why: string,
): Decision {
  const wholeWaitMs = state.waitedMs + Math.max(0, awaited.untilMs - state.nowMs)
  const allowedMin = state.settings.limit_wait_min
  if (wholeWaitMs <= allowedMin * 60_000) return { go: 'wait', for: cause, ...awaited }
  return end(
    outcome(
      'limit',
      `${why}. Waiting would take longer than ${minutes(allowedMin)} (--limit-wait).`,
      `Nothing is lost. Later: ralph resume ${state.changeId}`,
    ),
  )
}

function overBudget(state: StartedState, why: string): Decision {
  return end(outcome('budget', why, `Everything is kept. ${onwardHint(onwardFrom(state, 'budget', why))}`))
}

function fatalOutcome(state: StartedState, last: LastIteration): Outcome {
  const resume = `ralph resume ${state.changeId}`
  if (last.ending === 'missing') {
    return outcome(
      'missing',
      last.record.reason,
      `Install it or name another: ${resume} --agent NAME (ralph doctor lists them)`,
    )
  }
  if (last.ending === 'model')
    return outcome('model', last.record.reason, `Name one that it knows: ${resume} --model NAME`)
  const advice =
    last.isUnpaid === true
      ? 'Add credit or settle the bill with its provider (ralph doctor says which account pays)'
      : "Log in with the agent's own command"
  return outcome('auth', last.record.reason, `${advice}, then type: ${resume}`)
}

export function interruptedOutcome(state: StartedState): Outcome {
  const by = state.stop ?? 'SIGTERM'
  const hint = `To continue: ralph resume ${state.changeId}`
  return by === 'killed'
    ? outcome('killed', 'The loop was killed.', hint)
    : outcome('signal', `${stoppedBy(by)}.`, hint, { exitCode: stopExits[by] })
}

export function isManual(state: StartedState): boolean {
  return state.settings.done_criteria === 'manual'
}

/** Asked for by the merge queue, which judges it, too. */
export function isMerge(state: StartedState): boolean {
  return isManual(state) && hasMerge(state.stories)
}

/** By whoever decides: the user, or for a merge the queue. */
export function accepted(state: StartedState): Pick<StartedState, 'stories'> & { readonly outcome: Outcome } {
  const words = isMerge(state) ? 'Both sides are merged.' : 'You marked it as done.'
  return {
    stories: state.stories.map((story) => (story.status === 'open' ? { ...story, status: 'done' } : story)),
    outcome: outcome('done', words, ''),
  }
}

const retried: ReadonlySet<Verdict> = new Set([
  'partial',
  'failed',
  'gate_failed',
  'none',
  'timeout',
  'idle',
  'crash',
])

/** Whether this verdict is the story's own doing and so uses up one of its retries. */
export function usesRetry(verdict: Verdict): boolean {
  return retried.has(verdict)
}

const blameless: ReadonlySet<Verdict> = new Set(['limit', 'fatal', 'interrupted', 'budget', 'error'])

/** Whether this verdict says nothing about progress: it neither counts toward a stall nor ends one. */
export function isBlameless(verdict: Verdict): boolean {
  return blameless.has(verdict)
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}
