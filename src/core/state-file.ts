// `.claude/loop-state.json`, format version 1: its schema (contract 6).
import * as z from 'zod'
import { goneFileSchema, iterationSchema, loopStatuses, storySummarySchema } from './event.ts'

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
  /** It was killed, and nobody has put its work tree in order yet. */
  died: z.literal(true).optional(),
  waiting_for: z.enum(['limit', 'overloaded', 'offline', 'human', 'pause']).optional(),
  waiting_until: z.string().optional(),
  /** `ralph pause` was typed: the iteration that runs, or the wait for a limit, is the last before the pause. */
  pause_requested: z.literal(true).optional(),
  /** What a human has said to the running loop, for the next prompt. */
  for_next_prompt: z.array(z.string()).optional(),
  tasks_file: z.string(),
  original_branch: z.string(),
  checkpoint: z.string(),
  /** What became of the work at the end. */
  choice: z.enum(['cleanup', 'keep', 'later']).optional(),
  /** Uncommitted files of the user's that agents took away, each with the command that brings it back. */
  gone: z.array(goneFileSchema).optional(),
  agent: z.string(),
  model: z.string().optional(),
  token_budget: count.optional(),
  /** Absent when tokens were used and none of them has a price. */
  cost_usd: z.number().nonnegative().optional(),
})
export type StateFile = z.infer<typeof stateFileSchema>
