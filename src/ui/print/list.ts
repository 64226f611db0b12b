// The changes as a table, and the way on from there.
import type { ChangeList } from '../app.ts'
import type { Paint } from '../io.ts'
import { doneState, inColourOf, stateNow, statusName, symbolOf } from '../vocabulary.ts'
import { entryLines } from './layout.ts'
import type { Sheet } from './layout.ts'
import { landedState, tableWord } from './status.ts'
import { table } from './table.ts'
import type { Cell } from './table.ts'
import { clip, oneLine, widthOf } from './text.ts'

export function listText({ changes }: ChangeList, sheet: Sheet): string {
  const { paint, columns } = sheet
  if (changes.length === 0)
    return 'no changes under openspec/changes\nwrite one: openspec/changes/<name>/tasks.md, with `## 1. A story` and below it `- [ ] 1.1 A task`'
  const rows = changes.map((change) => [
    oneLine(change.name),
    `${String(storiesDone(change))}/${String(change.stories_total)}`,
    `${String(isAllDone(change) ? change.tasks_total : (change.loop_tasks_done ?? change.tasks_done))}/${String(change.tasks_total)}`,
    stateCell(change, paint),
    { text: titleOf(change), paint: paint.dim },
  ])
  const isTitled = changes.some((change) => titleOf(change) !== '')
  const headings = ['change', 'stories', 'tasks', 'state', ...(isTitled ? ['title'] : [])]
  const problems = changes.flatMap(({ name, problem }) =>
    problem === undefined ? [] : noted(`${oneLine(name)}: ${oneLine(problem)}`, sheet, paint.yellow),
  )
  const elsewhere = changes.flatMap(
    ({
      name,
      stories_done: here,
      stories_total: total,
      loop_stories_done: done,
      loop_branch: branch,
      landed,
      parked,
      plan_on: away,
    }) =>
      away !== undefined
        ? noted(
            `${oneLine(name)}: plan and work are on ${oneLine(away)}, not in this checkout: ralph status ${oneLine(name)}`,
            sheet,
            paint.dim,
          )
        : done === undefined || landed !== undefined || parked !== undefined
          ? []
          : noted(
              `${oneLine(name)}: its loop has ${String(done)}/${String(total)} stories${branch === undefined ? '' : ` on ${oneLine(branch)}`}, this checkout ${String(here)}: ralph status ${oneLine(name)}`,
              sheet,
              paint.dim,
            ),
  )
  return [
    table(headings, isTitled ? rows : rows.map((row) => row.slice(0, -1)), paint, columns),
    ...problems,
    ...changes.flatMap(onwardWords).flatMap((words) => noted(words, sheet)),
    ...elsewhere,
  ].join('\n')
}

/** A change without a proposal has its name alone, which stands in front already. */
function titleOf({ name, title }: Change): string {
  return title === name ? '' : clip(oneLine(title), 60)
}

/** Below the table; what is wrapped hangs. */
function noted(text: string, sheet: Sheet, style = (part: string): string => part): readonly string[] {
  const [first = '', ...rest] = entryLines({ indent: 2, text, style }, sheet)
  return [first.slice(2), ...rest]
}

type Change = ChangeList['changes'][number]

/** What its loop has saved counts, wherever that is. */
export function storiesDone({
  stories_done: here,
  loop_stories_done: there,
  landed,
  stories_total: all,
}: Change): number {
  return landed === undefined ? (there ?? here) : all
}

function isAllDone(change: Change): boolean {
  return change.stories_total > 0 && storiesDone(change) === change.stories_total
}

/** Of a loop that will not go on by itself. */
function onwardWords(change: Change): readonly string[] {
  const [word] = stateOf(change)
  const name = oneLine(change.name)
  if (change.parked !== undefined)
    return [
      `${name}: ${change.parked.waits === true ? '' : 'parked: '}${oneLine(change.parked.why)}. ${
        change.parked.hint.includes('\n') ? `What to type: ralph status ${name}` : oneLine(change.parked.hint)
      }`,
    ]
  if (word === 'paused') return [`${name}: paused; continue with: ralph resume ${name}`]
  if (word === 'needs you' && change.waiting_for === 'human')
    return [`${name}: waits for you: answer the question on its terminal`]
  if (word !== 'died') return []
  const pids = change.orphan_pids ?? []
  return [
    pids.length === 0
      ? `${name}: ralph was killed; continue with: ralph resume ${name}`
      : `${name}: ralph was killed, and an agent still runs (pid ${pids.join(', ')}); type: ralph stop ${name}; then ralph resume ${name}`,
  ]
}

function stateCell(change: Change, paint: Paint): Cell {
  const { status } = change
  const [word, meaning] = stateOf(change)
  const isOther = status !== '' && status !== 'done' && word.startsWith('done')
  const ran = (status === 'done' && word === 'open') || isOther ? ` (last run: ${statusName(status)})` : ''
  return {
    text: `${symbolOf(meaning)} ${tableWord(word)}${ran}`,
    paint: (text) => inColourOf(meaning, text, paint),
  }
}

/** Done on the loop's branch is done, though not here yet. */
export function stateOf(change: Change): ReturnType<typeof stateNow> {
  const { status, loop_branch: branch, loop_stories_done: loopDone, stories_total: total, landed } = change
  if (landed !== undefined) return landedState(landed, change.warnings)
  if (status === 'done' && change.parked === undefined && branch !== undefined && loopDone === total)
    return doneState(change.warnings, `done on ${oneLine(branch)}`)
  const done = change.stop_reason === 'human' ? storiesDone(change) : change.stories_done
  return stateNow(change, { open: change.stories_open, done, total })
}

export function homeText(list: ChangeList, sheet: Sheet): string {
  const { paint } = sheet
  const steps = nextSteps(list)
  const width = Math.max(...steps.map(([command]) => widthOf(command)))
  const lines = [
    listText(list, sheet),
    '',
    ...steps.map(
      ([command, why]) =>
        `  ${paint.bold(command)}${' '.repeat(width - widthOf(command))}   ${paint.dim(why)}`,
    ),
  ]
  return lines.join('\n')
}

function nextSteps({ changes, checked_out: here }: ChangeList): readonly (readonly [string, string])[] {
  const isRunning = ({ status }: Change): boolean => status === 'running' || status === 'starting'
  const paused = changes.find((change) => change.waiting_for === 'pause')
  const running = changes.find((change) => isRunning(change) && change !== paused)
  const halted = changes.find(
    ({ status, parked }) =>
      parked === undefined && (status === 'stuck' || status === 'stalled' || status === 'stopped'),
  )
  const open = changes.find((change) => stateOf(change)[0] === 'open' && change.plan_on === undefined)
  // Its work is on the branch of its loop, here or elsewhere.
  const waiting = changes.find(
    (change) =>
      stateOf(change)[0].startsWith('done on ') ||
      (change.status === 'done' && !change.landed && !change.parked && here === `ralph/${change.name}`),
  )
  const steps: [string, string][] = []
  if (running) steps.push([`ralph status ${oneLine(running.name)} --watch`, 'see it work'])
  if (paused) steps.push([`ralph resume ${oneLine(paused.name)}`, 'end the pause'])
  if (halted) {
    const hasAgent = (halted.orphan_pids ?? []).length > 0
    if (hasAgent) steps.push([`ralph stop ${oneLine(halted.name)}`, 'end its agent'])
    steps.push([
      `ralph resume ${oneLine(halted.name)}`,
      hasAgent ? 'then continue' : 'continue where it stopped',
    ])
  }
  if (waiting)
    steps.push([`ralph finish ${oneLine(waiting.name)} --cleanup`, 'bring its work to your branch'])
  if (changes.some(({ parked }) => parked !== undefined))
    steps.push(['ralph queue', 'what is parked, and what to do'])
  if (changes.some(({ landed }) => landed?.is_pulled === false))
    steps.push(['ralph queue pull', 'update your branch to what has landed'])
  if (open) {
    steps.push([`ralph loop ${oneLine(open.name)} --dry-run`, 'see what it would do; changes nothing'])
    steps.push([`ralph loop ${oneLine(open.name)}`, 'run it'])
  }
  // Nothing is left to run or to bring: what its user does with it now.
  const done = changes.find((change) => ['done', 'doubt'].includes(stateOf(change)[1]))
  if (steps.length === 0 && done !== undefined) {
    const name = oneLine(done.name)
    steps.push([`ralph status ${name}`, 'where its work is, and what is next: push, pull request, archive'])
    steps.push([`ralph report ${name} --format md`, 'what was done, for the pull request'])
  }
  return [...steps, ['ralph --help', 'everything else']]
}
