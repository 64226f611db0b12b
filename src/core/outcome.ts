// How a loop can end: status, exit code, the sentence that says why, and the reports that go out before `complete`.
import type { EventBody } from './event.ts'
import { notKept } from './report.ts'
import type { StartedState, Outcome, StopReason } from './state.ts'
import { selectedStories, totalCostUsd, totalTokens } from './state.ts'
import { ownStories, provenStories } from './story.ts'
import { doubtsOf } from './weakness.ts'

/** As a shell says it: 128 and the signal's number. */
export const signalExits = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }

/** A reader that left is no signal, and has the exit code of the one that comes when a terminal leaves. */
export const stopExits = { ...signalExits, unread: signalExits.SIGHUP }

/** Whose doing a stop is, in the words of the person who reads it. */
export function stoppedBy(signal: keyof typeof stopExits): string {
  if (signal === 'SIGINT') return 'stopped by you'
  if (signal === 'unread') return 'stopped by a closed pipe: the program that read its output has ended'
  return signal === 'SIGHUP' ? 'stopped by a closed terminal (SIGHUP)' : 'stopped by ralph stop'
}

/** Of a loop that was killed, once a look has written that down. */
export const killedExit = 137

const exits: Record<StopReason, readonly [status: Outcome['status'], exitCode: number]> = {
  done: ['done', 0],
  retries: ['stuck', 3],
  iterations: ['stuck', 3],
  stall: ['stalled', 4],
  hand: ['stuck', 3],
  human: ['stopped', 5],
  budget: ['stopped', 6],
  limit: ['stopped', 6],
  auth: ['stopped', 6],
  missing: ['stopped', 6],
  model: ['stopped', 6],
  signal: ['stopped', 143],
  killed: ['stopped', killedExit],
  gate: ['stopped', 1],
  error: ['stopped', 1],
}

/** What the user has to decide or to know once the loop is over; a line for each stands in the summary, too. */
export const lastingWarnings: ReadonlySet<string> = new Set([
  'commit_off',
  'config_changed',
  'converted',
  'git_settings',
  'hidden_work',
  'hooks_changed',
  'set_aside',
  'submodule_swept',
  'undone_after_death',
])

export function outcome(
  stopReason: StopReason,
  reason: string,
  hint: string,
  more: { readonly exitCode?: number; readonly storyId?: string } = {},
): Outcome {
  const [status, exitCode] = exits[stopReason]
  return { status, stopReason, reason, hint, exitCode, ...more }
}

/** Every end but success, a signal and a bug is explained by an event of its own before `complete`. */
export function reportsOf(state: StartedState): readonly EventBody[] {
  const end = state.outcome
  if (end === undefined) return []
  const story = end.storyId === undefined ? {} : { story_id: end.storyId }
  const error: EventBody = {
    type: 'error',
    code: end.stopReason,
    message: end.reason,
    hint: end.hint,
    ...story,
  }
  switch (end.stopReason) {
    case 'retries':
      return [
        error,
        {
          type: 'max_retries_exceeded',
          story_id: end.storyId ?? '',
          attempts: state.settings.max_retries + 1,
        },
      ]
    case 'human':
      return [{ type: 'warning', code: 'human_needed', message: `${end.reason} ${end.hint}` }]
    case 'iterations':
    case 'gate':
    case 'stall':
    case 'hand':
    case 'budget':
    case 'limit':
    case 'auth':
    case 'missing':
    case 'model':
      return [error]
    case 'done':
    case 'signal':
    case 'killed':
    case 'error':
      return []
  }
}

type Complete = Extract<EventBody, { type: 'complete' }>

export function completeEvent(state: StartedState): Complete {
  const end = endOf(state)
  return {
    type: 'complete',
    status: end.status,
    exit_code: end.exitCode,
    choice: state.choice ?? 'later',
    ...(state.gone.length > 0 && { gone: [...state.gone] }),
    ...resultOf(state),
  }
}

function endOf(state: StartedState): Outcome {
  return state.outcome ?? outcome('error', 'the loop ended without an outcome', '')
}

/** Of the stories that it was asked for; else as OpenSpec counts them. */
function tasksOf(state: StartedState): { tasks_done: number; tasks_total: number } {
  if (state.settings.stories.length === 0)
    return { tasks_done: state.tasksDone, tasks_total: state.tasksTotal }
  const stories = selectedStories(state)
  return {
    tasks_done: stories.reduce((sum, story) => sum + story.tasks_done, 0),
    tasks_total: stories.reduce((sum, story) => sum + story.tasks_total, 0),
  }
}

/** What a person asks first: why, and what came of it. */
export function resultOf(
  state: StartedState,
): Pick<Complete, 'reason' | 'stop_reason' | 'totals' | 'warnings' | 'tests_changed'> {
  const own = ownStories(provenStories({ ...state, stories: selectedStories(state) }))
  const cost = totalCostUsd(state)
  const end = endOf(state)
  const warnings = doubtsOf(state)
  return {
    reason: end.reason,
    stop_reason: end.stopReason,
    totals: {
      iterations: state.iterations.length,
      stories_done: own.filter((story) => story.status === 'done').length,
      stories_total: own.length,
      ...tasksOf(state),
      tokens: totalTokens(state),
      ...(state.iterations.some((iteration) => iteration.tokens_estimated) && { tokens_estimated: true }),
      ...(cost !== undefined && { cost_usd: cost }),
      duration_ms: state.iterations.reduce((sum, iteration) => sum + iteration.duration_ms, 0),
      not_kept: notKept(state.iterations),
    },
    ...(warnings.length > 0 && { warnings: [...warnings] }),
    ...(state.testsChanged.length > 0 && { tests_changed: [...state.testsChanged] }),
  }
}

/** As a reason stands after a colon; a name keeps its capital. */
export function afterColon(reason: string): string {
  return reason.replace(/^(?:The|No|Only) /, (word) => word.toLowerCase())
}
