// Events as lines for a person; the same for a pipe and for what scrolls above a terminal's live line.
// Long because it is one list: every kind of line, so that two of them never differ in symbol or indent.
import { baselineWords, isRed } from '../../core/baseline.ts'
import { claimWords } from '../../core/claim-words.ts'
import { tellingLines } from '../../core/gate-failure.ts'
import { keepsWork } from '../../core/report.ts'
import { manualStory } from '../../core/story.ts'
import { readGap } from '../../core/talk-gap.ts'
import type { IterationRecord, LoopEvent } from '../../core/event.ts'
import { inColourOf, mark, verdictMeaning, verdictName, waitWords } from '../vocabulary.ts'
import type { Board } from './board.ts'
import { figures } from './board.ts'
import { entryLines, unbroken, widthFor } from './layout.ts'
import type { Sheet } from './layout.ts'
import { clean, clip, clockTime, duration, oneLine, plural, shortHash } from './text.ts'

type Of<Type extends LoopEvent['type']> = Extract<LoopEvent, { type: Type }>
export type Message = Of<'agent.message'>

const textIndent = 4

interface MessageLines {
  readonly shown: readonly string[]
  readonly count: number
  /** Lines that are not shown. */
  readonly more: number
  /** Some of them nobody was told: it is a piece of a flood. */
  readonly hasGap: boolean
}

/** What an agent says, without what it says to ralph alone. */
export function messageLines({ text }: Message, worktree: string, sheet: Sheet): MessageLines {
  const { left, rest } = readGap(clean(text))
  const lines = withoutPromise(rest)
    .split('\n')
    .map((line) => inTree(oneLine(line), worktree).replaceAll(longWord, (word) => clip(word, 200)))
    .filter((line) => line !== '')
  const kept = lines.slice(0, lines.length > mostTalk + 1 ? mostTalk : lines.length)
  return {
    shown: kept.flatMap((line) => entryLines({ indent: textIndent, text: clip(line, 500) }, sheet)),
    count: kept.length,
    more: left + lines.length - kept.length,
    hasGap: left > 0,
  }
}

export interface Unshown {
  readonly event: Message
  readonly more: number
  readonly isFlood: boolean
}

export function moreLines({ more, event }: Unshown, sheet: Sheet): readonly string[] {
  const { n, change_id: change } = event
  const where = unbroken(`ralph logs ${String(n)} ${oneLine(change)}`)
  const text = `… ${plural(more, 'more line', 'more lines')}: ${where}`
  return entryLines({ indent: textIndent, text, style: sheet.paint.dim }, sheet)
}

const mostTalk = 6
/** Nobody reads it, and it makes a row that no screen has. */
const longWord = /\S{201,}/g

export function withoutPromise(text: string): string {
  return text
    .replaceAll(/^[ \t>*`_-]*<promise>[\s\S]*?<\/promise>[ \t*`_.]*$/gm, '')
    .replace(/\s*<promise>\s*(?:COMPLETE|FAILED:[\s\S]*?)\s*<\/promise>[ \t*`_.]*\s*$/, '')
}

/** Paths as the user would type them. */
export function inTree(text: string, worktree: string): string {
  return worktree === '' ? text : text.replaceAll(`${worktree}/`, '')
}

export function toolLines(event: Of<'agent.tool'>, worktree: string, sheet: Sheet): readonly string[] {
  const text = `${oneLine(event.name)} ${inTree(oneLine(event.input), worktree)}`.trimEnd()
  return [`${' '.repeat(textIndent)}${sheet.paint.dim(clip(text, (widthFor(sheet) ?? 204) - textIndent))}`]
}

/** What a person ticked before the first attempt is judged under no attempt's number. */
export function gateCommand(
  { change_id: change, n }: Pick<Of<'gate.ended'>, 'change_id' | 'n'>,
  byHand = n === 0,
): string {
  return unbroken(`ralph logs ${oneLine(change)} --gate${byHand ? '' : ` ${String(n)}`}`)
}

/** One line, and for a failure what it is about: the failing test where that is known, else the last lines. */
export function gateLines(
  event: Of<'gate.ended'>,
  sheet: Sheet,
  /** The attempt that failed with the very same lines. */
  sameAs?: number,
  /** What shows all that it printed. */
  all = gateCommand(event),
): readonly string[] {
  const { paint } = sheet
  const hasPassed = event.outcome === 'passed'
  const how =
    event.outcome === 'could_not_run'
      ? ' could not be run'
      : event.outcome === 'stopped'
        ? ' was stopped'
        : ''
  const exit = hasPassed || event.exit_code === undefined ? '' : ` (exit ${String(event.exit_code)})`
  const meaning = hasPassed ? 'done' : event.outcome === 'stopped' ? 'waiting' : 'failed'
  const head = entryLines(
    {
      indent: 2,
      sign: mark(meaning, paint),
      text: `${oneLine(event.command)}${how}${exit}${event.ran_no_tests ? ` ${noTests}` : ''}`,
      right: duration(event.duration_ms),
    },
    sheet,
  )
  if (hasPassed && event.ran_no_tests) return head.map((line) => line.replace(noTests, paint.yellow))
  if (hasPassed || event.outcome === 'stopped') return head
  if (sameAs === undefined) return [...head, ...failureLines(event, sheet, all)]
  const text = `the same failure as in #${String(sameAs)}: ${all}`
  return [...head, ...entryLines({ indent: 6, text, style: paint.dim }, sheet)]
}

const noTests = '(0 tests ran)'

/** Said before the retry is paid: who knows better stops it. */
export function baselineLines(event: Of<'baseline.ended'>, sheet: Sheet): readonly string[] {
  const { command, outcome, duration_ms: ms, reason, change_id: change } = event
  if (outcome === 'unknown') return []
  const text = `${oneLine(command)} ${baselineWords[outcome]}`
  const meaning = isRed(outcome) ? 'human' : 'done'
  const head = entryLines({ indent: 2, sign: mark(meaning, sheet.paint), text, right: duration(ms) }, sheet)
  const below = (line: string): readonly string[] =>
    entryLines({ indent: textIndent, text: line, style: sheet.paint.dim }, sheet)
  if (!isRed(outcome)) return head
  return [
    ...head,
    ...(outcome === 'other' ? below(clip(oneLine(reason), 400)) : []),
    ...below(`not part of the plan? Stop, fix it, then ${unbroken(`ralph resume ${oneLine(change)}`)}`),
  ]
}

/** What is shown of a failure: the same for two that are told alike. */
export function failureText(event: Of<'gate.ended'>): string {
  const { what = '', lines } = tellingLines(event, mostOutput)
  return [event.command, what, ...lines].join('\n')
}

function failureLines(event: Of<'gate.ended'>, sheet: Sheet, all: string): readonly string[] {
  const { paint } = sheet
  const { what, lines } = tellingLines(event, mostOutput)
  const total =
    event.output_lines ?? event.output_tail.split('\n').filter((line) => line.trim() !== '').length
  const dimmed = (text: string, indent: number): readonly string[] =>
    entryLines({ indent, text: clip(oneLine(text), 400), style: paint.dim }, sheet)
  const head = what === undefined ? [] : entryLines({ indent: 6, text: oneLine(what) }, sheet)
  const more = total - lines.length - (what === undefined ? 0 : 1)
  return [
    ...head,
    // The message, below the name of the test, is what one looks for.
    ...lines.flatMap((line, at) =>
      what !== undefined && at === 0
        ? entryLines({ indent: 8, text: clip(oneLine(line), 400) }, sheet)
        : dimmed(line, what === undefined ? 6 : 8),
    ),
    ...(more > 0
      ? entryLines({ indent: 6, text: `${plural(more, 'more line')}: ${all}`, style: paint.dim }, sheet)
      : []),
  ]
}

const mostOutput = 10

/** What an iteration came to: first why, then what was done about it. */
export interface Turnout {
  readonly saved?: Of<'checkpoint.saved'>
  readonly reverted?: Of<'checkpoint.reverted'>
  /** Whether the attempt differs from its checkpoint at all, inside submodules too. */
  readonly hasChanged?: boolean
}

export function turnoutLines(
  iteration: IterationRecord | undefined,
  { saved, reverted, hasChanged = true }: Turnout,
  sheet: Sheet,
): readonly string[] {
  const spent = iteration === undefined ? '' : figures({ ...iteration, tokens: iteration.tokens_used })
  const effect =
    saved === undefined
      ? reverted && undoneEntry(reverted, hasChanged)
      : savedEntry(saved, iteration, hasChanged)
  const right = effect === undefined ? spent : ''
  const cause =
    iteration === undefined || keepsWork[iteration.verdict] ? [] : causeLines(iteration, right, sheet)
  if (effect === undefined) return cause
  const [meaning, text, kept = ''] = effect
  return [
    ...cause,
    ...entryLines({ indent: 2, sign: mark(meaning, sheet.paint), text, right: spent }, sheet),
    // On a line of its own: a command that is broken in two cannot be copied.
    ...[kept, redWords(iteration, hasChanged)].flatMap((line) =>
      line === '' ? [] : entryLines({ indent: textIndent, text: line, style: sheet.paint.dim }, sheet),
    ),
  ]
}

/** A gate that is red from the start fails every attempt: said with the first, before more are paid. */
function redWords(iteration: IterationRecord | undefined, hasChanged: boolean): string {
  return iteration?.verdict === 'gate_failed' && !hasChanged
    ? "the gate fails without the agent's work, too"
    : ''
}

function savedEntry(
  event: Of<'checkpoint.saved'>,
  iteration: IterationRecord | undefined,
  hasChanged: boolean,
): readonly ['done', string, string?] {
  const { commit, changed, only_plan: isPlan, deleted = [] } = event
  const marked = (path: string): string => `${oneLine(path)}${deleted.includes(path) ? ' (deleted)' : ''}`
  const what = changed && hasChanged && !isPlan ? namedFiles(event, marked) : ' (no file changed)'
  const rest = iteration === undefined || iteration.reason === '' ? '' : `; ${oneLine(iteration.reason)}`
  return ['done', `saved ${shortHash(commit)}${what}${clip(rest, 200)}`]
}

/** By name: some may be the user's own, which cannot be told from the agent's. */
function undoneEntry(
  event: Of<'checkpoint.reverted'>,
  hasChanged: boolean,
): readonly ['undone', string, string?] {
  const { files_total: total = event.files?.length ?? 0, n } = event
  const kept = `kept as #${String(n)}: ralph diff ${String(n)} ${oneLine(event.change_id)}`
  if (total === 0 && !hasChanged) return ['undone', 'nothing had changed']
  if (total === 0) return ['undone', 'undone', kept]
  return ['undone', `undone${namedFiles(event, oneLine)}`, kept]
}

function namedFiles(
  { files = [], files_total: total = files.length }: Pick<Of<'checkpoint.saved'>, 'files' | 'files_total'>,
  name: (path: string) => string,
): string {
  if (total === 0) return ''
  const rest = total > mostNamed ? `, and ${String(total - mostNamed)} more` : ''
  return `, ${plural(total, 'file')}: ${files.slice(0, mostNamed).map(name).join(', ')}${rest}`
}

const mostNamed = 5

function causeLines(iteration: IterationRecord, right: string, sheet: Sheet): readonly string[] {
  const { verdict, reason } = iteration
  // A failed gate has said it itself; of a stop the last lines speak.
  if (verdict === 'gate_failed' || verdict === 'interrupted') return []
  const [first = '', ...more] = clean(reason)
    .split('\n')
    .map(oneLine)
    .filter((line) => line !== '')
  const meaning = verdictMeaning(verdict)
  const said = verdict === 'failed' ? `failed: ${first}` : first || verdictName(verdict)
  return [
    ...entryLines({ indent: 2, sign: mark(meaning, sheet.paint), text: clip(said, 600), right }, sheet),
    ...more
      .slice(0, mostReason)
      .flatMap((line) =>
        entryLines({ indent: textIndent, text: clip(line, 400), style: sheet.paint.dim }, sheet),
      ),
  ]
}

const mostReason = 5

/** How the story is tried again; what the next prompt is told of the last attempt. */
export function retryText({ attempt, attempts }: Of<'iteration.started'>, { started, last }: Board): string {
  if (started?.settings.done_criteria === 'manual') return 'again'
  if (attempt === 1 || last === undefined || !retells.has(last.verdict)) return 'again'
  if (last.verdict === 'partial')
    return `continues with the open tasks: retry ${String(attempt - 1)} of ${String(attempts - 1)}`
  const told =
    last.verdict === 'gate_failed'
      ? ', the agent gets this output'
      : last.verdict === 'failed'
        ? ', the agent gets this reason'
        : ''
  return `retry ${String(attempt - 1)} of ${String(attempts - 1)}${told}`
}

const retells: ReadonlySet<string> = new Set([
  'failed',
  'gate_failed',
  'partial',
  'none',
  'timeout',
  'idle',
  'crash',
])

/** `out`: how to end it; where the keys are on the screen, nothing. */
export function waitingLines(event: Of<'waiting'>, sheet: Sheet, out = '; Ctrl-C stops'): readonly string[] {
  const text = `${waitingWords(event)}${out}`
  return entryLines({ indent: 2, sign: mark('waiting', sheet.paint), text }, sheet)
}

/** Why no agent was started. */
export function limitedElsewhere({ agent }: Of<'login.limited'>): string {
  return `${oneLine(agent)} is at its limit, as another loop on this machine was told`
}

function waitingWords(event: Of<'waiting'>): string {
  if (event.for === 'pause')
    return `${waitWords.pause}: continue with ralph resume ${oneLine(event.change_id)}`
  const left = event.until_ms - Date.parse(event.time)
  const long = left > 0 ? ` (${duration(left)})` : ''
  return `${waitWords[event.for]}: ${oneLine(event.agent)} is asked again at ${clockTime(event.until)}${long}`
}

/** One line: `claim 1 refused: npm test failed (exit 1)`. */
export function claimLines(event: Of<'claim.judged'>, sheet: Sheet): readonly string[] {
  const meaning = claimMeanings[event.outcome]
  const text = clip(oneLine(claimWords(event)), (widthFor(sheet) ?? 204) - textIndent)
  return entryLines({ indent: 2, sign: mark(meaning, sheet.paint), text }, sheet)
}

export const claimMeanings = { accepted: 'done', refused: 'failed', stopped: 'waiting' } as const

export function noteWords({ text }: Of<'note.added'>): string {
  return `your note for the next prompt: ${oneLine(text)}`
}

export function stopLine({ signal, unread }: Of<'stop.requested'>, sheet: Sheet): string {
  const text =
    unread === true
      ? 'Stopping… (the program that read the output has ended)'
      : signal === 'SIGINT'
        ? 'Stopping… press Ctrl-C again to kill it'
        : `Stopping… (${signal})`
  return `  ${inColourOf('waiting', text, sheet.paint)}`
}

/** A title often begins with the number that is its id. */
export function storyName(id: string, title: string): string {
  const plain = oneLine(title)
  return plain !== '' && (id === manualStory || hasNumber(id, plain)) ? plain : `${id} ${plain}`.trimEnd()
}

/** `2. Two`, and not `2FA` of story 2. */
function hasNumber(id: string, title: string): boolean {
  return title.startsWith(id) && /^[.:)]?(?:\s|$)/.test(title.slice(id.length))
}

/** Beside "1/3" its number would be said twice. */
export function storyTitle(id: string, title: string): string {
  const plain = oneLine(title)
  if (plain === '') return id
  return id !== manualStory && hasNumber(id, plain)
    ? plain.slice(id.length).replace(/^[.:)]?\s*/, '') || plain
    : plain
}

/** A detached start is named by its commit. */
export function branchName(branch: string): string {
  return /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(branch) ? `commit ${shortHash(branch)}` : oneLine(branch)
}
