// `.claude/loop-state.json`, format version 1: its schema, and how it is made from the loop's state (contract 6).
import { z } from 'zod'
import { iterationSchema, loopStatuses, storySummarySchema } from './event.ts'
import type { LoopState } from './state.ts'
import { totalCostUsd, totalTokens } from './state.ts'

const count = z.number().int().nonnegative()

const currentSchema = z.object({
  n: z.number().int().positive(),
  story_id: z.string(),
  attempt: z.number().int().positive(),
  started: z.string(),
  base_commit: z.string(),
  agent: z.string(),
  agent_pid: count.optional(),
  session_id: z.string().optional(),
  last_activity: z.string(),
})

/** Loose: fields of other programs are kept. */
export const stateFileSchema = z.looseObject({
  schema_version: z.literal(1),
  change_id: z.string(),
  status: z.enum(loopStatuses),
  current_iteration: count,
  max_iterations: count,
  started_at: z.string(),
  task: z.string(),
  iterations: z.array(iterationSchema),
  done_criteria: z.enum(['tasks', 'manual']),
  stall_threshold: z.number().int().positive(),
  iteration_timeout_min: z.number().positive(),
  total_tokens: count,
  updated_at: z.string(),
  worktree_name: z.string(),
  terminal_pid: count,
  current: currentSchema.optional(),
  stories: z.array(storySummarySchema),
  stop_reason: z.string().optional(),
  waiting_for: z.enum(['limit', 'overloaded', 'offline', 'human']).optional(),
  waiting_until: z.string().optional(),
  tasks_file: z.string(),
  original_branch: z.string(),
  checkpoint: z.string(),
  /** What became of the work at the end. */
  choice: z.enum(['cleanup', 'keep', 'later']).optional(),
  agent: z.string(),
  model: z.string().optional(),
  token_budget: count.optional(),
  /** Absent when tokens were used and none of them has a price. */
  cost_usd: z.number().nonnegative().optional(),
})
export type StateFile = z.infer<typeof stateFileSchema>

/** Fields that ralph writes; anything else in the file belongs to somebody else. */
export const ownFields: readonly string[] = Object.keys(stateFileSchema.shape)

export function toStateFile(state: LoopState): StateFile {
  const settings = state.settings
  const cost = totalCostUsd(state)
  return {
    schema_version: 1,
    change_id: state.changeId,
    status: state.status,
    current_iteration: state.current?.n ?? state.iterations.length,
    max_iterations: state.maxIterations,
    started_at: state.startedAt,
    updated_at: state.updatedAt,
    task: settings?.task ?? '',
    iterations: [...state.iterations],
    done_criteria: settings?.done_criteria ?? 'tasks',
    stall_threshold: settings?.stall_threshold ?? 1,
    iteration_timeout_min: settings?.iteration_timeout_min ?? 45,
    total_tokens: totalTokens(state),
    ...(cost !== undefined && { cost_usd: cost }),
    worktree_name: state.worktreeName,
    terminal_pid: state.pid,
    ...(state.current !== undefined && { current: toCurrent(state.current) }),
    stories: [...state.stories],
    ...(state.outcome !== undefined && { stop_reason: state.outcome.stopReason }),
    ...waitingFields(state),
    tasks_file: state.tasksFile,
    original_branch: state.originalBranch,
    checkpoint: state.checkpoint,
    ...(state.choice !== undefined && { choice: state.choice }),
    agent: state.current?.agent ?? settings?.agents[0] ?? '',
    ...(settings?.model !== undefined && { model: settings.model }),
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

function waitingFields(state: LoopState): Pick<StateFile, 'waiting_for' | 'waiting_until'> {
  if (state.phase === 'confirming' || state.phase === 'choosing') return { waiting_for: 'human' }
  if (state.phase !== 'waiting' || state.waiting === undefined) return {}
  return {
    waiting_for: state.waiting.for,
    ...(state.waiting.until !== '' && { waiting_until: state.waiting.until }),
  }
}
