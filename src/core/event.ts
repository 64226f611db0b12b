// Every fact of a loop, as one closed union: the reducer's input, the journal's lines, the readers' stream.
// Long because a closed union is looked up in one place: a fact in another file would be a fact one forgets.
import * as z from 'zod'
import type { UsageFigures } from './usage.ts'

/** How an agent's turn ended; what each means for the story is in verdict.ts. */
export const agentEndings = [
  'finished', // its turn is over by its own account, or it exited 0
  'crash', // exit code, signal or error result without a better name
  'timeout', // ended by ralph: wall clock
  'idle', // ended by ralph: no output and no child activity
  'stopped', // ended by ralph: the user, a signal
  'budget', // ended by ralph: hard stop of --max-tokens/--max-cost
  'no_turn', // it never asked its model
  'question', // it asked something and stopped
  'refused_permission', // a tool was refused
  'limit', // the provider's usage limit
  'overloaded',
  'offline',
  'auth',
  'missing',
  'model',
] as const
export type AgentEnding = (typeof agentEndings)[number]

/** What became of an iteration, in the journal, the state file and the reports. */
const verdicts = [
  'complete', // story done, checkpoint saved
  'partial', // COMPLETE, but only some boxes ticked: kept, one retry used
  'progress', // COMPLETE for all that was asked of a large story: kept, the story goes on, no retry used
  'failed', // FAILED: reason
  'gate_failed', // COMPLETE, but a gate did not pass
  'none', // no promise
  'timeout',
  'idle',
  'crash',
  'limit', // not the story's fault: limit, overloaded, offline
  'fatal', // login, missing agent, unknown model
  'interrupted', // stopped by the user, a signal, or a kill
  'budget',
  'kept', // manual mode: work kept without a promise
  'refused', // a merge of two changes that the queue has not accepted: kept, the next try goes on from it
  'error', // ralph itself could not go on
] as const
export type Verdict = (typeof verdicts)[number]

export const storySummarySchema = z.object({
  id: z.string(),
  title: z.string(),
  status: z.enum(['open', 'done', 'human', 'deferred']),
  tasks_done: z.number().int(),
  tasks_total: z.number().int(),
})
export type StorySummary = z.infer<typeof storySummarySchema>

export const iterationSchema = z.looseObject({
  n: z.number().int().positive(),
  started: z.string(),
  ended: z.string(),
  done_check: z.boolean(),
  commits: z.array(z.string()),
  tokens_used: z.number().int().nonnegative(),
  timed_out: z.literal(true).optional(),
  tokens_estimated: z.literal(true).optional(),
  story_id: z.string(),
  attempt: z.number().int().positive(),
  verdict: z.enum(verdicts),
  reason: z.string(),
  exit_code: z.number().int().optional(),
  signal: z.string().optional(),
  attempt_ref: z.string().optional(),
  input_tokens: z.number().int().nonnegative(),
  output_tokens: z.number().int().nonnegative(),
  cache_read_tokens: z.number().int().nonnegative(),
  cache_creation_tokens: z.number().int().nonnegative(),
  cost_usd: z.number().nonnegative().optional(),
  agent: z.string(),
  log_file: z.string(),
  /** Where the figures come from, and what another source says otherwise: for `ralph why`. */
  tokens_source: z.string().optional(),
  tokens_note: z.string().optional(),
  duration_ms: z.number().int().nonnegative(),
  history_rewritten: z.literal(true).optional(),
  /** Complete, and nothing but its boxes changed: the agent's word is all there is. */
  unchanged: z.literal(true).optional(),
  /** How often its agent claimed that the story was complete. */
  claims: z.number().int().positive().optional(),
})
export type IterationRecord = z.infer<typeof iterationSchema>

/** The settings that decide how the loop goes; resolved once, written into `loop.started`. */
const settingsSchema = z.object({
  max_retries: z.number().int().nonnegative(),
  /** Absent: open stories x (1 + max_retries), or 10 in manual mode. */
  max_iterations: z.number().int().positive().optional(),
  stall_threshold: z.number().int().positive(),
  done_criteria: z.enum(['tasks', 'manual']),
  task: z.string(),
  iteration_timeout_min: z.number().positive(),
  idle_timeout_min: z.number().nonnegative(),
  limit_wait_min: z.number().nonnegative(),
  gates: z.array(z.string()),
  /** By story id: further gates, and the model of the first agent. */
  story_settings: z
    .record(z.string(), z.object({ gates: z.array(z.string()), model: z.string().optional() }))
    .optional(),
  /** Only these stories; empty means all. */
  stories: z.array(z.string()),
  /** Preferred first. */
  agents: z.array(z.string()).min(1),
  model: z.string().optional(),
  checkpoint: z.enum(['branch', 'stash']),
  on_complete: z.enum(['ask', 'cleanup', 'keep']),
  max_tokens: z.number().int().positive().optional(),
  max_cost_usd: z.number().positive().optional(),
  /** How often an agent may claim in one attempt that its story is complete; absent, or 0: it cannot. */
  claims: z.number().int().nonnegative().optional(),
  /** What agent and gates are kept in; absent: nothing. */
  sandbox: z.enum(['workspace', 'strict']).optional(),
})
export type Settings = z.infer<typeof settingsSchema>

const usageSchema = z.object({
  input_tokens: z.number().int().nonnegative(),
  output_tokens: z.number().int().nonnegative(),
  cache_read_tokens: z.number().int().nonnegative(),
  cache_creation_tokens: z.number().int().nonnegative(),
  cost_usd: z.number().nonnegative().optional(),
}) satisfies z.ZodType<UsageFigures>

const promiseSchema = z.discriminatedUnion('kind', [
  /** `claim`: by the claim of this number, which was accepted. */
  z.object({ kind: z.literal('complete'), claim: z.number().int().optional() }),
  z.object({ kind: z.literal('failed'), reason: z.string() }),
  z.object({ kind: z.literal('none') }),
])

/** What `Agent.work` says at the end of a turn. */
const agentEndedSchema = z.object({
  ending: z.enum(agentEndings),
  promise: promiseSchema,
  exit_code: z.number().int().optional(),
  signal: z.string().optional(),
  session_id: z.string().optional(),
  /** Last thing the assistant said, or the error's text: shown to the user, never parsed. */
  last_words: z.string(),
  /** For limit, overloaded, offline: epoch ms when it is worth trying again, if the provider said so. */
  resets_at_ms: z.number().optional(),
  /** With `auth`: there is a login, but no credit or a bill that is not paid. */
  unpaid: z.literal(true).optional(),
  usage: usageSchema.optional(),
  model: z.string().optional(),
  /** Processes that outlived even the reaper, for the report. */
  survivors: z.array(z.number().int()),
  /** Limits that it has reached, as the user wrote them. */
  reached: z.array(z.string()).optional(),
})
export type AgentEnded = z.infer<typeof agentEndedSchema>

/** A file of the user's that was not committed when the loop began, and that an agent removed or set back since. */
export const goneFileSchema = z.object({
  path: z.string(),
  /** To be typed as it is. */
  restore: z.string(),
})
export type GoneFile = z.infer<typeof goneFileSchema>

/** The work tree between the end of an attempt and its checkpoint. */
const standSchema = z.object({
  tree: z.string().optional(),
  /** Paths that differ from the tree that was judged before. */
  stirred: z.array(z.string()).optional(),
  /** Those of them that were not there before. */
  made: z.array(z.string()).optional(),
  /** Why the attempt's work is no longer there; absent, or empty in older journals, when it is. */
  lost: z.string().optional(),
})

/** What a "done" has to be told with. */
const doubtSchema = z.object({
  /** What makes it worth less, a sentence each; absent when there is none. */
  warnings: z.array(z.string()).optional(),
  /** Tests that were there before the run, and are not as they were; absent when there is none. */
  tests_changed: z.array(z.string()).optional(),
})

export const totalsSchema = z.object({
  iterations: z.number().int(),
  stories_done: z.number().int(),
  stories_total: z.number().int(),
  tasks_done: z.number().int(),
  tasks_total: z.number().int(),
  tokens: z.number().int(),
  /** Some of them are a guess, or not known at all. */
  tokens_estimated: z.literal(true).optional(),
  /** Of the iterations that have a price; absent when tokens were used and none has: unpriced is not free. */
  cost_usd: z.number().optional(),
  duration_ms: z.number(),
  /** The part of it that went into attempts whose work was not kept. */
  not_kept: z
    .object({
      iterations: z.number().int(),
      tokens: z.number().int(),
      tokens_estimated: z.literal(true).optional(),
      cost_usd: z.number().optional(),
      duration_ms: z.number(),
    })
    .optional(),
})

export const loopStatuses = ['starting', 'running', 'done', 'stuck', 'stalled', 'stopped'] as const
export type LoopStatus = (typeof loopStatuses)[number]

/** `cached`: what the command made in another work tree was copied. */
export const setUpSchema = z.object({
  command: z.string(),
  duration_ms: z.number().int().nonnegative(),
  cached: z.boolean(),
})
export type SetUpDone = z.infer<typeof setUpSchema>

/** A failed gate without the work of the attempt: it passes, fails in the same way, in another, or nobody can say. */
const baselines = ['passed', 'same', 'other', 'unknown'] as const
export type Baseline = (typeof baselines)[number]

/** Events that the contract names: they leave the program (`--json`). */
export const publicBodies = [
  z.object({
    type: z.literal('loop.started'),
    run_id: z.string(),
    resumed: z.boolean(),
    settings: settingsSchema,
    pid: z.number().int(),
    worktree: z.string(),
    worktree_name: z.string(),
    /** With --worktree: the user's own checkout, and what was copied from there. */
    home: z.string().optional(),
    brought: z.array(z.string()).optional(),
    /** How the new work tree was made ready. */
    set_up: setUpSchema.optional(),
    /** The folder that holds `openspec/`. */
    root: z.string(),
    tasks_file: z.string(),
    original_branch: z.string(),
    branch: z.string(),
    feedback: z.string().optional(),
    /** No story of the plan is open: no agent and no branch will be needed. */
    nothing_to_do: z.literal(true).optional(),
    /** How many files of the user's beside the plan were uncommitted: they are in the first commit of `branch`. */
    uncommitted: z.number().int().positive().optional(),
    /** Who pays for the agents' calls, by agent: a login, an API key, unknown. */
    billing: z.record(z.string(), z.string()).optional(),
    /** Without gates: a command of the project's own that could be one; empty where none was found. */
    gate_found: z.string().optional(),
    /** The first loop of this repository that runs without a sandbox: said once. */
    uncaged: z.literal(true).optional(),
    /** With the agent `command`: the name of the user's own program. */
    agent_program: z.string().optional(),
    /** How OpenSpec's program is called from here: by its name, or by npx where it is not on PATH. */
    openspec: z.string().optional(),
    /** With resumed: what the run had used before. */
    spent: z
      .object({ tokens: z.number().int(), cost_usd: z.number().optional(), duration_ms: z.number() })
      .optional(),
    /** Stories that a person has ticked since the run before, which was not done: the gates judge them first. */
    by_hand: z.array(z.string()).optional(),
    /** The merge queue has parked it, and does not run it: what comes of it lands when somebody says so. */
    parked: z.literal(true).optional(),
    /** What the repair of a dead loop undid just before, and may be the user's: told then, and once more at the end. */
    undone: z.array(z.string()).optional(),
  }),
  z.object({
    type: z.literal('story.started'),
    story_id: z.string(),
    title: z.string(),
    index: z.number().int().positive(),
    total: z.number().int().positive(),
    completed: z.number().int().nonnegative(),
  }),
  z.object({
    type: z.literal('iteration.started'),
    n: z.number().int().positive(),
    story_id: z.string(),
    attempt: z.number().int().positive(),
    attempts: z.number().int().positive(),
    max_iterations: z.number().int().positive(),
    agent: z.string(),
    base_commit: z.string(),
    log_file: z.string(),
  }),
  z.object({ type: z.literal('agent.message'), n: z.number().int(), text: z.string() }),
  z.object({ type: z.literal('agent.tool'), n: z.number().int(), name: z.string(), input: z.string() }),
  z.object({
    type: z.literal('agent.usage'),
    n: z.number().int(),
    ...usageSchema.shape,
    /**
     * `sessions`: read from its session files by ralph, because a budget is set. `stream`: summed up on the way, and less than it will be.
     * Absent: the agent's own word.
     */
    source: z.enum(['sessions', 'stream']).optional(),
  }),
  /** The agent says by a tool of ralph's that its story is complete, and waits for the answer. */
  z.object({
    type: z.literal('claim.made'),
    n: z.number().int(),
    /** Counted from 1 in each iteration. */
    claim: z.number().int().positive(),
    summary: z.string(),
  }),
  z.object({
    type: z.literal('claim.judged'),
    n: z.number().int(),
    claim: z.number().int().positive(),
    /** `stopped`: the loop or the agent ended before it was judged. */
    outcome: z.enum(['accepted', 'refused', 'stopped']),
    /** One line, for people; empty when it was accepted. */
    reason: z.string(),
  }),
  /** In the agent's own words, by a tool of ralph's: that the story cannot be done; what it is at now. */
  z.object({ type: z.literal('failure.reported'), n: z.number().int(), reason: z.string() }),
  z.object({ type: z.literal('progress.reported'), n: z.number().int(), task: z.string() }),
  z.object({
    type: z.literal('gate.started'),
    n: z.number().int(),
    command: z.string(),
    /** It runs for this claim, while the agent waits; absent: for the verdict. */
    claim: z.number().int().positive().optional(),
  }),
  z.object({
    type: z.literal('gate.ended'),
    n: z.number().int(),
    command: z.string(),
    outcome: z.enum(['passed', 'failed', 'could_not_run', 'stopped']),
    exit_code: z.number().int().optional(),
    duration_ms: z.number(),
    output_tail: z.string(),
    /** The failing test, where the format of its output is known. */
    failure: z
      .object({
        what: z.string(),
        message: z.array(z.string()),
        where: z.string().optional(),
        /** The other tests that fail. */
        also: z.object({ total: z.number().int(), first: z.array(z.string()) }).optional(),
      })
      .optional(),
    /** Lines of the whole output, which `ralph logs --gate` shows. */
    output_lines: z.number().int().nonnegative().optional(),
    /** It passed, and its test program says that it ran no test. */
    ran_no_tests: z.literal(true).optional(),
    /** As in `gate.started`; its time is part of the agent's then. */
    claim: z.number().int().positive().optional(),
  }),
  /** The gate that failed the attempt before is run once without its work, before the agent of this one is. */
  z.object({ type: z.literal('baseline.started'), n: z.number().int(), command: z.string() }),
  z.object({
    type: z.literal('baseline.ended'),
    n: z.number().int(),
    command: z.string(),
    outcome: z.enum(baselines),
    exit_code: z.number().int().optional(),
    duration_ms: z.number(),
    /** One line, for people; empty when it passed. */
    reason: z.string(),
  }),
  z.object({
    type: z.literal('checkpoint.saved'),
    n: z.number().int().optional(),
    story_id: z.string().optional(),
    message: z.string(),
    commit: z.string(),
    /** Whether it differs from the checkpoint before it. */
    changed: z.boolean(),
    /** In nothing but the plan: boxes were ticked, and that is all. */
    only_plan: z.literal(true).optional(),
    /** What else it changed; the first ones where there are many. */
    files: z.array(z.string()).optional(),
    files_total: z.number().int().nonnegative().optional(),
    /** Those of `files` that it deleted. */
    deleted: z.array(z.string()).optional(),
    /** Tests that were there before, and are not as they were. */
    tests_changed: z.array(z.string()).optional(),
    /** Files that the user had not committed and that were removed or set back while the gates ran. */
    gone: z.array(goneFileSchema).optional(),
  }),
  z.object({
    type: z.literal('checkpoint.reverted'),
    n: z.number().int(),
    commit: z.string(),
    /** What was undone, the user's own edits meanwhile too; the first ones where there are many. */
    files: z.array(z.string()).optional(),
    files_total: z.number().int().nonnegative().optional(),
  }),
  z.object({ type: z.literal('iteration.ended'), iteration: iterationSchema }),
  z.object({
    type: z.literal('waiting'),
    for: z.enum(['limit', 'overloaded', 'offline', 'pause']),
    /** Empty, and 0, and no agent, for a pause: until a human lifts it. */
    until: z.string(),
    until_ms: z.number(),
    agent: z.string(),
  }),
  /** Before a spawn: another loop on this machine was told that the agent's login is at its limit, or goes first after its reset. */
  z.object({
    type: z.literal('login.limited'),
    agent: z.string(),
    until: z.string(),
    until_ms: z.number(),
    now_ms: z.number(),
  }),
  /** A human's words to a loop that runs: the next prompt has them. */
  z.object({ type: z.literal('note.added'), id: z.string(), text: z.string() }),
  z.object({ type: z.literal('warning'), code: z.string(), message: z.string() }),
  z.object({
    type: z.literal('error'),
    code: z.string(),
    message: z.string(),
    hint: z.string(),
    /** Set where the error ends the loop. */
    exit_code: z.number().int().optional(),
    story_id: z.string().optional(),
  }),
  z.object({ type: z.literal('max_retries_exceeded'), story_id: z.string(), attempts: z.number().int() }),
  z.object({
    type: z.literal('choice.needed'),
    original_branch: z.string(),
    branch: z.string(),
    status: z.enum(loopStatuses),
    reason: z.string().optional(),
    stop_reason: z.string().optional(),
    totals: totalsSchema.optional(),
    ...doubtSchema.shape,
  }),
  z.object({
    type: z.literal('complete'),
    status: z.enum(loopStatuses),
    reason: z.string(),
    stop_reason: z.string(),
    exit_code: z.number().int(),
    totals: totalsSchema,
    choice: z.enum(['cleanup', 'keep', 'later']),
    ...doubtSchema.shape,
    /** Uncommitted files of the user's that agents took away; absent when there are none. */
    gone: z.array(goneFileSchema).optional(),
  }),
] as const

/** Facts that only the journal and the reducer need. */
const privateBodies = [
  z.object({
    type: z.literal('plan.read'),
    stories: z.array(storySummarySchema),
    /** Only those that are not as they were read last; no other has come, gone or moved. */
    only_changed: z.literal(true).optional(),
    human_tasks: z.array(z.string()),
    tasks_done: z.number().int(),
    tasks_total: z.number().int(),
  }),
  z.object({ type: z.literal('checkpoint.verified'), commit: z.string() }),
  z.object({
    type: z.literal('agent.started'),
    n: z.number().int(),
    pid: z.number().int(),
    /** Start time of that pid as the OS tells it: pid alone can be reused. */
    pid_started: z.string(),
  }),
  z.object({ type: z.literal('agent.session'), n: z.number().int(), session_id: z.string() }),
  z.object({
    type: z.literal('agent.ended'),
    n: z.number().int(),
    now_ms: z.number(),
    duration_ms: z.number().int().nonnegative(),
    ...agentEndedSchema.shape,
  }),
  /** Files that came while gates ran for a claim. */
  z.object({ type: z.literal('claim.stirred'), n: z.number().int(), made: z.array(z.string()) }),
  z.object({
    type: z.literal('attempt.kept'),
    n: z.number().int(),
    ref: z.string(),
    commit: z.string(),
    /** Made while the agent ran, oldest first. */
    commits: z.array(z.string()),
    changed: z.boolean(),
    history_rewritten: z.boolean(),
    /** The plan was deleted, emptied or made unreadable: nothing may be called done. Empty in older journals when it was not. */
    spec_lost: z.string().optional(),
    /** Runnable tasks of the story that were open before the attempt: ticked by the agent / still open. */
    ticked: z.number().int(),
    still_open: z.number().int(),
    /** Open tasks of a large story that this iteration was not asked for. */
    not_asked: z.number().int(),
    /** The tree that the gates are to judge. */
    tree: z.string().optional(),
    /** Why nothing of it may be saved, whatever the agent says. */
    refused: z.string().optional(),
    /** Files that the user had not committed, and that this attempt took away. */
    gone: z.array(goneFileSchema).optional(),
  }),
  z.object({
    type: z.literal('gates.checked'),
    n: z.number().int(),
    /** Why not, with the end of the output, for the next prompt; absent, or empty in older journals, when all passed. */
    failed: z.string().optional(),
    /** The same in one line, for people. */
    reason: z.string().optional(),
    /** Which of them failed on the whole tree. */
    gate: z.string().optional(),
    /** One could not be run at all: neither passed nor failed, and no retry can help. */
    could_not_run: z.boolean().optional(),
    ...standSchema.shape,
  }),
  /** What the gates say of stories that a person has ticked between two loops. */
  z.object({
    type: z.literal('hand.checked'),
    story_ids: z.array(z.string()),
    /** Why not, in one line; absent: all passed. */
    failed: z.string().optional(),
    could_not_run: z.boolean().optional(),
  }),
  /** What is in the work tree is not what the gates have passed: nothing was saved. */
  z.object({ type: z.literal('checkpoint.refused'), n: z.number().int(), ...standSchema.shape }),
  z.object({
    type: z.literal('boxes.settled'),
    n: z.number().int(),
    /** Tasks asked for and still open after COMPLETE; 0, and nothing unasked, means the story is complete. */
    remaining: z.number().int(),
    not_asked: z.number().int(),
    ticked_by_ralph: z.number().int(),
  }),
  /** `skipped_ms`: it ended early, and when that was: a human did not want it any longer, or (`free`) another loop had an answer. */
  z.object({
    type: z.literal('wait.ended'),
    skipped_ms: z.number().optional(),
    free: z.literal(true).optional(),
  }),
  /** `ralph pause`: no further iteration begins until it is lifted. */
  z.object({ type: z.literal('pause.requested') }),
  z.object({ type: z.literal('pause.lifted') }),
  /** `unread`: no signal came; nobody reads any more what the loop prints. */
  z.object({
    type: z.literal('stop.requested'),
    signal: z.enum(['SIGHUP', 'SIGINT', 'SIGTERM']),
    unread: z.literal(true).optional(),
  }),
  z.object({ type: z.literal('choice.made'), choice: z.enum(['cleanup', 'keep', 'later', 'done', 'go_on']) }),
  z.object({
    type: z.literal('loop.finished'),
    choice: z.enum(['cleanup', 'keep', 'later']),
    ok: z.boolean(),
    message: z.string(),
    /** Where the branch stays: the remote that it can be pushed to, and what its first commit holds of the user's own; the first ones. */
    remote: z.string().optional(),
    user_paths: z.array(z.string()).optional(),
    /** The one commit of a squash. */
    commit: z.string().optional(),
    /** Files of the user's that were in no commit, and are not in the result. */
    gone: z.array(goneFileSchema).optional(),
    /** Where it was refused: the cleanup was to be one commit. */
    squash: z.literal(true).optional(),
  }),
  /** The human's word on a manual loop. */
  z.object({ type: z.literal('human.done') }),
  /** What the merge queue found wrong with how an agent merged two changes. */
  z.object({ type: z.literal('merge.refused'), problems: z.array(z.string()) }),
  /** A loop was found dead: its last sign of life, and what was still running of it when that was seen. */
  z.object({
    type: z.literal('loop.died'),
    at_ms: z.number(),
    now_ms: z.number(),
    orphans: z.array(z.number().int()),
  }),
  /** What had outlived the loop was ended. */
  z.object({ type: z.literal('orphans.ended'), now_ms: z.number(), pids: z.array(z.number().int()) }),
  /** From here on ralph itself changes the tree of a loop that is dead; with the last sign of one that died while it did so. */
  z.object({ type: z.literal('repair.began'), now_ms: z.number(), last_sign_ms: z.number() }),
  z.object({ type: z.literal('repair.ended'), detail: z.string() }),
  /** Write-ahead of a multi-step git operation: `began` before its first step, `ended` after its last. */
  z.object({ type: z.literal('git.began'), op: z.string(), data: z.record(z.string(), z.unknown()) }),
  z.object({ type: z.literal('git.step'), op: z.string(), step: z.string() }),
  z.object({ type: z.literal('git.ended'), op: z.string() }),
] as const

export type PublicBody = z.infer<(typeof publicBodies)[number]>

export const bodySchema = z.discriminatedUnion('type', [...publicBodies, ...privateBodies])
export type EventBody = z.infer<typeof bodySchema>

const envelope = {
  v: z.literal(1),
  seq: z.number().int().nonnegative(),
  /** Local ISO 8601 with numeric offset, whole seconds. */
  time: z.string(),
  change_id: z.string(),
}
export const envelopeSchema = z.object(envelope)
export type LoopEvent = EventBody & z.infer<typeof envelopeSchema>

/** The schema that ships as schema/event.schema.json. */
export const publicEventSchema = z.discriminatedUnion(
  'type',
  publicBodies.map((body) => body.extend(envelope)) as unknown as typeof publicBodies,
)
