// The state of one loop: everything the reducer knows, all of it derived from events.
import type {
  AgentEnded,
  Baseline,
  GoneFile,
  IterationRecord,
  LoopStatus,
  Settings,
  StorySummary,
  Verdict,
  SetUpDone,
} from './event.ts'
import { blankMemory } from './git-memory.ts'
import type { GitMemory } from './git-memory.ts'
import type { Absence } from './ownership.ts'
import type { UsageFigures } from './usage.ts'

/** The open iteration; it moves into `iterations` when it has ended. */
export interface Current {
  readonly n: number
  readonly storyId: string
  readonly attempt: number
  readonly attempts: number
  readonly started: string
  readonly baseCommit: string
  /** Open boxes of the whole plan when it began. */
  readonly openTasks: number
  readonly agent: string
  readonly logFile: string
  readonly agentPid?: number
  readonly agentPidStarted?: string
  readonly sessionId?: string
  readonly lastActivity: string
  readonly usage?: UsageFigures
  /** How often its agent has claimed that the story is complete. */
  readonly claims: number
  /** Files that came while gates ran for its claims. */
  readonly madeByClaims?: readonly string[]
  readonly ended?: AgentEnded & { readonly now_ms: number; readonly duration_ms: number }
  readonly kept?: Kept
  /** The tree that was judged last: what is saved has to be this one. */
  readonly tree?: string
  /** How often the gates have run. */
  readonly rounds: number
  /** Files that came with the first run of the gates (or with those of an earlier story), and changed in each one since. */
  readonly ownFiles?: readonly string[]
  /** The tree is not the kept one any more. */
  readonly isStirred: boolean
  readonly isTickedByRalph: boolean
  readonly verdict?: Verdict
  readonly reason: string
  readonly tellsNext: boolean
  /** What the next prompt is told, where that is more than the reason. */
  readonly tells?: string
  readonly failedGate?: FailedGate
  readonly saved?: { readonly commit: string; readonly changed: boolean; readonly isPlanOnly: boolean }
}

interface FailedGate {
  readonly gate: string
  /** In one line. */
  readonly reason: string
}

interface Kept {
  readonly ref: string
  readonly commits: readonly string[]
  readonly changed: boolean
  readonly historyRewritten: boolean
  readonly ticked: number
  readonly stillOpen: number
  readonly notAsked: number
  readonly gone: readonly GoneFile[]
}

/** Its agent has ended. */
type EndedTurn = Current & Required<Pick<Current, 'ended'>>
/** And what it left is kept. */
export type KeptTurn = EndedTurn & Required<Pick<Current, 'kept'>>

export type StopReason =
  | 'done'
  | 'retries'
  | 'iterations'
  | 'stall'
  | 'hand'
  | 'human'
  | 'budget'
  | 'limit'
  | 'auth'
  | 'missing'
  | 'model'
  | 'signal'
  | 'killed'
  | 'gate'
  | 'error'

export interface Outcome {
  readonly status: LoopStatus
  readonly stopReason: StopReason
  readonly reason: string
  readonly hint: string
  readonly exitCode: number
  readonly storyId?: string
}

/** What `loop.started` tells; it stands until the next start. */
interface RunFacts {
  readonly runId: string
  /** How its new work tree was made ready. */
  readonly setUp: SetUpDone | undefined
  readonly settings: Settings
  readonly startedAt: string
  readonly pid: number
  readonly worktree: string
  readonly worktreeName: string
  /** The user's own checkout, where the loop runs in a work tree of its own. */
  readonly home: string | undefined
  readonly brought: readonly string[]
  readonly root: string
  readonly tasksFile: string
  readonly originalBranch: string
  readonly branch: string
}

interface Progress {
  /** Counts entries into a phase: a command is due when it has moved. */
  readonly step: number
  readonly changeId: string
  readonly updatedAt: string
  readonly maxIterations: number
  readonly stories: readonly StorySummary[]
  readonly humanTasks: readonly string[]
  /** Stories that a person has ticked between two attempts, and no gate has judged yet. */
  readonly byHand?: readonly string[]
  readonly tasksDone: number
  readonly tasksTotal: number
  /** Story announced last in this process's run. */
  readonly storyId: string | undefined
  /** Retries used, by story id. */
  readonly retries: Readonly<Record<string, number>>
  readonly failure:
    | { readonly storyId: string; readonly reason: string; readonly gate?: FailedGate | undefined }
    | undefined
  /** By gate, what it says without the work of the attempt that it failed; since the last start. */
  readonly baselines: Readonly<Record<string, Baseline>>
  readonly feedback: string | undefined
  /** Words for the next prompt that came while the loop ran; `n` is the iteration that was open, or the last one. */
  readonly notes: readonly { readonly id: string; readonly n: number; readonly text: string }[]
  /**
   * An iteration that an error of ralph's own cut off: until it is saved or reverted, the work tree is no checkpoint and its boxes
   * say nothing. With a message: it had earned its checkpoint, and with it this verdict, and files of the user's are gone by it;
   * `tree` is what its gates have passed.
   */
  readonly unsettled:
    | {
        readonly n: number
        readonly storyId: string
        readonly message?: string
        readonly verdict?: Verdict
        readonly gone?: readonly GoneFile[]
        readonly tree?: string
      }
    | undefined
  /** Since a loop died, or an error cut its iteration off: who may have changed its tree after that, and when. */
  readonly absence: Absence | undefined
  /** What the write-ahead facts tell of the repository. */
  readonly git: GitMemory
  readonly iterations: readonly IterationRecord[]
  /** Uncommitted files of the user's that are in no checkpoint any more, by an agent's doing. */
  readonly gone: readonly GoneFile[]
  /** What makes its "done" worth less, a sentence each. */
  readonly weakened: readonly string[]
  /** Tests that were there before, and are not as they were: a plain fact. */
  readonly testsChanged: readonly string[]
  /** Files that the gates themselves write, each time anew. */
  readonly gateFiles: readonly string[]
  readonly commitless: number
  /** Epoch ms until which an agent of the chain is not worth asking; Infinity when it cannot run. */
  readonly limitedUntilMs: Readonly<Record<string, number>>
  /** Waits in a row since an iteration last got through to its model. */
  readonly waits: number
  readonly waitedMs: number
  /** Latest wall-clock time that an event told; the core has no clock of its own. */
  readonly nowMs: number
  readonly stop: 'SIGHUP' | 'SIGINT' | 'SIGTERM' | 'unread' | 'killed' | undefined
  /** A human has asked for a pause: before the next iteration, for as long as this stands. */
  readonly pause: boolean
  readonly outcome: Outcome | undefined
  /** How many of the outcome's reports are out. */
  readonly reported: number
  readonly choice: Choice | undefined
  readonly status: LoopStatus
}

type Choice = 'cleanup' | 'keep' | 'later'

interface Waiting {
  readonly for: 'limit' | 'overloaded' | 'offline' | 'pause'
  readonly untilMs: number
  /** As the engine has told it. */
  readonly until: string | undefined
  readonly agent: string
}

/** Gerunds: each names what the loop is busy with, and `loop.ts` knows the one command that goes with it. What that needs is here. */
export type Doing =
  | { readonly phase: 'working'; readonly current: Current }
  | { readonly phase: 'keeping'; readonly current: EndedTurn }
  | { readonly phase: 'gating' | 'settling' | 'saving' | 'reverting'; readonly current: KeptTurn }
  /** Of an iteration that may have been cut off anywhere. */
  | { readonly phase: 'recording'; readonly current: Current }
  | { readonly phase: 'opening_story' | 'ensuring' | 'opening_iteration'; readonly storyId: string }
  | { readonly phase: 'waiting'; readonly waiting: Waiting }
  | { readonly phase: 'finishing'; readonly choice: Choice }
  | {
      readonly phase:
        | 'planning'
        | 'proving'
        | 'confirming'
        | 'reporting'
        | 'choosing'
        | 'completing'
        | 'ended'
    }

/** In a phase that has no use for it there is none. */
type Only<T> = T extends Doing
  ? T & { readonly [K in Exclude<'current' | 'waiting', keyof T>]?: undefined }
  : never

export type StartedState = Progress & RunFacts & Only<Doing>
/** In the middle of an iteration. */
export type IterationState = Extract<StartedState, { readonly current: Current }>
export type Turn<P extends Doing['phase']> = Extract<StartedState, { readonly phase: P }>

export type LoopState =
  | StartedState
  | (Progress & { readonly [K in keyof RunFacts | 'current' | 'waiting']?: undefined } & {
      readonly phase: 'idle'
    })

export function initialState(changeId: string): LoopState {
  return {
    phase: 'idle',
    step: 0,
    changeId,
    updatedAt: '',
    maxIterations: 0,
    stories: [],
    humanTasks: [],
    tasksDone: 0,
    tasksTotal: 0,
    storyId: undefined,
    retries: {},
    failure: undefined,
    baselines: {},
    feedback: undefined,
    notes: [],
    unsettled: undefined,
    absence: undefined,
    git: blankMemory,
    iterations: [],
    gone: [],
    weakened: [],
    testsChanged: [],
    gateFiles: [],
    commitless: 0,
    limitedUntilMs: {},
    waits: 0,
    waitedMs: 0,
    nowMs: 0,
    stop: undefined,
    pause: false,
    outcome: undefined,
    reported: 0,
    choice: undefined,
    status: 'starting',
  }
}

/** The stories this run is about: all, or those named by `--story`. */
export function selectedStories(state: Pick<LoopState, 'settings' | 'stories'>): readonly StorySummary[] {
  const only = state.settings?.stories ?? []
  return only.length === 0 ? state.stories : state.stories.filter((story) => only.includes(story.id))
}

export function totalTokens(state: LoopState): number {
  return state.iterations.reduce((sum, iteration) => sum + iteration.tokens_used, 0)
}

/** Of the iterations that have a price; undefined when tokens were used and none has: unpriced is not free. */
export function totalCostUsd(state: LoopState): number | undefined {
  const costs = state.iterations.flatMap((iteration) => iteration.cost_usd ?? [])
  if (costs.length === 0 && totalTokens(state) > 0) return undefined
  return costs.reduce((sum, cost) => sum + cost, 0)
}

/** Killed, which is on record, and nobody has put its work tree in order since. */
export function isUnrepaired({ phase, absence, unsettled, git }: LoopState): boolean {
  return phase === 'ended' && absence !== undefined && (unsettled !== undefined || git.pending !== undefined)
}
