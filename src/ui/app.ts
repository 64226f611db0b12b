// Everything a face can ask for, as functions that return data: faces print, compose.ts does.
// Long because it is one list of types: what a face may ask for is looked up here, and nowhere else.
import type { Config } from '../config/options.ts'
import type { LoadedConfig, RawFlags } from '../config/load.ts'
import type { Starter } from '../config/starter.ts'
import type {
  GoneFile,
  IterationRecord,
  LoopEvent,
  LoopStatus,
  StorySummary,
  Verdict,
} from '../core/event.ts'
import type { Cursor } from '../core/cursor.ts'
import type { ChangeDetail, ChangeSummary } from '../core/change.ts'
import type { HandWork } from '../core/hand-work.ts'
import type { Freshness, LoopBrief } from '../core/loop-brief.ts'
import type { ParkedWork, RunReport } from '../core/report.ts'
import type { LoopState } from '../core/state.ts'
import type { StateFile } from '../core/state-file.ts'
import type { Decision, FailedGate } from '../core/why.ts'
import type { EntryState, QueueState } from '../core/queue.ts'
import type { QueueEvent } from '../core/queue-event.ts'
import type { UsageSummary } from '../core/usage-summary.ts'
import type { FinishChoice, FollowRequest, Human, Told } from '../ports.ts'

/**
 * A `change` left out means: the only one there is, or the one whose loop ran last; otherwise `change_ambiguous`.
 * What the user can fix is thrown as RalphError. Fields are snake_case where they are printed as JSON (contract 9).
 */
export interface App {
  readonly observe: Observe
  readonly control: Control
}

/** Looks and never writes: safe for whoever may only see (MCP, a web page, a status line). */
export interface Observe {
  /** Settles flags, variables and files; throws `config` before anything is touched. For a resume a file that cannot be used is no error. */
  settings(flags: RawFlags, forResume?: boolean): Promise<LoadedConfig>
  /** What a resume of this change would go on with: these flags, then the settings of the run. */
  resumeSettings(change: string, flags: RawFlags): Promise<LoadedConfig>
  /** As `settings`, for `ralph config`: all entries. */
  config(): Promise<Pick<LoadedConfig, 'entries' | 'warnings' | 'files'>>
  list(): Promise<ChangeList>
  show(change: string | undefined): Promise<ChangeDetail>
  prompt(request: {
    readonly change: string | undefined
    readonly storyId: string | undefined
  }): Promise<{ readonly change_id: string; readonly prompt: string }>
  /** `--dry-run`: preflight, plan and prompts; spawns and changes nothing. */
  plan(request: Pick<LoopRequest, 'change' | 'settings' | 'acceptsConfig'>): Promise<DryRun>
  /** Without a name: every loop of the repository, all work trees, the latest first. */
  status(change: string | undefined): Promise<readonly StatusReport[]>
  /** Every loop of the repository, those of wt-tools too, in a few fields. Asks git nothing: it may be asked every second. */
  loops(): Promise<readonly LoopSeen[]>
  /** For a status bar; also outside of a repository. */
  statusLine(): Promise<StatusLine>
  /** Every event of a loop that runs elsewhere, has ended or is dead, the agent's talk too; see docs/stream.md. */
  follow(change: string | undefined, request: FollowRequest): AsyncIterable<Told>
  /** Every loop of the repository, all work trees: how each stands at first, then its events as they come, those of new loops too. */
  watch(request: WatchRequest): AsyncIterable<Watched>
  /** `which`: the runs before this one too, or one of them. */
  history(change: string | undefined, which?: 'all' | number): Promise<History>
  /** Raw transcript bytes in order; with `follow` until the loop has ended or `stop` aborts. */
  logs(request: LogRequest): Promise<void>
  attempts(change: string | undefined): Promise<AttemptList>
  diff(request: DiffRequest): Promise<AttemptDiff>
  /** What the attempt at hand has done so far: files, and boxes in the plan. */
  attemptNow(change: string | undefined): Promise<AttemptNow>
  /** The end of what the gates of an attempt have printed so far. */
  gateOutput(request: { readonly change: string | undefined; readonly n: number }): Promise<GateOutput>
  why(change: string | undefined): Promise<Decisions>
  learnings(change: string | undefined): Promise<{ readonly path: string; readonly text: string }>
  /** `runsGates`: each gate once, in the user's own work tree; those of `verify` instead of the settings' where there are any. */
  doctor(how?: {
    readonly runsGates?: boolean
    readonly verify?: readonly string[]
    readonly flags?: RawFlags
  }): Promise<Diagnosis>
  /** What a first ralph.yaml would say here; `config` where there is one. */
  /** With `mcp` also where there are settings: then only that entry is missing. */
  setup(mcp: boolean): Promise<Setup>
  usage(request: UsageRequest): Promise<UsageSummary>
  report(change: string | undefined): Promise<RunReport>
  /** The merge queue, without touching it. `isWhole`: with what is only in the folders that can go, each of which is looked through. */
  queue(isWhole?: boolean): Promise<QueueReport>
  /** What `up` would do, without touching anything. */
  upPlan(request: UpWish): Promise<UpPlan>
}

/** Runs loops and changes what they left. */
export interface Control {
  /** Runs to its end, whatever that is. Resolves after `complete` was told. */
  loop(request: LoopRequest): Promise<LoopEnd>
  resume(request: LoopRequest & { readonly feedback: string | undefined }): Promise<LoopEnd>
  stop(request: {
    readonly change: string | undefined
    readonly force: boolean
    /** Asked by the key of who looks at it: it ends as by Ctrl-C. */
    readonly isKey?: boolean
  }): Promise<Said>
  /** Before its next iteration a running loop waits until that is taken back (`isOff`), by `resume` too. */
  pause(request: { readonly change: string | undefined; readonly isOff: boolean }): Promise<Said>
  /** For the next prompt of a running loop; resolves when its journal has it. */
  note(request: { readonly change: string | undefined; readonly text: string }): Promise<Said>
  /** A running loop does not wait any longer for a limit or a service. */
  skipWait(change: string | undefined): Promise<Said>
  done(change: string | undefined): Promise<Said>
  /** Without a choice: only --accept-config. */
  finish(request: {
    readonly change: string | undefined
    readonly choice: Exclude<FinishChoice, 'later'> | undefined
    /** Of a `squash`; left out: made from the proposal and the stories. */
    readonly message?: string | undefined
    readonly acceptsConfig: boolean
  }): Promise<Said>
  clean(request: {
    readonly change: string | undefined
    readonly attempts: boolean
    /** Asked before anything is deleted; absent: the user has said yes. */
    readonly agrees: ((question: string) => Promise<boolean>) | undefined
  }): Promise<Said>
  restore(request: {
    readonly change: string | undefined
    readonly n: number
    readonly to: string | undefined
  }): Promise<Said>
  /** A first ralph.yaml, and with `mcp` the entry for agents that read it in the repository. Never writes over anything. */
  init(request: Starter & { readonly mcp: boolean }): Promise<Said>
  /** A repository to try ralph in, in a new folder of its own. */
  makeDemo(isParallel: boolean): Promise<Demo>
  /** How the changes of a parallel one stand. */
  demoQueue(repo: string): Promise<QueueReport>
  /** Puts in order what is ralph's own and what nobody can need any more, each named; nothing of the user's. */
  fix(): Promise<readonly Fix[]>
  /** Many changes at once: runs until nothing is left to do, or `stop`; its loops go on then. Returns the exit code. */
  up(request: UpRequest): Promise<number>
  /** One change whose loop is done. */
  land(change: string, request: UpRequest): Promise<number>
  askQueue(what: QueueWish, change: string): Promise<Said>
  /** `ralph up` and every loop of the repository. */
  stopAll(force: boolean): Promise<Said>
  /** The user's own checkout follows what landed. */
  pullLanded(): Promise<Said>
  /** Writes down, in ralph's own data, that these loops have died; absent: every one that has. True where one was written down. */
  recordDeaths(changes?: readonly string[]): Promise<boolean>
}

export type QueueWish = 'add' | 'remove' | 'retry' | 'first'

export interface UpWish {
  /** Empty: all that are open. */
  readonly changes: readonly string[]
  readonly jobs: number
  /** Undefined: the branch that is checked out. */
  readonly into: string | undefined
  /** `later:earlier` */
  readonly after: readonly string[]
  readonly maxCostUsd: number | undefined
  readonly setUp: Pick<Config, 'setup' | 'setup_cache' | 'worktree_copy' | 'worktree_link'>
  /** What makes generated files anew, by path or glob. */
  readonly regenerate: Readonly<Record<string, string>>
  readonly land: 'squash' | 'merge'
  readonly lands: boolean
  readonly gates: readonly string[]
  /** Typed for this call: the changes that it names are no longer held to others that they were queued with. */
  readonly namesGates: boolean
  readonly gateTimeoutMs: number
  /** As typed, for each loop. */
  readonly flags: RawFlags
  /** Who works in each loop that begins, and how long. */
  readonly agents: Pick<
    Config,
    | 'agent'
    | 'agent_command'
    | 'agent_env'
    | 'no_api_key'
    | 'model'
    | 'stories'
    | 'max_cost'
    | 'max_tokens'
    | 'max_retries'
    | 'max_iterations'
  >
  /** What gates, set-up and the like are kept in, and how much they may take. */
  readonly kept: Pick<
    Config,
    | 'sandbox'
    | 'sandbox_allow'
    | 'sandbox_hosts'
    | 'sandbox_gates'
    | 'max_memory'
    | 'max_processes'
    | 'max_file_size'
    | 'max_disk'
  >
}

export interface UpRequest extends UpWish {
  /** Begins a loop in a process of its own, in a work tree, at this commit; `slot` tells it from those beside it. */
  readonly start: (
    change: string,
    how: 'loop' | 'anew' | 'resume' | 'resolve',
    at: {
      readonly base: string
      readonly slot: number
      /** Its share of the budget for all. */
      readonly maxCostUsd?: number
      /** What is to be resolved, or what was wrong with that. */
      readonly text?: string
      /** That it was queued with. */
      readonly gates?: readonly string[]
      /** What is typed for its loop: with what was typed for the run whose place it takes. */
      readonly flags?: RawFlags
    },
  ) => Promise<{ readonly refused?: string; readonly exitCode?: number }>
  readonly tell: (event: QueueEvent, state: QueueState) => void
  readonly stop: AbortSignal
}

export interface UpPlan {
  readonly target: string
  readonly jobs: number
  readonly land: 'squash' | 'merge' | 'no'
  readonly gates: readonly string[]
  /** Without gates: a command that would make one; empty where there is none. */
  readonly gate_offered?: string
  /** Those whose plan is not committed: it lands with the work. */
  readonly uncommitted?: readonly string[]
  /** Of the loops that would begin; empty where none is installed. */
  readonly agents: readonly string[]
  readonly agent_program?: string
  readonly billing: Readonly<Record<string, string>>
  readonly limits: {
    readonly max_retries: number
    readonly max_iterations?: number
    readonly max_tokens?: number
    readonly max_cost_usd?: number
  }
  /** Why it would be refused now; absent where it would not. */
  readonly refused?: { readonly message: string; readonly hint: string; readonly exit_code: number }
  /** In their order, those that have landed left out. */
  readonly changes: readonly {
    readonly change: string
    /** At first: its loop begins, goes on, is taken over; it lands, a conflict of it is resolved, it waits, it is left as it is. */
    readonly does: 'run' | 'resume' | 'adopt' | 'land' | 'judge' | 'resolve' | 'wait' | 'leave'
    readonly why: string
    readonly after: readonly string[]
    readonly target: string
    /** Those of its own loop too, where it has had one, and those that it was queued with. */
    readonly gates: readonly string[]
    readonly stories_done: number
    readonly stories_total: number
  }[]
}

export interface QueueReport {
  readonly target: string
  readonly target_commit: string
  readonly landed_commit: string
  /** What brings the rest of it to the target; absent where that has all of it. */
  readonly take?: string
  /** Why the target has not followed what landed: who stands on it, and where. */
  readonly held?: string
  /** Whether a `ralph up` is there that works on it. */
  readonly alive: boolean
  /** What starts one, where `ralph up` alone is refused: in a loop's own folder. */
  readonly up?: string
  /** Why nothing goes on; absent where it does. */
  readonly halted?: string
  readonly max_cost_usd?: number
  readonly entries: readonly {
    readonly change: string
    /** The branch that it lands on. */
    readonly target: string
    readonly state: EntryState
    readonly why: string
    readonly after: readonly string[]
    readonly stories_done: number
    readonly stories_total: number
    readonly cost_usd: number
    readonly branch: string
    readonly candidate: string
    readonly landed: string
    /** At the story that is under way; 0 where none is. */
    readonly attempt: number
    /** Of its loop; empty before the first. */
    readonly started_at: string
    /** What its attempts took, those before it was parked or stopped too, and since when the one under way runs. */
    readonly worked_ms: number
    readonly working_since?: string
    /** What its loop waits for now. */
    readonly waiting_for?: StateFile['waiting_for']
    readonly waiting_until?: string
    /** What to type. */
    readonly hint?: string
    /** What makes its "done" worth less: a changed gate, tests that are gone, a gate that ran none. */
    readonly warnings: readonly string[]
    /** Of one that has landed: its worktree, which nothing needs any more. */
    readonly leftover_tree?: string
    /** What is there alone: it would go with that folder. */
    readonly leftover_files?: readonly string[]
    /** Its branch is where it was when it landed: nobody has committed on it since. */
    readonly leftover_branch?: true
  }[]
}

export interface Demo {
  /** Everything of it is in here. */
  readonly folder: string
  readonly repo: string
  readonly change: string
}

export interface LoopRequest {
  readonly change: string | undefined
  readonly settings: LoadedConfig
  /** `--accept-config`: what agents changed of the config files and of git's settings is the user's from now on. */
  readonly acceptsConfig: boolean
  /** Every event, private ones too, in order. Must not throw. */
  readonly tell: (event: LoopEvent, state: LoopState, cursor: Cursor) => void
  /** Whoever is told cannot take more yet: until the promise resolves the agent is not heard. Undefined: go on. */
  readonly room?: () => Promise<void> | undefined
  readonly human: Human
  /** The process is another program's: nobody ends it to stop the loop. */
  readonly isHosted?: true
  /** A person follows it on the terminal of another process, and decides there where its work goes. */
  readonly isAttended?: true
  /** Asked before anything is touched, where a start would do what few expect. In a pipe it is only said, and the answer is yes. */
  readonly confirm: (what: string) => Promise<boolean>
  /** Called while a new work tree is made ready: `end` ends that, and with it the start; what it returns is called when it is over. */
  readonly onSettingUp?: (end: () => void) => () => void
  /** Called when there is a loop to control; what it returns is called when there is none any more. */
  readonly onRunning: (loop: LoopHandle) => () => void
}

/** A running loop in the hands of whoever started it. */
export interface LoopHandle {
  /** The loop is over and asks where its work goes; a stop answers that with "later". */
  readonly isAsking: boolean
  /** The agent is ended, the iteration recorded, the loop stopped; `signal` says how it is told and which exit code it has; `unread`: nobody reads what it prints. */
  stop(signal: 'SIGHUP' | 'SIGINT' | 'SIGTERM' | 'unread'): void
  /** Before the next iteration it waits, until this is taken back, here or by `ralph resume` elsewhere. */
  pause(isWanted: boolean): void
  /** Something outside the loop broke (the disk, a bug): the open iteration is recorded and the loop ends. Heard once. */
  fail(error: unknown): void
  /** Ends what the agent has running, without waiting; the journal lets the next command put the rest in order. */
  kill(): void
}

export interface LoopEnd {
  readonly exitCode: number
  /** Instead of a run: why there was none ("done already"). */
  readonly note?: string
}

/** What a command did, for a person, and as fields for `--json`. */
export interface Said {
  readonly message: string
  /** Uncommitted files of the user's that agents took away. */
  readonly gone?: readonly GoneFile[]
  readonly next?: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface ChangeList {
  /** The branch that this checkout stands on; absent where HEAD is detached. */
  readonly checked_out?: string
  readonly changes: readonly (Omit<ChangeSummary, 'problem'> & {
    /** Of its loop; empty where none ever ran. */
    readonly status: LoopStatus | ''
    /** Why its loop ended; absent where it has not, or is done. */
    readonly stop_reason?: string
    /** Where its loop has got further, or less far, than the plan in this checkout says. */
    readonly loop_stories_done?: number
    readonly loop_tasks_done?: number
    /** The branch that has its plan, where this checkout does not. */
    readonly plan_on?: string
    /** The branch that has the work of its loop, where this checkout does not. */
    readonly loop_branch?: string
    /** Where the merge queue has brought all of it. */
    readonly landed?: LandedWork
    /** What makes its "done" worth less, a sentence each. */
    readonly warnings?: readonly string[]
    readonly parked?: ParkedWork
    /** Of a loop that is running. */
    readonly waiting_for?: NonNullable<StateFile['waiting_for']>
    readonly pause_requested?: true
    /** As `status` has them. */
    readonly died_at?: string
    readonly orphan_pids?: readonly number[]
    /** When its plan was written last; absent where it has none. */
    readonly edited_at?: string
    /** Why the counts cannot be trusted; absent where they can. */
    readonly problem?: string
  })[]
}

export interface DryRun {
  readonly change_id: string
  readonly branch: string
  readonly original_branch: string
  readonly worktree: string
  /** With `--worktree`: the loop would run in a tree of its own. */
  readonly own_worktree: boolean
  readonly done_criteria: 'tasks' | 'manual'
  /** Those that would run; none where none is installed. */
  readonly agents: readonly string[]
  /** Who pays, by agent; `unknown` where ralph cannot see it. */
  readonly agent_program?: string
  readonly billing: Readonly<Record<string, string>>
  readonly gates: readonly string[]
  /** Found in the project and not used; empty where there is none, or where gates are set. */
  readonly gate_offered: string
  readonly on_complete: 'ask' | 'cleanup' | 'keep'
  readonly stories_total: number
  /** All that would run is done: no agent would, and the gates once. */
  readonly gates_only?: true
  /** Why a start would be refused now; absent where it would not. */
  readonly refused?: { readonly message: string; readonly hint: string; readonly exit_code: number }
  readonly max_retries: number
  readonly max_iterations: number
  readonly warnings: readonly string[]
  /** Stories that would run, in order, each with its first prompt. */
  readonly stories: readonly (StorySummary & {
    readonly prompt: string
    /** Further gates, and a model, of this story alone. */
    readonly own_gates?: readonly string[]
    readonly model?: string
  })[]
}

/** What the merge queue has put on a branch. */
export interface LandedWork {
  readonly commit: string
  readonly target: string
  /** The branch itself has it, and not only `refs/ralph-landed`. */
  readonly is_pulled: boolean
}

/** A branch that its user keeps, to share it. */
export interface KeptBranch {
  readonly remote?: string
  /** The remote has all of it. */
  readonly is_pushed?: true
  /** The user's own files in its first commit, in words. */
  readonly own?: string
  /** What is uncommitted on it now. */
  readonly edits?: readonly string[]
}

interface Whereabouts {
  /** Where the loop's work is; empty when nothing was begun. */
  readonly branch?: string
  /** What this checkout stands on; empty when HEAD is detached. */
  readonly checked_out?: string
  /** With a work tree of its own: that, and the user's checkout. */
  readonly worktree?: string
  readonly home?: string
  readonly cleaned_at?: string
  /** The loop's own work tree was removed. */
  readonly is_tree_gone?: true
  /** Of a merge of the queue's: attempts of the runs that it goes on with. */
  readonly attempts_before?: number
  /** The one commit of a squash, while the branch has it, and that branch; empty when HEAD is detached. */
  readonly squashed?: string
  readonly squashed_on?: string
  /** Of a run that works in the user's tree, or was cleaned up: whether its work may be uncommitted there now. */
  readonly uncommitted?: boolean
  /** Not that branch, but the one that is checked out has it in a commit. */
  readonly brought_on?: string
  /** Neither has it: the ref with its commits, and the command that brings it again. */
  readonly away?: { readonly kept: string; readonly back: string }
  /** The cleanup had nothing to bring: no attempt was saved. */
  readonly is_nothing?: true
  /** Of a keep, while its branch is there and not merged. */
  readonly kept?: KeptBranch
  /** The branch was deleted or renamed by hand. */
  readonly is_gone?: true
  /** The merge queue has brought it all. */
  readonly landed?: LandedWork
  /** The original branch has it all, by the user's own merge. */
  readonly is_merged?: true
  /** It had all of it before the cleanup, which had nothing left to do. */
  readonly is_own_merge?: true
  /** What the last attempt had done was deleted: `ralph clean --attempts`. */
  readonly is_attempt_gone?: true
  /** The command that gets the run further, and what for. */
  readonly onward?: { readonly command: string; readonly why: string }
  /** Its work tree is gone: what is to be typed, in this order, to have it again. */
  readonly tree_again?: readonly string[]
  /** What brings its commits without that. */
  readonly bring_here?: string
  /** The loop's own work tree, which nothing needs any more. */
  readonly leftover_tree?: string
  /** What is in that tree alone, in no commit and not in the user's checkout: it goes with the folder. */
  readonly leftover_files?: readonly string[]
  /** What the boxes in this checkout say, where the work was brought to it. */
  readonly plan?: { readonly open: number; readonly done: number; readonly total: number }
  /** The folder of the change was archived, renamed or deleted since: a resume would not find it. */
  readonly is_plan_gone?: true
  /** Of a run that stopped for its user: the tasks, and the file and line of the box of each. */
  readonly yours?: readonly { readonly text: string; readonly at: string }[]
  /** Of such a run, where another branch is checked out: what is to be typed to get to its boxes. */
  readonly switch_there?: string
  /** Of a loop that runs: what it is busy with, the program of the user's own that works, and what its turn has used so far. */
  readonly phase?: string
  readonly agent_program?: string
  readonly used_now?: { readonly tokens: number; readonly cost_usd: number }
}

/** `alive`: the loop's process is there now, whatever the file says. */
export type StatusReport = StateFile & {
  /** Why this may not be all: a journal that cannot be read to its end. */
  readonly problem?: string
  readonly alive: boolean
  /** Where the loop was killed, and nobody has put its work tree in order yet. */
  readonly died_at?: string
  /** Processes of that loop which are still running. */
  readonly orphan_pids?: readonly number[]
  readonly parked?: ParkedWork
  /** For a person only: the contract names the fields of `--json`. */
  readonly where?: Whereabouts
  /** Why the last cleanup was refused, where the branch has not been merged since. */
  readonly finish_refused?: string
  /** What was refused was a squash. */
  readonly squash_refused?: true
  /** What makes its "done" worth less: a changed gate, tests that are gone, a gate that ran none. */
  readonly warnings?: readonly string[]
  /** What the summary of the last loop had to say, and nobody has settled since. */
  readonly notes?: readonly string[]
}

export interface WatchRequest {
  /** By change, the last that was told; of the others nothing is told but how they stand. `start`: everything. */
  readonly from?: Readonly<Record<string, Cursor>> | 'start'
  readonly stop: AbortSignal
}

export type Watched = Told & { readonly change_id: string }

/** As `loops` has it. */
export interface LoopSeen extends LoopBrief {
  readonly freshness: Freshness
  readonly worktree: string
  /** As `status` has them. */
  readonly died_at?: string
  readonly orphan_pids?: readonly number[]
  readonly problem?: string
  /** Of a loop of wt-tools alone: those of ralph's own are in its `history`. */
  readonly iterations?: readonly WtIteration[]
}

export interface StatusLine {
  /** Empty where there is nothing to say. */
  readonly text: string
  /** How many loops run in this repository. */
  readonly running: number
  /** The one that `text` tells of. */
  readonly loop?: Omit<LoopSeen, 'iterations'>
}

export type WtIteration = Pick<
  IterationRecord,
  'n' | 'started' | 'ended' | 'done_check' | 'commits' | 'tokens_used' | 'timed_out' | 'tokens_estimated'
>

export interface History {
  readonly change_id: string
  /** For a person only, as is the time of the gates. */
  readonly parked?: ParkedWork
  readonly iterations: readonly IterationRecord[]
  /** As the run has them: an iteration names its story by its id alone. */
  readonly stories: readonly Pick<StorySummary, 'id' | 'title'>[]
  /** By iteration; for a person only. */
  readonly gates_ms?: ReadonlyMap<number, number>
  /** What makes its "done" worth less, a sentence each; for a person only. */
  readonly warnings?: readonly string[]
  /** What people did between two attempts; absent when that is nothing. */
  readonly by_hand?: readonly HandWork[]
  /** Folders with journal and transcripts of runs that a new one has replaced. */
  readonly earlier_runs: readonly string[]
  /** Those that were asked for, the first one first. */
  readonly runs?: readonly (Pick<History, 'iterations' | 'stories' | 'gates_ms' | 'warnings' | 'by_hand'> & {
    readonly number: number
    readonly name: string
    readonly status: LoopStatus
  })[]
}

export interface DiffRequest {
  readonly change: string | undefined
  /** Absent: the last attempt that was not kept, else the last one. */
  readonly n: number | undefined
  /** What was typed where a number was expected: the answer is which numbers there are. */
  readonly other?: string
  /** Of an earlier run. */
  readonly run?: number | undefined
  /** Everything that the run has saved since its start, instead of one attempt. */
  readonly isAll?: boolean
  /** `patch`: for git apply, byte for byte; `short`: for people; `stat`: how much of which file. */
  readonly form: 'patch' | 'short' | 'stat'
}

export interface AttemptDiff {
  readonly change_id: string
  readonly n?: number
  /** Of which story, and what became of it: for a person. */
  readonly what: string
  /** As git prints it, without colours; empty where nothing was changed. */
  readonly patch: string
  /** The user's own, where git's settings for all repositories name one; never the repository's, which agents can write. */
  readonly pager: string
}

export interface AttemptNow {
  readonly change_id: string
  /** Absent between two attempts. */
  readonly n?: number
  /** Against its checkpoint, new files too; empty where nothing was changed. */
  readonly patch: string
  /** There is more than that. */
  readonly is_cut: boolean
  /** The plan in the tree that it works in; empty where that cannot be read now. */
  readonly stories: ChangeDetail['stories']
  /** What still runs of a loop that has died. */
  readonly orphan_pids: readonly number[]
}

export interface GateOutput {
  readonly change_id: string
  readonly n: number
  readonly text: string
  /** It began earlier. */
  readonly is_cut: boolean
}

export interface LogRequest {
  readonly change: string | undefined
  /** Absent: the latest. */
  readonly iteration: number | undefined
  /** What the gates printed, instead of the agent. */
  readonly isOfGates?: boolean
  readonly follow: boolean
  /** Called where no attempt has begun yet, and then one is waited for; absent: that is an error. */
  readonly waits?: () => void
  /** Before what was said in it. */
  readonly began?: (attempt: LoggedAttempt) => void
  /** After what was said in it, or while that is followed: each of its gates. */
  readonly gate?: (event: Extract<LoopEvent, { type: 'gate.started' | 'gate.ended' }>) => void
  /** After it, once it has ended: what came of it. */
  readonly ended?: (attempt: Pick<IterationRecord, 'n' | 'verdict' | 'reason'>, change: string) => void
  readonly write: (bytes: Uint8Array) => void
  readonly stop: AbortSignal
}

export interface LoggedAttempt extends Pick<IterationRecord, 'n' | 'story_id' | 'attempt' | 'started'> {
  readonly change_id: string
  readonly title: string
  /** Its gates judged what a person had ticked after it: no attempt's own. */
  readonly by_hand?: true
  /** Of its story in the plan, from 1; 0 where it has none. */
  readonly index: number
  readonly total: number
}

export interface AttemptList {
  readonly change_id: string
  readonly stories: readonly Pick<StorySummary, 'id' | 'title'>[]
  readonly attempts: readonly {
    readonly n: number
    readonly story_id: string
    readonly attempt: number
    readonly verdict: Verdict
    readonly reason: string
    readonly ref: string
    readonly commit: string
    /** Whether it left anything other than it found it. */
    readonly changed: boolean
  }[]
  /** What people did between two attempts; absent when that is nothing. */
  readonly by_hand?: readonly HandWork[]
  /** Of runs that a new one has replaced; without the rest where their journal is gone. */
  readonly earlier: readonly {
    readonly run: string
    /** As `ralph diff <n> --run` takes it. */
    readonly run_number: number
    readonly n: number
    readonly story_id?: string
    readonly attempt?: number
    readonly verdict?: Verdict
    readonly reason?: string
    readonly ref: string
    readonly commit: string
    /** The checkpoint that it began with. */
    readonly base: string
  }[]
}

export interface Decisions {
  readonly change_id: string
  readonly decisions: readonly Decision[]
  /** Where a gate ended the last attempt. */
  readonly failed_gate?: FailedGate | undefined
  readonly earlier_runs: readonly string[]
}

export interface Diagnosis {
  readonly checks: readonly {
    readonly name: string
    readonly verdict: 'ok' | 'warning' | 'problem'
    readonly detail: string
    /** How to fix it; empty when there is nothing to fix. */
    readonly fix: string
    /** A gate that was run and fails. */
    readonly is_red?: true
  }[]
  /** With --fix: what was put in order before the checks. */
  readonly fixes?: readonly Fix[]
}

export interface Fix {
  readonly name: string
  readonly before: string
  /** How it is now, unless it failed. */
  readonly after: string
  /** Why it is as before. */
  readonly failed?: string
}

export interface Setup {
  readonly path: string
  /** Or another file of settings. */
  readonly isThere: boolean
  /** The one to use; empty where none is installed. */
  readonly agent: string
  readonly agents: readonly { readonly name: string; readonly login: string }[]
  readonly gates: readonly {
    readonly command: string
    /** Why it cannot run here; absent where it can. */
    readonly problem?: string
  }[]
  /** How each installed agent gets to know of `ralph mcp`. */
  readonly mcp: readonly {
    readonly agent: string
    readonly command: string
    readonly text: string
    /** One of the repository's, which is not there yet. */
    readonly file?: string
  }[]
}

export interface UsageRequest {
  /** An ISO time that Date.parse understands, `yesterday`, or `7d`, `1h`; `today` and `week` are the local day and week so far. */
  readonly since: string
  readonly by: 'agent' | 'model' | 'story' | 'day' | undefined
}
