// The last lines of a loop name what to type next: which commands these are.
import { hasMerge } from '../../core/story.ts'
import { recordGone } from '../../core/error.ts'
import { onward } from '../../core/onward.ts'
import { keepsWork } from '../../core/report.ts'
import type { Board } from './board.ts'
import { isManual, redGate } from './board.ts'
import { branchName } from './describe.ts'
import type { Sheet } from './layout.ts'
import { stepLines } from './step-lines.ts'
import type { Step } from './step-lines.ts'
import type { Complete, Ending } from './summary.ts'
import { oneLine, shortHash } from './text.ts'

/** Below the last lines of a loop. */
export function nextLines(ending: Ending, sheet: Sheet): readonly string[] {
  return stepLines(stepsOf(ending), { indent: 4, column: 16 }, sheet)
}

/** In the reason of a run that was asked for some stories only, while others are open. */
export const onlyNamed = /Only the stories named by --story were run; (.*)\.$/

function stepsOf(ending: Ending): readonly Step[] {
  const { complete, begun, board, finished, isPast } = ending
  const change = oneLine(complete.change_id)
  const { started } = board
  if (!begun && complete.status === 'done') return []
  const isAway = started !== undefined && started.branch !== started.original_branch
  const isHere = isCleanedUp(complete, finished) || !isAway
  // The lines above have the way out, in git's own commands.
  if (complete.reason.startsWith(recordGone)) return []
  if (complete.status !== 'done') {
    const on = [...goOn(complete, change, board), ...takeSteps(ending)]
    const look = [...lookSteps(board, change), ...undoneSteps(complete, board, 1)]
    return complete.stop_reason === 'signal' ? [...on, ...look] : [...look, ...on]
  }
  const openspec = started?.openspec ?? 'openspec'
  const archive: Step = ['archive', `${openspec} archive ${change}`, isHere ? '' : 'once merged']
  const isWhole = !onlyNamed.test(complete.reason)
  const archives =
    isWhole && started?.settings.done_criteria === 'tasks' && started.tasks_file !== 'tasks.md'
      ? [archive]
      : []
  const look =
    finished?.commit !== undefined
      ? `git show ${shortHash(finished.commit)}`
      : isPast === true
        ? `ralph diff --all ${change}`
        : 'git status'
  const undone = undoneSteps(complete, board)
  const landing: readonly Step[] =
    started?.parked === true ? [['land it', `ralph land ${change}`, 'it is parked in the merge queue']] : []
  if (isHere) return [['look', look, 'what was done'], ...undone, ...archives]
  const original = branchName(started.original_branch)
  const branch = oneLine(started.branch)
  return [
    ['look', `ralph diff --all ${change}`, 'all that was done'],
    ...undone,
    ...landing,
    [
      landing.length === 0 ? 'take it' : 'or',
      `ralph finish ${change} --cleanup`,
      `uncommitted on ${original}`,
    ],
    ['or', `ralph finish ${change} --squash`, `one commit on ${original}`],
    ...(finished?.remote === undefined
      ? []
      : ([['share', `git push -u ${oneLine(finished.remote)} ${branch}`, 'then a pull request']] as const)),
    ...archives,
  ]
}

/** Whatever was said of them on the way, and to whom: a loop may have been killed before it could. `named`: so many are already. */
function undoneSteps({ change_id: change, totals }: Complete, board: Board, named = 0): readonly Step[] {
  const undone = totals.not_kept?.iterations ?? 0
  // Of attempts of an earlier loop of this run nobody knows here what they changed.
  const hasSome = board.hasUndone || totals.iterations > board.attempts
  return undone > named && hasSome
    ? [['attempts', `ralph attempts ${oneLine(change)}`, 'see what was undone']]
    : []
}

/** How to see what the last attempt did, where it was not kept. */
function lookSteps(
  { last, hasLastChanged, failedGate = '', isGateSilent = false, baselines }: Board,
  change: string,
): readonly Step[] {
  if (last === undefined || keepsWork[last.verdict]) return []
  const n = String(last.n)
  // The attempts are undone: what fails now is older than they are.
  const without: readonly Step[] =
    last.verdict === 'gate_failed' && (baselines.get(failedGate) ?? 'unknown') === 'unknown'
      ? [['check', oneLine(failedGate), 'without the agent?']]
      : []
  const gate: readonly Step[] =
    last.verdict === 'gate_failed' && !isGateSilent
      ? [['see', `ralph logs ${change} --gate ${n}`, 'all it printed']]
      : []
  const said: readonly Step[] = speechless.has(last.verdict)
    ? [['see', `ralph logs ${n} ${change}`, 'what it printed']]
    : []
  return last.attempt_ref === undefined || !hasLastChanged
    ? [...without, ...gate, ...said]
    : [...without, ...gate, ...said, ['see', `ralph diff ${n} ${change}`, 'what it had done']]
}

/** Their reason is not the agent's own: its output says more. */
const speechless: ReadonlySet<string> = new Set(['crash', 'none', 'timeout', 'idle'])

function takeSteps({ complete, board, finished, begun }: Ending): readonly Step[] {
  const { started } = board
  // Both sides of a conflict are the queue's until one merge of them is accepted: a finish would be refused.
  if (!begun || hasMerge(board.stories)) return []
  if (started === undefined || started.branch === started.original_branch || isCleanedUp(complete, finished))
    return []
  const original = branchName(started.original_branch)
  const why = isNothingKept(complete) ? `back to ${original}` : `uncommitted on ${original}`
  return [['or', `ralph finish ${oneLine(complete.change_id)} --cleanup`, why]]
}

/** With what only the screens know of: a manual loop waits for words. */
function goOn(complete: Complete, change: string, board: Board): readonly Step[] {
  const { started, last, stories } = board
  const { stop_reason: stopReason, reason, totals } = complete
  if (stopReason === 'human' && isManual({ started }) && hasMerge(stories))
    return [['see', 'ralph queue', 'whether the merge is accepted']]
  if (stopReason === 'human' && isManual({ started }))
    return [
      ['it is done', `ralph done ${change}`, ''],
      ['not yet', `ralph resume ${change} --feedback "what is missing"`, ''],
    ]
  const { label, command, why } = onward({
    change,
    stopReason,
    reason,
    settings: started?.settings,
    last,
    isMerge: hasMerge(stories),
    isGateRed: redGate(board) !== undefined,
    attempts: totals.iterations,
    isUnpriced: totals.tokens > 0 && totals.cost_usd === undefined,
  })
  return [[label, command, why]]
}

export function isCleanedUp(complete: Complete, finished: Ending['finished']): boolean {
  return (finished?.choice ?? complete.choice) === 'cleanup' && finished?.ok !== false
}

export function isNothingKept({ totals, status, stop_reason: why }: Complete): boolean {
  return (
    // What was ticked by hand is saved, by no attempt.
    status !== 'done' &&
    why !== 'hand' &&
    totals.not_kept !== undefined &&
    totals.iterations > 0 &&
    totals.not_kept.iterations === totals.iterations
  )
}
