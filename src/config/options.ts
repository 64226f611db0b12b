// Every setting of a loop, in one table: flags, config keys, RALPH_ variables, help, docs and the JSON Schema come from it.
// Long because a setting has one row, and nothing of it stands elsewhere.
import { agentNames } from './option.ts'
import type { KindValues, OptionSpec } from './option.ts'

const options = {
  max_retries: {
    group: 'Limits',
    kind: 'count',
    value: 'N',
    default: 3,
    help: 're-runs of a story after its first attempt; 0 = one attempt',
  },
  max_iterations: {
    group: 'Limits',
    kind: 'positive',
    value: 'N',
    defaultText: 'open stories x (1 + max retries); 10 in manual mode',
    help: 'stop after this many runs of the agent, those before a resume counted',
  },
  done: {
    group: 'What to run',
    kind: 'choice',
    value: 'HOW',
    choices: ['tasks', 'manual'],
    defaultText: 'tasks where there is a tasks.md, else manual',
    help: 'who decides that it is done: the boxes of tasks.md, or you',
  },
  task: {
    group: 'What to run',
    kind: 'text',
    value: 'TEXT',
    defaultText: "the change's title",
    help: 'what the agent is asked for in manual mode',
  },
  stall_threshold: {
    group: 'Limits',
    kind: 'positive',
    value: 'N',
    defaultText: 'max retries + 2',
    help: 'stop after this many attempts in a row that kept nothing',
  },
  iteration_timeout: {
    group: 'Limits',
    kind: 'minutes',
    value: 'MIN',
    default: 45,
    help: 'time limit for one run of the agent, and for each gate: minutes, or 90s, 1h',
  },
  idle_timeout: {
    group: 'Limits',
    kind: 'minutes_or_off',
    value: 'MIN',
    default: 10,
    help: 'stop an agent that neither prints nor works for this long: minutes, or 90s, 1h; 0 = off',
  },
  command_timeout: {
    group: 'Limits',
    kind: 'seconds',
    value: 'SEC',
    default: 60,
    help: 'time limit for each git or openspec command: seconds, or 2m',
  },
  agent: {
    group: 'Agent',
    kind: 'agents',
    value: 'NAME[,NAME]',
    choices: agentNames,
    defaultText: 'first installed of claude, codex, opencode, gemini',
    help: 'the agent; after a comma, the one that takes over at its limit',
  },
  model: {
    group: 'Agent',
    kind: 'text',
    value: 'M',
    defaultText: "the agent's own",
    help: 'the model to use; in a chain, for the first agent',
  },
  agent_command: {
    group: 'Agent',
    kind: 'text',
    value: 'CMD',
    defaultText: 'none',
    help: 'any program as agent: run by sh -c, prompt on stdin; it must say <promise>COMPLETE</promise> or <promise>FAILED: why</promise> on a line of its own',
  },
  agent_args: {
    group: 'Agent',
    kind: 'texts',
    value: 'ARG',
    default: [],
    flagless: 'rest',
    help: 'further arguments for the agent, in a chain for the first (on the command line: after --)',
  },
  agent_env: {
    group: 'Agent',
    kind: 'pairs',
    value: 'KEY=VAL',
    default: {},
    help: "set a variable in the agent's environment (repeatable)",
  },
  no_api_key: {
    group: 'Agent',
    kind: 'switch',
    default: false,
    help: 'hide API keys from the agent, so that it uses its subscription login',
  },
  verify: {
    group: 'Gates',
    kind: 'texts',
    value: 'CMD',
    default: [],
    help: 'gate: a command that must pass before a story counts (repeatable)',
  },
  stories: {
    group: 'Gates',
    kind: 'stories',
    default: {},
    flagless: 'file',
    help: 'for single stories: more gates (verify), another model',
  },
  claims: {
    group: 'Gates',
    kind: 'count',
    value: 'N',
    default: 5,
    help: 'how often an agent that speaks MCP may have its story judged while it works, in one attempt; 0 = never',
  },
  prompt_append: {
    group: 'Agent',
    kind: 'text',
    value: 'TEXT',
    defaultText: 'none',
    help: 'your instructions, added to every prompt',
  },
  checkpoint: {
    group: 'Work and end',
    kind: 'choice',
    value: 'HOW',
    choices: ['branch', 'stash'],
    default: 'branch',
    help: 'how work is kept between stories',
  },
  worktree: {
    group: 'Work and end',
    kind: 'folder',
    value: 'DIR',
    defaultText: 'off',
    help: 'run in a git worktree of its own; your checkout is not touched while it runs',
  },
  from: {
    group: 'Work and end',
    kind: 'text',
    value: 'COMMIT',
    defaultText: 'where you stand',
    help: 'with --worktree: the commit to begin at',
  },
  setup: {
    group: 'Work and end',
    kind: 'text',
    value: 'CMD',
    defaultText: 'none',
    help: 'with --worktree: run this in the new worktree before the first agent (for example "npm ci")',
  },
  setup_cache: {
    group: 'Work and end',
    kind: 'texts',
    value: 'PATH',
    default: [],
    help: 'a file that decides what --setup makes, for example package-lock.json: while it is the same, that is copied (repeatable)',
  },
  worktree_copy: {
    group: 'Work and end',
    kind: 'texts',
    value: 'PATH',
    default: [],
    help: 'with --worktree: copy this ignored file or folder into it, for example .env (repeatable)',
  },
  worktree_link: {
    group: 'Work and end',
    kind: 'texts',
    value: 'PATH',
    default: [],
    help: 'with --worktree: link to this ignored file or folder of your checkout instead; what is written there, is written in yours',
  },
  regenerate: {
    group: 'Work and end',
    kind: 'commands',
    default: {},
    flagless: 'file',
    help: 'for ralph up: the command that regenerates a file when two changes conflict in it, by its path or glob',
  },
  on_complete: {
    group: 'Work and end',
    kind: 'choice',
    value: 'WHAT',
    choices: ['ask', 'cleanup', 'keep'],
    defaultText: 'ask on a terminal, else keep',
    help: 'what happens to the work at the end',
  },
  max_tokens: {
    group: 'Limits',
    kind: 'positive',
    value: 'N',
    defaultText: 'none',
    help: 'token budget; checked before each run',
  },
  max_cost: {
    group: 'Limits',
    kind: 'usd',
    value: 'USD',
    defaultText: 'none',
    help: 'cost budget in dollars; checked before each run',
  },
  usage: {
    group: 'Limits',
    kind: 'choice',
    value: 'FROM',
    choices: ['auto', 'wt-usage', 'agent', 'sessions'],
    default: 'auto',
    help: 'where token counts come from',
  },
  max_memory: {
    group: 'Limits',
    kind: 'size',
    value: 'SIZE',
    defaultText: 'none',
    help: 'memory that the agent, or a gate, may use, such as 4G',
  },
  max_processes: {
    group: 'Limits',
    kind: 'positive',
    value: 'N',
    defaultText: 'none',
    help: 'processes and threads that the agent, or a gate, may have at once',
  },
  max_file_size: {
    group: 'Limits',
    kind: 'size',
    value: 'SIZE',
    defaultText: 'none',
    help: 'size of a file that the agent, or a gate, may write, such as 2G',
  },
  max_disk: {
    group: 'Limits',
    kind: 'size',
    value: 'SIZE',
    defaultText: 'none',
    help: 'room on the disk that may go while the agent, or a gate, runs, such as 20G',
  },
  sandbox: {
    group: 'Sandbox',
    kind: 'choice',
    value: 'HOW',
    choices: ['off', 'workspace', 'strict'],
    default: 'off',
    help: 'confine agent, gates and set-up: workspace = they write only the work tree and their caches, and see no keys; strict = also no network, except --sandbox-hosts',
  },
  sandbox_allow: {
    group: 'Sandbox',
    kind: 'texts',
    value: 'PATH',
    default: [],
    help: 'a file or folder outside the work tree that the sandbox may also write (repeatable)',
  },
  sandbox_hosts: {
    group: 'Sandbox',
    kind: 'texts',
    value: 'HOST[:PORT]',
    default: [],
    help: 'a host that a strict sandbox may reach: example.org, *.example.org, localhost:8080 (repeatable)',
  },
  sandbox_gates: {
    group: 'Sandbox',
    kind: 'switch',
    default: true,
    flagless: 'file',
    help: 'whether gates and --setup also run in the sandbox',
  },
  limit_wait: {
    group: 'Limits',
    kind: 'minutes_or_off',
    value: 'MIN',
    default: 360,
    help: "how long to wait for a provider's limit to reset: minutes, or 90m, 8h",
  },
  story: {
    group: 'What to run',
    kind: 'texts',
    value: 'ID',
    default: [],
    help: 'only this story (repeatable)',
  },
  require_valid: {
    group: 'What to run',
    kind: 'switch',
    default: false,
    help: 'refuse to start when `openspec validate` finds an error',
  },
  archive: {
    group: 'Work and end',
    kind: 'switch',
    default: false,
    help: 'run `openspec archive` at the end, when no box is open',
  },
  notify: {
    group: 'Output',
    kind: 'switch',
    defaultText: 'on a terminal, after 30 s',
    help: 'bell and desktop notification at the end, and when you are needed',
  },
  notify_command: {
    group: 'Output',
    kind: 'text',
    value: 'CMD',
    defaultText: 'none',
    help: 'run this at the end, with the `complete` event as JSON on stdin',
  },
  webhook: {
    group: 'Output',
    kind: 'url',
    value: 'URL',
    defaultText: 'none',
    help: 'POST the `complete` event to this address',
  },
  fresh: {
    group: 'What to run',
    kind: 'switch',
    default: false,
    help: 'archive the earlier run of this change, then start over',
  },
  dry_run: {
    group: 'What to run',
    kind: 'switch',
    default: false,
    help: 'show what a start would do, or why it would be refused; change nothing',
  },
  json: {
    group: 'Output',
    kind: 'switch',
    default: false,
    help: 'print events as NDJSON on stdout, and nothing else',
  },
  no_tui: { group: 'Output', kind: 'switch', default: false, help: 'plain lines instead of the full screen' },
} as const satisfies Record<string, OptionSpec>

type Options = typeof options
export type OptionKey = keyof Options

type ValueOf<Spec extends OptionSpec> = Spec extends { kind: 'choice'; choices: readonly (infer Choice)[] }
  ? Choice
  : KindValues[Spec['kind']]

/** The settings as read: one without a fixed default may be absent. */
export type Config = {
  readonly [Key in OptionKey as Options[Key] extends { default: unknown } ? Key : never]: ValueOf<
    Options[Key]
  >
} & {
  readonly [Key in OptionKey as Options[Key] extends { default: unknown } ? never : Key]?: ValueOf<
    Options[Key]
  >
}

/** Where it can be given at all: neither as a flag nor as a variable. */
export function isFileOnly(key: OptionKey): boolean {
  return specOf(key).flagless === 'file'
}

// The table is const: it has no other keys
export const optionKeys = Object.keys(options) as readonly OptionKey[]

export function specOf(key: OptionKey): OptionSpec {
  return options[key]
}

export function flagOf(key: OptionKey): string {
  const { flagless } = specOf(key)
  if (flagless === 'file') return key
  return flagless === 'rest' ? '--' : `--${key.replaceAll('_', '-')}`
}

export function variableOf(key: OptionKey): string {
  return `RALPH_${key.toUpperCase()}`
}
