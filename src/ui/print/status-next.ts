// What to type next, by where a run stands: for `status` and `why`.
import type { StatusReport } from '../app.ts'
import { branchName } from './describe.ts'
import { oneLine, plural } from './text.ts'

/** None where nothing is left to do. */
export function nextCommand(report: StatusReport): readonly string[] {
  const change = oneLine(report.change_id)
  const finish = `ralph finish ${change} --cleanup`
  if (report.alive && report.waiting_for === 'human') return ['answer the question on its terminal']
  if (report.alive && report.waiting_for === 'pause')
    return [`ralph resume ${change} (or ralph stop ${change})`]
  if (report.alive) return [`ralph logs ${change} -f`]
  if (report.problem !== undefined)
    return [
      `ralph resume ${change} says how to get everything back; ralph loop ${change} --fresh starts over`,
    ]
  if (report.died_at !== undefined && report.status !== 'done') {
    const goOn = `ralph resume ${change}, or ${finish}`
    return (report.orphan_pids ?? []).length > 0 ? [`ralph stop ${change}`, `then ${goOn}`] : [goOn]
  }
  const { branch, cleaned_at: cleaned, uncommitted } = report.where ?? {}
  const isInPlace = branch === report.original_branch
  const isBrought = isInPlace || cleaned !== undefined || report.choice === 'cleanup'
  if (report.status !== 'done') {
    if (report.stop_reason === 'human' && report.done_criteria === 'manual')
      return [`ralph done ${change}, or ralph resume ${change}`]
    if (cleaned !== undefined && report.done_criteria === 'tasks')
      return [...afterCleanup(report), ...openNext(report)]
    return [isBrought || !branch ? `ralph resume ${change}` : `ralph resume ${change}, or ${finish}`]
  }
  const rest = openNext(report)
  if (branch === '') return rest
  if (report.where?.is_merged && report.where.is_gone) return rest
  if (report.finish_refused !== undefined) return [...rest, `what "refused" says, then ${finish}`]
  // A loop that was killed at its very end has still to be put in order.
  if (!isBrought || report.died_at !== undefined)
    return [...rest, report.where?.is_merged ? `${finish} (it is merged: only its branch goes)` : finish]
  return [...rest, ...(isInPlace && uncommitted !== false ? [onOriginal(report)] : afterCleanup(report))]
}

function onOriginal(report: StatusReport): string {
  return `git status: the work is on ${branchName(report.original_branch)}, uncommitted`
}

/** What a cleanup leaves to its user. */
function afterCleanup(report: StatusReport): readonly string[] {
  const { uncommitted, leftover_tree: tree, cleaned_at: cleaned } = report.where ?? {}
  return [
    ...(uncommitted === false || (cleaned === undefined && report.choice !== 'cleanup')
      ? []
      : [onOriginal(report)]),
    // With stories left a resume goes on in it.
    ...(tree === undefined || planOf(report).open > 0
      ? []
      : [`git worktree remove ${oneLine(tree)}: the loop's own folder, not needed any more`]),
  ]
}

/** Stories that are still open, and the command that runs them. */
function openNext(report: StatusReport): readonly string[] {
  const change = oneLine(report.change_id)
  const { open } = planOf(report)
  if (open === 0) return []
  const { branch, cleaned_at: cleaned, leftover_tree: tree, home } = report.where ?? {}
  // A new run in a work tree of its own would begin without what the cleanup has left uncommitted; the old tree has it.
  const isCleaned = cleaned !== undefined && tree === undefined && branch !== report.original_branch
  // An unfinished run is gone on with: `loop` would begin without its agent, gates and limits. Without its own tree it cannot.
  const isEnded = isCleaned && (report.status === 'done' || home !== undefined)
  const isOver = isEnded || (report.where?.is_merged && report.where.is_gone)
  return [
    `ralph ${isOver ? 'loop' : 'resume'} ${change} runs the ${plural(open, 'open story', 'open stories')}`,
  ]
}

export function planOf({ stories, where }: StatusReport): { open: number; done: number; total: number } {
  const count = (wanted: string): number => stories.filter(({ status }) => status === wanted).length
  return where?.plan ?? { open: count('open'), done: count('done'), total: stories.length }
}
