// After an attempt: which of the agent's edits to the tasks files stand (its own ticks, added lines) and which go back.
import { isDoneMark } from './box.ts'
import { handedTasks, indexBoxes, locate, type BoxIndex } from './tasks-locate.ts'
import { mergeLines, type MergedLine } from './tasks-merge.ts'
import { descendants, type PlanBox } from './tasks-story.ts'
import { parseTasks, type ReadPlan, type TasksFile } from './tasks.ts'

export interface TasksJudgement {
  /** Per file of `before`, the lines it shall have. */
  readonly merged: ReadonlyMap<string, readonly MergedLine[]>
  readonly putBack: readonly string[]
  /** Tasks that the agent was asked to do: ticked / still open; and open ones of the story that it was not asked for. */
  readonly ticked: number
  readonly stillOpen: number
  readonly notAsked: number
}

/** `storyId` undefined (a manual loop): ticks anywhere are the agent's business. Empty (a gate): no tick is anybody's. */
export function judgeTasks(
  before: readonly TasksFile[],
  after: readonly TasksFile[],
  storyId: string | undefined,
): TasksJudgement {
  const planBefore = parseTasks(before)
  const planAfter = parseTasks(after)
  const [from, into] = [indexBoxes(planBefore.boxes), indexBoxes(planAfter.boxes)]
  const putBack: string[] = []
  const ticks = new Set<PlanBox>()
  const merged = new Map<string, readonly MergedLine[]>()
  const isAllowed = (box: PlanBox): boolean =>
    box.task.state === 'open' && (storyId === undefined || box.storyId === storyId)
  for (const { file, text } of before) {
    const newText = after.find((each) => each.file === file)?.text ?? ''
    const boxes = planBefore.boxes.filter((box) => box.task.file === file)
    const paired = pairBoxes(boxes, planAfter, text, newText, from, into)
    for (const box of boxes) {
      const now = paired.get(box)
      if (now !== undefined && isAllowed(box) && isDoneMark(now.mark)) ticks.add(box)
      else putBack.push(...complaint(box, now, storyId))
      if (now !== undefined && !isSameText(box, now)) putBack.push(`${nameOf(box)} was reworded; put back`)
    }
  }
  tickParents(planBefore, ticks, isAllowed)
  for (const { file, text } of before) {
    const newText = after.find((each) => each.file === file)?.text ?? ''
    const lines = new Set([...ticks].filter((box) => box.task.file === file).map((box) => box.task.line))
    const merge = mergeLines(file, text, newText, lines)
    merged.set(file, merge.lines)
    putBack.push(...merge.putBack)
  }
  return { merged, putBack: shortened(putBack), ...count(planBefore, ticks, storyId) }
}

/** Where each box is now: by its unchanged line, else by its text or id. */
function pairBoxes(
  boxes: readonly PlanBox[],
  planAfter: ReadPlan,
  text: string,
  newText: string,
  from: BoxIndex,
  into: BoxIndex,
): Map<PlanBox, PlanBox> {
  const pairs = new Map<PlanBox, PlanBox>()
  const isUntouched = text === newText
  const byLine = new Map(planAfter.boxes.map((box) => [`${box.task.file}\n${box.task.line}`, box]))
  for (const box of boxes) {
    const same = isUntouched ? byLine.get(`${box.task.file}\n${box.task.line}`) : undefined
    const located = same === undefined ? locate(box, from, into) : { kind: 'found' as const, box: same }
    if (located.kind === 'found') pairs.set(box, located.box)
  }
  return pairs
}

function complaint(box: PlanBox, now: PlanBox | undefined, storyId: string | undefined): string[] {
  if (now === undefined) return [`${nameOf(box)} was removed or reworded; put back`]
  const [wasDone, isDone] = [isDoneMark(box.mark), isDoneMark(now.mark)]
  if (wasDone && !isDone) return [`${nameOf(box)} was unticked; ticked again`]
  if (!wasDone && isDone) {
    if (storyId === '') return [`${nameOf(box)} was ticked; unticked`]
    if (storyId !== undefined && box.storyId !== storyId) {
      return [`${nameOf(box)} belongs to another story and was ticked; unticked`]
    }
    const why = box.task.state === 'human' ? 'is for a person' : 'is not to be done'
    return [`${nameOf(box)} ${why} and was ticked; unticked`]
  }
  if (wasDone || box.mark === now.mark) return []
  return [`the box of ${nameOf(box)} was changed to [${now.mark === '' ? ' ' : now.mark}]; put back`]
}

function isSameText(box: PlanBox, now: PlanBox): boolean {
  return box.description === now.description
}

function nameOf({ task, description }: PlanBox): string {
  const words = description.length > 60 ? `${description.slice(0, 60)}…` : description
  return `${task.file}:${task.line} "${words}"`
}

/** An agent that ticks all children has done the parent: its box is only their sum. */
function tickParents(plan: ReadPlan, ticks: Set<PlanBox>, isAllowed: (box: PlanBox) => boolean): void {
  const tasks = plan.boxes.map((box) => box.task)
  for (let index = plan.boxes.length - 1; index >= 0; index -= 1) {
    const box = plan.boxes[index]
    if (box === undefined || !isAllowed(box) || ticks.has(box)) continue
    const below = descendants(tasks, index).flatMap((child) => plan.boxes[child] ?? [])
    const isSettled = (child: PlanBox): boolean =>
      ticks.has(child) || !['open', 'human'].includes(child.task.state)
    if (below.some((child) => ticks.has(child)) && below.every(isSettled)) ticks.add(box)
  }
}

function count(
  plan: ReadPlan,
  ticks: ReadonlySet<PlanBox>,
  storyId: string | undefined,
): Pick<TasksJudgement, 'ticked' | 'stillOpen' | 'notAsked'> {
  const story = plan.stories.find((each) => each.id === storyId)
  if (story === undefined) return { ticked: ticks.size, stillOpen: 0, notAsked: 0 }
  const asked = new Set(handedTasks(story))
  const ticked = [...ticks].filter((box) => asked.has(box.task)).length
  // What the agent did beyond its part is done as well; it is only not missed.
  const beyond = ticks.size - ticked
  const open = story.tasks.filter((task) => task.state === 'open').length
  return { ticked: ticks.size, stillOpen: asked.size - ticked, notAsked: open - asked.size - beyond }
}

/** A rewritten file must not bury the report under a thousand sentences. */
function shortened(sentences: readonly string[]): readonly string[] {
  const shown = 20
  if (sentences.length <= shown) return sentences
  return [...sentences.slice(0, shown), `${sentences.length - shown} more edits of the plan were put back`]
}
