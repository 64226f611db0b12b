// How a run begins or goes on: the first event, and the first reading of the plan that resolves its limits.
import { withPassed } from './baseline.ts'
import type { LoopEvent, StorySummary } from './event.ts'
import { outcome } from './outcome.ts'
import { gatesOf } from './limits.ts'
import { isManual } from './policy.ts'
import type { LoopState, StartedState } from './state.ts'
import { initialState, selectedStories } from './state.ts'
import { conclude, follow } from './transitions.ts'

type Of<T extends LoopEvent['type']> = Extract<LoopEvent, { type: T }>

export function started(state: LoopState, event: Of<'loop.started'>): StartedState {
  const base = event.resumed ? state : initialState(state.changeId)
  // A human looked at it: whatever story was at its limit begins with fresh attempts.
  const stuck = base.outcome?.status === 'stuck' || base.outcome?.status === 'stalled'
  return {
    ...base,
    phase: 'planning',
    step: base.step + 1,
    runId: event.run_id,
    setUp: event.set_up,
    settings: event.settings,
    startedAt: base.startedAt ?? event.time,
    updatedAt: event.time,
    pid: event.pid,
    worktree: event.worktree,
    worktreeName: event.worktree_name,
    home: event.home,
    brought: event.brought ?? [],
    ...(event.by_hand !== undefined && { byHand: event.by_hand }),
    root: event.root,
    tasksFile: event.tasks_file,
    originalBranch: event.original_branch,
    branch: event.branch,
    // Resolved anew at the first reading of the plan, on top of what is used already.
    maxIterations: 0,
    storyId: undefined,
    retries: stuck ? {} : base.retries,
    // Its user may have mended a gate since.
    baselines: {},
    // Words that an interrupted or limited iteration never came to use are still the user's.
    feedback: event.feedback ?? base.feedback,
    current: undefined,
    absence: undefined,
    commitless: 0,
    limitedUntilMs: {},
    waits: 0,
    waitedMs: 0,
    waiting: undefined,
    stop: undefined,
    pause: false,
    outcome: undefined,
    reported: 0,
    choice: undefined,
    status: 'starting',
  }
}

export function planRead(state: StartedState, event: Of<'plan.read'>): StartedState {
  const read = {
    ...state,
    stories: event.only_changed === true ? withChanged(state.stories, event.stories) : event.stories,
    humanTasks: event.human_tasks,
    tasksDone: event.tasks_done,
    tasksTotal: event.tasks_total,
  }
  const resolved = read.maxIterations === 0 ? { ...read, maxIterations: resolveMaxIterations(read) } : read
  const ticked = tickedByHand(state, read.stories)
  const known = { ...resolved, byHand: ticked.length > 0 ? ticked : foundDone(state, read) }
  return state.phase === 'planning' ? follow(known) : known
}

/** Between two attempts only a person ticks: a box is their word until the gates have judged it. */
export function tickedByHand(before: StartedState, stories: readonly StorySummary[]): readonly string[] {
  if (isManual(before)) return []
  const { byHand = [], current, iterations } = before
  // What a death or an error had cut off may have been saved a moment ago.
  const last = current === undefined ? iterations.at(-1) : { ...current, story_id: current.storyId }
  const isEarned = (id: string): boolean => last?.story_id === id && last.verdict === 'complete'
  const statuses = new Map(before.stories.map(({ id, status }) => [id, status]))
  const isKnown = ({ id }: StorySummary): boolean => {
    const status = statuses.get(id)
    // What a run finds ticked at its beginning it takes over.
    const isOlder = before.stories.length === 0 || status === 'done' || (status === 'open' && isEarned(id))
    return isOlder && !byHand.includes(id)
  }
  return stories.filter((story) => story.status === 'done' && !isKnown(story)).map(({ id }) => id)
}

/** A run that finds nothing to do says done only once its gates have: nobody else has asked them. */
function foundDone(before: StartedState, read: StartedState): readonly string[] {
  const stories = selectedStories(read)
  if (isManual(read) || before.stories.length > 0 || stories.some(({ status }) => status !== 'done'))
    return []
  return stories.map(({ id }) => id).filter((id) => gatesOf(read.settings, id).length > 0)
}

export function handChecked(state: StartedState, event: Of<'hand.checked'>): StartedState {
  const { story_ids: ids, failed } = event
  // Stopped in the middle: they are judged when it continues.
  if (state.stop !== undefined) return follow(state)
  if (failed === undefined) {
    const baselines = ids.reduce((all, id) => withPassed({ ...state, baselines: all }, id), state.baselines)
    return follow({ ...state, byHand: [], baselines })
  }
  const names = ids.length === 1 ? `Story ${ids[0]} is` : `Stories ${ids.join(', ')} are`
  const box = ids.length === 1 ? 'its box' : 'their boxes'
  const hint = `Nothing was undone. Fix it, or untick ${box}; then type: ralph resume ${state.changeId}`
  const why = event.could_not_run === true ? 'gate' : 'hand'
  return conclude(state, outcome(why, `${names} ticked by hand, but ${failed}`, hint))
}

function withChanged(
  stories: readonly StorySummary[],
  changed: readonly StorySummary[],
): readonly StorySummary[] {
  const byId = new Map(changed.map((story) => [story.id, story]))
  return changed.length === 0 ? stories : stories.map((story) => byId.get(story.id) ?? story)
}

function resolveMaxIterations(state: StartedState): number {
  const { settings } = state
  if (settings.max_iterations !== undefined) return settings.max_iterations
  const used = state.iterations.length
  if (isManual(state)) return used + 10
  const open = selectedStories(state).filter((story) => story.status === 'open').length
  return Math.max(1, used + open * (1 + settings.max_retries))
}
