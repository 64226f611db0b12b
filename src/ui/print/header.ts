// How a loop begins, in the lines before its first story: who works, by which gates, where, and what was made ready.
import type { LoopEvent, SetUpDone } from '../../core/event.ts'
import { agentName } from '../vocabulary.ts'
import { branchName } from './describe.ts'
import { entryLines, partsLines, widthFor } from './layout.ts'
import type { Sheet } from './layout.ts'
import { duration, oneLine, widthOf } from './text.ts'

type Started = Extract<LoopEvent, { type: 'loop.started' }>

/** The first lines: what runs where, by whom, and who has the last word. */
export function headerLines(event: Started, sheet: Sheet): readonly string[] {
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
    ...(event.gate_found === undefined
      ? []
      : note(gatelessWords(event.gate_found, event.settings.done_criteria === 'manual'))),
    ...(event.home === undefined
      ? note('Leave this folder alone: a failed attempt undoes edits (--worktree avoids it).')
      : note(`It works in ${oneLine(event.worktree)}, without what is uncommitted here.`)),
    ...(event.uncommitted === undefined ? [] : note(carriedWords(event.uncommitted, event.branch))),
    ...(event.set_up === undefined ? [] : note(setUpWords(event.set_up))),
    ...(event.feedback === undefined
      ? []
      : note(`The next prompt has your words: ${oneLine(event.feedback)}`)),
  ]
}

/** Who pushes that branch publishes them. */
function carriedWords(count: number, branch: string): string {
  const what = count === 1 ? 'uncommitted file is' : `${String(count)} uncommitted files are`
  return `Your ${what} kept in the first commit of ${oneLine(branch)}.`
}

const uncagedWords =
  'no sandbox: the agent can read and write what you can; --sandbox workspace confines it (shown once)'

export function setUpWords({ command, duration_ms: ms, cached }: SetUpDone): string {
  return `set up in ${duration(ms)}${cached ? ', by what it made before' : ''}: ${oneLine(command)}`
}

function placeOf(event: Started): string {
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

export function gatelessWords(found: string, isManual = false): string {
  const offer = found === '' ? '' : ` (found ${oneLine(found)}: add --verify "${oneLine(found)}")`
  return `no gates: ${isManual ? 'your word alone' : "the agent's word"} counts${offer}`
}
