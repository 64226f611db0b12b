// Where loops stand, on one screen: story, attempt, time, tokens, cost, what it waits for, what to type next.
// Long because it is one screen: each row is a few lines, and they are only read together.
import { firstNames } from '../../core/first-names.ts'
import { keepsWork } from '../../core/report.ts'
import { mergeStory } from '../../core/story.ts'
import type { ParkedWork } from '../../core/report.ts'
import type { LandedWork, StatusReport } from '../app.ts'
import type { Paint } from '../io.ts'
import { branchName, storyName } from './describe.ts'
import {
  agentName,
  doneState,
  inColourOf,
  mark,
  phaseWords,
  stateNow,
  statusName,
  symbolOf,
  workedMs,
} from '../vocabulary.ts'
import { factLines, type Fact } from './facts.ts'
import { folded } from './layout.ts'
import { isHeld, nextSteps, ownPlanOf, planOf } from './status-next.ts'
import { stepLines } from './step-lines.ts'
import type { Step } from './step-lines.ts'
import { goneLines } from './summary.ts'
import { table } from './table.ts'
import type { Cell } from './table.ts'
import { ago, clean, clockTime, duration, excerpt, oneLine, plural, since, tokenWord, usd } from './text.ts'
import type { SpentTokens } from './text.ts'

export interface StatusView {
  readonly paint: Paint
  readonly nowMs: number
  /** Absent: lines are not wrapped. */
  readonly columns?: number
}

export function statusText(reports: readonly StatusReport[], view: StatusView): string {
  const [only, second] = reports
  if (only === undefined)
    return 'No loop has run in this repository yet.\n  next   ralph doctor   what is here to run, and what is missing'
  return second === undefined ? oneStatus(only, view) : allStatuses(reports, view)
}

function oneStatus(report: StatusReport, { paint, nowMs, columns }: StatusView): string {
  const facts: Fact[] = [
    ...(report.problem === undefined ? [] : [['problem', oneLine(report.problem)] as const]),
    ['stories', `${storyCount(report)}${ranWords(report)}`],
    ...nowFacts(report, nowMs),
    [
      'attempts',
      `${String(report.current_iteration)}${beforeWords(report)}${report.alive ? `, at most ${String(report.max_iterations)}` : ''}`,
    ],
    ...timeFacts(report, nowMs),
    ['tokens', usedWord(report).replace('?', 'unknown') + costPart(report)],
    ['work', workWords(report)],
    ...refusedRows(report),
    ...lastFacts(report),
    ...deathFacts(report, nowMs),
  ]
  const page = { paint, width: 11, columns }
  return [
    `${paint.bold(oneLine(report.change_id))}  ${headWord(report, paint)}`,
    ...factLines(facts, page),
    ...[...(report.warnings ?? []), ...editWords(report), ...(report.notes ?? [])].map((line) =>
      folded(`note: ${oneLine(line)}`, columns, '  ').replace('note:', paint.yellow('note:')),
    ),
    ...goneLines(report.gone ?? []).map((line) => `  ${line}`),
    ...stepLines(
      [...asideSteps(report), ...nextSteps(report)],
      { indent: 2, column: 14 },
      { paint, columns },
    ),
  ].join('\n')
}

/** Who pushes a branch does not push what is uncommitted on it. */
function editWords({ where }: StatusReport): readonly string[] {
  const { branch = '', kept } = where ?? {}
  return kept?.edits === undefined
    ? []
    : [`uncommitted here, so ${branch} does not have it: ${firstNames(kept.edits, 3)}`]
}

/** The boxes where the work is now: after a cleanup those of this checkout, else those that the run knows. */
export function headWord(report: StatusReport, paint: Paint): string {
  const [word, meaning] = stateNow(report, planOf(report))
  const isNow = [report.died_at, report.waiting_for, report.parked].some((each) => each !== undefined)
  const ran =
    isNow || word.startsWith(statusName(report.status))
      ? ''
      : paint.dim(`  (last run: ${statusName(report.status)})`)
  return `${mark(meaning, paint)} ${paint.bold(inColourOf(meaning, word, paint))}${ran}`
}

/** A merge that the queue asked for is no story of the change. */
function storyCount(report: StatusReport): string {
  const { done, total } = ownPlanOf(report)
  const merge = report.stories.find(({ id }) => id === mergeStory)
  // Merged by hand it is open for ever, and the queue looks at it.
  if (report.parked?.waits === true) return `${String(done)}/${String(total)} done`
  const own = total === 0 && merge !== undefined ? [] : [`${String(done)}/${String(total)} done`]
  return [...own, ...(merge === undefined ? [] : [`merge of both sides: ${merge.status}`])].join(', ')
}

function beforeWords({ where }: StatusReport): string {
  const before = where?.attempts_before ?? 0
  return before === 0 ? '' : `, and ${String(before)} before the merge`
}

/** Where the checkout, or the tree that the work is in, has other boxes than the run left. */
function ranWords(report: StatusReport): string {
  const { plan, home, cleaned_at: cleaned } = report.where ?? {}
  const place = home !== undefined && cleaned === undefined ? 'there now' : 'in this checkout'
  const ran = report.stories.filter(({ id, status }) => id !== mergeStory && status === 'done').length
  return plan === undefined || plan.done === ran ? '' : ` ${place} (the run had ${String(ran)})`
}

/** Where it is, and where the user stands. */
export function workWords(report: StatusReport): string {
  const original = branchName(report.original_branch)
  const { branch, checked_out: here, home, worktree, cleaned_at: cleaned, uncommitted } = report.where ?? {}
  if (branch === undefined) return `from ${original}, in ${oneLine(report.worktree_name)}`
  if (branch === '') return 'nothing was started; the repository is not changed'
  if (branch === report.original_branch)
    return `in your work tree, on ${original}${uncommitted ? ', uncommitted' : ''}`
  if (cleaned !== undefined) {
    if (report.where?.squashed !== undefined)
      return `one commit on ${branchName(report.where.squashed_on ?? '')}, ${oneLine(report.where.squashed)}`
    const hasNone = !report.iterations.some(({ verdict }) => keepsWork[verdict])
    if (report.where?.is_nothing || (uncommitted === false && hasNone))
      return `nothing was saved; ${original} is as you left it`
    const since = `since the cleanup at ${clockTime(cleaned)}`
    const { away, brought_on: on } = report.where ?? {}
    if (away !== undefined)
      return `brought to ${original} by the cleanup at ${clockTime(cleaned)}, and not there any more; its commits are kept as ${oneLine(away.kept)}`
    if (on !== undefined)
      return `on ${branchName(on)}, committed; brought to ${original} by the cleanup at ${clockTime(cleaned)}`
    return uncommitted === false
      ? `on ${original}, committed; ${
          report.where?.is_own_merge
            ? 'merged by you'
            : `brought there by the cleanup at ${clockTime(cleaned)}`
        }`
      : `on ${original}, uncommitted, ${since}`
  }
  if (report.where?.landed !== undefined) return landedWords(report.where.landed)
  if (report.where?.is_merged && report.where.is_gone)
    return `merged into ${original}; ${oneLine(branch)} is deleted`
  if (report.where?.is_gone)
    return `was on ${oneLine(branch)}, which is gone (deleted or renamed); its last checkpoint is ${(report.checkpoint ?? '').slice(0, 12)}`
  const place =
    home !== undefined && report.where?.tree_again !== undefined
      ? ''
      : home !== undefined && worktree !== undefined
        ? ` (in ${oneLine(worktree)})`
        : here === undefined
          ? ''
          : here === branch
            ? ' (you are on it)'
            : ` (you are on ${here === '' ? 'a detached HEAD' : oneLine(here)})`
  return `on ${oneLine(branch)}${place}, ${report.where?.is_merged ? `merged into ${original}` : `from ${original}`}`
}

function landedWords({ target, commit, is_pulled: isPulled }: LandedWork): string {
  const words = `landed on ${oneLine(target)} as ${commit.slice(0, 7)}`
  return isPulled
    ? words
    : `${words} (refs/ralph-landed/${oneLine(target)}; your ${oneLine(target)} is not updated yet)`
}

/** What a table has room for. */
export function landedState(
  { target, commit, is_pulled: isPulled }: LandedWork,
  warnings: readonly string[] | undefined,
): ReturnType<typeof doneState> {
  const on = oneLine(target)
  const how = isPulled ? `landed on ${on} as ${commit.slice(0, 7)}` : `landed, not on your ${on} yet`
  return doneState(warnings, how)
}

/** With what the turn that goes on has used, where its agent tells. */
function spentBy({ total_tokens: before, iterations, where }: StatusReport): SpentTokens {
  const tokens = before + (where?.used_now?.tokens ?? 0)
  return { tokens, tokens_estimated: iterations.some((iteration) => iteration.tokens_estimated) }
}

/** Before the first attempt has ended nothing is known. */
function usedWord(report: StatusReport): string {
  const spent = spentBy(report)
  return report.iterations.length === 0 && spent.tokens === 0 ? '-' : tokenWord(spent)
}

function costPart({ cost_usd: before, total_tokens: used, where }: StatusReport): string {
  const now = where?.used_now?.cost_usd ?? 0
  const cost = now > 0 ? now + (before ?? 0) : before
  if (cost === undefined) return used > 0 ? ', unpriced' : ''
  return cost > 0 ? `, ${usd(cost)}` : ''
}

/** Of agents and gates, waits not counted. */
function timeFacts(report: StatusReport, nowMs: number): readonly Fact[] {
  if (report.iterations.length === 0 && report.current === undefined) return []
  const ms = Math.floor(workedMs(report, nowMs) / 1000) * 1000
  return [['time', ms === 0 ? '0 s' : duration(ms)]]
}

function nowFacts(report: StatusReport, nowMs: number): readonly (readonly [string, string])[] {
  const { current } = report
  const facts: [string, string][] = []
  if (current !== undefined) {
    const story = report.stories.find(({ id }) => id === current.story_id)
    facts.push(['story', storyName(current.story_id, story?.title ?? '')])
    facts.push([
      'attempt',
      `#${String(current.n)}, try ${String(current.attempt)}, by ${oneLine(agentName(current.agent, report.where?.agent_program))}, for ${since(current.started, nowMs)}`,
    ])
    facts.push(['last active', ago(current.last_activity, nowMs)])
  }
  const doing = report.where?.phase === 'working' ? 'the agent works' : phaseWords[report.where?.phase ?? '']
  if (doing !== undefined) facts.push(['doing', doing])
  if (report.waiting_for !== undefined) {
    const until = report.waiting_until === undefined ? '' : `, until ${clockTime(report.waiting_until)}`
    facts.push(['waits for', `${waits[report.waiting_for]}${until}`])
  }
  if (report.pause_requested === true)
    facts.push(['pause', report.waiting_for === undefined ? 'after this attempt' : pausedWords])
  return facts
}

/** Of a loop that waits for something else, too. */
export const pausedWords = 'it is paused, too: no attempt begins until it is resumed'

export const waits: Record<NonNullable<StatusReport['waiting_for']>, string> = {
  limit: "the provider's limit to reset",
  overloaded: 'the provider, which is overloaded',
  offline: 'the network',
  human: 'you',
  pause: 'you to resume it',
}

function lastFacts(report: StatusReport): readonly Fact[] {
  const last = report.iterations.at(-1)
  const facts: [string, string][] = []
  // A death is told by a line of its own.
  if (report.died_at !== undefined) return facts
  if (isHeld(report)) return parkedRows(report.parked)
  const isStopped = last?.verdict === 'interrupted' && ['signal', 'killed'].includes(report.stop_reason ?? '')
  // What failed before it was done, merged or ticked by hand, is history.
  const isOver = report.status === 'done' || report.stop_reason === 'hand'
  if (last !== undefined && last.reason !== '' && !isStopped && !isOver)
    facts.push(['last try', excerpt(last.reason, 100)])
  const stop = stopOf(report)
  if (report.status !== 'done' && stop !== undefined) facts.push([...stop])
  for (const row of yoursRows(report)) facts.push([...row])
  return facts
}

export function parkedRows({ why, hint, waits: isBack }: ParkedWork): readonly Fact[] {
  const [how = '', ...steps] = hint.split('\n').map(clean)
  const [, said = how, command] = /^([^:]+): ((?:cd [^:]+ && )?ralph [^;:]+)$/.exec(how) ?? []
  // What it was for stands there already, or is what was typed.
  const what = said.split('; ').at(-1) ?? said
  return [
    [isBack === true ? 'queue' : 'parked', oneLine(why)],
    ...(command === undefined
      ? [['do', oneLine(how)] as const]
      : [['next', `${command}   ${what.charAt(0).toLowerCase()}${what.slice(1)}`] as const]),
    // What is indented is typed.
    ...steps.map((line): Fact => (line.startsWith(' ') ? ['', ` ${line}`, true] : ['', line])),
  ]
}

export function refusedRows(report: StatusReport): readonly (readonly [string, string])[] {
  if (report.finish_refused === undefined) return []
  const what = report.squash_refused ? 'squash' : 'cleanup'
  return [['refused', `the last ${what}: ${oneLine(report.finish_refused)}`]]
}

/** What waits for the user, and where they say that it is done. */
export function yoursRows({ where }: StatusReport): readonly (readonly [string, string])[] {
  return (where?.yours ?? []).map(
    ({ text, at }, index) =>
      [index === 0 ? 'yours' : '', `${oneLine(text)}: do it, then tick its box in ${oneLine(at)}`] as const,
  )
}

function asideSteps(report: StatusReport): readonly Step[] {
  const last = report.iterations.at(-1)
  if (last === undefined || report.died_at !== undefined || report.alive) return []
  if (!isAside(report, last) || keepsWork[last.verdict]) return []
  const which = `${String(last.n)} ${oneLine(report.change_id)}`
  return [
    ['undone', `ralph diff ${which}`, `what #${String(last.n)} had done`],
    ['', `ralph restore ${which}`, 'bring it back'],
  ]
}

/** Whether what an attempt had done can still be seen. */
export function isAside(
  { where }: StatusReport,
  { attempt_ref: ref }: StatusReport['iterations'][number],
): boolean {
  return ref !== undefined && where?.is_attempt_gone !== true
}

/** Who ended it; nobody did where it waits for its user. */
export function stopOf({
  stop_reason: why = '',
  done_criteria: done,
  iterations,
}: StatusReport): readonly [label: 'stopped by' | 'waiting', words: string] | undefined {
  if (why === '') return undefined
  if (why === 'human')
    return ['waiting', done === 'manual' ? 'say whether it is done' : 'the next step is yours']
  const last = iterations.at(-1)
  const [, by] = /^stopped by (.*?)(?:, before its gates had passed)?$/.exec(last?.reason ?? '') ?? []
  if (why === 'signal' && last?.verdict === 'interrupted' && by !== undefined)
    return ['stopped by', oneLine(by)]
  return ['stopped by', stoppers[why] ?? oneLine(why)]
}

/** The words of the state file in those of a person. */
const stoppers: Readonly<Record<string, string>> = {
  retries: 'a story that used up its retries',
  iterations: '--max-iterations',
  stall: 'attempts that kept nothing',
  hand: 'a gate that fails on what was ticked by hand',
  signal: 'you (ralph stop, Ctrl-C or a signal)',
  killed: 'a kill of ralph',
  limit: "the provider's limit",
  auth: "the agent's login or bill",
  missing: 'an agent that is not installed',
  model: 'a model that the agent does not know',
  gate: 'a gate that could not run',
  error: 'an error of ralph itself',
}

/** A look changes nothing: it says what is there, and which command puts it in order. */
function deathFacts(report: StatusReport, nowMs: number): readonly (readonly [string, string])[] {
  if (report.died_at === undefined) return []
  const pids = report.orphan_pids ?? []
  return [
    ['died', `${ago(report.died_at, nowMs)}: ralph was killed; nothing is cleaned up yet`],
    ...(pids.length > 0 ? ([['agent', orphanWords(pids)]] as const) : []),
  ]
}

function orphanWords(pids: readonly number[]): string {
  return `an agent still runs, pid ${pids.join(', ')}`
}

function allStatuses(reports: readonly StatusReport[], { paint, columns }: StatusView): string {
  const rows = reports.map((report) => {
    const { done, total } = ownPlanOf(report)
    return [
      oneLine(report.change_id),
      stateCell(report, paint),
      `${String(done)}/${String(total)}`,
      String(report.current_iteration),
      usedWord(report),
      report.where?.is_tree_gone ? '-' : oneLine(report.worktree_name),
    ]
  })
  const headings = ['change', 'state', 'stories', 'attempts', 'tokens', 'work tree']
  return `${table(headings, rows, paint, columns)}\n${plural(reports.length, 'loop')}; one of them: ralph status <change>`
}

function stateCell(report: StatusReport, paint: Paint): Cell {
  const [word, meaning] = report.where?.landed
    ? landedState(report.where.landed, report.warnings)
    : stateNow(report, planOf(report))
  return {
    text: `${symbolOf(meaning)} ${tableWord(word)}`,
    paint: (text) => inColourOf(meaning, text, paint),
  }
}

/** The report of one has room for why. */
export function tableWord(word: string): string {
  return word.replace(/: the agent's word only$/, '')
}
