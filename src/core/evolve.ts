// How each event changes the state: one exhaustive switch, no effects.
import { handChecked, planRead, started } from './beginning.ts'
import { withPassed } from './baseline.ts'
import { died, keptLate, prolonged, savedLate } from './death.ts'
import { isTalk } from './cursor.ts'
import type { TalkEvent } from './cursor.ts'
import type { LoopEvent } from './event.ts'
import { remember } from './git-memory.ts'
import { checkpointRefused, gatesChecked } from './gating.ts'
import { noteAdded } from './notes.ts'
import { outcome } from './outcome.ts'
import { accepted } from './policy.ts'
import type { LoopState, StartedState } from './state.ts'
import {
  enter,
  patchCurrent,
  reported,
  verified,
  iterationStarted,
  kept,
  iterationEnded,
  loginLimited,
  waitEnded,
  choiceMade,
  failed,
} from './transitions.ts'
import { testsAfter, weakenedBy } from './weakness.ts'

export function evolve(before: LoopState, event: LoopEvent): LoopState {
  if (isTalk(event)) return heard(before, event)
  const after = evolveLoop(before, event)
  const git = remember(before.git, event)
  const weakened = weakenedBy(before.weakened, event)
  const testsChanged = testsAfter(before.testsChanged, event)
  const isSame = after.git === git && after.weakened === weakened && after.testsChanged === testsChanged
  return isSame ? after : { ...after, git, weakened, testsChanged }
}

/** A flood has thousands within one second: only the first of them changes anything. */
function heard(before: LoopState, { n, time }: TalkEvent): LoopState {
  if (before.phase === 'ended') return before
  const current = before.phase === 'idle' ? undefined : before.current
  if (before.updatedAt === time && (current?.n !== n || current.lastActivity === time)) return before
  const after = { ...before, updatedAt: time }
  return after.phase === 'idle' ? after : patchCurrent(after, n, { lastActivity: time })
}

function evolveLoop(before: LoopState, event: Exclude<LoopEvent, TalkEvent>): LoopState {
  if (event.type === 'loop.started') return started(before, event)
  if (before.phase === 'idle') return { ...before, updatedAt: event.time }
  // Also in the wake of an error: what was under way may still have come to its end.
  const settles =
    (event.type === 'checkpoint.saved' || event.type === 'checkpoint.reverted') &&
    event.n !== undefined &&
    event.n === before.unsettled?.n
  // After `complete` only a new start (or the human's word) moves the loop again.
  if (before.phase === 'ended') {
    if (event.type === 'loop.finished')
      return event.ok ? { ...before, choice: event.choice, gone: allGone(before, event) } : before
    if (event.type === 'checkpoint.saved' && settles) return savedLate(before, event)
    if (settles) return { ...before, unsettled: undefined }
    if (event.type === 'attempt.kept') return keptLate(before, event)
    if (event.type === 'orphans.ended' || event.type === 'repair.began' || event.type === 'repair.ended')
      return { ...before, absence: prolonged(before.absence, event) }
    if (event.type === 'merge.refused') return refused(before, event.problems)
    if (event.type !== 'human.done') return before
  }
  const state: StartedState = {
    ...before,
    updatedAt: event.time,
    ...(settles && { unsettled: undefined }),
  }
  switch (event.type) {
    case 'plan.read':
      return planRead(state, event)
    case 'hand.checked':
      return state.phase === 'proving' ? handChecked(state, event) : state
    case 'story.started':
      return state.phase === 'opening_story'
        ? enter(state, { phase: 'ensuring', storyId: state.storyId })
        : state
    case 'checkpoint.verified':
      return state.phase === 'ensuring' ? verified(state) : state
    case 'iteration.started':
      return state.phase === 'opening_iteration' ? iterationStarted(state, event) : state
    case 'agent.started':
      return patchCurrent(state, event.n, { agentPid: event.pid, agentPidStarted: event.pid_started })
    case 'agent.session':
      return patchCurrent(state, event.n, { sessionId: event.session_id, lastActivity: event.time })
    case 'agent.usage': {
      // Only the budget looks at it: the record is made from what stands there at the end.
      if (event.source !== undefined) return patchCurrent(state, event.n, { lastActivity: event.time })
      const { input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, cost_usd } = event
      const usage = {
        input_tokens,
        output_tokens,
        cache_read_tokens,
        cache_creation_tokens,
        ...(cost_usd !== undefined && { cost_usd }),
      }
      return patchCurrent(state, event.n, { lastActivity: event.time, usage })
    }
    case 'claim.made':
      return patchCurrent(state, event.n, { claims: event.claim, lastActivity: event.time })
    case 'claim.stirred': {
      const made = [...new Set([...(state.current?.madeByClaims ?? []), ...event.made])]
      return patchCurrent(state, event.n, { madeByClaims: made })
    }
    case 'claim.judged':
    case 'failure.reported':
    case 'progress.reported':
      return patchCurrent(state, event.n, { lastActivity: event.time })
    case 'baseline.ended':
      return { ...state, baselines: { ...state.baselines, [event.command]: event.outcome } }
    case 'agent.ended':
      if (state.phase !== 'working' || state.current.n !== event.n) return state
      return enter(
        { ...state, nowMs: event.now_ms },
        { phase: 'keeping', current: { ...state.current, ended: event } },
      )
    case 'attempt.kept':
      return state.phase === 'keeping' && state.current.n === event.n ? kept(state, event) : state
    case 'gates.checked':
      return state.phase === 'gating' && state.current.n === event.n ? gatesChecked(state, event) : state
    case 'boxes.settled': {
      if (state.phase !== 'settling' || state.current.n !== event.n) return state
      const verdict = event.remaining > 0 ? 'partial' : event.not_asked > 0 ? 'progress' : 'complete'
      const left = event.remaining + event.not_asked
      const reason =
        left > 0
          ? `${left === 1 ? '1 task of the story is' : `${left} tasks of the story are`} still open`
          : ''
      const isTickedByRalph = event.ticked_by_ralph > 0
      const current = { ...state.current, verdict, reason, isTickedByRalph } as const
      return enter(state, { phase: 'saving', current })
    }
    case 'checkpoint.saved': {
      const { commit, changed, only_plan: isPlanOnly = false } = event
      if (state.phase !== 'saving' || state.current.n !== event.n) return state
      const gone = allGone({ gone: [...state.gone, ...state.current.kept.gone] }, event)
      const current = { ...state.current, saved: { commit, changed, isPlanOnly } }
      const baselines = withPassed(state, current.storyId)
      return enter({ ...state, gone, baselines }, { phase: 'recording', current })
    }
    case 'checkpoint.refused':
      return state.phase === 'saving' && state.current.n === event.n ? checkpointRefused(state, event) : state
    case 'checkpoint.reverted':
      return state.phase === 'reverting' && state.current.n === event.n
        ? enter(state, { phase: 'recording', current: state.current })
        : state
    case 'iteration.ended':
      return state.phase === 'recording' && state.current.n === event.iteration.n
        ? iterationEnded(state, event)
        : state
    case 'login.limited':
      return state.phase === 'opening_iteration' ? loginLimited(state, event) : state
    case 'waiting':
      return state.phase === 'waiting'
        ? { ...state, waiting: { ...state.waiting, until: event.until } }
        : state
    case 'wait.ended':
      return state.phase === 'waiting' ? waitEnded(state, event) : state
    case 'note.added':
      return noteAdded(state, event)
    case 'pause.requested':
      return { ...state, pause: true }
    case 'pause.lifted':
      return { ...state, pause: false }
    case 'stop.requested':
      return { ...state, stop: state.stop ?? (event.unread === true ? 'unread' : event.signal) }
    case 'choice.made':
      return choiceMade(state, event.choice)
    case 'loop.finished':
      return state.phase === 'finishing'
        ? enter(
            { ...state, choice: event.ok ? event.choice : 'later', gone: allGone(state, event) },
            { phase: 'completing' },
          )
        : state
    case 'complete':
      return state.phase === 'completing'
        ? enter({ ...state, status: event.status, stop: undefined }, { phase: 'ended' })
        : state
    case 'error':
      return event.exit_code === undefined ? reported(state) : failed(state, event)
    case 'max_retries_exceeded':
      return reported(state)
    case 'warning':
      return event.code === 'human_needed' ? reported(state) : state
    case 'human.done':
      return enter({ ...state, ...accepted(state) }, { phase: 'completing' })
    case 'loop.died':
      return died(state, event)
    case 'orphans.ended':
    case 'repair.began':
    case 'repair.ended':
      return { ...state, absence: prolonged(state.absence, event) }
    case 'baseline.started':
    case 'merge.refused':
    case 'gate.started':
    case 'gate.ended':
    case 'choice.needed':
    case 'git.began':
    case 'git.step':
    case 'git.ended':
      return state
  }
}

/** What was told on the way, and what the end has found besides. */
function allGone(
  { gone }: Pick<StartedState, 'gone'>,
  { gone: found = [] }: { readonly gone?: StartedState['gone'] | undefined },
): StartedState['gone'] {
  return [...gone, ...found.filter(({ path }) => !gone.some((each) => each.path === path))]
}

/** Its agent said that it was complete; the queue has looked. */
function refused(state: StartedState, problems: readonly string[]): StartedState {
  const why = problems.join('; ')
  const last = state.iterations.at(-1)
  return {
    ...state,
    outcome: outcome('human', `The merge was refused: ${why}.`, 'What to do: ralph queue'),
    iterations: state.iterations.map((each) =>
      each === last && each.verdict === 'complete' ? { ...each, verdict: 'refused', reason: why } : each,
    ),
  }
}
