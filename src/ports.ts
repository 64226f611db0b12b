// What the engine asks of the world. Each contract stands in prose on its type; a suite in test/ runs it on every adapter.
// Long because who reads one port reads the others, too.
import type { Cursor } from './core/cursor.ts'
import type { AgentEnded, EventBody, GoneFile, LoopEvent } from './core/event.ts'
import type { Judged } from './core/loop.ts'
import type { LoopState } from './core/state.ts'
import type { Plan } from './core/story.ts'
import type { GateFailure } from './core/gate-failure.ts'
import type { UsageFigures } from './core/usage.ts'

// --- the plan ---------------------------------------------------------------------------------------------------

/** What came of comparing the change folder after an attempt with its guarded bytes. */
export interface SpecJudgement {
  /** One sentence for each thing put back: a foreign tick, a reworded task, an edited proposal, a move into archive/. */
  readonly putBack: readonly string[]
  /** One sentence for each file of tasks that has lines which were not there before: they stay. */
  readonly added?: readonly string[]
  /** That the plan itself was deleted, emptied or made unreadable; it has been restored. */
  readonly lost: string | undefined
  /** Runnable tasks of the story that were open before the attempt and that the agent was asked to do: ticked by it / still open. */
  readonly ticked: number
  readonly stillOpen: number
  /** Open tasks of a large story that this iteration was not asked for: the story goes on with them, and no retry is used up. */
  readonly notAsked?: number
}

export interface PromptRequest {
  readonly storyId: string
  readonly attempt: number
  readonly attempts: number
  /** Only after FAILED or a failed gate; the reason as the agent or the gate gave it. */
  readonly previousFailure?: string
  /** The user's words from `resume --feedback`. */
  readonly feedback?: string
  /** The agent gets ralph's own tools, and should know what they are for. */
  readonly offersClaims?: boolean
}

/** After each gate: restores what the gate had no business changing, and says what it was. Added lines stay, ticks do not. */
export type WatchedPlan = (gate: string) => Promise<Pick<SpecJudgement, 'putBack' | 'added' | 'lost'>>

export interface SpecSource {
  /** The plan as it is on disk now. A read error, an empty file or a file without boxes throws; it is never "no tasks". */
  read(): Promise<Plan>
  /** The exact prompt for one story; pure reading. Its first line is plain text and no line ends in a promise token. */
  prompt(request: PromptRequest): Promise<string>
  /** Remembers, durably, every byte of the change folder, so that `judge` and `putBack` can compare. Call before each spawn. */
  guard(): Promise<void>
  /** After an attempt: restores what this story's agent had no business changing, and says what it was. Ticks in this story and added lines stay. */
  judge(storyId: string): Promise<SpecJudgement>
  /** Before the gates: remembers the plan as it is then, the agent's ticks included, until the loop goes on. */
  watch(): Promise<WatchedPlan>
  /**
   * Before a revert. What resolves is called after `putBack`: open tasks that were added meanwhile stay in the plan with all that came along,
   * other lines are kept aside; a sentence for each file.
   */
  added(): Promise<() => Promise<readonly string[]>>
  /**
   * Restores the change folder to the guarded bytes, whether git holds it or not. Idempotent; survives a crash of ralph. In a repair
   * what the user has edited since the loop died stays, but for the boxes that were open then: a sentence for each file.
   */
  putBack(): Promise<readonly string[]>
  /** Ticks every open runnable task of the story, changing only the character between the brackets. Ambiguous: throws, never guesses. */
  tick(storyId: string): Promise<number>
  /** A note for later iterations, which no revert removes. */
  learn(text: string): Promise<void>
}

// --- checkpoints ------------------------------------------------------------------------------------------------

export interface KeptAttempt {
  readonly ref: string
  readonly commit: string
  /** Made while the agent ran (base..HEAD and any branch it moved), oldest first, full hashes. */
  readonly commits: readonly string[]
  /** Whether the tree differs from the checkpoint. */
  readonly changed: boolean
  readonly historyRewritten: boolean
  /** Refs the agent moved or deleted and that were put back, stashes it made …: one sentence each. */
  readonly warnings: readonly string[]
  /** What others changed meanwhile and what therefore stays: said without blame. */
  readonly notes: readonly string[]
  /** The work tree now, as a checkpoint would hold it. */
  readonly tree: string
  /** Why it may not become a checkpoint: files of the one before it are gone and could not be put together with it. */
  readonly refused: string | undefined
  /** The tree is that of another commit than the checkpoint: what is not in it, nobody has deleted. */
  readonly isElsewhere: boolean
  /** Files that the user had not committed and that the agent itself took away or set back. */
  readonly gone: readonly GoneFile[]
}

/** The work tree between the end of an attempt and its checkpoint. */
export interface TreeState {
  readonly tree: string
  /** Paths that differ from the tree that was asked about. */
  readonly stirred: readonly string[]
  /** Those of them that the other tree does not have. */
  readonly made?: readonly string[]
  /** Why the attempt's work is no longer there (HEAD was switched, it was stashed or undone). */
  readonly lost: string | undefined
}

export interface SavedCheckpoint {
  /** The checkpoint that stands now. */
  readonly commit: string
  /** Whether it differs from the one before it. */
  readonly changed: boolean
  /** In nothing but the boxes of the plan. */
  readonly only_plan?: true
  /** What else it changed. */
  readonly files?: readonly { readonly path: string; readonly isDeleted: boolean }[]
  /** Tests among them that it deleted or emptied, and that are nowhere else since. */
  readonly lostTests?: readonly string[]
  /** Tests that were there before, and are there with other bytes. */
  readonly changedTests?: readonly string[]
  /** Files that the user had not committed and that it has not, or has as they were committed. */
  readonly gone?: readonly GoneFile[]
  /** Nothing was saved, because the work tree stands like this. */
  readonly refused?: TreeState
}

export interface FinishReport {
  /** One line for a person: where the work is now. */
  readonly message: string
  /** Files that only the user had changed before the loop, told apart from the loop's own. */
  readonly userPaths: readonly string[]
  readonly loopPaths: readonly string[]
  /** Files of the user's that were in no commit, and are not in the result: by what the refs hold, told before or not. */
  readonly gone?: readonly GoneFile[]
  /** Of `keep` and `later`: where the branch can be pushed to. */
  readonly remote?: string
  /** Uncommitted in the loop's own work tree, and not brought. */
  readonly stays?: readonly string[]
  /** Of `squash`: what was committed. */
  readonly commit?: string
  /** Of `squash`: files of the user's own that were there when the gates ran, and are not in the commit. */
  readonly leftOut?: readonly string[]
  /** Of `cleanup` and `squash`: the branch that the work went to, where that has moved since the loop began. */
  readonly moved?: string
  /** Of `squash`: the user's git would not commit it. The work is where a cleanup brings it; why, and what to type. */
  readonly refused?: { readonly why: string; readonly hint: string }
}

/** `squash`: a cleanup, and one commit of it; `rename`: a keep whose commits are named after their stories. */
export type FinishChoice = 'cleanup' | 'keep' | 'later' | 'squash' | 'rename'

export interface PreflightReport {
  readonly worktree: string
  /** `main`, a full hash when detached, or the unborn branch's name. */
  readonly originalBranch: string
  /** `ralph/<change>`, or the user's own branch for stash. */
  readonly branch: string
  /** How many files beside the plan, uncommitted until now, the first commit of that branch will hold. */
  readonly uncommitted?: number
  readonly warnings: readonly string[]
}

/**
 * A state of the work tree that can be restored exactly; see docs/checkpoints.md for HEAD, index, untracked and ignored files.
 * Every method is idempotent, and each multi-step one is journalled ahead, so that `recover` can finish or undo it.
 */
export interface WithoutHidden {
  /** As a person reads them. */
  readonly paths: readonly string[]
  back(): Promise<void>
}

export interface Checkpoints {
  /** Read-only. Refuses with exit 2 where a loop could lose something (hazards G8, G20, G22, G23); nothing is touched. */
  preflight(mode: 'start' | 'fresh' | 'resume'): Promise<PreflightReport>
  /** The first change to the repository: the branch and its "initial state" (branch); nothing (stash). `fresh` archives an earlier branch first. */
  start(mode: 'start' | 'fresh' | 'resume'): Promise<{ readonly commit: string }>
  /**
   * Before every spawn: the checkpoint of this story exists, HEAD is at it, the tree equals it.
   * Violated: repaired from the journal, or throws; never ignored. `byHand`: no spawn, the user has ticked it.
   */
  ensure(storyId: string, byHand?: boolean): Promise<{ readonly commit: string }>
  /**
   * Before an agent or a gate of iteration n starts: variables for its environment alone, by which its git tells which refs it
   * writes and which commands it runs. What no watched git wrote is not the agent's.
   */
  watch(by: 'agent' | 'gate', n: number): Promise<Readonly<Record<string, string>>>
  /**
   * After every attempt, good or bad, agent dead: the full tree under `refs/ralph/<change>/attempts/<n>`, foreign refs put back.
   * With `mayBeSaved`: what a switch of HEAD or a sweep by git has taken out of the work tree is merged into it again.
   */
  keep(n: number, mayBeSaved?: boolean): Promise<KeptAttempt>
  /** Read-only: paths, as a person reads them, that a kept attempt has changed since its checkpoint. */
  changed(n: number): Promise<readonly string[]>
  /**
   * While an agent works: what resolves tells the paths that are there by then and are not now, as `look` names them. Read-only for the
   * work tree, which may change meanwhile: it rejects where that hinders it.
   */
  made(): Promise<() => Promise<readonly string[]>>
  /** Read-only for the work tree: how it stands now, after `keep`, against the tree that was judged last. */
  look(since: string): Promise<TreeState>
  /**
   * Takes out of the work tree, for a while, what ignore rules that attempt n brought keep out of its checkpoint. Undefined where there is
   * nothing of the kind. After a kill `recover` puts it back.
   */
  without(n: number): Promise<WithoutHidden | undefined>
  /**
   * The tree as it is becomes the next checkpoint (on `ralph/<change>`, wherever the agent left HEAD). Where it is not what the
   * gates have passed, or the attempt's work is gone, nothing is saved. `message` is what it is known by, `about` what else a reader of
   * the commit gets to know.
   */
  save(storyId: string, message: string, judged?: Judged, about?: string): Promise<SavedCheckpoint>
  /** In a repair: whether nothing in the tree has changed since the loop died, and nothing still might have. */
  isAsLeft(): Promise<boolean>
  /** Back to exactly the checkpoint, but in a repair without what the user has changed since the loop died: HEAD, index, tracked, untracked, modes, half-done operations. Ignored files untouched. `stays`: what of theirs, as a person reads it. */
  restore(): Promise<{ readonly commit: string; readonly stays: readonly string[] }>
  /** `later` touches nothing. A conflict with a moved original branch throws `finish_conflict` and touches nothing. */
  finish(choice: FinishChoice, message?: string): Promise<FinishReport>
  /** At start of any writing command: completes or undoes the operation that `git.began` without `git.ended` names. */
  recover(): Promise<Recovered>
}

/** What became of it, in a sentence; and the one commit of a squash that was completed. */
export interface Recovered {
  /** Absent where nothing was left to do. */
  readonly said?: string
  readonly commit?: string
}

// --- the agent --------------------------------------------------------------------------------------------------

/** What came of a claim, for the agent to read. */
export interface ClaimAnswer {
  readonly isAccepted: boolean
  readonly claim: number
  readonly text: string
}

/** What an agent can tell ralph while it works, by tools that only it is offered. Of this attempt alone. */
export interface ClaimDesk {
  /**
   * "The story is complete": judged at once, one after the other. Resolves, and never rejects, when nothing runs for it any more; `gone`
   * ends it early.
   */
  complete(summary: string, gone: AbortSignal): Promise<ClaimAnswer>
  failed(reason: string): void
  progress(task: string): void
  /** Whether it was written. */
  learned(text: string): Promise<boolean>
}

export interface AgentTask {
  readonly n: number
  readonly prompt: string
  /** Which agent of the chain. */
  readonly agent: string
  /** Absent: the agent's own. */
  readonly model?: string
  readonly cwd: string
  /** RALPH_CHANGE, RALPH_STORY, RALPH_ATTEMPT, RALPH_ITERATION, RALPH_RUN_ID, and what `Checkpoints.watch` gave. */
  readonly env: Readonly<Record<string, string>>
  /** Raw bytes of everything it prints go here. */
  readonly transcript: string
  readonly timeoutMs: number
  /** 0 = off. */
  readonly idleTimeoutMs: number
  /** Absent: it is not offered any tool of ralph's. */
  readonly claims?: ClaimDesk
}

export type AgentSignal =
  | { readonly type: 'started'; readonly pid: number; readonly pidStarted: string }
  | { readonly type: 'session'; readonly sessionId: string }
  | { readonly type: 'message'; readonly text: string }
  | { readonly type: 'tool'; readonly name: string; readonly input: string }
  /** Cumulative for this run of the agent; `source` when it is not the agent's own word. */
  | ({ readonly type: 'usage'; readonly source?: 'sessions' | 'stream' } & UsageFigures)
  | { readonly type: 'warning'; readonly message: string }

/** What is known of an agent before its iteration is on record. */
export interface AgentComing extends Pick<AgentTask, 'n' | 'agent' | 'cwd' | 'env'> {
  readonly offersClaims: boolean
}

export interface Agent {
  /** What can be made ready for the next `work`; nothing of the agent's runs before that. Never throws; what is ready for another goes. */
  expect?(coming: AgentComing): void
  /** None comes: nothing of what was made ready is left. */
  dismiss?(): Promise<void>
  /**
   * Runs one turn. Never throws for what an agent may do (crash, silence, nonsense, not installed); resolves exactly once, and when it has
   * resolved nothing of this run is alive. `stop.reason` on the signal says why ralph ended it (`stopped` or `budget`). While a claim is
   * judged, none of its time limits runs.
   */
  work(task: AgentTask, stop: AbortSignal, tell: (signal: AgentSignal) => void): Promise<AgentEnded>
  /** Whether this one can be offered tools of ralph's own. */
  takesClaims?(agent: string): boolean
}

// --- gates, usage, files, time ----------------------------------------------------------------------------------

export interface GateResult {
  /** Fail closed: "could not run" is neither passed nor failed; `stopped` when the signal ended it. */
  readonly outcome: 'passed' | 'failed' | 'could_not_run' | 'stopped'
  readonly exitCode?: number
  readonly outputTail: string
  /** What it is about, where that could be told from its output. */
  readonly failure?: GateFailure | undefined
  /** Lines of its whole output. */
  readonly outputLines?: number
  /** It passed, and a known test program says that it ran none. */
  readonly ranNoTests?: true
  /** Why its output could not be kept; absent when it was. */
  readonly warning?: string
  readonly durationMs: number
}

export interface Gates {
  /** Runs one command of the user's by `sh -c` in the work tree; nothing of it is alive when it has resolved. `log`: where its output is kept. */
  check(
    command: string,
    env: Readonly<Record<string, string>>,
    stop: AbortSignal,
    log?: string,
  ): Promise<GateResult>
}

export interface MeasuredUsage extends UsageFigures {
  readonly estimated: boolean
  /** Cause of a fallback, for one warning on stderr. */
  readonly warning?: string
  /** `wt-usage`, `agent`, `sessions`, `estimate`: for `ralph why`. */
  readonly source: string
  /** For `ralph why`: that another source disagrees by more than 20 %, or why one was passed over. */
  readonly note?: string | undefined
}

export interface UsageTurn {
  /** When it began: lets a turn be measured from the session files whose `before` died with another process. */
  readonly started?: string
  /** The loop has been told to stop: nothing may take more than a second and a half. */
  readonly hurry?: boolean
  /** The model gave no answer (limit, overload, no network, no login): what nobody has counted was not used. */
  readonly isUnanswered?: boolean
  /** Aborted when the loop is told to stop: nothing is waited for any longer. */
  readonly stop?: AbortSignal
}

export interface Usage {
  /** Before the spawn: remembers where the counters stand. Never throws, and does not outlast `stop`. */
  before(agent: string, stop?: AbortSignal): Promise<void>
  /**
   * After the turn: what it used. `own` is what the agent itself reported; `model` prices figures that came without a cost.
   * Never throws, never negative; `cost_usd` is absent for an unpriced model.
   */
  after(
    agent: string,
    own: UsageFigures | undefined,
    sessionId: string | undefined,
    model?: string,
    turn?: UsageTurn,
  ): Promise<MeasuredUsage>
}

/**
 * What the loops of this machine tell one another about the login that an agent uses. Never throws, and keeps no loop from its work for
 * long: what cannot be told is as if nobody had said anything.
 */
export interface Logins {
  /**
   * Before each spawn: until when it has to wait, because another loop was told of a limit, or goes first after its reset. Undefined: it
   * may ask, and says what came of it by one of `limited`, `answered` and `leave`.
   */
  look(agent: string): Promise<number | undefined>
  /** True as soon as another loop has found that the login works, or that went first is gone; false when `stop` aborts. */
  freed(agent: string, stop: AbortSignal): Promise<boolean>
  /** The provider has told this loop. */
  limited(agent: string, untilMs: number): Promise<void>
  /** A human does not want to wait: the next look lets it ask. */
  passOver(agent: string): void
  /** The provider has answered: the others may ask, too. */
  answered(agent: string): Promise<void>
  /** Its turn is over, and nobody knows more than before. */
  leave(agent: string): Promise<void>
}

export interface Journal {
  /**
   * Resolves only when the line is durable. Lines of the agent's talk (`agent.message`, `agent.tool`) are not kept. `after` is the state
   * after it: a journal may keep it for those who look.
   */
  append(event: LoopEvent, after?: LoopState): Promise<void>
}

/**
 * What a reader of a run in another process is told, in the order in which the loop told it: every record once, the agent's talk
 * too, with the state after it and its name. See docs/stream.md.
 */
export type Told = { readonly state: LoopState; readonly cursor: Cursor } & (
  | { readonly type: 'event'; readonly event: LoopEvent }
  /** What follows is another run, from its start: `--fresh` archived the one before, which was told to its end, unless it is lost. */
  | { readonly type: 'run_began'; readonly isLost: boolean }
  /** Somebody shortened the journal: what was told after this cursor no longer counts. */
  | { readonly type: 'journal_cut'; readonly message: string }
  /** Nothing after this line is told, unless the journal is mended. */
  | { readonly type: 'journal_damaged'; readonly message: string }
  /** Some of what the agent said is not kept; how many pieces, if that is known. */
  | { readonly type: 'talk_dropped'; readonly pieces?: number }
  /** At first, and when it changes: `dead` is a loop without its last word whose process is gone, `none` that nothing ever ran. */
  | { readonly type: 'loop'; readonly loop: 'running' | 'ended' | 'dead' | 'none' }
)

export interface FollowRequest {
  /** The last that was told; left out: from the start of the run. */
  readonly from?: Cursor
  /** What is there; until no loop is running; for ever, over every loop and run to come. */
  readonly until: 'now' | 'end' | 'stop'
  readonly stop: AbortSignal
}

/** How an adapter writes ahead: the engine stamps the body and appends it before the promise resolves. */
export type WriteAhead = (body: EventBody) => Promise<void>

export interface Lock {
  /** Throws `locked` (exit 7) naming the owner; stale, empty and corrupt locks are taken over. Released only by its owner. */
  acquire(): Promise<{ release(): Promise<void> }>
}

/** The only time in the system. */
export interface Clock {
  /** Wall clock, epoch ms: for display and reset times. */
  now(): number
  /** Monotonic ms: for timeouts and durations. */
  monotonic(): number
  /** Local ISO 8601 with numeric offset, whole seconds. */
  readonly stamp: (epochMs?: number) => string
  /** Resolves at the wall-clock time, or at once when the signal aborts. Survives a sleeping laptop. */
  until(epochMs: number, stop: AbortSignal): Promise<void>
  /** Calls once, after so many monotonic ms, unless it is cancelled before. Keeps no process alive. */
  after(ms: number, call: () => void): Cancel
}

export type Cancel = () => void

/** The human at the terminal; in a pipe nobody answers and the default stands. */
export interface Human {
  choose(
    question: {
      readonly originalBranch: string
      readonly branch: string
      readonly summary: string
      /** Of the loop's own, where it has one: the user's checkout is not on the branch. */
      readonly worktree?: string
      /** A story failed too often, or nothing was kept for long: another try may be wanted at once. */
      readonly isStuck?: boolean
    },
    stop: AbortSignal,
  ): Promise<'cleanup' | 'keep' | 'later'>
  isDone(task: string, stop: AbortSignal): Promise<'done' | 'go_on' | 'later'>
}
