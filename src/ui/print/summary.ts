// The last lines of a loop: what happened, where the work is, what to type next.
import type { GoneFile, LoopEvent } from '../../core/event.ts'
import type { Paint } from '../io.ts'
import { statusWord } from '../vocabulary.ts'
import { branchName } from './describe.ts'
import { notKeptWords } from './report-words.ts'
import { clean, duration, oneLine, plural, tokenWords, usd } from './text.ts'

export type Started = Extract<LoopEvent, { type: 'loop.started' }>
type Complete = Extract<LoopEvent, { type: 'complete' }>

export interface Ending {
  readonly complete: Complete
  /** Whether the repository was touched at all. */
  readonly begun: boolean
  /** Absent when the loop ended before it began. */
  readonly started?: Started
  /** What became of the choice; a cleanup that failed has moved nothing. */
  readonly finished?: { readonly ok: boolean; readonly message: string }
  /** Iteration of the last attempt that was not kept. */
  readonly lastFailed?: number
  /** Warnings that must not scroll away, in their order. */
  readonly lasting?: readonly string[]
}

export function summary(ending: Ending, paint: Paint): readonly string[] {
  const { complete } = ending
  const { totals } = complete
  const figures = [plural(totals.iterations, 'iteration'), duration(totals.duration_ms), tokenWords(totals)]
  if (totals.cost_usd !== undefined && totals.cost_usd > 0) figures.push(usd(totals.cost_usd))
  const lost = totals.not_kept === undefined ? '' : notKeptWords(totals, totals.not_kept)
  const counts = `${String(totals.stories_done)}/${String(totals.stories_total)} stories, ${String(totals.tasks_done)}/${String(totals.tasks_total)} tasks`
  const reason = complete.reason === '' ? '' : `: ${oneLine(complete.reason)}`
  return [
    `${statusWord(complete.status, paint)}${reason}`,
    `  ${counts} ${paint.dim(`(${figures.join(', ')})`)}`,
    ...(lost === '' ? [] : [`  ${paint.dim(lost)}`]),
    ...whereLine(ending).map((line) => `  ${line}`),
    ...(ending.lasting ?? []).map((line) => `  ${paint.yellow('note:')} ${oneLine(line)}`),
    ...goneLines(complete.gone ?? []).map((line) => `  ${line}`),
    ...nextCommands(ending).map(([command, why]) => `  next: ${paint.bold(command)}  ${paint.dim(why)}`),
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

function whereLine({ started, complete, finished, begun }: Ending): readonly string[] {
  if (finished?.ok && finished.message !== '') return [oneLine(finished.message)]
  // A work tree of the loop's own is there before anything is begun in it.
  if (started?.home !== undefined && !begun)
    return [
      `nothing in ${oneLine(started.home)} was changed; the loop's own tree is ${oneLine(started.worktree)}`,
    ]
  // Of the run: before it began, the command may have put an earlier one in order.
  if (started === undefined || !begun) return ['this run has changed nothing in the repository']
  const branch = oneLine(started.branch)
  const original = branchName(started.original_branch)
  if (started.branch === started.original_branch) return [`the work is in your tree, on ${original}`]
  if (isCleanedUp(complete, finished)) return [`the work is on ${original}, uncommitted`]
  return [`the work is on branch ${branch}; this loop has changed nothing on ${original}`]
}

function nextCommands({
  complete,
  begun,
  started,
  finished,
  lastFailed,
}: Ending): readonly (readonly [string, string])[] {
  const change = oneLine(complete.change_id)
  if (!begun && complete.status === 'done') return []
  const inspect: [string, string][] =
    lastFailed === undefined
      ? []
      : [
          [
            `ralph diff ${String(lastFailed)}`,
            `what the last ${complete.stop_reason === 'signal' ? 'attempt, which was stopped,' : 'failed attempt'} had done`,
          ],
        ]
  if (complete.status !== 'done') return [...inspect, goOn(complete, change, started)]
  const inPlace = started === undefined || started.branch === started.original_branch
  if (inPlace || isCleanedUp(complete, finished)) return [['git status', 'see what was done']]
  const command = `ralph finish ${change} --cleanup`
  // The checkpoint's own words may have said it already.
  if (finished?.ok && finished.message.includes(command)) return []
  return [[command, `bring it to ${branchName(started.original_branch)}, uncommitted`]]
}

/** The command that really gets further: a bare resume would stop at the same limit again. */
function goOn(complete: Complete, change: string, started: Started | undefined): [string, string] {
  const resume = `ralph resume ${change}`
  if (complete.stop_reason === 'iterations') {
    return [
      `${resume} --max-iterations ${String(complete.totals.iterations * 2)}`,
      'allow it more iterations',
    ]
  }
  if (complete.stop_reason === 'budget')
    return [`${resume} ${budgetFlags(complete, started?.settings)}`, 'go on with a larger budget']
  if (complete.stop_reason === 'model') return [`${resume} --model NAME`, 'with a model that the agent knows']
  if (complete.stop_reason === 'human' && complete.totals.tasks_done === complete.totals.tasks_total) {
    return [`ralph done ${change}`, 'if you agree; or ralph resume --feedback "…"']
  }
  return [resume, resumeReason(complete)]
}

/** The one that was used up first; naming one replaces both, so the other that is set is named too. */
function budgetFlags({ reason, totals }: Complete, settings: Started['settings'] | undefined): string {
  const isUnpriced = totals.tokens > 0 && totals.cost_usd === undefined
  const flags = [
    ...(settings?.max_tokens === undefined && !isUnpriced ? [] : ['--max-tokens N']),
    // A cost that nobody knows would end the next run, too.
    ...(settings?.max_cost_usd === undefined || isUnpriced ? [] : ['--max-cost USD']),
  ]
  return (reason.includes('--max-cost') ? flags.toReversed() : flags).join(' ')
}

function resumeReason(complete: Complete): string {
  if (complete.exit_code === 3 || complete.exit_code === 4)
    return 'try again with fresh attempts (--feedback "…" helps the agent)'
  if (complete.exit_code === 5) return 'after you have done your part'
  if (complete.stop_reason === 'auth') return 'once its login or its bill is settled'
  if (complete.stop_reason === 'missing') return 'once the agent is installed; or with --agent NAME'
  if (complete.stop_reason === 'limit') return 'once the limit is over'
  return 'go on where it stopped'
}

function isCleanedUp(complete: Complete, finished: Ending['finished']): boolean {
  return complete.choice === 'cleanup' && finished?.ok !== false
}
