// The last lines of a loop: what happened, where the work is, what to type next; each said once.
import { keepsWork } from '../../core/report.ts'
import type { GoneFile, LoopEvent } from '../../core/event.ts'
import { mark, statusMeaning, statusWord } from '../vocabulary.ts'
import type { Board } from './board.ts'
import { figures } from './board.ts'
import { branchName } from './describe.ts'
import { entryLines, widthFor } from './layout.ts'
import type { Sheet } from './layout.ts'
import { clean, clip, oneLine, plural, sentences, shortHash, tokenWords, usd, widthOf } from './text.ts'

type Complete = Extract<LoopEvent, { type: 'complete' }>
type Result = Pick<Complete, 'status' | 'reason' | 'stop_reason' | 'totals'>

export interface Ending {
  readonly complete: Complete
  readonly board: Board
  /** Whether the repository was touched at all. */
  readonly begun: boolean
  /** The branch it began on has no commit: there is none to go back to. */
  readonly isUnborn?: boolean
  /** What became of the choice; a cleanup that failed has moved nothing. */
  readonly finished?: {
    readonly ok: boolean
    readonly message: string
    readonly remote?: string | undefined
    readonly user_paths?: readonly string[] | undefined
    readonly commit?: string | undefined
  }
  /** What was said with the error that ended it. */
  readonly hint?: string
  /** Warnings that must not scroll away, in their order. */
  readonly lasting: readonly string[]
}

/** What came of it: for a success the figures, else first which story and why. */
export function resultLines(result: Result, board: Board, sheet: Sheet): readonly string[] {
  const { status, totals, stop_reason: stop } = result
  const { paint } = sheet
  const sign = mark(statusMeaning(status), paint)
  const counts = countWords(totals, status === 'done')
  // The time is the board's, as in the rows above: gates take some, too.
  const right =
    totals.iterations === 0
      ? ''
      : figures({ ...totals, duration_ms: Math.max(totals.duration_ms, board.spent.duration_ms) })
  const lost = lostWords(totals)
  const word = statusWord(status, paint)
  const headed = (text: string, more: { right?: string } = {}): readonly string[] => {
    const [first = '', ...rest] = entryLines({ sign, text, ...more }, sheet)
    return [first.replace(status, word), ...rest]
  }
  const dimmed = (text: string): readonly string[] => entryLines({ indent: 2, text, style: paint.dim }, sheet)
  const unchanged = board.unchanged.flatMap((id) =>
    entryLines(
      { indent: 2, text: `story ${oneLine(id)} changed no file: the agent's word only`, style: paint.yellow },
      sheet,
    ),
  )
  if (status === 'done') {
    const rest = onlyNamed.exec(result.reason)?.[0]
    return [
      ...headed(`${status}   ${counts}`, { right }),
      ...(rest === undefined ? [] : entryLines({ indent: 2, text: oneLine(rest) }, sheet)),
      ...lost.flatMap(dimmed),
      ...unchanged,
    ]
  }
  const [what, why] = causeOf(result, board)
  return [
    ...headed(stop === 'signal' ? what : `${status}: ${what}`),
    ...why.flatMap((line) => entryLines({ indent: 2, text: clip(line, 400) }, sheet)),
    ...entryLines({ indent: 2, text: counts, style: paint.dim, right }, sheet),
    ...lost.flatMap(dimmed),
    ...unchanged,
  ]
}

/** The sentence, and below it the reason of the last attempt where there is one. */
function causeOf(
  { reason, stop_reason: stop }: Result,
  { stories }: Board,
): readonly [string, readonly string[]] {
  const [first = '', ...more] = clean(reason).split('\n')
  const [, id = '', how = '', last = ''] = /^Story (\S+) (failed .*?); last: (.*)$/.exec(first) ?? []
  if (stop !== 'retries' || how === '') return [oneLine(first).replace(/\.$/, ''), told(more)]
  const title = stories.find((story) => story.id === id)?.title
  const name = title === undefined ? '' : ` "${oneLine(title)}"`
  return [`story ${id}${name} ${how}`, told([last, ...more])]
}

const mostReason = 5

function told(lines: readonly string[]): readonly string[] {
  return lines
    .map(oneLine)
    .filter((line) => line !== '')
    .slice(0, mostReason)
}

function countWords(totals: Result['totals'], isDone: boolean): string {
  const of = (done: number, total: number, one: string, many: string): string =>
    isDone && done === total ? plural(total, one, many) : `${String(done)} of ${plural(total, one, many)}`
  const stories = `${String(totals.stories_done)} of ${plural(totals.stories_total, 'story', 'stories')}`
  const tasks = of(totals.tasks_done, totals.tasks_total, 'task', 'tasks')
  return `${stories}, ${tasks}, ${plural(totals.iterations, 'attempt')}`
}

function lostWords({ not_kept: lost }: Result['totals']): readonly string[] {
  if (lost === undefined || lost.iterations === 0) return []
  const spent = [
    ...(lost.tokens > 0 ? [tokenWords(lost)] : []),
    ...(lost.cost_usd !== undefined && lost.cost_usd > 0 ? [usd(lost.cost_usd)] : []),
  ]
  const were = lost.iterations === 1 ? 'was' : 'were'
  return [
    `${plural(lost.iterations, 'attempt')} ${were} not kept${spent.length === 0 ? '' : `: ${spent.join(', ')}`}`,
  ]
}

/** Where the work is, what must not be forgotten, and the next steps. */
export function placeLines(ending: Ending, sheet: Sheet): readonly string[] {
  const { paint } = sheet
  const said = (text: string): readonly string[] => entryLines({ indent: 2, text }, sheet)
  const { stop_reason: stop, gone = [] } = ending.complete
  const hint =
    (stop === 'error' || stop === 'gate' || stop === 'auth') && ending.hint ? [oneLine(ending.hint)] : []
  return [
    ...whereWords(ending).flatMap(said),
    ...ownWords(ending).flatMap(said),
    ...hint.flatMap(said),
    ...ending.lasting.flatMap((line) => {
      const [first = '', ...rest] = said(`note: ${oneLine(line)}`)
      return [first.replace('note:', paint.yellow('note:')), ...rest]
    }),
    // Lines to be copied: never wrapped.
    ...goneLines(gone).map((line) => `  ${line}`),
    ...stepLines(stepsOf(ending), sheet),
  ]
}

/** Files of the user's that were in no commit when the loop began, and that an agent took away. */
export function goneLines(gone: readonly GoneFile[]): readonly string[] {
  if (gone.length === 0) return []
  const rest = gone.length - mostGone
  return [
    `while the loop ran, ${plural(gone.length, 'file')} that you had not committed ${gone.length === 1 ? 'was' : 'were'} removed or set back; to have ${gone.length === 1 ? 'it' : 'them'} again:`,
    ...gone.slice(0, mostGone).map(({ restore }) => `  ${clean(restore)}`),
    ...(rest > 0 ? [`  and ${rest} more: ralph status --json`] : []),
  ]
}

const mostGone = 20

function whereWords({ complete, board, finished, begun, isUnborn }: Ending): readonly string[] {
  const { started } = board
  if (isNothingKept(complete) && isCleanedUp(complete, finished) && begun && started !== undefined)
    return [
      `Nothing was kept: you are back on ${branchName(started.original_branch)}, with your files as they were.`,
    ]
  if (finished?.ok && !isKeptOnBranch(finished.message)) {
    if (finished.message !== '') return finishedWords(finished.message)
  }
  // A work tree of the loop's own is there before anything is begun in it.
  if (started?.home !== undefined && !begun)
    return [
      `Nothing in ${oneLine(started.home)} was changed; the loop's own tree is ${oneLine(started.worktree)}.`,
    ]
  // Of the run: before it began, the command may have put an earlier one in order.
  if (started === undefined || !begun) return ['This run has changed nothing in the repository.']
  const original = branchName(started.original_branch)
  if (started.branch === started.original_branch) return [`The work is in your tree, on ${original}.`]
  if (isCleanedUp(complete, finished)) return [`The work is on ${original}, uncommitted.`]
  const where = finished?.ok
    ? finishedWords(finished.message)
    : [`The work is on ${oneLine(started.branch)}.`]
  const isUnchanged = complete.choice !== 'cleanup'
  return [
    ...where.slice(0, 1).map((line) => {
      const said = isNothingKept(complete)
        ? line.replace('The work is on', 'Nothing was kept so far on')
        : line
      const state = isUnborn === true ? 'has no commit yet' : 'is not changed'
      return isUnchanged ? `${said} ${original} ${state}.` : said
    }),
    ...where.slice(1),
  ]
}

/** Nobody should publish by a copied line what they had not even committed. */
function ownWords({ complete, finished }: Ending): readonly string[] {
  const own = (finished?.user_paths ?? []).map(oneLine)
  if (complete.status !== 'done' || finished?.remote === undefined || own.length === 0) return []
  const more = own.length > 3 ? ' and more' : ''
  return [`Its first commit holds your uncommitted files: ${own.slice(0, 3).join(', ')}${more}.`]
}

function isNothingKept({ totals }: Complete): boolean {
  return (
    totals.not_kept !== undefined && totals.iterations > 0 && totals.not_kept.iterations === totals.iterations
  )
}

/** The steps below say how it comes back. */
function isKeptOnBranch(message: string): boolean {
  return message.startsWith('the work is on ') && message.includes('` brings it back to ')
}

function finishedWords(message: string): readonly string[] {
  const plain = oneLine(message)
    .split('; ')
    .filter((part) => !/^`ralph finish .*` brings it back to /.test(part))
    .join('; ')
  return plain === '' ? [] : [sentences(plain)]
}

/** In the reason of a run that was asked for some stories only, while others are open. */
const onlyNamed = /Only the stories named by --story.*/

type Step = readonly [label: string, command: string, why: string]

function stepsOf(ending: Ending): readonly Step[] {
  const { complete, begun, board, finished } = ending
  const change = oneLine(complete.change_id)
  const { started } = board
  if (!begun && complete.status === 'done') return []
  const isAway = started !== undefined && started.branch !== started.original_branch
  const isHere = isCleanedUp(complete, finished) || !isAway
  if (complete.status !== 'done') {
    const on = [goOn(complete, change, board), ...takeSteps(ending)]
    const look = lookSteps(board, change)
    return complete.stop_reason === 'signal' ? [...on, ...look] : [...look, ...on]
  }
  const openspec = started?.openspec ?? 'openspec'
  const archive: Step = ['archive', `${openspec} archive ${change}`, isHere ? '' : 'once merged']
  const isWhole = !onlyNamed.test(complete.reason)
  const archives =
    isWhole && started?.settings.done_criteria === 'tasks' && started.tasks_file !== 'tasks.md'
      ? [archive]
      : []
  const look = finished?.commit === undefined ? 'git status' : `git show ${shortHash(finished.commit)}`
  if (isHere) return [['look', look, 'what was done'], ...archives]
  const original = branchName(started.original_branch)
  const branch = oneLine(started.branch)
  return [
    ['look', `ralph diff --all ${change}`, 'all that was done'],
    ['take it', `ralph finish ${change} --cleanup`, `uncommitted on ${original}`],
    ['or', `ralph finish ${change} --squash`, `one commit on ${original}`],
    ...(finished?.remote === undefined
      ? []
      : ([['share', `git push -u ${oneLine(finished.remote)} ${branch}`, 'then a pull request']] as const)),
    ...archives,
  ]
}

/** How to see what the last attempt did, where it was not kept. */
function lookSteps({ last, hasLastChanged, sameGate }: Board, change: string): readonly Step[] {
  if (last === undefined || keepsWork[last.verdict]) return []
  const n = String(last.n)
  // The attempts are undone: what fails now is older than they are.
  const without: readonly Step[] =
    sameGate === undefined ? [] : [['see', oneLine(sameGate), "does it fail without the agent's work, too?"]]
  const gate: readonly Step[] =
    last.verdict === 'gate_failed' ? [['see', `ralph logs ${change} --gate ${n}`, 'all it printed']] : []
  return last.attempt_ref === undefined || !hasLastChanged
    ? [...without, ...gate]
    : [...without, ...gate, ['see', `ralph diff ${n} ${change}`, 'what it had done']]
}

function takeSteps({ complete, board: { started }, finished, begun }: Ending): readonly Step[] {
  if (!begun) return []
  if (started === undefined || started.branch === started.original_branch || isCleanedUp(complete, finished))
    return []
  const original = branchName(started.original_branch)
  const why = isNothingKept(complete) ? `back to ${original}` : `uncommitted on ${original}`
  return [['or', `ralph finish ${oneLine(complete.change_id)} --cleanup`, why]]
}

/** The command that really gets further: a bare resume would stop at the same limit again. */
function goOn(complete: Complete, change: string, { started }: Board): Step {
  const resume = `ralph resume ${change}`
  const go = 'continue'
  if (complete.stop_reason === 'iterations') {
    return [go, `${resume} --max-iterations ${String(complete.totals.iterations * 2)}`, 'with more attempts']
  }
  if (complete.stop_reason === 'budget')
    return [go, `${resume} ${budgetFlags(complete, started?.settings)}`, 'with a larger budget']
  if (complete.stop_reason === 'model')
    return [go, `${resume} --model NAME`, 'with a model that the agent knows']
  if (complete.stop_reason === 'human' && complete.totals.tasks_done === complete.totals.tasks_total) {
    return ['done?', `ralph done ${change}`, 'if you agree; or ralph resume --feedback "…"']
  }
  if (complete.exit_code === 3 || complete.exit_code === 4)
    return ['try again', `${resume} --feedback "…"`, 'and tell it more']
  return [go, resume, resumeReason(complete)]
}

/** The one that was used up first; naming one replaces both, so the other that is set is named too. */
function budgetFlags(
  { reason, totals }: Complete,
  settings: NonNullable<Board['started']>['settings'] | undefined,
): string {
  const isUnpriced = totals.tokens > 0 && totals.cost_usd === undefined
  const flags = [
    ...(settings?.max_tokens === undefined && !isUnpriced ? [] : ['--max-tokens N']),
    // A cost that nobody knows would end the next run, too.
    ...(settings?.max_cost_usd === undefined || isUnpriced ? [] : ['--max-cost USD']),
  ]
  return (reason.includes('--max-cost') ? flags.toReversed() : flags).join(' ')
}

function resumeReason(complete: Complete): string {
  if (complete.exit_code === 5) return 'after you have done your part'
  if (complete.stop_reason === 'auth') return 'after you have logged in or paid'
  if (complete.stop_reason === 'missing') return 'once the agent is installed; or with --agent NAME'
  if (complete.stop_reason === 'limit') return 'once the limit is over'
  return 'where it stopped'
}

function isCleanedUp(complete: Complete, finished: Ending['finished']): boolean {
  return complete.choice === 'cleanup' && finished?.ok !== false
}

/** In columns where all of it fits, else each row as it can. */
function stepLines(steps: readonly Step[], sheet: Sheet): readonly string[] {
  const { paint } = sheet
  const width = widthFor(sheet) ?? Number.POSITIVE_INFINITY
  const widest = Math.max(0, ...steps.map(([, command]) => widthOf(command)))
  const longest = Math.max(0, ...steps.map(([, , why]) => widthOf(why)))
  const isTable = labelWidth + widest + 3 + longest <= width
  return steps.flatMap(([label, command, why]) => {
    const head = `    ${label}`.padEnd(labelWidth)
    const line = `${paint.dim(head)}${paint.bold(command)}`
    if (why === '') return [line]
    const gap = isTable ? widest - widthOf(command) + 3 : 3
    if (labelWidth + widthOf(command) + gap + widthOf(why) <= width)
      return [`${line}${' '.repeat(gap)}${paint.dim(why)}`]
    return [line, ...entryLines({ indent: labelWidth, text: why, style: paint.dim }, sheet)]
  })
}

const labelWidth = 16
