// How a run begins or goes on: the first event, and the first reading of the plan that resolves its limits.
import type { LoopEvent, StorySummary } from './event.ts'
import { isManual } from './policy.ts'
import type { LoopState, StartedState } from './state.ts'
import { initialState, selectedStories } from './state.ts'
import { follow } from './transitions.ts'

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
  return state.phase === 'planning' ? follow(resolved) : resolved
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
