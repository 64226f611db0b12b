// What `import … from 'ralphtool'` gives, as types alone: the build ships this text, with types.ts, as the declarations.
import type { ErrorCode, LoopEvent, LoopSettings, LoopState } from './types.ts'

/** Where to look. */
export interface Place {
  /** A folder of the repository; left out: the current folder of the process. */
  readonly cwd?: string | undefined
  /** For ralph, git, gates and agents; left out: the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
}

export interface RunOptions extends Place {
  /** Its folder under openspec/changes; left out: the only open one, or with `resume` the only one that can be resumed. */
  readonly change?: string | undefined
  /** As in ralph.yaml, by the same names. They win over variables and files, as flags do. */
  readonly settings?: LoopSettings | undefined
  /** Goes on with an earlier run of the change, as `ralph resume` does. */
  readonly resume?: boolean | undefined
  /** With `resume`: your hint for the next prompt. */
  readonly feedback?: string | undefined
  /** As `--accept-config`: ralph.yaml, git settings and hooks as an agent changed them. */
  readonly acceptConfig?: boolean | undefined
  /** Aborted: the agent is ended, the iteration is recorded, the loop stops (exit code 143). */
  readonly signal?: AbortSignal | undefined
  /** What is said outside of the events, at once; `end` has it, too. */
  readonly onWarning?: ((message: string) => void) | undefined
  /** Who answers at the end where `on_complete` is `ask`, and in a manual loop; left out: `later`. */
  readonly human?: Human | undefined
}

export interface Human {
  /** Where the work goes. */
  choose?(
    question: {
      readonly originalBranch: string
      readonly branch: string
      readonly summary: string
      readonly worktree?: string
      readonly isStuck?: boolean
    },
    stop: AbortSignal,
  ): Promise<'cleanup' | 'keep' | 'later'>
  /** The agent of a manual loop says that its task is done. */
  isDone?(task: string, stop: AbortSignal): Promise<'done' | 'go_on' | 'later'>
}

/** One event, in order, with the state after it. */
export interface LoopItem {
  readonly event: LoopEvent
  /** As `.claude/loop-state.json` has it. */
  readonly state: LoopState
  /** Names this event: a watcher can continue after it, in any process. */
  readonly cursor: string
}

export interface LoopEnd {
  /** As `ralph loop` would exit: 0 is done, and nothing else is. */
  readonly exit_code: number
  /** Instead of a run: why there was none. */
  readonly note?: string
  readonly warnings: readonly string[]
}

/** Runs while it is read, and whoever stops reading (`break`) stops it. */
export interface LoopRun extends AsyncGenerator<LoopItem, LoopEnd, void> {
  /** Undefined until the last event has been read. */
  readonly end: LoopEnd | undefined
}

/** As `ralph status --json` prints it. */
export type LoopSnapshot = LoopState & {
  /** Its process is there now, whatever the state says. */
  readonly alive: boolean
  /** It was killed, and nobody has put its work tree in order yet. */
  readonly died_at?: string
  /** Processes of a loop that died which are still running. */
  readonly orphan_pids?: readonly number[]
  /** Why this may not be all. */
  readonly problem?: string
}

export interface WatchOptions extends Place {
  /** Aborted: the watch ends. */
  readonly signal?: AbortSignal | undefined
  /** By change, the cursor to continue after; `start`: everything. Left out: how each loop stands, then what comes. */
  readonly from?: Readonly<Record<string, string>> | 'start' | undefined
}

/** See docs/stream.md for each. */
export type WatchItem = {
  readonly change_id: string
  readonly state: LoopState
  readonly cursor: string
} & (
  | { readonly type: 'event'; readonly event: LoopEvent }
  /** At first, and when it changes; `dead`: it did not end properly, and its process is gone. */
  | { readonly type: 'loop'; readonly loop: 'running' | 'ended' | 'dead' }
  | { readonly type: 'run_began'; readonly isLost: boolean }
  | { readonly type: 'talk_dropped'; readonly pieces?: number }
  | { readonly type: 'journal_damaged' | 'journal_cut'; readonly message: string }
)

/**
 * Runs a loop in this process, from its first event to `complete`. It changes nothing of the process: no signal handler, no output,
 * no exit code. What you can fix is thrown as a `RalphError`, before anything is touched.
 */
export declare function runLoop(options?: RunOptions): LoopRun

/** How a loop stands, whichever process it runs in; undefined where the change never had one. It writes nothing. */
export declare function readLoop(
  options?: Place & { readonly change?: string | undefined },
): Promise<LoopSnapshot | undefined>

/** Every loop of the repository, in all its work trees, live, also those that begin later. It writes nothing, and ends by its signal. */
export declare function watchLoops(options?: WatchOptions): AsyncGenerator<WatchItem, void, void>

/** What you can fix; `hint` says how. docs/errors.md has every code. */
export declare class RalphError extends Error {
  readonly code: ErrorCode
  readonly hint: string
  /** As the command line would exit. */
  readonly exitCode: 1 | 2 | 5 | 6 | 7
  constructor(code: ErrorCode, message: string, options: { hint: string; cause?: unknown })
}
