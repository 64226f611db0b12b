// What the merge queue asks of the world, each contract in prose on its type.
import type { LoopFacts } from '../core/queue-due.ts'
import type { QueueBody, QueueEvent } from '../core/queue-event.ts'
import type { Conflict, QueueState } from '../core/queue.ts'
import type { GateResult } from '../ports.ts'

/** `hint`: another one than to mend its branch. */
export interface Unfit {
  readonly refused: string
  readonly hint?: string
}

/** What the queue asks of the world. */
export interface QueuePorts {
  /** On the disk when it returns. */
  append(event: QueueEvent): void
  stamp(): string
  /** What other processes have asked for since. */
  wishes(take: (body: QueueBody) => void): void
  readonly loops: {
    /** `marked`: both sides of its conflict, where it has one. */
    facts(change: string, marked?: string): Promise<LoopFacts>
    /** Resolves when it has begun, or with what it said when it refused. It outlives this process. */
    start(
      change: string,
      how: 'loop' | 'resume',
      at: { readonly base: string; readonly slot: number; readonly maxCostUsd?: number },
    ): Promise<{ readonly refused?: string; readonly exitCode?: number }>
    /** In the change's own work tree, from both sides with their markers. */
    resolve(
      change: string,
      conflict: Conflict,
      at: { readonly target: string; readonly slot: number; readonly maxCostUsd?: number },
    ): Promise<{ readonly refused?: string; readonly exitCode?: number }>
    /** The same agent goes on with what was wrong. */
    tryAgain(
      change: string,
      problems: readonly string[],
      at: { readonly slot: number; readonly maxCostUsd?: number },
    ): Promise<{ readonly refused?: string; readonly exitCode?: number }>
    /** Nothing was wrong: its loop is done. */
    accept(change: string): Promise<void>
    /** Its loop's own record says that it was not accepted, and why. */
    refuse(change: string, problems: readonly string[]): Promise<void>
    /** Why none may be started now; empty where one may. */
    hold(): Promise<string>
  }
  readonly landing: Landing
  /** Something may have changed: a loop ended, a wish was made, time passed. */
  pulse(stop: AbortSignal): Promise<void>
}

export interface Landing {
  /** The branch and what landed on it. */
  refs(target: string): Promise<TargetRefs>
  /** Why nothing can land there; empty where it can. */
  whyNoTarget(target: string): Promise<string>
  /** Where the next one lands: on both, as they were seen; conflicts where the user's own commits and what landed do not go together. */
  base(
    target: string,
    refs: TargetRefs,
  ): Promise<{ readonly commit: string } | { readonly conflicts: readonly string[] }>
  /** Whether this commit is in the branch. */
  isHome(target: string, commit: string): Promise<boolean>
  /** Whether the branch had this commit at some time, as far as git remembers. */
  wasHome(target: string, commit: string): Promise<boolean>
  tip(change: string): Promise<string | undefined>
  /** Whether git still has it. */
  isThere(commit: string): Promise<boolean>
  /** Work of somebody's that would not land with it, or a plan that is another one by now; undefined where all is well. */
  unfit(change: string): Promise<Unfit | undefined>
  /** Whether this commit is in what landed, or in the branch. */
  has(target: string, commit: string): Promise<boolean>
  /** Which loop's agent or gate, still at work, has put what landed there, or deleted it: its loop puts that back. */
  movedBy(target: string, to: string | undefined): Promise<string | undefined>
  /** What is in the second of these commits and not in the first: hash and subject of each. */
  came(base: string, own: string): Promise<readonly string[]>
  /** As which commit exactly this state of the change has landed there before, by git's history. */
  landedAs(change: string, base: string, tip: string): Promise<string | undefined>
  /** As which commit the user has brought its work there by `ralph finish --squash`, and what of its branch, which is gone, that was. */
  squashedAs(
    change: string,
    base: string,
  ): Promise<{ readonly commit: string; readonly tip: string } | undefined>
  /** Of these the ones that are in neither. */
  notLanded(target: string, commits: readonly string[], refs: TargetRefs): Promise<readonly string[]>
  /** The work merged, set up and archived, as one commit that is nowhere yet. */
  build(
    change: string,
    from: {
      readonly base: string
      readonly tip: string
      /** To be made anew, besides those that conflict now. */
      readonly generated: readonly string[]
      /** The base is on a ref: where nothing would be added to it, it is itself the commit. */
      readonly isAtRef: boolean
    },
    stop: AbortSignal,
  ): Promise<
    | {
        readonly commit: string
        readonly notes: readonly string[]
        readonly regenerated: readonly string[]
      }
    | {
        readonly conflicts: readonly string[]
        readonly marked: string
        readonly said?: string
        readonly generated: readonly string[]
      }
    | { readonly refused: string; readonly hint?: string }
    | 'stopped'
  >
  /** What is wrong with how both sides were put together: markers, a side that was dropped, tests that were changed. */
  judge(
    change: string,
    conflict: Conflict,
  ): Promise<{
    readonly problems: readonly string[]
    /** Files that had no conflict and were changed all the same. */
    readonly beside: readonly string[]
    readonly tip?: string
  }>
  /** Whether its branch stands on these markers as a loop has left it: no commit of anybody's is on them. */
  isLeft(change: string, marked: string): Promise<boolean>
  /** Those of the change's own loop. */
  gates(change: string): Promise<readonly string[]>
  /** On exactly this commit. A gate that changes files has not passed: what lands would be something else. */
  gate(
    change: string,
    command: string,
    commit: string,
    stop: AbortSignal,
    /** In a work tree made anew: nothing that an earlier run of a gate left is there. */
    isFresh: boolean,
  ): Promise<GateResult & { readonly changed: readonly string[] }>
  /** What the gates printed. */
  logOf(change: string): string
  /** By compare-and-swap; false where somebody was quicker. */
  land(target: string, commit: string, onto: string | undefined): Promise<boolean>
  /** The branch follows to exactly that, where nobody stands on it or has moved it since; else why not. */
  carryHome(target: string, landed: string, from: string): Promise<string>
  close(): Promise<void>
}

export interface TargetRefs {
  /** Of the branch itself. */
  readonly own: string
  readonly landed: string | undefined
  /** What landed is on the branch already. */
  readonly isHome: boolean
}

/** What each part of the queue works with: the world, how things stand, and the way to say what has happened. */
export interface QueueHand {
  readonly ports: QueuePorts
  readonly now: () => QueueState
  readonly tell: (body: QueueBody) => void
  /** What git's history says: it is asked again each time, and not written down. */
  readonly note: (body: QueueBody) => void
}
