// Why a run is where it is: first in plain words (what, since when, what is safe and where, what to type); with --trace every decision and its rule.
import { keepsWork } from '../../core/report.ts'
import { baselineWords, isRed } from '../../core/baseline.ts'
import type { Baseline, IterationRecord } from '../../core/event.ts'
import type { Decisions, StatusReport } from '../app.ts'
import { verdictName } from '../vocabulary.ts'
import { storyTitle } from './describe.ts'
import { factLines, type Fact } from './facts.ts'
import { entryLines } from './layout.ts'
import { isHeld, nextSteps, ownPlanOf, planOf } from './status-next.ts'
import { stepLines, type Step } from './step-lines.ts'
import {
  headWord,
  isAside,
  pausedWords,
  parkedRows,
  refusedRows,
  stopOf,
  waits,
  workWords,
  yoursRows,
  type StatusView,
} from './status.ts'
import { ago, clip, clockTime, excerpt, oneLine, plural } from './text.ts'
import type { Paint } from '../io.ts'

type FailedGate = NonNullable<Decisions['failed_gate']>

/** The state file of a run has no word for its death. */
export function whyText(
  report: StatusReport,
  gate: FailedGate | undefined,
  { paint, nowMs, columns }: StatusView,
): string {
  const ended = report.died_at ?? report.iterations.at(-1)?.ended ?? report.updated_at
  const when =
    report.alive || ended === undefined
      ? ''
      : paint.dim(`  since ${clockTime(ended).slice(0, 5)}, ${ago(ended, nowMs)}`)
  const change = oneLine(report.change_id)
  const weak = (report.warnings ?? []).map((text): Fact => ['note', oneLine(text)])
  const facts: Fact[] = isHeld(report)
    ? parkedRows(report.parked).toSpliced(1, 0, ...weak, ['safe', safeWords(report)])
    : [...causeRows(report, gate), ...weak, ['safe', safeWords(report)], ...refusedRows(report)]
  const steps = [...lookSteps(report, gate), ...nextSteps(report)]
  return [
    `${paint.bold(change)}  ${headWord(report, paint)}${when}`,
    ...factLines(facts, { paint, width: 8, columns }),
    ...stepLines(
      [...steps, ['trace', `ralph why ${change} --trace`, 'each decision and its rule']],
      { indent: 2, column: 11 },
      { paint, columns },
    ),
  ].join('\n')
}

/** What happened, in the order in which somebody would tell it. */
function causeRows(report: StatusReport, gate: FailedGate | undefined): readonly Fact[] {
  const { iterations, stories } = report
  const last = iterations.at(-1)
  const nameOf = ({ story_id: id }: Pick<IterationRecord, 'story_id'>): string => {
    const title = storyTitle(id, stories.find((story) => story.id === id)?.title ?? '')
    return title === id ? id : `${id} "${title}"`
  }
  if (report.alive && report.current !== undefined)
    return [['what', `it works on story ${nameOf(report.current)}, attempt #${String(report.current.n)}`]]
  if (report.alive) return [['what', aliveWords(report)]]
  if (report.problem !== undefined) return [['what', oneLine(report.problem)]]
  if (report.died_at !== undefined) return [['what', 'ralph was killed in the middle of the work']]
  if (report.status === 'done') {
    const { open } = planOf(report)
    if (open === 0) return [['what', 'all stories are complete']]
    const now = plural(open, 'story is', 'stories are')
    return [['what', `every story that it was asked for was complete; ${now} open now`]]
  }
  if (report.stop_reason === 'hand') return handRows(report, gate)
  if (last === undefined) return [['what', stopped(report)], ...yoursRows(report)]
  const failures = failuresInARow(iterations)
  if (failures.length === 0 || report.stop_reason === 'signal')
    return [['what', stopped(report)], ...yoursRows(report)]
  const times = failures.length === 1 ? 'once' : `${String(failures.length)} times`
  const tries = failures.map(({ n }) => `#${String(n)}`).join(', ')
  const how = last.reason === '' ? verdictName(last.verdict) : excerpt(last.reason, 400)
  return [
    [
      'what',
      `story ${nameOf(last)} failed ${times}${failures.length === 1 ? '' : ' in a row'} (${tries}); ${report.stop_reason === 'retries' ? 'no retry is left' : stopped(report)}`,
    ],
    ...(gate === undefined ? [['because', how] as const] : gateRows(gate)),
    ...(isSame(failures) ? [['', 'the same failure each time'] as const] : []),
  ]
}

function handRows(report: StatusReport, gate: FailedGate | undefined): readonly Fact[] {
  const ids = gate?.by_hand ?? []
  if (gate === undefined || ids.length === 0) return [['what', stopped(report)]]
  const whose = ids.length === 1 ? `story ${ids[0] ?? ''} is` : `stories ${ids.join(', ')} are`
  return [['what', `${oneLine(whose)} ticked by hand, and a gate fails on that`], ...gateRows(gate)]
}

/** The failing test's own line first, its message below it. */
function gateRows({ command, exit_code: exit, what, lines, baseline }: FailedGate): readonly Fact[] {
  const how = exit === undefined ? 'failed' : `failed (exit ${String(exit)})`
  const said = lines.map((line) => ['', `${what === undefined ? '  ' : '    '}${oneLine(line)}`] as const)
  return [
    ['because', `${oneLine(command)} ${how}${what === undefined && said.length === 0 ? '' : ':'}`],
    ...(what === undefined ? [] : [['', `  ${oneLine(what)}`] as const]),
    ...said,
    ...(baseline === undefined || baseline === 'unknown' ? [] : [['', baselineRow(baseline)] as const]),
  ]
}

function baselineRow(baseline: Exclude<Baseline, 'unknown'>): string {
  return `the gate ${baselineWords[baseline]}${isRed(baseline) ? ': fix that first' : ''}`
}

function isSame(failures: readonly IterationRecord[]): boolean {
  const [first, second] = failures
  return second !== undefined && failures.every(({ reason }) => reason === first?.reason)
}

/** Between two attempts. */
function aliveWords({ waiting_for: cause, pause_requested: isPaused }: StatusReport): string {
  if (cause === undefined) return 'it is running, between two attempts'
  return `it waits for ${waits[cause]}${isPaused === true ? `; ${pausedWords}` : ''}`
}

function stopped(report: StatusReport): string {
  const [label, words] = stopOf(report) ?? []
  if (label === undefined) return 'it has not begun yet'
  return label === 'waiting' ? `waiting: ${words}` : `${label} ${words}`
}

/** The attempts at the last story that came to nothing. */
function failuresInARow(iterations: readonly IterationRecord[]): readonly IterationRecord[] {
  const last = iterations.at(-1)
  const at = iterations.findLastIndex(
    (iteration) => iteration.story_id !== last?.story_id || keepsWork[iteration.verdict],
  )
  return iterations.slice(at + 1).filter(({ verdict }) => verdict !== 'limit' && verdict !== 'interrupted')
}

function safeWords(report: StatusReport): string {
  const { done, total } = ownPlanOf(report)
  const saved = total === 0 ? '' : `${String(done)} of ${plural(total, 'story', 'stories')} done; `
  const words = workWords(report)
  if (
    !report.alive &&
    done === 0 &&
    words.startsWith('on ralph/') &&
    !report.iterations.some(({ verdict }) => keepsWork[verdict])
  )
    return `${saved}no attempt is saved yet ${words}`
  const subject = words.startsWith('nothing ') ? '' : words.startsWith('was ') ? 'the work ' : 'the work is '
  return `${saved}${subject}${words}`
}

function lookSteps(report: StatusReport, failed: FailedGate | undefined): readonly Step[] {
  // What came to something later is no riddle any more.
  const last = report.iterations.at(-1)
  const change = oneLine(report.change_id)
  // Its record is still missing.
  const cut = report.died_at === undefined ? undefined : report.current
  if (cut !== undefined) return [['look', `ralph logs ${String(cut.n)} ${change}`, 'what the agent said']]
  if (failed?.by_hand !== undefined)
    return failed.is_silent === true
      ? []
      : [['look', `ralph logs ${change} --gate`, 'all that the gate printed']]
  if (report.alive || report.status === 'done' || last === undefined || keepsWork[last.verdict]) return []
  const n = String(last.n)
  const kept = isAside(report, last) ? [[`ralph diff ${n} ${change}`, `what #${n} had changed`]] : []
  const gate =
    last.verdict === 'gate_failed' && failed?.is_silent !== true
      ? [[`ralph logs ${change} --gate ${n}`, 'all that the gate printed']]
      : []
  const said = [`ralph logs ${n} ${change}`, 'what the agent said']
  // The attempts are undone: what fails now is older than they are.
  const without =
    failed !== undefined && failed.baseline === undefined && isSame(failuresInARow(report.iterations))
      ? [[oneLine(failed.command), "does it pass without the agent's work?"]]
      : []
  return [...without, ...kept, ...gate, said].map(
    ([command = '', why = ''], at) => [at === 0 ? 'look' : '', command, why] as const,
  )
}

export function traceText(
  { change_id: change, decisions, earlier_runs: earlier }: Decisions,
  { paint, columns }: Pick<StatusView, 'paint' | 'columns'>,
): string {
  if (decisions.length === 0) return `no loop of ${oneLine(change)} is on record`
  const lines = decisions.map(({ time, n, decision, rule, inputs }) => {
    const where = n === undefined ? '' : ` #${String(n)}`
    const facts = Object.entries(inputs).map(
      ([name, value]) => `${name}=${clip(oneLine(factText(value)), 100)}`,
    )
    const sheet = { paint, columns }
    const at = clockTime(time) + where
    const [first = '', ...rest] = entryLines(
      { indent: 2, text: `${at} ${oneLine(decision)}`, style: paint.bold },
      sheet,
    )
    return [
      first.slice(2).replace(at, paint.dim(at)),
      ...rest,
      ...entryLines({ indent: 2, text: `rule: ${oneLine(rule)}` }, sheet),
      ...(facts.length === 0
        ? []
        : entryLines({ indent: 2, text: `from: ${facts.join(', ')}`, style: paint.dim }, sheet)),
    ].join('\n')
  })
  return [paint.bold(oneLine(change)), ...lines, ...earlierLines(earlier, paint)].join('\n')
}

function factText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'none')
}

function earlierLines(folders: readonly string[], paint: Paint): readonly string[] {
  if (folders.length === 0) return []
  const runs = plural(folders.length, 'earlier run')
  const are = folders.length === 1 ? 'is' : 'are'
  return [
    paint.dim(
      `${runs} ${are} not shown: ralph attempts lists what ${folders.length === 1 ? 'it' : 'they'} tried; journal and transcripts:`,
    ),
    ...folders.map((folder) => paint.dim(`  ${oneLine(folder)}`)),
  ]
}
