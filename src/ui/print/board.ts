// What a run has come to so far, folded from its events: the stories with their marks, and what was used.
import { baselineWords } from '../../core/baseline.ts'
import type { Baseline, IterationRecord, LoopEvent, StorySummary } from '../../core/event.ts'
import { isSilent } from '../../core/gate-failure.ts'
import { keepsWork } from '../../core/report.ts'
import { storyMeanings, symbolOf } from '../vocabulary.ts'
import type { Meaning } from '../vocabulary.ts'
import { storyName } from './describe.ts'
import type { Sheet } from './layout.ts'
import { partsLines } from './layout.ts'
import { duration, plural, tokenWord, tokenWords, usd } from './text.ts'

type Started = Extract<LoopEvent, { type: 'loop.started' }>

export interface Board {
  readonly started: Started | undefined
  /** Those that this run is about. */
  readonly stories: readonly StorySummary[]
  readonly tasksTotal: number
  readonly storyId: string | undefined
  /** Of this loop; whatever the run had used before is in `spent`. */
  readonly attempts: number
  readonly last: IterationRecord | undefined
  readonly spent: Spent
  /** Of the attempt at hand: whether it differs from its checkpoint. */
  readonly hasChanged: boolean
  /** The same of the last one that ended. */
  readonly hasLastChanged: boolean
  /** Whether any attempt that was not kept has. */
  readonly hasUndone: boolean
  /** The last attempt of this loop whose files were undone. */
  readonly undone?: number
  /** The last one that did not pass. */
  readonly failedGate: string | undefined
  /** It has printed nothing. */
  readonly isGateSilent?: boolean
  /** What a gate says without the agent's work; `passed` also of one that has passed in this loop. */
  readonly baselines: ReadonlyMap<string, Baseline>
  /** A person's words that came after the last prompt. */
  readonly unread: readonly string[]
  /** The attempts of this loop. */
  readonly ended: readonly IterationRecord[]
  /** By the number of the attempt. */
  readonly gatesMs: ReadonlyMap<number, number>
}

/** How long an attempt took: its agent, and the gates after it. */
export function attemptMs({ gatesMs }: Board, { n, duration_ms: agentMs }: IterationRecord): number {
  return agentMs + (gatesMs.get(n) ?? 0)
}

interface Spent {
  readonly tokens: number
  readonly tokens_estimated?: true | undefined
  readonly cost_usd?: number | undefined
  readonly duration_ms: number
}

export const emptyBoard: Board = {
  started: undefined,
  stories: [],
  tasksTotal: 0,
  storyId: undefined,
  attempts: 0,
  last: undefined,
  spent: { tokens: 0, duration_ms: 0 },
  hasChanged: true,
  hasLastChanged: true,
  hasUndone: false,
  failedGate: undefined,
  baselines: new Map(),
  unread: [],
  ended: [],
  gatesMs: new Map(),
}

export function applyBoard(board: Board, event: LoopEvent): Board {
  if (event.type === 'loop.started')
    return {
      ...emptyBoard,
      started: event,
      spent: event.spent ?? emptyBoard.spent,
      gatesMs: event.resumed ? board.gatesMs : emptyBoard.gatesMs,
    }
  if (event.type === 'plan.read') {
    const only = board.started?.settings.stories ?? []
    const stories =
      event.only_changed === true
        ? board.stories.map((story) => event.stories.find(({ id }) => id === story.id) ?? story)
        : event.stories.filter(({ id }) => only.length === 0 || only.includes(id))
    const tasksTotal =
      only.length === 0 ? event.tasks_total : stories.reduce((sum, { tasks_total: total }) => sum + total, 0)
    return { ...board, stories, tasksTotal }
  }
  if (event.type === 'story.started') return { ...board, storyId: event.story_id }
  if (event.type === 'note.added') return { ...board, unread: [...board.unread, event.text] }
  if (event.type === 'iteration.started') return { ...board, unread: [] }
  if (event.type === 'gate.ended' && event.claim !== undefined) return board
  if (event.type === 'baseline.ended')
    return { ...board, baselines: new Map(board.baselines).set(event.command, event.outcome) }
  // An iteration's own time is the agent's.
  if (event.type === 'gate.ended')
    return {
      ...board,
      baselines:
        event.outcome === 'passed' ? new Map(board.baselines).set(event.command, 'passed') : board.baselines,
      ...(event.outcome === 'failed' && { failedGate: event.command, isGateSilent: isSilent(event) }),
      spent: { ...board.spent, duration_ms: board.spent.duration_ms + event.duration_ms },
      gatesMs: new Map(board.gatesMs).set(event.n, (board.gatesMs.get(event.n) ?? 0) + event.duration_ms),
    }
  if (event.type === 'attempt.kept') return { ...board, hasChanged: event.changed }
  if (event.type === 'checkpoint.saved' && event.only_plan) return { ...board, hasChanged: false }
  if (event.type === 'checkpoint.reverted' && (event.files_total ?? 0) > 0)
    return { ...board, undone: event.n }
  if (event.type !== 'iteration.ended') return board
  const { iteration } = event
  // Nothing of the agent's was there when its gate failed.
  const isOlder = iteration.verdict === 'gate_failed' && !board.hasChanged
  return {
    ...board,
    baselines: isOlder ? new Map(board.baselines).set(board.failedGate ?? '', 'same') : board.baselines,
    attempts: board.attempts + 1,
    last: iteration,
    spent: added(board.spent, iteration),
    hasChanged: true,
    hasLastChanged: board.hasChanged,
    hasUndone: board.hasUndone || (board.hasChanged && !keepsWork[iteration.verdict]),
    ended: [...board.ended, iteration],
  }
}

/** That the gate of the last failure fails on its own, in words; where it is known. */
export function redGate({ last, failedGate, baselines }: Board): string | undefined {
  const baseline = last?.verdict === 'gate_failed' ? baselines.get(failedGate ?? '') : undefined
  return baseline === 'same' || baseline === 'other' ? `It ${baselineWords[baseline]}.` : undefined
}

function added(spent: Spent, iteration: IterationRecord): Spent {
  const cost = (spent.cost_usd ?? 0) + (iteration.cost_usd ?? 0)
  const isGuess = spent.tokens_estimated === true || iteration.tokens_estimated === true
  return {
    tokens: spent.tokens + iteration.tokens_used,
    ...(isGuess && { tokens_estimated: true as const }),
    ...(spent.cost_usd === undefined && iteration.cost_usd === undefined ? {} : { cost_usd: cost }),
    duration_ms: spent.duration_ms + iteration.duration_ms,
  }
}

/** "1m 48s   41k tokens   $0.12"; what cost nothing is not called free, and that nothing is known is said once, of the whole. */
export function figures(spent: Spent, isWhole = false): string {
  const cost = spent.cost_usd !== undefined && spent.cost_usd > 0 ? [usd(spent.cost_usd)] : []
  const used = isWhole || tokenWord(spent) !== '?' ? [tokenWords(spent)] : []
  return [duration(spent.duration_ms), ...used, ...cost].join('   ')
}

function meaningOf(story: StorySummary, { storyId, last }: Board): Meaning {
  if (story.status !== 'open') return storyMeanings[story.status]
  if (story.id === storyId) return 'working'
  return last?.story_id === story.id ? 'failed' : 'open'
}

/** Its user decides when it is done, not the boxes. */
export function isManual({ started }: Pick<Board, 'started'>): boolean {
  return started?.settings.done_criteria === 'manual'
}

/** The whole at a glance: by name while there is room for that, else mark by mark. */
export function storyRow(board: Board, sheet: Sheet): readonly string[] {
  const { stories } = board
  if (stories.length === 0) return []
  const marks = stories.map((story) => symbolOf(meaningOf(story, board)))
  const done = stories.filter(({ status }) => status === 'done').length
  const names = stories.map(({ id, title }, index) => `${marks[index] ?? ''} ${storyName(id, title)}`)
  if (board.attempts === 0) {
    const all = plural(stories.length, 'story', 'stories')
    const told = done > 0 ? `${String(done)} of ${all} done` : all
    const counts = isManual(board) ? told : `${told}, ${plural(board.tasksTotal, 'task')}`
    const whole = partsLines([...names, counts], '   ', sheet)
    if (whole.length <= 3 && stories.length <= 12) return whole
    return [`${marks.join('')}   ${counts}`]
  }
  const count = `${String(done)} of ${plural(stories.length, 'story', 'stories')} done`
  return partsLines([marks.join(''), count, figures(board.spent)], '   ', sheet)
}
