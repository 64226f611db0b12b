// Lines of a loop as it goes: for a pipe or a log, and for what scrolls on a terminal.
import { isTalk } from '../../core/cursor.ts'
import type { LoopEvent } from '../../core/event.ts'
import { headOf, type Head } from '../../core/git-facts.ts'
import { lastingWarnings } from '../../core/outcome.ts'
import type { Io, Output } from '../io.ts'
import { isOnePlace, isTerminal, paintFor } from '../io.ts'
import { agentName, isUtf8, legible, mark } from '../vocabulary.ts'
import { applyBoard, attemptMs, emptyBoard, storyRow } from './board.ts'
import {
  baselineLines,
  claimLines,
  failureText,
  gateCommand,
  gateLines,
  messageLines,
  moreLines,
  noteWords,
  retryText,
  stopLine,
  storyTitle,
  toolLines,
  turnoutLines,
  limitedElsewhere,
  waitingLines,
} from './describe.ts'
import type { Message, Turnout, Unshown } from './describe.ts'
import { headerLines } from './header.ts'
import { gathered } from './gathered.ts'
import { entryLines } from './layout.ts'
import type { Sheet } from './layout.ts'
import type { Printer } from './printer.ts'
import { placeLines, resultLines } from './summary.ts'
import type { Ending } from './summary.ts'
import { clip, clockTime, oneLine, withHint } from './text.ts'

interface Line {
  readonly text: string
  readonly to: 'stdout' | 'stderr'
}

export function plainPrinter(io: Pick<Io, 'stdout' | 'stderr' | 'env'>): Printer {
  const lines = createLines(io)
  const talk = gathered((text) => io.stdout.write(text))
  return {
    tell(event): void {
      if (!isTalk(event)) talk.flush()
      for (const { text, to } of lines(event)) {
        if (isTalk(event)) talk.add(`${text}\n`)
        else io[to].write(`${text}\n`)
      }
    },
    pause: talk.flush,
    close: talk.flush,
  }
}

type Story = Extract<LoopEvent, { type: 'story.started' }>

/** Remembers what later lines need; the terminal's printer uses it as well. */
export function createLines(
  io: Pick<Io, 'stdout' | 'stderr' | 'env'>,
): (event: LoopEvent) => readonly Line[] {
  const toScreen = isTerminal(io.stdout)
  /** What the last lines say is not said once more below them. */
  const isSeen = toScreen || isOnePlace(io)
  const isAscii = !isUtf8(io.env)
  const paints = { stdout: paintFor(io.stdout, io.env), stderr: paintFor(io.stderr, io.env) }
  let board = emptyBoard
  /** What gates printed when they failed, and the attempt in which it was told. */
  const failures = new Map<string, number>()
  /** Told with its first attempt. */
  let story: Story | undefined
  /** Told after its cause. */
  let turnout: Turnout = {}
  let isResultTold = false
  /** No attempt is open: a gate judges what a person has ticked. */
  let isBetween = false
  /** Nobody reads stdout any more: how it ends is for whoever sees stderr. */
  let isUnread = false
  let ending: Omit<Ending, 'complete' | 'board'> = { begun: false, lasting: [] }
  /** Why it ended: for who reads stderr alone. */
  let failure: readonly Line[] = []

  /** What was not shown of what is said now; told before whatever comes next, since a flood comes in many pieces. */
  let unshown: Unshown | undefined

  const talkLines = (event: Message, worktree: string, sheet: Sheet): readonly string[] => {
    const { shown, count, more, hasGap } = messageLines(event, worktree, sheet)
    const isPiece = unshown?.isFlood === true && (more > 0 || isSoon(unshown.event, event))
    if (hasGap || isPiece) {
      unshown = { event, more: (unshown?.more ?? 0) + more + count, isFlood: true }
      return []
    }
    const before = unshown === undefined || shown.length === 0 ? [] : moreLines(unshown, sheet)
    if (more > 0) unshown = { event, more, isFlood: false }
    else if (shown.length > 0) unshown = undefined
    return [...before, ...shown]
  }

  const stdoutLines = (event: LoopEvent, sheet: Sheet): readonly string[] => {
    const worktree = board.started?.worktree ?? ''
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the others are for machines, or told with these
    switch (event.type) {
      case 'loop.started':
        return headerLines(event, sheet)
      case 'repair.ended':
        return entryLines({ text: `cleaned up after a crash: ${oneLine(event.detail)}` }, sheet)
      case 'iteration.started': {
        // Between two terminals of the same run times say nothing; in a log they do.
        const at = toScreen ? '' : `   ${clockTime(event.time)}`
        const who =
          (board.started?.settings.agents.length ?? 1) > 1
            ? `${agentName(event.agent, board.started?.agent_program)}   `
            : ''
        const right = `${who}#${String(event.n)}${at}`
        const opened = story
        story = undefined
        if (opened === undefined)
          return entryLines({ indent: 2, text: retryText(event, board), right }, sheet)
        const name = `${String(opened.index)}/${String(opened.total)} ${storyTitle(opened.story_id, opened.title)}`
        const row = storyRow(board, sheet).map(sheet.paint.dim)
        return [
          ...(board.attempts === 0 ? [...row, ''] : ['', ...row]),
          ...entryLines(
            { sign: mark('working', sheet.paint), text: name, style: sheet.paint.bold, right },
            sheet,
          ),
        ]
      }
      case 'agent.message':
        return talkLines(event, worktree, sheet)
      case 'agent.tool':
        return toolLines(event, worktree, sheet)
      case 'claim.judged':
        return claimLines(event, sheet)
      case 'failure.reported':
        return entryLines({ indent: 2, text: `the agent reports a failure: ${oneLine(event.reason)}` }, sheet)
      case 'progress.reported':
        return entryLines({ indent: 2, text: `now: ${oneLine(event.task)}` }, sheet)
      case 'gate.ended': {
        // Of a claim only what came of it is told.
        if (event.claim !== undefined) return []
        const text = event.outcome === 'failed' ? failureText(event) : ''
        const first = failures.get(text)
        if (isBetween) return gateLines(event, sheet, first, gateCommand(event, true))
        if (text !== '') failures.set(text, first ?? event.n)
        return gateLines(event, sheet, first === event.n ? undefined : first)
      }
      case 'baseline.ended':
        return baselineLines(event, sheet)
      case 'iteration.ended': {
        const iteration = { ...event.iteration, duration_ms: attemptMs(board, event.iteration) }
        const lines = turnoutLines(iteration, turnout, sheet)
        turnout = {}
        return lines
      }
      case 'login.limited':
        return entryLines({ indent: 2, text: limitedElsewhere(event) }, sheet)
      case 'waiting':
        return waitingLines({ ...event, agent: agentName(event.agent, board.started?.agent_program) }, sheet)
      case 'note.added':
        return entryLines({ indent: 2, text: noteWords(event) }, sheet)
      case 'pause.requested':
        return entryLines({ indent: 2, text: 'pausing after this attempt' }, sheet)
      case 'pause.lifted':
        return entryLines({ indent: 2, text: 'continuing' }, sheet)
      case 'stop.requested':
        return [stopLine(event, sheet)]
      case 'choice.needed': {
        const { totals, reason = '', stop_reason: stopReason = '' } = event
        if (totals === undefined) return []
        isResultTold = true
        return ['', ...resultLines({ ...event, reason, stop_reason: stopReason, totals }, board, sheet)]
      }
      case 'complete': {
        const open = turnout.saved ?? turnout.reverted
        const left = open === undefined ? [] : turnoutLines(undefined, turnout, sheet)
        const result = isResultTold ? [] : ['', ...resultLines(event, board, sheet)]
        return [...left, ...result, ...placeLines({ ...ending, complete: event, board }, sheet)]
      }
      default:
        return []
    }
  }

  return (event) => {
    board = applyBoard(board, event)
    ending = remembered(ending, event)
    if (event.type === 'story.started') story = event
    if (event.type === 'iteration.started') isBetween = false
    if (event.type === 'loop.started' || event.type === 'iteration.ended') isBetween = true
    if (event.type === 'checkpoint.saved' && event.n !== undefined) turnout = { ...turnout, saved: event }
    if (event.type === 'attempt.kept') turnout = { hasChanged: event.changed }
    if (event.type === 'checkpoint.reverted') turnout = { ...turnout, reverted: event }
    const isAlarm = event.type === 'warning' || event.type === 'error'
    if (event.type === 'stop.requested') isUnread ||= event.unread === true
    const to = isAlarm || isUnread ? 'stderr' : 'stdout'
    const sheet = { paint: paints[to], columns: columnsOf(io[to]) }
    const own = isAlarm ? alarmLines(event, sheet, isSeen) : stdoutLines(event, sheet)
    const isOver = unshown !== undefined && event.type !== 'agent.message' && own.length > 0
    const lines = unshown !== undefined && isOver ? [...moreLines(unshown, sheet), ...own] : own
    if (isOver) unshown = undefined
    const told: readonly Line[] = lines.map((text) => ({
      text: isAscii ? legible(text, io.env) : text,
      to,
    }))
    // With an exit code it is ralph's own, and nobody knows whether more follows.
    if (event.type !== 'error' || event.exit_code !== undefined)
      return event.type === 'complete' ? [...told, ...failure] : told
    failure = told
    return []
  }
}

/** Pieces of a flood come at least once a second; what is said after that is no part of it. */
function isSoon(before: Message, after: Message): boolean {
  return Date.parse(after.time) - Date.parse(before.time) <= 1000
}

/** Asked each time: a terminal is made wider and narrower. */
function columnsOf(stream: Output): number | undefined {
  return isTerminal(stream) ? Math.max(20, stream.columns ?? 80) : undefined
}

/** Why a loop ended stands in its last lines, on the same screen: it is not said twice there. */
function alarmLines(event: LoopEvent, sheet: Sheet, isSummarySeen: boolean): readonly string[] {
  const { paint } = sheet
  if (event.type === 'warning') {
    if (event.code === 'human_needed' && isSummarySeen) return []
    // Asked for, so nobody is warned.
    if (event.code === 'earlier_run') return entryLines({ text: oneLine(event.message) }, sheet)
    return labelled('warning:', paint.yellow, oneLine(event.message), sheet)
  }
  if (event.type !== 'error' || isSummarySeen) return []
  const [what = ''] = event.message.split('; last: ')
  return labelled('error:', paint.red, withHint(clip(oneLine(what), 2000), oneLine(event.hint)), sheet)
}

function labelled(
  label: string,
  style: (text: string) => string,
  text: string,
  sheet: Sheet,
): readonly string[] {
  const [first = '', ...rest] = entryLines({ indent: 2, text: `${label} ${text}` }, sheet)
  return [first.slice(2).replace(label, style(label)), ...rest]
}

export function remembered(
  ending: Omit<Ending, 'complete' | 'board'>,
  event: LoopEvent,
): Omit<Ending, 'complete' | 'board'> {
  // A start that failed half-way has changed something, unless it was undone.
  if (event.type === 'git.began' && event.op === 'start')
    return { ...ending, begun: true, isUnborn: isUnborn(headOf(event.data['origin'])) }
  if (event.type === 'git.step' && event.op === 'start' && event.step === 'undone')
    return { ...ending, begun: false }
  if (event.type === 'loop.started') {
    // What became of an earlier choice is no matter of this loop.
    const { finished: _earlier, ...anew } = ending
    return {
      ...anew,
      begun: ending.begun || event.resumed,
      lasting: [...ending.lasting, ...(event.undone ?? [])],
    }
  }
  if (event.type === 'checkpoint.saved') return { ...ending, begun: true }
  if (event.type === 'warning' && lastingWarnings.has(event.code))
    return {
      ...ending,
      lasting: [...new Set([...ending.lasting, event.message])],
      isSetAside: ending.isSetAside === true || ['set_aside', 'converted'].includes(event.code),
    }
  if (event.type === 'error') return { ...ending, hint: event.hint }
  if (event.type === 'loop.finished') return { ...ending, finished: event }
  return ending
}

function isUnborn(origin: Head | undefined): boolean {
  return origin !== undefined && origin.commit === undefined
}
