// The transitions behind evolve.ts: what an attempt, an ended iteration, a choice or a crash do to the state.
// Long because each enters a phase that another one leaves: they are read beside one another.
import type { LoopEvent, Verdict } from './event.ts'
import { outcome, reportsOf, stoppedBy } from './outcome.ts'
import { askAgainMs, gatesOf } from './limits.ts'
import {
  accepted,
  decide,
  decideElsewhere,
  interruptedOutcome,
  isBlameless,
  isManual,
  isMerge,
  usesRetry,
} from './policy.ts'
import type { Decision, LastIteration } from './policy.ts'
import { keepsWork } from './report.ts'
import type { Current, Doing, IterationState, KeptTurn, Outcome, StartedState, Turn } from './state.ts'
import { selectedStories } from './state.ts'
import { unrecorded } from './unrecorded.ts'
import { judge } from './verdict.ts'
import type { Judgement } from './verdict.ts'

type Of<T extends LoopEvent['type']> = Extract<LoopEvent, { type: T }>

/** Entering a phase moves the step, and a moved step makes its command due. */
export function enter(state: StartedState, doing: Doing): StartedState {
  return { ...state, current: undefined, waiting: undefined, ...doing, step: state.step + 1 }
}

export function patchCurrent(state: StartedState, n: number, patch: Partial<Current>): StartedState {
  return state.current === undefined || state.current.n !== n ? state : patched(state, patch)
}

function patched<S extends IterationState>(state: S, patch: Partial<Current>): S {
  return { ...state, current: { ...state.current, ...patch } }
}

/** Between two iterations: take the decision of policy.ts. What somebody ticked is judged before it counts. */
export function follow(state: StartedState, last?: LastIteration): StartedState {
  const decision = decide(state, last)
  const isCounted =
    last === undefined ||
    decision.go === 'story' ||
    (decision.go === 'end' && ['done', 'human'].includes(decision.outcome.stopReason))
  return (state.byHand ?? []).length > 0 && state.stop === undefined && isCounted
    ? enter(state, { phase: 'proving' })
    : take(state, decision)
}

function take(state: StartedState, decision: Decision): StartedState {
  switch (decision.go) {
    case 'end':
      return conclude(state, decision.outcome)
    case 'confirm':
      return enter(state, { phase: 'confirming' })
    case 'wait': {
      const waiting = {
        for: decision.for,
        untilMs: decision.untilMs,
        until: undefined,
        agent: decision.agent,
      }
      return enter(state, { phase: 'waiting', waiting })
    }
    case 'story':
      if (state.pause) {
        const waiting = { for: 'pause', untilMs: 0, until: undefined, agent: '' } as const
        return enter(state, { phase: 'waiting', waiting })
      }
      return enter(state, {
        phase: decision.storyId === state.storyId ? 'ensuring' : 'opening_story',
        storyId: decision.storyId,
      })
  }
}

/** The outcome stands; its reports go out first, then the choice is offered. */
export function conclude(state: StartedState, end: Outcome): StartedState {
  // The status stands from here on: a question at the end may wait for hours.
  const concluded = { ...state, outcome: end, reported: 0, status: end.status }
  return reportsOf(concluded).length > 0 ? enter(concluded, { phase: 'reporting' }) : offerChoice(concluded)
}

export function reported(state: StartedState): StartedState {
  if (state.phase !== 'reporting') return state
  const told = { ...state, reported: state.reported + 1 }
  return told.reported < reportsOf(told).length ? enter(told, { phase: 'reporting' }) : offerChoice(told)
}

function offerChoice(state: StartedState): StartedState {
  if (isIdle(state)) return enter(state, { phase: 'finishing', choice: 'cleanup' })
  const wish = state.settings.on_complete
  if (wish !== 'ask') return enter(state, { phase: 'finishing', choice: wish })
  // Who has stopped it wants the shell back, not a question; and a TERM or HUP comes where nobody is to answer.
  if (hasKept(state))
    return enter(
      state,
      state.stop === undefined ? { phase: 'choosing' } : { phase: 'finishing', choice: 'later' },
    )
  // Nothing to decide about: the user is back where they were; with a work tree or stashes they never left.
  const isAway = state.branch !== state.originalBranch && state.home === undefined
  return enter(state, { phase: 'finishing', choice: isAway ? 'cleanup' : 'later' })
}

/** There was nothing to do but to run the gates on what the user has: there is nothing to keep. */
function isIdle(state: StartedState): boolean {
  const { git, iterations } = state
  const isUnchanged = git.initial !== undefined && git.lastCheckpoint === git.initial
  return (
    iterations.length === 0 && isUnchanged && selectedStories(state).every(({ status }) => status === 'done')
  )
}

/** Whether any work of this run is on its branch: of a plan that was finished before it began there is no branch. */
function hasKept({ git, iterations, outcome: end }: StartedState): boolean {
  const hasBegun = iterations.length > 0 || git.lastCheckpoint !== undefined
  return (end?.status === 'done' && hasBegun) || iterations.some(({ verdict }) => keepsWork[verdict])
}

export function verified(state: StartedState & { readonly storyId: string }): StartedState {
  return state.stop === undefined
    ? enter(state, { phase: 'opening_iteration', storyId: state.storyId })
    : conclude(state, interruptedOutcome(state))
}

export function iterationStarted(state: StartedState, event: Of<'iteration.started'>): StartedState {
  const current: Current = {
    n: event.n,
    storyId: event.story_id,
    attempt: event.attempt,
    attempts: event.attempts,
    started: event.time,
    baseCommit: event.base_commit,
    openTasks: state.tasksTotal - state.tasksDone,
    agent: event.agent,
    logFile: event.log_file,
    lastActivity: event.time,
    reason: '',
    tellsNext: false,
    claims: 0,
    rounds: 0,
    isStirred: false,
    isTickedByRalph: false,
  }
  return enter({ ...state, status: 'running' }, { phase: 'working', current })
}

export function kept(state: Turn<'keeping'>, event: Of<'attempt.kept'>): StartedState {
  const { current } = state
  // What took the work away took the plan, too.
  const { refused } = event
  const judged = inWordsOf(
    state.stop,
    judge(current.ended, refused ?? (event.spec_lost || undefined), state.settings),
  )
  const gates = gatesOf(state.settings, current.storyId).length
  const withKept: KeptTurn = {
    ...current,
    kept: {
      ref: event.ref,
      commits: event.commits,
      changed: event.changed,
      historyRewritten: event.history_rewritten,
      ticked: event.ticked,
      stillOpen: event.still_open,
      notAsked: event.not_asked,
      gone: event.gone ?? [],
    },
    ...(event.tree !== undefined && { tree: event.tree }),
    verdict: judged.verdict,
    reason: judged.reason,
    tellsNext: judged.tellsNext,
  }
  if (judged.verdict === 'complete') {
    // Gates may take minutes; a stop has five seconds.
    if (state.stop !== undefined && gates > 0) return interruptedAttempt(state, withKept)
    return enter(state, { phase: gates > 0 ? 'gating' : 'settling', current: withKept })
  }
  if (isManual(state) && isUnpromised(judged.verdict) && event.changed) {
    if (refused !== undefined) return failAttempt(state, withKept, refused)
    return enter(state, { phase: 'saving', current: { ...withKept, verdict: 'kept' } })
  }
  return enter(state, { phase: 'reverting', current: withKept })
}

/** A stop is known by who asked for it. */
function inWordsOf(stop: StartedState['stop'], judged: Judgement): Judgement {
  if (judged.verdict !== 'interrupted' || stop === undefined || stop === 'killed') return judged
  return { ...judged, reason: stoppedBy(stop) }
}

/** Whether its ending allows for a checkpoint at all. */
export function mayBeSaved(state: Turn<'keeping'>): boolean {
  const { verdict } = judge(state.current.ended, undefined, state.settings)
  return verdict === 'complete' || (isManual(state) && isUnpromised(verdict))
}

function isUnpromised(verdict: Verdict): boolean {
  return verdict === 'none' || verdict === 'crash' || verdict === 'timeout' || verdict === 'idle'
}

export function failAttempt(state: StartedState, current: KeptTurn, reason: string): StartedState {
  return enter(state, {
    phase: 'reverting',
    current: { ...current, verdict: 'failed', reason, tellsNext: true },
  })
}

export function interruptedAttempt(state: StartedState, current: KeptTurn): StartedState {
  const { stop } = state
  const by = stop === undefined || stop === 'killed' ? 'stopped' : stoppedBy(stop)
  const reason = `${by}, before its gates had passed`
  return enter(state, {
    phase: 'reverting',
    current: { ...current, verdict: 'interrupted', reason, tellsNext: false },
  })
}

/**
 * Iterations that the plan did not reckon with: the provider's fault, or a large story's next part. The latter only while
 * boxes get fewer, since an agent may add as many as it ticks, and never beyond a number that the user gave.
 */
function grows(state: StartedState, current: Current, verdict: Verdict): boolean {
  if (verdict === 'limit' || verdict === 'fatal') return true
  const isFewer = state.tasksTotal - state.tasksDone < current.openTasks
  return verdict === 'progress' && isFewer && state.settings.max_iterations === undefined
}

export function iterationEnded(state: Turn<'recording'>, event: Of<'iteration.ended'>): StartedState {
  const { current } = state
  const record = event.iteration
  const { verdict, story_id: storyId } = record
  const ending = current.ended?.ending ?? 'stopped'
  const blameless = isBlameless(verdict)
  const keptSomething = current.saved?.changed === true
  const limitedUntilMs =
    verdict === 'limit'
      ? {
          ...state.limitedUntilMs,
          [record.agent]: askAgainMs(state, record.agent, ending, current.ended?.resets_at_ms),
        }
      : verdict === 'fatal'
        ? { ...state.limitedUntilMs, [record.agent]: Number.POSITIVE_INFINITY }
        : state.limitedUntilMs
  const recorded = {
    ...state,
    iterations: [...state.iterations, record],
    retries: usesRetry(verdict)
      ? { ...state.retries, [storyId]: (state.retries[storyId] ?? 0) + 1 }
      : state.retries,
    // The same attempt runs again after a limit or a stop, so its reason still stands.
    failure: blameless
      ? state.failure
      : current.tellsNext
        ? { storyId, reason: current.tells ?? record.reason, gate: current.failedGate }
        : undefined,
    // Nothing of the agent's was there when it failed.
    baselines:
      current.failedGate !== undefined && current.kept?.changed === false
        ? { ...state.baselines, [current.failedGate.gate]: 'same' as const }
        : state.baselines,
    feedback: blameless ? state.feedback : undefined,
    notes: blameless ? state.notes : state.notes.filter(({ n }) => n >= record.n),
    commitless: blameless ? state.commitless : keptSomething ? 0 : state.commitless + 1,
    maxIterations: grows(state, current, verdict) ? state.maxIterations + 1 : state.maxIterations,
    limitedUntilMs,
    waits: verdict === 'limit' ? state.waits + 1 : blameless ? state.waits : 0,
    waitedMs: blameless ? state.waitedMs : 0,
  }
  // An error of ralph's own, or a gate that cannot be run, has set the outcome already.
  if (state.outcome?.stopReason === 'gate' && state.stop !== 'killed')
    return conclude(recorded, state.outcome)
  if (state.outcome !== undefined) return enter({ ...recorded, choice: 'later' }, { phase: 'completing' })
  return follow(recorded, { record, ending, isUnpaid: current.ended?.unpaid === true })
}

/** Nothing was begun: no iteration, no retry. Another agent of the chain is looked at next. */
export function loginLimited(
  state: StartedState & { readonly storyId: string },
  { agent, until, until_ms: untilMs, now_ms: nowMs }: Of<'login.limited'>,
): StartedState {
  const limited = { ...state, nowMs, limitedUntilMs: { ...state.limitedUntilMs, [agent]: untilMs } }
  return take(limited, decideElsewhere(limited, state.storyId, `${agent} is at its limit until ${until}`))
}

/** Where a human has ended it, only what was waited counts, and its agent is asked whatever its provider said. */
export function waitEnded(state: Turn<'waiting'>, { skipped_ms: skippedMs }: Of<'wait.ended'>): StartedState {
  const { agent } = state.waiting
  const untilMs = skippedMs ?? state.waiting.untilMs
  const waited = {
    ...state,
    ...(skippedMs !== undefined && { limitedUntilMs: { ...state.limitedUntilMs, [agent]: 0 } }),
    waitedMs: state.waitedMs + Math.max(0, untilMs - state.nowMs),
    nowMs: Math.max(state.nowMs, untilMs),
  }
  return state.stop === undefined
    ? enter(waited, { phase: 'planning' })
    : conclude(waited, interruptedOutcome(state))
}

export function choiceMade(state: StartedState, choice: Of<'choice.made'>['choice']): StartedState {
  if (state.phase === 'choosing' && (choice === 'cleanup' || choice === 'keep' || choice === 'later')) {
    return enter(state, { phase: 'finishing', choice })
  }
  if (state.phase !== 'confirming') return state
  if (state.stop !== undefined) return conclude(state, interruptedOutcome(state))
  if (choice === 'done') {
    const { stories, outcome: done } = accepted(state)
    return conclude({ ...state, stories }, done)
  }
  if (choice === 'go_on') return follow(state)
  if (isMerge(state))
    return conclude(
      state,
      outcome('human', 'The agent says that both sides are merged.', 'Whether it is accepted: ralph queue'),
    )
  return conclude(
    state,
    outcome(
      'human',
      'The agent says that it is complete; you decide whether it is.',
      `Type: ralph done ${state.changeId}, or ralph resume ${state.changeId} --feedback "what is missing"`,
    ),
  )
}

/** An error that ends the loop: the tree stays as it is until the next command settles it; an open iteration is still recorded (tried once more if that is what failed). */
export function failed(state: StartedState, event: Of<'error'>): StartedState {
  const isSecond = state.outcome?.stopReason === 'error'
  if (state.outcome !== undefined && (isSecond || state.current === undefined))
    return enter(cutShort(state, state.outcome, event), { phase: 'completing' })
  const ran = state.current !== undefined || (state.storyId !== undefined && state.iterations.length > 0)
  // 2 says that nothing was touched.
  const exitCode = ran && event.exit_code === 2 ? 1 : (event.exit_code ?? 1)
  const end = outcome('error', event.message, event.hint, { exitCode })
  const ended = { ...state, outcome: end, choice: 'later' as const }
  if (state.current === undefined) return enter(ended, { phase: 'completing' })
  if (state.phase === 'recording') return enter(ended, { phase: 'recording', current: state.current })
  const { n, storyId } = state.current
  const earned = state.phase === 'saving' ? earnedBy(state, state.current) : {}
  const current: Current = { ...state.current, verdict: 'error', reason: event.message, tellsNext: false }
  return enter({ ...ended, unsettled: { n, storyId, ...earned } }, { phase: 'recording', current })
}

function cutShort(state: StartedState, end: Outcome, event: Of<'error'>): StartedState {
  const { current, iterations } = state
  return {
    ...state,
    iterations:
      current === undefined ? iterations : [...iterations, unrecorded(current, event.time, event.message)],
    // All stories may be complete, but the loop did not get to its end.
    outcome: end.exitCode === 0 ? outcome('error', event.message, event.hint) : end,
    choice: 'later',
  }
}

/** What is left to do and to tell for an attempt that was to be saved. */
export function earnedBy(
  state: StartedState,
  { n, storyId, tree, rounds, verdict = 'complete', kept }: Current,
): Pick<NonNullable<StartedState['unsettled']>, 'message' | 'verdict' | 'gone' | 'tree'> {
  const earned = { message: checkpointMessage(state, n, storyId), verdict, gone: kept?.gone ?? [] }
  return tree === undefined || rounds === 0 ? earned : { ...earned, tree }
}

export function checkpointMessage(state: StartedState, n: number, storyId: string): string {
  return isManual(state) ? `checkpoint: iteration-${n}` : `checkpoint: ${storyId}`
}
