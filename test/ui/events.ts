// A loop of two stories as a list of events: one failed attempt, a gate, a wait, and the end.
import type { EventBody, IterationRecord, LoopEvent } from '../../src/core/event.ts'
import type { StatusReport } from '../../src/ui/app.ts'

const base: IterationRecord = {
  n: 1,
  started: '2026-02-09T14:03:22+01:00',
  ended: '2026-02-09T14:04:22+01:00',
  done_check: false,
  commits: [],
  tokens_used: 12_345,
  story_id: '1',
  attempt: 1,
  verdict: 'complete',
  reason: '',
  input_tokens: 12_000,
  output_tokens: 345,
  cache_read_tokens: 0,
  cache_creation_tokens: 0,
  agent: 'claude',
  log_file: '1.log',
  duration_ms: 61_000,
}

export function iteration(more: Partial<IterationRecord>): IterationRecord {
  return { ...base, ...more }
}

export function event(body: EventBody, seq = 1): LoopEvent {
  return { v: 1, seq, time: '2026-02-09T14:03:22+01:00', change_id: 'add-login', ...body }
}

const hash = '1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d'

export const started = {
  type: 'loop.started',
  run_id: 'r1',
  resumed: false,
  settings: {
    max_retries: 3,
    stall_threshold: 5,
    done_criteria: 'tasks',
    task: 'Add a login',
    iteration_timeout_min: 45,
    idle_timeout_min: 10,
    limit_wait_min: 360,
    gates: ['npm test'],
    stories: [],
    agents: ['claude'],
    checkpoint: 'branch',
    on_complete: 'keep',
  },
  pid: 1,
  worktree: '/repo',
  worktree_name: 'repo',
  root: '/repo',
  tasks_file: 'tasks.md',
  original_branch: 'main',
  branch: 'ralph/add-login',
} satisfies EventBody

export const complete = {
  type: 'complete',
  status: 'done',
  reason: 'every story is complete',
  stop_reason: 'done',
  exit_code: 0,
  totals: {
    iterations: 2,
    stories_done: 2,
    stories_total: 2,
    tasks_done: 5,
    tasks_total: 5,
    tokens: 24_690,
    cost_usd: 0.5,
    duration_ms: 122_000,
  },
  choice: 'keep',
} as const satisfies EventBody

const bodies: readonly EventBody[] = [
  started,
  {
    type: 'plan.read',
    stories: [
      { id: '1', title: '1 Model', status: 'open', tasks_done: 0, tasks_total: 2 },
      { id: '2', title: 'Page', status: 'open', tasks_done: 0, tasks_total: 3 },
    ],
    human_tasks: [],
    tasks_done: 0,
    tasks_total: 5,
  },
  { type: 'story.started', story_id: '1', title: 'Model\u001B[2J\u0007', index: 1, total: 2, completed: 0 },
  {
    type: 'iteration.started',
    n: 1,
    story_id: '1',
    attempt: 1,
    attempts: 4,
    max_iterations: 8,
    agent: 'claude',
    base_commit: hash,
    log_file: '1.log',
  },
  { type: 'agent.message', n: 1, text: '\n\u001B[31mI will start.\u001B[0m\r\nSecond line\n\nThird line' },
  { type: 'agent.tool', n: 1, name: 'Edit', input: '/repo/src/a.ts' },
  {
    type: 'agent.usage',
    n: 1,
    input_tokens: 9000,
    output_tokens: 345,
    cache_read_tokens: 0,
    cache_creation_tokens: 0,
  },
  { type: 'gate.started', n: 1, command: 'npm test' },
  {
    type: 'gate.ended',
    n: 1,
    command: 'npm test',
    outcome: 'failed',
    exit_code: 1,
    duration_ms: 3200,
    output_tail: 'ok 1\nnot ok 2 - login\n',
    output_lines: 36,
  },
  { type: 'checkpoint.reverted', n: 1, commit: hash, files: ['mynote.md', 'src/a.ts'], files_total: 2 },
  {
    type: 'iteration.ended',
    iteration: iteration({
      verdict: 'gate_failed',
      reason: 'npm test\nnot ok 2',
      attempt_ref: 'refs/ralph/x/1',
      cost_usd: 0.25,
    }),
  },
  { type: 'waiting', for: 'limit', until: '2026-02-09T15:00:00+01:00', until_ms: 1, agent: 'claude' },
  { type: 'warning', code: 'tokens', message: 'wt-usage failed,\nusing an estimate' },
  { type: 'checkpoint.saved', n: 2, story_id: '1', message: 'checkpoint: 1', commit: hash, changed: true },
  { type: 'iteration.ended', iteration: iteration({ n: 2, attempt: 2, tokens_estimated: true }) },
  { type: 'choice.needed', original_branch: 'main', branch: 'ralph/add-login', status: 'done' },
  complete,
]

export const script: readonly LoopEvent[] = bodies.map((body, index) => event(body, index + 1))

/** A loop in the middle of its third iteration. */
export const status: StatusReport = {
  schema_version: 1,
  change_id: 'add-login',
  status: 'running',
  alive: true,
  current_iteration: 3,
  max_iterations: 8,
  started_at: '2026-02-09T14:03:22+01:00',
  task: 'Add a login',
  iterations: [iteration({ n: 2, verdict: 'failed', reason: 'the port is taken' })],
  done_criteria: 'tasks',
  stall_threshold: 5,
  iteration_timeout_min: 45,
  total_tokens: 12_345,
  updated_at: '2026-02-09T14:04:22+01:00',
  worktree_name: 'repo',
  terminal_pid: 7,
  current: {
    n: 3,
    story_id: '2',
    attempt: 2,
    started: '2026-02-09T14:04:22+01:00',
    base_commit: 'abc',
    agent: 'claude',
    last_activity: '2026-02-09T14:04:22+01:00',
  },
  stories: [
    { id: '1', title: 'Model', status: 'done', tasks_done: 2, tasks_total: 2 },
    { id: '2', title: 'Page', status: 'open', tasks_done: 0, tasks_total: 3 },
  ],
  tasks_file: 'tasks.md',
  original_branch: 'main',
  checkpoint: 'branch',
  agent: 'claude',
  cost_usd: 0.5,
}
