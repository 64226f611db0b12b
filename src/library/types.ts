// What the library tells and takes, by `npm run schemas` from the program's own schemas: for people who use it without zod.

export type LoopEvent = {
  readonly v: 1
  readonly seq: number
  readonly time: string
  readonly change_id: string
} & ({
  readonly type: 'loop.started'
  readonly run_id: string
  readonly resumed: boolean
  readonly settings: {
    readonly max_retries: number
    readonly max_iterations?: number | undefined
    readonly stall_threshold: number
    readonly done_criteria: 'tasks' | 'manual'
    readonly task: string
    readonly iteration_timeout_min: number
    readonly idle_timeout_min: number
    readonly limit_wait_min: number
    readonly gates: readonly string[]
    readonly story_settings?: Readonly<Record<string, {
      readonly gates: readonly string[]
      readonly model?: string | undefined
    }>> | undefined
    readonly stories: readonly string[]
    readonly agents: readonly string[]
    readonly model?: string | undefined
    readonly checkpoint: 'branch' | 'stash'
    readonly on_complete: 'ask' | 'cleanup' | 'keep'
    readonly max_tokens?: number | undefined
    readonly max_cost_usd?: number | undefined
    readonly claims?: number | undefined
    readonly sandbox?: 'workspace' | 'strict' | undefined
  }
  readonly pid: number
  readonly worktree: string
  readonly worktree_name: string
  readonly home?: string | undefined
  readonly brought?: readonly string[] | undefined
  readonly set_up?: {
    readonly command: string
    readonly duration_ms: number
    readonly cached: boolean
  } | undefined
  readonly root: string
  readonly tasks_file: string
  readonly original_branch: string
  readonly branch: string
  readonly feedback?: string | undefined
  readonly nothing_to_do?: true | undefined
  readonly uncommitted?: number | undefined
  readonly billing?: Readonly<Record<string, string>> | undefined
  readonly gate_found?: string | undefined
  readonly uncaged?: true | undefined
  readonly agent_program?: string | undefined
  readonly openspec?: string | undefined
  readonly spent?: {
    readonly tokens: number
    readonly cost_usd?: number | undefined
    readonly duration_ms: number
  } | undefined
  readonly by_hand?: readonly string[] | undefined
  readonly parked?: true | undefined
  readonly undone?: readonly string[] | undefined
} | {
  readonly type: 'story.started'
  readonly story_id: string
  readonly title: string
  readonly index: number
  readonly total: number
  readonly completed: number
} | {
  readonly type: 'iteration.started'
  readonly n: number
  readonly story_id: string
  readonly attempt: number
  readonly attempts: number
  readonly max_iterations: number
  readonly agent: string
  readonly base_commit: string
  readonly log_file: string
} | {
  readonly type: 'agent.message'
  readonly n: number
  readonly text: string
} | {
  readonly type: 'agent.tool'
  readonly n: number
  readonly name: string
  readonly input: string
} | {
  readonly type: 'agent.usage'
  readonly n: number
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_read_tokens: number
  readonly cache_creation_tokens: number
  readonly cost_usd?: number | undefined
  readonly source?: 'sessions' | 'stream' | undefined
} | {
  readonly type: 'claim.made'
  readonly n: number
  readonly claim: number
  readonly summary: string
} | {
  readonly type: 'claim.judged'
  readonly n: number
  readonly claim: number
  readonly outcome: 'accepted' | 'refused' | 'stopped'
  readonly reason: string
} | {
  readonly type: 'failure.reported'
  readonly n: number
  readonly reason: string
} | {
  readonly type: 'progress.reported'
  readonly n: number
  readonly task: string
} | {
  readonly type: 'gate.started'
  readonly n: number
  readonly command: string
  readonly claim?: number | undefined
} | {
  readonly type: 'gate.ended'
  readonly n: number
  readonly command: string
  readonly outcome: 'passed' | 'failed' | 'could_not_run' | 'stopped'
  readonly exit_code?: number | undefined
  readonly duration_ms: number
  readonly output_tail: string
  readonly failure?: {
    readonly what: string
    readonly message: readonly string[]
    readonly where?: string | undefined
    readonly also?: {
      readonly total: number
      readonly first: readonly string[]
    } | undefined
  } | undefined
  readonly output_lines?: number | undefined
  readonly ran_no_tests?: true | undefined
  readonly claim?: number | undefined
} | {
  readonly type: 'baseline.started'
  readonly n: number
  readonly command: string
} | {
  readonly type: 'baseline.ended'
  readonly n: number
  readonly command: string
  readonly outcome: 'passed' | 'same' | 'other' | 'unknown'
  readonly exit_code?: number | undefined
  readonly duration_ms: number
  readonly reason: string
} | {
  readonly type: 'checkpoint.saved'
  readonly n?: number | undefined
  readonly story_id?: string | undefined
  readonly message: string
  readonly commit: string
  readonly changed: boolean
  readonly only_plan?: true | undefined
  readonly files?: readonly string[] | undefined
  readonly files_total?: number | undefined
  readonly deleted?: readonly string[] | undefined
  readonly tests_changed?: readonly string[] | undefined
  readonly gone?: readonly GoneFile[] | undefined
} | {
  readonly type: 'checkpoint.reverted'
  readonly n: number
  readonly commit: string
  readonly files?: readonly string[] | undefined
  readonly files_total?: number | undefined
} | {
  readonly type: 'iteration.ended'
  readonly iteration: Iteration
} | {
  readonly type: 'waiting'
  readonly for: 'limit' | 'overloaded' | 'offline' | 'pause'
  readonly until: string
  readonly until_ms: number
  readonly agent: string
} | {
  readonly type: 'login.limited'
  readonly agent: string
  readonly until: string
  readonly until_ms: number
  readonly now_ms: number
} | {
  readonly type: 'note.added'
  readonly id: string
  readonly text: string
} | {
  readonly type: 'warning'
  readonly code: string
  readonly message: string
} | {
  readonly type: 'error'
  readonly code: string
  readonly message: string
  readonly hint: string
  readonly exit_code?: number | undefined
  readonly story_id?: string | undefined
} | {
  readonly type: 'max_retries_exceeded'
  readonly story_id: string
  readonly attempts: number
} | {
  readonly type: 'choice.needed'
  readonly original_branch: string
  readonly branch: string
  readonly status: 'starting' | 'running' | 'done' | 'stuck' | 'stalled' | 'stopped'
  readonly reason?: string | undefined
  readonly stop_reason?: string | undefined
  readonly totals?: Totals | undefined
  readonly warnings?: readonly string[] | undefined
  readonly tests_changed?: readonly string[] | undefined
} | {
  readonly type: 'complete'
  readonly status: 'starting' | 'running' | 'done' | 'stuck' | 'stalled' | 'stopped'
  readonly reason: string
  readonly stop_reason: string
  readonly exit_code: number
  readonly totals: Totals
  readonly choice: 'cleanup' | 'keep' | 'later'
  readonly warnings?: readonly string[] | undefined
  readonly tests_changed?: readonly string[] | undefined
  readonly gone?: readonly GoneFile[] | undefined
})

export type LoopState = {
  readonly schema_version: 1
  readonly change_id: string
  readonly status: 'starting' | 'running' | 'done' | 'stuck' | 'stalled' | 'stopped'
  readonly current_iteration: number
  readonly max_iterations: number
  readonly started_at: string
  readonly task: string
  readonly iterations: readonly Iteration[]
  readonly done_criteria: 'tasks' | 'manual'
  readonly stall_threshold: number
  readonly iteration_timeout_min: number
  readonly total_tokens: number
  readonly updated_at: string
  readonly worktree_name: string
  readonly terminal_pid: number
  readonly current?: {
    readonly n: number
    readonly story_id: string
    readonly attempt: number
    readonly started: string
    readonly base_commit: string
    readonly agent: string
    readonly agent_pid?: number | undefined
    readonly session_id?: string | undefined
    readonly last_activity: string
  } | undefined
  readonly stories: readonly Story[]
  readonly stop_reason?: string | undefined
  readonly died?: true | undefined
  readonly waiting_for?: 'limit' | 'overloaded' | 'offline' | 'human' | 'pause' | undefined
  readonly waiting_until?: string | undefined
  readonly pause_requested?: true | undefined
  readonly for_next_prompt?: readonly string[] | undefined
  readonly tasks_file: string
  readonly original_branch: string
  readonly checkpoint: string
  readonly choice?: 'cleanup' | 'keep' | 'later' | undefined
  readonly gone?: readonly GoneFile[] | undefined
  readonly agent: string
  readonly model?: string | undefined
  readonly token_budget?: number | undefined
  readonly cost_usd?: number | undefined
}

export type GoneFile = {
  readonly path: string
  readonly restore: string
}

export type Iteration = {
  readonly n: number
  readonly started: string
  readonly ended: string
  readonly done_check: boolean
  readonly commits: readonly string[]
  readonly tokens_used: number
  readonly timed_out?: true | undefined
  readonly tokens_estimated?: true | undefined
  readonly story_id: string
  readonly attempt: number
  readonly verdict: 'complete' | 'partial' | 'progress' | 'failed' | 'gate_failed' | 'none' | 'timeout' | 'idle' | 'crash' | 'limit' | 'fatal' | 'interrupted' | 'budget' | 'kept' | 'refused' | 'error'
  readonly reason: string
  readonly exit_code?: number | undefined
  readonly signal?: string | undefined
  readonly attempt_ref?: string | undefined
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_read_tokens: number
  readonly cache_creation_tokens: number
  readonly cost_usd?: number | undefined
  readonly agent: string
  readonly log_file: string
  readonly tokens_source?: string | undefined
  readonly tokens_note?: string | undefined
  readonly duration_ms: number
  readonly history_rewritten?: true | undefined
  readonly unchanged?: true | undefined
  readonly claims?: number | undefined
}

export type Story = {
  readonly id: string
  readonly title: string
  readonly status: 'open' | 'done' | 'human' | 'deferred'
  readonly tasks_done: number
  readonly tasks_total: number
}

export type Totals = {
  readonly iterations: number
  readonly stories_done: number
  readonly stories_total: number
  readonly tasks_done: number
  readonly tasks_total: number
  readonly tokens: number
  readonly tokens_estimated?: true | undefined
  readonly cost_usd?: number | undefined
  readonly duration_ms: number
  readonly not_kept?: {
    readonly iterations: number
    readonly tokens: number
    readonly tokens_estimated?: true | undefined
    readonly cost_usd?: number | undefined
    readonly duration_ms: number
  } | undefined
}

export type LoopSettings = {
  /** re-runs of a story after its first attempt; 0 = one attempt */
  readonly max_retries?: number | undefined
  /** stop after this many runs of the agent, those before a resume counted */
  readonly max_iterations?: number | undefined
  /** who decides that it is done: the boxes of tasks.md, or you */
  readonly done?: 'tasks' | 'manual' | undefined
  /** what the agent is asked for in manual mode */
  readonly task?: string | undefined
  /** stop after this many attempts in a row that kept nothing */
  readonly stall_threshold?: number | undefined
  /** time limit for one run of the agent, and for each gate: minutes, or 90s, 1h */
  readonly iteration_timeout?: number | string | undefined
  /** stop an agent that neither prints nor works for this long: minutes, or 90s, 1h; 0 = off */
  readonly idle_timeout?: number | string | undefined
  /** time limit for each git or openspec command: seconds, or 2m */
  readonly command_timeout?: number | string | undefined
  /** the agent; after a comma, the one that takes over at its limit */
  readonly agent?: 'claude' | 'codex' | 'opencode' | 'gemini' | 'command' | 'acp' | 'demo' | (string & Record<never, never>) | readonly ('claude' | 'codex' | 'opencode' | 'gemini' | 'command' | 'acp' | 'demo')[] | undefined
  /** the model to use; in a chain, for the first agent */
  readonly model?: string | undefined
  /** any program as agent: run by sh -c, prompt on stdin; it must say <promise>COMPLETE</promise> or <promise>FAILED: why</promise> on a line of its own */
  readonly agent_command?: string | undefined
  /** further arguments for the agent, in a chain for the first (on the command line: after --) */
  readonly agent_args?: string | readonly string[] | undefined
  /** set a variable in the agent's environment (repeatable) */
  readonly agent_env?: Readonly<Record<string, string>> | undefined
  /** hide API keys from the agent, so that it uses its subscription login */
  readonly no_api_key?: boolean | undefined
  /** gate: a command that must pass before a story counts (repeatable) */
  readonly verify?: string | readonly string[] | undefined
  /** for single stories: more gates (verify), another model */
  readonly stories?: Readonly<Record<string, {
    readonly verify?: string | readonly string[] | undefined
    readonly model?: string | undefined
  }>> | undefined
  /** how often an agent that speaks MCP may have its story judged while it works, in one attempt; 0 = never */
  readonly claims?: number | undefined
  /** your instructions, added to every prompt */
  readonly prompt_append?: string | undefined
  /** how work is kept between stories */
  readonly checkpoint?: 'branch' | 'stash' | undefined
  /** run in a git worktree of its own; your checkout is not touched while it runs */
  readonly worktree?: true | string | undefined
  /** with --worktree: the commit to begin at */
  readonly from?: string | undefined
  /** with --worktree: run this in the new worktree before the first agent (for example "npm ci") */
  readonly setup?: string | undefined
  /** a file that decides what --setup makes, for example package-lock.json: while it is the same, that is copied (repeatable) */
  readonly setup_cache?: string | readonly string[] | undefined
  /** with --worktree: copy this ignored file or folder into it, for example .env (repeatable) */
  readonly worktree_copy?: string | readonly string[] | undefined
  /** with --worktree: link to this ignored file or folder of your checkout instead; what is written there, is written in yours */
  readonly worktree_link?: string | readonly string[] | undefined
  /** for ralph up: the command that regenerates a file when two changes conflict in it, by its path or glob */
  readonly regenerate?: Readonly<Record<string, string>> | undefined
  /** what happens to the work at the end */
  readonly on_complete?: 'ask' | 'cleanup' | 'keep' | undefined
  /** token budget; checked before each run */
  readonly max_tokens?: number | undefined
  /** cost budget in dollars; checked before each run */
  readonly max_cost?: number | undefined
  /** where token counts come from */
  readonly usage?: 'auto' | 'wt-usage' | 'agent' | 'sessions' | undefined
  /** memory that the agent, or a gate, may use, such as 4G */
  readonly max_memory?: string | undefined
  /** processes and threads that the agent, or a gate, may have at once */
  readonly max_processes?: number | undefined
  /** size of a file that the agent, or a gate, may write, such as 2G */
  readonly max_file_size?: string | undefined
  /** room on the disk that may go while the agent, or a gate, runs, such as 20G */
  readonly max_disk?: string | undefined
  /** confine agent, gates and set-up: workspace = they write only the work tree and their caches, and see no keys; strict = also no network, except --sandbox-hosts */
  readonly sandbox?: 'off' | 'workspace' | 'strict' | undefined
  /** a file or folder outside the work tree that the sandbox may also write (repeatable) */
  readonly sandbox_allow?: string | readonly string[] | undefined
  /** a host that a strict sandbox may reach: example.org, *.example.org, localhost:8080 (repeatable) */
  readonly sandbox_hosts?: string | readonly string[] | undefined
  /** whether gates and --setup also run in the sandbox */
  readonly sandbox_gates?: boolean | undefined
  /** how long to wait for a provider's limit to reset: minutes, or 90m, 8h */
  readonly limit_wait?: number | string | undefined
  /** only this story (repeatable) */
  readonly story?: string | readonly string[] | undefined
  /** refuse to start when `openspec validate` finds an error */
  readonly require_valid?: boolean | undefined
  /** run `openspec archive` at the end, when no box is open */
  readonly archive?: boolean | undefined
  /** bell and desktop notification at the end, and when you are needed */
  readonly notify?: boolean | undefined
  /** run this at the end, with the `complete` event as JSON on stdin */
  readonly notify_command?: string | undefined
  /** POST the `complete` event to this address */
  readonly webhook?: string | undefined
  /** archive the earlier run of this change, then start over */
  readonly fresh?: boolean | undefined
}

export type ErrorCode = 'usage' | 'config' | 'change_not_found' | 'change_ambiguous' | 'openspec_missing' | 'spec_unreadable' | 'no_tasks' | 'box_ambiguous' | 'not_a_repository' | 'repository_state' | 'bad_name' | 'branch_exists' | 'nothing_to_resume' | 'unfinished_run' | 'checkpoint_failed' | 'finish_conflict' | 'attempt_not_found' | 'git_failed' | 'locked' | 'agent_missing' | 'sandbox' | 'budget' | 'human_needed' | 'journal_unreadable' | 'disk' | 'internal'
