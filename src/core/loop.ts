// The loop as a pure function: reduce(state, event) gives the next state and the commands that are now due.
import type { EventBody, LoopEvent } from './event.ts'
import { dueBaseline, toldFailure } from './baseline.ts'
import { completeEvent, reportsOf } from './outcome.ts'
import { firstBack, gatesOf, modelOf, pickAgent } from './limits.ts'
import { evolve } from './evolve.ts'
import { feedbackFor } from './notes.ts'
import type { IterationState, LoopState, StartedState } from './state.ts'
import { selectedStories } from './state.ts'
import { maxRounds } from './gating.ts'
import { checkpointMessage, mayBeSaved } from './transitions.ts'
import { exceedsHardLimit } from './usage.ts'

/** What the engine is asked to do; each command leads to at least one event, which leads to the next command. */
export type Command =
  | { readonly do: 'read_plan' }
  | {
      readonly do: 'check_hand'
      /** The attempt before it, under which its output is kept. */
      readonly n: number
      readonly storyIds: readonly string[]
      readonly commands: readonly string[]
    }
  | { readonly do: 'announce'; readonly event: EventBody }
  | { readonly do: 'ensure_checkpoint'; readonly storyId: string }
  | {
      readonly do: 'open_iteration'
      readonly n: number
      readonly storyId: string
      readonly attempt: number
      readonly attempts: number
      readonly agent: string
    }
  | {
      readonly do: 'run_agent'
      readonly n: number
      readonly storyId: string
      readonly attempt: number
      readonly attempts: number
      readonly agent: string
      /** Undefined: the agent's own. */
      readonly model: string | undefined
      readonly previousFailure?: string
      /** The gate to run first, without the agent's work, and how it has failed with it. */
      readonly compares?: { readonly gate: string; readonly reason: string }
      readonly feedback?: string
    }
  | { readonly do: 'end_agent'; readonly why: 'budget' }
  /** While its agent waits for the answer. */
  | {
      readonly do: 'judge_claim'
      readonly n: number
      readonly claim: number
      readonly storyId: string
      readonly commands: readonly string[]
    }
  | {
      readonly do: 'keep_attempt'
      readonly n: number
      readonly storyId: string
      /** Its work may become a checkpoint: it has to hold what the checkpoint before it held. */
      readonly mayBeSaved: boolean
      /** Gates will judge it. */
      readonly isGated: boolean
    }
  | {
      readonly do: 'check_gates'
      readonly n: number
      readonly storyId: string
      readonly commands: readonly string[]
      /** The tree that they judge. */
      readonly tree: string
      /** They do not run again, whatever they change. */
      readonly isLast: boolean
      /** What they have written anew in each run so far. */
      readonly ownFiles: readonly string[]
    }
  | {
      readonly do: 'settle_boxes'
      readonly n: number
      readonly storyId: string
      readonly ticked: number
      readonly stillOpen: number
      readonly notAsked: number
    }
  | {
      readonly do: 'save_checkpoint'
      readonly n: number
      readonly storyId: string
      readonly message: string
      readonly judged?: Judged
    }
  | {
      readonly do: 'revert'
      readonly n: number
      /** Somebody wrote to the tree since the attempt was kept: that is kept, too. */
      readonly isStirred: boolean
    }
  | { readonly do: 'record_iteration'; readonly n: number }
  | {
      readonly do: 'wait'
      /** A pause has no time at which it ends. */
      readonly for: 'limit' | 'overloaded' | 'offline' | 'pause'
      readonly untilMs: number
      readonly agent: string
    }
  | { readonly do: 'ask_done'; readonly task: string }
  | { readonly do: 'ask_choice' }
  | { readonly do: 'finish'; readonly choice: 'cleanup' | 'keep' | 'later' }

/** The tree that was judged last. */
export interface Judged {
  readonly tree: string
  /** Gates have passed it: only this tree may be saved. */
  readonly isBinding: boolean
  /** Where ralph itself has ticked boxes since; empty when it has not. */
  readonly mayDiffer: string
}

export function reduce(
  state: LoopState,
  event: LoopEvent,
): { state: LoopState; commands: readonly Command[] } {
  const after = evolve(state, event)
  if (after.step !== state.step) {
    const command = next(after)
    return { state: after, commands: command === undefined ? [] : [command] }
  }
  if (event.type === 'agent.usage' && after.phase === 'working') {
    const over = exceedsHardLimit(after.settings, after.iterations, event)
    if (over) return { state: after, commands: [{ do: 'end_agent', why: 'budget' }] }
  }
  if (event.type === 'claim.made' && after.phase === 'working' && after.current.n === event.n) {
    const { n, storyId } = after.current
    const commands = gatesOf(after.settings, storyId)
    return { state: after, commands: [{ do: 'judge_claim', n, claim: event.claim, storyId, commands }] }
  }
  return { state: after, commands: [] }
}

/** The one command that a phase calls for; after a replay it says where to go on. */
export function next(state: LoopState): Command | undefined {
  switch (state.phase) {
    case 'idle':
    case 'ended':
      return undefined
    case 'planning':
      return { do: 'read_plan' }
    case 'proving':
      return checkHand(state)
    case 'opening_story':
      return { do: 'announce', event: storyStarted(state) }
    case 'ensuring':
      return { do: 'ensure_checkpoint', storyId: state.storyId }
    case 'opening_iteration':
      return {
        do: 'open_iteration',
        n: state.iterations.length + 1,
        storyId: state.storyId,
        ...attemptOf(state),
        agent: pickAgent(state) ?? firstBack(state)?.agent ?? '',
      }
    case 'waiting':
      return {
        do: 'wait',
        for: state.waiting.for,
        untilMs: state.waiting.untilMs,
        agent: state.waiting.agent,
      }
    case 'confirming':
      return { do: 'ask_done', task: state.settings.task }
    case 'reporting':
      return { do: 'announce', event: reportsOf(state)[state.reported] ?? completeEvent(state) }
    case 'choosing':
      return { do: 'ask_choice' }
    case 'finishing':
      return { do: 'finish', choice: state.choice }
    case 'completing':
      return { do: 'announce', event: completeEvent(state) }
    case 'working':
    case 'keeping':
    case 'gating':
    case 'settling':
    case 'saving':
    case 'reverting':
    case 'recording':
      return iterationCommand(state)
  }
}

function checkHand({ byHand: storyIds = [], iterations, settings }: StartedState): Command {
  const commands = [...new Set(storyIds.flatMap((id) => gatesOf(settings, id)))]
  return { do: 'check_hand', n: iterations.length, storyIds, commands }
}

function iterationCommand(state: IterationState): Command {
  const { n, storyId } = state.current
  switch (state.phase) {
    case 'working': {
      const feedback = feedbackFor(state, n)
      const previousFailure = toldFailure(state, storyId)
      const compares = dueBaseline(state)
      return {
        do: 'run_agent',
        n,
        storyId,
        attempt: state.current.attempt,
        attempts: state.current.attempts,
        agent: state.current.agent,
        model: modelOf(state.settings, state.current.agent, storyId),
        ...(previousFailure !== undefined && { previousFailure }),
        ...(compares !== undefined && { compares }),
        ...(feedback !== undefined && { feedback }),
      }
    }
    case 'keeping':
      return {
        do: 'keep_attempt',
        n,
        storyId,
        mayBeSaved: mayBeSaved(state),
        isGated: gatesOf(state.settings, storyId).length > 0,
      }
    case 'gating':
      return {
        do: 'check_gates',
        n,
        storyId,
        commands: gatesOf(state.settings, storyId),
        tree: state.current.tree ?? '',
        isLast: state.current.rounds + 1 >= maxRounds,
        ownFiles: state.current.ownFiles ?? [],
      }
    case 'settling':
      return {
        do: 'settle_boxes',
        n,
        storyId,
        ticked: state.current.kept.ticked,
        stillOpen: state.current.kept.stillOpen,
        notAsked: state.current.kept.notAsked,
      }
    case 'saving':
      return {
        do: 'save_checkpoint',
        n,
        storyId,
        message: checkpointMessage(state, n, storyId),
        ...judgedBy(state),
      }
    case 'reverting':
      return { do: 'revert', n, isStirred: state.current.isStirred }
    case 'recording':
      return { do: 'record_iteration', n }
  }
}

function judgedBy({ current, tasksFile }: IterationState): { judged?: Judged } {
  const { tree, rounds, isTickedByRalph } = current
  if (tree === undefined) return {}
  const mayDiffer = isTickedByRalph ? tasksFile : ''
  return { judged: { tree, isBinding: rounds > 0, mayDiffer } }
}

type StoryState = StartedState & { readonly storyId: string }

function attemptOf(state: StoryState): { attempt: number; attempts: number } {
  if (state.settings.done_criteria === 'manual') {
    return {
      attempt: state.iterations.length + 1,
      attempts: Math.max(state.maxIterations, state.iterations.length + 1),
    }
  }
  const attempts = state.settings.max_retries + 1
  return { attempt: (state.retries[state.storyId] ?? 0) + 1, attempts }
}

function storyStarted(state: StoryState): EventBody {
  const stories = selectedStories(state)
  const index = stories.findIndex((story) => story.id === state.storyId)
  return {
    type: 'story.started',
    story_id: state.storyId,
    title: stories[index]?.title ?? '',
    index: index + 1,
    total: stories.length,
    completed: stories.filter((story) => story.status === 'done').length,
  }
}

/** State from a journal: what resume, recovery and every report start from. */
export function replay(state: LoopState, events: Iterable<LoopEvent>): LoopState {
  let replayed = state
  for (const event of events) replayed = evolve(replayed, event)
  return replayed
}
