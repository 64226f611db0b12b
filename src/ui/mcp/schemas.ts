// What the tools answer, as schemas: a client checks the structured answers against them. All are loose: there may be more fields later.
import * as z from 'zod'
import { iterationSchema, storySummarySchema } from '../../core/event.ts'

export const changeId = z.string().min(1).max(200).describe('the change: its folder under openspec/changes')

const count = z.number().int().nonnegative()

/** One that wt-tools recorded has only the fields of the seed. */
const iterationSeen = iterationSchema.partial().extend({ n: z.number().int() })

/** As `LoopSeen`. */
const loopShape = {
  change_id: z.string(),
  status: z
    .string()
    .describe(
      'starting, running, done, stuck, stalled or stopped; a loop of wt-tools has its own words, such as waiting:budget',
    ),
  freshness: z
    .enum(['alive', 'stale', 'dead', 'ended'])
    .describe(
      'alive: its process is there and active; stale: it may hang, or runs where ralph cannot see it; dead: it did not end, and its process is gone; ended: it has ended',
    ),
  written_by: z.enum(['ralph', 'wt-tools']),
  current_iteration: z.number(),
  max_iterations: z.number(),
  started_at: z.string(),
  updated_at: z.string(),
  task: z.string(),
  total_tokens: z.number(),
  worktree: z.string(),
  stories_done: count.optional(),
  stories_total: count.optional(),
  cost_usd: z.number().optional(),
  waiting_for: z.string().optional(),
  waiting_until: z.string().optional(),
  stop_reason: z.string().optional(),
  died_at: z.string().optional(),
  orphan_pids: z.array(z.number()).optional().describe('processes of a dead loop that still run'),
  problem: z.string().optional().describe('why this may not be all'),
}

export const loopsSchema = z.looseObject({ loops: z.array(z.looseObject(loopShape)) })

/** The rest is there where one change was asked for. */
export const statusSchema = z.looseObject({
  loops: z.array(
    z.looseObject({
      ...loopShape,
      agent: z.string().optional(),
      model: z.string().optional(),
      done_criteria: z.string().optional(),
      original_branch: z.string().optional(),
      branch: z.string().optional(),
      choice: z.string().optional(),
      stories: z.array(storySummarySchema.loose()).optional(),
      current: z
        .object({
          n: count,
          story_id: z.string(),
          attempt: count,
          started: z.string(),
          agent: z.string(),
          last_activity: z.string(),
        })
        .optional()
        .describe('the iteration that runs now'),
      last_iteration: iterationSeen.optional(),
      notes: z.array(z.string()).optional(),
      finish_refused: z.string().optional(),
    }),
  ),
})

export const historySchema = z.looseObject({
  change_id: z.string(),
  iterations_total: count,
  iterations: z.array(iterationSeen).describe('the last of them, the oldest first'),
})

export const logSchema = z.looseObject({
  change_id: z.string(),
  iteration: count,
  story_id: z.string().optional(),
  attempt: count.optional(),
  text: z.string(),
  is_cut: z.boolean().describe('it begins earlier'),
})

export const diffSchema = z.looseObject({
  change_id: z.string(),
  n: count.optional(),
  what: z.string().describe('which story, and what became of the attempt'),
  patch: z.string(),
  is_cut: z.boolean().describe('there is more'),
})

export const changesSchema = z.looseObject({
  changes: z.array(
    z.looseObject({
      name: z.string(),
      title: z.string(),
      stories_done: count,
      stories_total: count,
      stories_open: count,
      tasks_done: count,
      tasks_total: count,
      status: z.string().describe('of its loop; empty where none ever ran'),
      loop_stories_done: count.optional(),
      loop_tasks_done: count.optional(),
      loop_branch: z.string().optional(),
      plan_on: z.string().optional(),
      parked: z.looseObject({ why: z.string(), hint: z.string() }).optional(),
      landed: z.looseObject({ target: z.string(), commit: z.string(), is_pulled: z.boolean() }).optional(),
      waiting_for: z.string().optional(),
      died_at: z.string().optional(),
      orphan_pids: z.array(z.number()).optional(),
      edited_at: z.string().optional(),
      problem: z.string().optional(),
    }),
  ),
})

export const changeSchema = z.looseObject({
  name: z.string(),
  title: z.string(),
  stories: z.array(
    z.looseObject({
      id: z.string(),
      title: z.string(),
      status: z.string(),
      tasks: z.array(z.looseObject({ id: z.string(), text: z.string(), state: z.string(), line: count })),
    }),
  ),
  scenarios: z.array(
    z.looseObject({
      capability: z.string(),
      requirement: z.string(),
      name: z.string(),
      steps: z.array(z.string()),
    }),
  ),
  lints: z.array(z.string()).optional(),
})

/** Of what was done: what else there is differs from deed to deed. */
export const saidSchema = z.looseObject({ message: z.string(), next: z.string().optional() })
