// The loop's state as `.claude/loop-state.json` and `ralph status` show it. Apart from the schema: who only shows needs no zod.
import { modelOf } from './limits.ts'
import type { StateFile } from './state-file.ts'
import type { LoopState } from './state.ts'
import { isUnrepaired, totalCostUsd, totalTokens } from './state.ts'
import { provenStories } from './story.ts'

export function toStateFile(state: LoopState): StateFile {
  const { settings } = state
  const cost = totalCostUsd(state)
  const agent = state.current?.agent ?? settings?.agents[0] ?? ''
  const model = modelOf(settings, agent, state.current?.storyId)
  return {
    schema_version: 1,
    change_id: state.changeId,
    status: state.status,
    current_iteration: state.current?.n ?? state.iterations.length,
    max_iterations: state.maxIterations,
    started_at: state.startedAt ?? '',
    updated_at: state.updatedAt,
    task: settings?.task ?? '',
    iterations: [...state.iterations],
    done_criteria: settings?.done_criteria ?? 'tasks',
    stall_threshold: settings?.stall_threshold ?? 1,
    iteration_timeout_min: settings?.iteration_timeout_min ?? 45,
    total_tokens: totalTokens(state),
    ...(cost !== undefined && { cost_usd: cost }),
    worktree_name: state.worktreeName ?? '',
    terminal_pid: state.pid ?? 0,
    ...(state.current !== undefined && { current: toCurrent(state.current) }),
    stories: [...provenStories(state)],
    ...(state.outcome !== undefined && { stop_reason: state.outcome.stopReason }),
    ...(isUnrepaired(state) && { died: true as const }),
    ...waitingFields(state),
    ...(state.notes.length > 0 && { for_next_prompt: state.notes.map(({ text }) => text) }),
    tasks_file: state.tasksFile ?? '',
    original_branch: state.originalBranch ?? '',
    checkpoint: state.git.lastCheckpoint ?? '',
    ...(state.choice !== undefined && { choice: state.choice }),
    ...(state.gone.length > 0 && { gone: [...state.gone] }),
    agent,
    ...(model !== undefined && { model }),
    ...(settings?.max_tokens !== undefined && { token_budget: settings.max_tokens }),
  }
}

function toCurrent(current: NonNullable<LoopState['current']>): StateFile['current'] {
  return {
    n: current.n,
    story_id: current.storyId,
    attempt: current.attempt,
    started: current.started,
    base_commit: current.baseCommit,
    agent: current.agent,
    ...(current.agentPid !== undefined && { agent_pid: current.agentPid }),
    ...(current.sessionId !== undefined && { session_id: current.sessionId }),
    last_activity: current.lastActivity,
  }
}

export function waitingFields(
  state: LoopState,
): Pick<StateFile, 'waiting_for' | 'waiting_until' | 'pause_requested'> {
  if (state.phase === 'confirming' || state.phase === 'choosing') return { waiting_for: 'human' }
  const waitsFor = state.phase === 'waiting' ? state.waiting.for : undefined
  const isAhead = state.current !== undefined || (waitsFor !== undefined && waitsFor !== 'pause')
  const asked = state.pause && isAhead ? { pause_requested: true as const } : {}
  if (state.phase !== 'waiting') return asked
  const { for: what, until = '' } = state.waiting
  return {
    ...asked,
    waiting_for: what,
    ...(until !== '' && { waiting_until: until }),
  }
}
