// What to type next, by where a run stands: for `status` and `why`.
import { hasMerge, mergeStory } from '../../core/story.ts'
import { firstNames } from '../../core/first-names.ts'
import { needsOption } from '../../core/onward.ts'
import { keepsWork } from '../../core/report.ts'
import type { ParkedWork } from '../../core/report.ts'
import type { KeptBranch, StatusReport } from '../app.ts'
import { countsOf, unproven } from '../vocabulary.ts'
import { branchName } from './describe.ts'
import type { Step } from './step-lines.ts'
import { oneLine, plural } from './text.ts'

/** None where nothing is left to do. */
export function nextSteps(report: StatusReport): readonly Step[] {
  const change = oneLine(report.change_id)
  const resume = `ralph resume ${change}`
  if (report.alive && report.waiting_for === 'human')
    return [['next', 'answer the question on its terminal', '']]
  const isPaused = report.waiting_for !== undefined && report.pause_requested === true
  if (report.alive && (isPaused || report.waiting_for === 'pause'))
    return [
      ['next', resume, 'continue'],
      ['or', `ralph stop ${change}`, 'end it'],
    ]
  if (report.alive) return [['next', `ralph logs ${change} -f`, 'what the agent says']]
  const again = report.where?.tree_again ?? []
  if (again.length > 0)
    return sorted(
      [
        ...again.map((command): Step => ['next', oneLine(command), againWords(command)]),
        report.status === 'done'
          ? ['next', `ralph finish ${change} --cleanup`, finishWords(report)]
          : ['next', resume, 'continue'],
        [
          'or',
          oneLine(report.where?.bring_here ?? `git merge --squash ralph/${change}`),
          'only bring its commits here',
        ],
      ],
      'then',
    )
  if (report.problem !== undefined)
    return [
      ['next', resume, 'says how to get everything back'],
      ['or', `ralph loop ${change} --fresh`, 'start over'],
    ]
  const finish = `ralph finish ${change} --cleanup`
  const squash = `ralph finish ${change} --squash`
  if (report.died_at !== undefined && report.status !== 'done') {
    const goOn: readonly Step[] = [
      ['next', resume, 'repair it and continue'],
      ['or', finish, 'repair it and end the run'],
    ]
    if ((report.orphan_pids ?? []).length === 0) return goOn
    return sorted([['next', `ralph stop ${change}`, 'end its agent'], ...goOn], 'then')
  }
  // What the queue says comes with what to do.
  if (isHeld(report)) return []
  if (report.parked !== undefined) return retrySteps(report)
  const { branch, cleaned_at: cleaned, uncommitted } = report.where ?? {}
  const isInPlace = branch === report.original_branch
  const isBrought = isInPlace || cleaned !== undefined || report.choice === 'cleanup'
  if (report.status !== 'done' && report.where?.is_plan_gone)
    return [
      ...sorted(
        isBrought || !branch ? afterCleanup(report) : [['next', finish, finishWords(report)]],
        'then',
      ),
      ['later', resume, 'only with its folder back: it is not in openspec/changes any more'],
    ]
  if (report.status !== 'done') {
    // Also of one that was stopped at the question.
    const isAsked = report.stop_reason === 'human' || report.iterations.at(-1)?.verdict === 'complete'
    if (isAsked && report.done_criteria === 'manual' && hasMerge(report.stories))
      return [['next', 'ralph up', 'it looks at how both sides were merged']]
    if (isAsked && report.done_criteria === 'manual')
      return [
        ['next', `ralph done ${change}`, 'it is done'],
        ['or', resume, 'let the agent continue'],
      ]
    // Of a run that came to nothing the tree is its user's again, and only other words get further.
    const isEmpty = !report.iterations.some(({ verdict }) => keepsWork[verdict])
    const { command, why } = report.where?.onward ?? { command: resume, why: 'continue' }
    const first: Step = tickedNext(report)[0] ?? ['next', command, why]
    if (cleaned !== undefined && report.done_criteria === 'tasks' && !(isEmpty && mayUseWords(report))) {
      const open = openNext(report)
      // What a gate has refused is ticked, and not done.
      const rest = open.length === 0 && unproven.has(report.stop_reason ?? '') ? [first] : open
      return sorted([...afterCleanup(report), ...tickedNext(report), ...rest], 'then')
    }
    if (isBrought || !branch) return [first]
    return sorted([...switchNext(report), first, ['or', finish, finishWords(report)]], 'then')
  }
  if (report.where?.landed !== undefined) return afterLanding(report)
  const rest = openNext(report)
  if (branch === '') return rest
  if (report.where?.is_merged && report.where.is_gone) return rest
  if (report.finish_refused !== undefined)
    return sorted(
      [...rest, ['next', report.squash_refused ? squash : finish, 'after what "refused" says']],
      'then',
    )
  if (report.died_at === undefined && report.where?.kept !== undefined)
    return sorted([...rest, ...shareSteps(report, report.where.kept)], 'or')
  // A loop that was killed at its very end has still to be put in order.
  if (!isBrought || report.died_at !== undefined) {
    const why = report.where?.is_merged ? 'it is merged: only its branch is deleted' : finishWords(report)
    return sorted([...rest, ['next', finish, why]], 'or')
  }
  return sorted(
    [...rest, ...(isInPlace && uncommitted !== false ? [onOriginal(report)] : afterCleanup(report))],
    'then',
  )
}

/** Who keeps the branch wants to share it; nobody should publish what they had not even committed. */
function shareSteps(report: StatusReport, { remote, is_pushed: isPushed, own }: KeptBranch): readonly Step[] {
  const change = oneLine(report.change_id)
  const take: Step = ['next', `ralph finish ${change} --cleanup`, finishWords(report)]
  if (own !== undefined && isPushed !== true)
    return [['next', `ralph finish ${change} --squash`, `one commit, without your own ${oneLine(own)}`], take]
  if (remote === undefined) return [take]
  const pull = `gh pr create --head ralph/${change}`
  return isPushed
    ? [['next', pull, 'the branch is pushed'], take]
    : [['next', `git push -u ${oneLine(remote)} ralph/${change}`, 'share it'], ['then', pull, ''], take]
}

/** The queue alone knows why: its loop is done, or was put together with what landed. */
export function isHeld<T extends Pick<StatusReport, 'parked'>>(
  report: T,
): report is T & { readonly parked: ParkedWork } {
  return report.parked !== undefined && report.parked.byLoop !== true
}

/** The queue takes it up again; whoever has more words for the agent gives them first. */
function retrySteps(report: StatusReport): readonly Step[] {
  const change = oneLine(report.change_id)
  const isStuck = mayUseWords(report)
  const isYours = report.stop_reason === 'human'
  return [
    [
      'next',
      `ralph queue retry ${change}`,
      isYours ? 'when its box is ticked' : isStuck ? 'try again' : 'continue',
    ],
    ...(isStuck
      ? [['or', `ralph resume ${change} --feedback "…"`, 'first tell the agent more'] as const]
      : []),
  ]
}

function againWords(command: string): string {
  return command.includes('worktree add') ? 'make its work tree again' : 'move that folder away'
}

/** The first is what is next. */
function sorted(steps: readonly Step[], word: 'or' | 'then'): readonly Step[] {
  return steps.map((step, at) => {
    const [label, command, why] = step
    return at > 0 && label === 'next' ? [word, command, why] : step
  })
}

function mayUseWords({ alive, stop_reason: why, died_at: died }: StatusReport): boolean {
  return !alive && died === undefined && (why === 'retries' || why === 'stall' || why === 'iterations')
}

function finishWords(report: StatusReport): string {
  const original = branchName(report.original_branch)
  return report.iterations.some(({ verdict }) => keepsWork[verdict])
    ? `the work, uncommitted on ${original}`
    : `back to ${original}`
}

function onOriginal(report: StatusReport): Step {
  return ['next', 'git status', `the work is on ${branchName(report.original_branch)}, uncommitted`]
}

/** Nothing has to be brought any more. */
function afterLanding({ where }: StatusReport): readonly Step[] {
  const { landed, leftover_tree: tree, leftover_files: only } = where ?? {}
  const target = branchName(landed?.target ?? '')
  const steps: readonly Step[] = [
    ...(landed?.is_pulled === false ? [['next', 'ralph queue pull', `bring it to ${target}`] as const] : []),
    ...(tree === undefined ? [] : [removal(tree, only)]),
  ]
  return sorted(steps, 'then')
}

function removal(tree: string, only: readonly string[] = []): Step {
  if (only.length > 0) {
    return [
      'next',
      `cd ${oneLine(tree)}`,
      `move what you need out of it: git worktree remove deletes what is only there (${firstNames(only.map(oneLine))})`,
    ]
  }
  return ['next', `git worktree remove ${oneLine(tree)}`, "the loop's own folder, not needed any more"]
}

/** What a cleanup leaves to its user. */
function afterCleanup(report: StatusReport): readonly Step[] {
  const {
    away,
    uncommitted,
    leftover_tree: tree,
    leftover_files: only,
    cleaned_at: cleaned,
  } = report.where ?? {}
  return [
    ...(away === undefined ? [] : [['next', oneLine(away.back), 'bring it again'] as const]),
    ...(uncommitted === false || (cleaned === undefined && report.choice !== 'cleanup')
      ? []
      : [onOriginal(report)]),
    // A run that can be resumed goes on in it.
    ...(tree === undefined || report.status !== 'done' || planOf(report).open > 0
      ? []
      : [removal(tree, only)]),
  ]
}

/** Of a run that waits for what only its user can do. */
function tickedNext({ change_id: change, where, stop_reason: why }: StatusReport): readonly Step[] {
  if (why !== 'human' || where?.yours === undefined) return []
  return [['next', `ralph resume ${oneLine(change)}`, 'when its box is ticked']]
}

/** A box that is ticked on another branch is not the run's, and there it is in the way of a resume. */
function switchNext({ where, stop_reason: why, done_criteria: done }: StatusReport): readonly Step[] {
  const { branch, checked_out: here, home, switch_there: there } = where ?? {}
  if (why !== 'human' || done !== 'tasks' || home !== undefined || branch === undefined) return []
  return branch === here ? [] : [['next', oneLine(there ?? `git switch ${branch}`), 'its boxes are there']]
}

/** Stories that are still open, and the command that runs them. */
function openNext(report: StatusReport): readonly Step[] {
  const change = oneLine(report.change_id)
  const { open } = planOf(report)
  // Those of a plan whose work is put away were done there.
  if (open === 0 || report.where?.away !== undefined) return []
  const { branch, cleaned_at: cleaned, leftover_tree: tree, home } = report.where ?? {}
  // A new run in a work tree of its own would begin without what the cleanup has left uncommitted; the old tree has it.
  const isCleaned = cleaned !== undefined && tree === undefined && branch !== report.original_branch
  // An unfinished run is gone on with: `loop` would begin without its agent, gates and limits. Without its own tree it cannot.
  const isEnded = isCleaned && (report.status === 'done' || home !== undefined)
  const isOver = isEnded || (report.where?.is_merged && report.where.is_gone)
  const { command: again = `ralph resume ${change}` } = needsOption.has(report.stop_reason ?? '')
    ? (report.where?.onward ?? {})
    : {}
  return [
    [
      'next',
      isOver ? `ralph loop ${change}` : again,
      `run the ${plural(open, 'open story', 'open stories')}`,
    ],
  ]
}

export function planOf({ stories, where }: StatusReport): { open: number; done: number; total: number } {
  return where?.plan ?? countsOf(stories)
}

/** Without the merge that the queue asked for. */
export function ownPlanOf(report: StatusReport): { done: number; total: number } {
  if (report.where?.plan !== undefined) return report.where.plan
  const own = report.stories.filter(({ id }) => id !== mergeStory)
  return { done: own.filter(({ status }) => status === 'done').length, total: own.length }
}
