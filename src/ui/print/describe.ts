// Events as lines for a person; the same for a pipe and for what scrolls above a terminal's live line.
import { claimWords } from '../../core/claim-words.ts'
import { tellingLines } from '../../core/gate-failure.ts'
import { keepsWork } from '../../core/report.ts'
import type { IterationRecord, LoopEvent, SetUpDone } from '../../core/event.ts'
import { agentName, inColourOf, mark, verdictMeaning, verdictName, waitWords } from '../vocabulary.ts'
import type { Board } from './board.ts'
import { figures } from './board.ts'
import { entryLines, partsLines, unbroken, widthFor } from './layout.ts'
import type { Sheet } from './layout.ts'
import { clean, clip, clockTime, duration, oneLine, plural, shortHash, widthOf } from './text.ts'

type Of<Type extends LoopEvent['type']> = Extract<LoopEvent, { type: Type }>

const textIndent = 4

/** The first lines: what runs where, by whom, and who has the last word. */
export function headerLines(event: Of<'loop.started'>, sheet: Sheet): readonly string[] {
  const { paint } = sheet
  const name = oneLine(event.change_id)
  const { gates } = event.settings
  if (event.nothing_to_do) return [`${paint.bold(name)}   no story is open`]
  const agents = event.settings.agents.map(
    (agent) => `${agentName(agent, event.agent_program)}${billWord(event.billing?.[agent])}`,
  )
  const parts = [
    name,
    ...(event.resumed ? ['resumed'] : []),
    placeOf(event),
    agents.join(', then '),
    ...(gates.length === 0
      ? []
      : [`${gates.length === 1 ? 'gate' : 'gates'}: ${gates.map(oneLine).join(', ')}`]),
    ...(event.settings.sandbox === undefined ? [] : [`sandbox: ${event.settings.sandbox}`]),
  ]
  const width = widthFor(sheet)
  const isShort = width === undefined || parts.every((part) => widthOf(part) < width - 2)
  const [first = '', ...rest] = isShort
    ? partsLines(parts, '   ', sheet)
    : entryLines({ text: parts.join('   ') }, sheet).map((line, at) => (at === 0 ? line : `  ${line}`))
  const note = (text: string): readonly string[] => entryLines({ text, style: paint.dim }, sheet)
  return [
    first.replace(name, paint.bold(name)),
    ...rest,
    ...(event.uncaged === undefined ? [] : note(uncagedWords)),
    ...(event.gate_found === undefined ? [] : note(gatelessWords(event.gate_found))),
    ...(event.home === undefined
      ? note('Leave this folder alone: a failed attempt undoes edits (--worktree avoids it).')
      : note(`It works in ${oneLine(event.worktree)}, without what is uncommitted here.`)),
    ...(event.set_up === undefined ? [] : note(setUpWords(event.set_up))),
    ...(event.feedback === undefined
      ? []
      : note(`The next prompt has your words: ${oneLine(event.feedback)}`)),
  ]
}

const uncagedWords =
  'no sandbox: the agent can read and write what you can; --sandbox workspace confines it (shown once)'

export function setUpWords({ command, duration_ms: ms, cached }: SetUpDone): string {
  return `set up in ${duration(ms)}${cached ? ', by what it made before' : ''}: ${oneLine(command)}`
}

function placeOf(event: Of<'loop.started'>): string {
  return event.branch === event.original_branch
    ? `on ${oneLine(event.branch)}`
    : `${branchName(event.original_branch)} → ${oneLine(event.branch)}`
}

/** "subscription", "API key": what it is called in full is a matter for doctor. */
function billWord(bill: string | undefined): string {
  if (bill === undefined || bill === 'unknown') return ''
  return ` (${oneLine(bill)
    .replace(/(?: \(|,).*$/, '')
    .replace(/ login$/, '')})`
}

export function gatelessWords(found: string): string {
  const offer = found === '' ? '' : ` (found ${oneLine(found)}: add --verify "${oneLine(found)}")`
  return `no gates: the agent's word counts${offer}`
}

/** What an agent says, without what it says to ralph alone. */
export function messageLines(
  { text, n, change_id: change }: Of<'agent.message'>,
  worktree: string,
  sheet: Sheet,
): readonly string[] {
  const lines = withoutPromise(clean(text))
    .split('\n')
    .map((line) => inTree(oneLine(line), worktree))
    .filter((line) => line !== '')
  const more = lines.length - mostTalk
  const shown = lines.slice(0, more > 1 ? mostTalk : lines.length)
  return [
    ...shown.flatMap((line) => entryLines({ indent: textIndent, text: clip(line, 1000) }, sheet)),
    ...(more > 1
      ? entryLines(
          {
            indent: textIndent,
            text: `… ${String(more)} more lines: ${unbroken(`ralph logs ${String(n)} ${oneLine(change)}`)}`,
            style: sheet.paint.dim,
          },
          sheet,
        )
      : []),
  ]
}

const mostTalk = 6

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

/** One line, and for a failure what it is about: the failing test where that is known, else the last lines. */
export function gateLines(event: Of<'gate.ended'>, sheet: Sheet): readonly string[] {
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
      text: `${oneLine(event.command)}${how}${exit}`,
      right: duration(event.duration_ms),
    },
    sheet,
  )
  return hasPassed || event.outcome === 'stopped' ? head : [...head, ...failureLines(event, sheet)]
}

function failureLines(event: Of<'gate.ended'>, sheet: Sheet): readonly string[] {
  const { paint } = sheet
  const { what, lines } = tellingLines(event, mostOutput)
  const total =
    event.output_lines ?? event.output_tail.split('\n').filter((line) => line.trim() !== '').length
  const dimmed = (text: string, indent: number): readonly string[] =>
    entryLines({ indent, text: clip(oneLine(text), 400), style: paint.dim }, sheet)
  const head = what === undefined ? [] : entryLines({ indent: 6, text: oneLine(what) }, sheet)
  const more = total - lines.length - (what === undefined ? 0 : 1)
  const all = `ralph logs ${oneLine(event.change_id)} --gate ${String(event.n)}`
  return [
    ...head,
    ...lines.flatMap((line) => dimmed(line, what === undefined ? 6 : 8)),
    ...(more > 0
      ? entryLines(
          { indent: 6, text: `${plural(more, 'more line')}: ${unbroken(all)}`, style: paint.dim },
          sheet,
        )
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
    ...(kept === '' ? [] : entryLines({ indent: textIndent, text: kept, style: sheet.paint.dim }, sheet)),
  ]
}

function savedEntry(
  { commit, changed, only_plan: isPlan }: Of<'checkpoint.saved'>,
  iteration: IterationRecord | undefined,
  hasChanged: boolean,
): readonly ['done', string, string?] {
  const same = changed && hasChanged && !isPlan ? '' : ' (no file changed)'
  const rest = iteration === undefined || iteration.reason === '' ? '' : `; ${oneLine(iteration.reason)}`
  return ['done', `saved ${shortHash(commit)}${same}${clip(rest, 200)}`]
}

/** By name: some may be the user's own, which cannot be told from the agent's. */
function undoneEntry(
  event: Of<'checkpoint.reverted'>,
  hasChanged: boolean,
): readonly ['undone', string, string?] {
  const { files = [], files_total: total = files.length, n } = event
  const kept = `kept as #${String(n)}: ralph diff ${String(n)} ${oneLine(event.change_id)}`
  if (total === 0 && !hasChanged) return ['undone', 'nothing had changed']
  if (total === 0) return ['undone', 'undone', kept]
  const named = files.slice(0, mostNamed).map(oneLine).join(', ')
  const rest = total > mostNamed ? `, and ${String(total - mostNamed)} more` : ''
  return ['undone', `undone, ${plural(total, 'file')}: ${named}${rest}`, kept]
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
  return plain.startsWith(id) ? plain : `${id} ${plain}`.trimEnd()
}

/** Beside "1/3" its number would be said twice. */
export function storyTitle(id: string, title: string): string {
  const name = storyName(id, title)
  return name.startsWith(id) ? name.slice(id.length).replace(/^[.:)]?\s+/, '') || name : name
}

/** A detached start is named by its commit. */
export function branchName(branch: string): string {
  return /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(branch) ? `commit ${shortHash(branch)}` : oneLine(branch)
}
