// The loop screen as data: what is known of a run that is followed, and what of it is looked at.
import { keepsWork } from '../../core/report.ts'
import { epochMs } from '../../core/stamp.ts'
import { selectedStories } from '../../core/state.ts'
import type { LoopState } from '../../core/state.ts'
import { provenStories, refusedByGate } from '../../core/story.ts'
import type { LoopEvent, StorySummary } from '../../core/event.ts'
import type { AttemptNow, GateOutput } from '../app.ts'
import { emptyBoard } from '../print/board.ts'
import type { Board } from '../print/board.ts'
import type { Ending } from '../print/summary.ts'
import { storyMeanings, verdictMeaning } from '../vocabulary.ts'
import type { Meaning } from '../vocabulary.ts'
import type { Editor } from './editor.ts'
import { emptyFeed } from './feed.ts'
import type { Attempt, Feed } from './feed.ts'
import type { LogEntry } from './log-lines.ts'
import { atEnd, atStart } from './pager.ts'
import type { Pager } from './pager.ts'
import type { Search } from './search.ts'

export const loopTabs = ['Agent', 'Tasks', 'Diff', 'Gates', 'Log'] as const
type LoopTab = (typeof loopTabs)[number]

/** From here on there is room for the stories beside the rest. */
export const wide = 100

type Complete = Extract<LoopEvent, { type: 'complete' }>

export interface LoopScreen {
  readonly change: string
  /** This command has started it, and ends as it ends. */
  readonly isOwn: boolean
  /** `joining`: nothing was told yet. */
  readonly life: 'joining' | 'running' | 'ended' | 'dead' | 'none'
  /** It was seen running: its end is news. */
  readonly wasLive: boolean
  readonly state: LoopState | undefined
  readonly feed: Feed
  readonly log: readonly LogEntry[]
  readonly board: Board
  readonly ending: Omit<Ending, 'complete' | 'board'>
  readonly complete: Complete | undefined
  readonly commits: number
  readonly tab: LoopTab
  /** Undefined: the one that is worked on. */
  readonly storyId: string | undefined
  readonly pagers: Readonly<Record<LoopTab, Pager>>
  readonly search: Search | undefined
  readonly note: Editor | undefined
  /** `q` was pressed: whether to leave it running or to stop it is asked. */
  readonly asksToLeave: boolean
  /** When it was told to stop last, in the last seconds. */
  readonly presses: readonly number[]
  readonly asked: { readonly key: string; readonly atMs: number; readonly isPending: boolean }
  readonly now: AttemptNow | undefined
  readonly patch: { readonly n: number; readonly patch: string } | undefined
  readonly output: GateOutput | undefined
}

export const noEnding = { begun: false, lasting: [] } as const

export function loopScreen(change: string, isOwn: boolean): LoopScreen {
  return {
    change,
    isOwn,
    life: 'joining',
    wasLive: false,
    state: undefined,
    feed: emptyFeed,
    log: [],
    board: emptyBoard,
    ending: noEnding,
    complete: undefined,
    commits: 0,
    tab: 'Agent',
    storyId: undefined,
    pagers: { Agent: atEnd, Tasks: atStart, Diff: atStart, Gates: atEnd, Log: atEnd },
    search: undefined,
    note: undefined,
    asksToLeave: false,
    presses: [],
    asked: { key: '', atMs: 0, isPending: false },
    now: undefined,
    patch: undefined,
    output: undefined,
  }
}

/** The story that is looked at. */
export function lookedAt({ storyId, state }: Pick<LoopScreen, 'storyId' | 'state'>): string | undefined {
  return storyId ?? state?.current?.storyId ?? state?.storyId ?? state?.iterations.at(-1)?.story_id
}

export function storiesOf({ state }: Pick<LoopScreen, 'state'>): readonly StorySummary[] {
  return state === undefined ? [] : provenStories({ ...state, stories: selectedStories(state) })
}

export function attemptsOf(screen: Pick<LoopScreen, 'feed' | 'storyId' | 'state'>): readonly Attempt[] {
  const id = lookedAt(screen)
  return screen.feed.attempts.filter((attempt) => attempt.storyId === id)
}

/** Of the story that is looked at: the last one whose gates have run; what the one before said is read while the next one works. */
export function gatedAttempt(screen: Pick<LoopScreen, 'feed' | 'storyId' | 'state'>): Attempt | undefined {
  return attemptsOf(screen).findLast(({ gates }) => gates.length > 0)
}

export function isRunning({ life }: LoopScreen): boolean {
  return life === 'running' || life === 'joining'
}

/** One that has ended meanwhile is left without a question. */
export function isAskedToLeave(screen: LoopScreen): boolean {
  return screen.asksToLeave && isRunning(screen)
}

/** How a story stands: one mark for it, wherever it is drawn. */
export function meaningOf(
  story: Pick<StorySummary, 'id' | 'status'>,
  { state, life }: Pick<LoopScreen, 'state' | 'life'>,
): Meaning {
  if (state !== undefined && refusedByGate(state).includes(story.id)) return 'failed'
  if (story.status !== 'open') return storyMeanings[story.status]
  const isAtIt = life === 'running' && state?.outcome === undefined
  if (isAtIt && story.id === (state?.current?.storyId ?? state?.storyId))
    return state?.waiting === undefined ? 'working' : 'waiting'
  const last = state?.iterations.findLast(({ story_id: id }) => id === story.id)
  return last === undefined || keepsWork[last.verdict] ? 'open' : verdictMeaning(last.verdict)
}

/** It came to an end of its own: one that was killed has none to look at, also where its death is on record. */
export function hasEnd({ life, complete }: LoopScreen): boolean {
  return complete !== undefined && life !== 'dead'
}

/** The attempt at hand; of a loop that has died the one whose files are still in the tree. */
export function openAttempt({ state }: LoopScreen): number | undefined {
  return state?.current?.n ?? state?.unsettled?.n
}

/** When the attempt at hand, or the loop, began; epoch ms. */
export function sinceMs(stamp: string | undefined): number {
  return stamp === undefined ? 0 : epochMs(stamp)
}
