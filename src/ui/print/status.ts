// Where loops stand, on one screen: story, attempt, time, tokens, cost, what it waits for, what to type next.
import type { StatusReport } from '../app.ts'
import type { Paint } from '../io.ts'
import { storyName } from './describe.ts'
import { goneLines, statusWord } from './summary.ts'
import { table } from './table.ts'
import { clockTime, duration, excerpt, oneLine, plural, tokens, usd } from './text.ts'

export interface StatusView {
  readonly paint: Paint
  readonly nowMs: number
}

export function statusText(reports: readonly StatusReport[], view: StatusView): string {
  const [only, second] = reports
  if (only === undefined) return 'no loop has run in this repository yet\nnext: ralph list'
  return second === undefined ? oneStatus(only, view) : allStatuses(reports, view)
}

function oneStatus(report: StatusReport, { paint, nowMs }: StatusView): string {
  const done = report.stories.filter((story) => story.status === 'done').length
  const facts: (readonly [string, string])[] = [
    ...(report.problem === undefined ? [] : [['problem', oneLine(report.problem)] as const]),
    ['stories', `${String(done)}/${String(report.stories.length)} done`],
    ...nowFacts(report, nowMs),
    ['iterations', `${String(report.current_iteration)}/${String(report.max_iterations)}`],
    ['tokens', tokens(report.total_tokens) + costPart(report)],
    ['work', `from ${oneLine(report.original_branch)}, in ${oneLine(report.worktree_name)}`],
    ...lastFacts(report),
    ...deathFacts(report, nowMs),
  ]
  return [
    `${paint.bold(oneLine(report.change_id))}  ${statusWord(report.status, paint)}`,
    ...facts.map(([name, value]) => `  ${paint.dim(name.padEnd(11))} ${value}`),
    ...goneLines(report.gone ?? []).map((line) => `  ${line}`),
    `  ${paint.dim('next'.padEnd(11))} ${paint.bold(nextCommand(report))}`,
  ].join('\n')
}

function costPart({ cost_usd: cost, total_tokens: used }: StatusReport): string {
  if (cost === undefined) return ', unpriced'
  return used > 0 && cost > 0 ? `, ${usd(cost)}` : ''
}

function nowFacts(report: StatusReport, nowMs: number): readonly (readonly [string, string])[] {
  const { current } = report
  const facts: [string, string][] = []
  if (current !== undefined) {
    const story = report.stories.find(({ id }) => id === current.story_id)
    facts.push(['story', storyName(current.story_id, story?.title ?? '')])
    facts.push([
      'attempt',
      `${String(current.attempt)}, by ${oneLine(current.agent)}, for ${since(current.started, nowMs)}`,
    ])
    facts.push(['last sign', `${since(current.last_activity, nowMs)} ago`])
  }
  if (report.waiting_for !== undefined) {
    const until = report.waiting_until === undefined ? '' : `, until ${clockTime(report.waiting_until)}`
    facts.push(['waits for', `${waits[report.waiting_for]}${until}`])
  }
  return facts
}

const waits: Record<NonNullable<StatusReport['waiting_for']>, string> = {
  limit: "the provider's limit to reset",
  overloaded: 'the provider, which is overloaded',
  offline: 'the network',
  human: 'you',
}

function lastFacts(report: StatusReport): readonly (readonly [string, string])[] {
  const last = report.iterations.at(-1)
  const facts: [string, string][] = []
  if (last !== undefined && last.reason !== '') facts.push(['last reason', excerpt(last.reason, 100)])
  if (report.status !== 'done' && report.stop_reason) facts.push(['stopped by', oneLine(report.stop_reason)])
  return facts
}

/** A look changes nothing: it says what is there, and which command puts it in order. */
function deathFacts(report: StatusReport, nowMs: number): readonly (readonly [string, string])[] {
  if (report.died_at === undefined) return []
  const pids = report.orphan_pids ?? []
  return [
    ['died', `${since(report.died_at, nowMs)} ago: ralph was killed; the work tree is as it was left`],
    ...(pids.length > 0 ? ([['orphan', orphanWords(pids)]] as const) : []),
  ]
}

function orphanWords(pids: readonly number[]): string {
  return `an agent still runs, pid ${pids.join(', ')}`
}

function allStatuses(reports: readonly StatusReport[], { paint }: StatusView): string {
  const rows = reports.map((report) => [
    oneLine(report.change_id),
    { text: report.status, paint: () => statusWord(report.status, paint) },
    report.alive ? 'yes' : 'no',
    `${String(report.stories.filter(({ status }) => status === 'done').length)}/${String(report.stories.length)}`,
    `${String(report.current_iteration)}/${String(report.max_iterations)}`,
    tokens(report.total_tokens),
    oneLine(report.worktree_name),
  ])
  const headings = ['change', 'status', 'alive', 'stories', 'iterations', 'tokens', 'work tree']
  return `${table(headings, rows, paint)}\n${plural(reports.length, 'loop')}; one of them: ralph status <change>`
}

function nextCommand(report: StatusReport): string {
  const change = oneLine(report.change_id)
  if (report.alive && report.waiting_for === 'human') return 'answer the question on its terminal'
  if (report.alive) return `ralph logs ${change} -f`
  if (report.problem !== undefined)
    return `ralph resume ${change} says how to get everything back; ralph loop ${change} --fresh starts anew`
  if (report.status === 'done') {
    return report.choice === 'cleanup'
      ? `git diff: the work is on ${oneLine(report.original_branch)}, uncommitted`
      : `ralph finish ${change} --cleanup`
  }
  if (report.died_at !== undefined) {
    const stop = (report.orphan_pids ?? []).length > 0 ? `ralph stop ${change}; then ` : ''
    return `${stop}ralph resume ${change} or ralph finish ${change} --cleanup`
  }
  return report.stop_reason === 'human' && report.done_criteria === 'manual'
    ? `ralph done ${change}, or ralph resume ${change}`
    : `ralph resume ${change}`
}

function since(stamp: string, nowMs: number): string {
  return duration(Math.max(0, Math.floor((nowMs - Date.parse(stamp)) / 1000) * 1000))
}
