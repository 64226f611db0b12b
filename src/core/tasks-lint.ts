// What is odd in a plan and worth a word before a run; none of it stops a loop.
import type { Lint, Story, Task } from './story.ts'
import { descendants, type PlanBox } from './tasks-story.ts'

/** More boxes than this in one story: the agent will get it in parts. */
const largeStory = 12

/** `numbers` are the headings' own, '' where there is none; parallel to `stories`. */
export function lintPlan(
  stories: readonly Story[],
  boxes: readonly PlanBox[],
  numbers: readonly string[],
): readonly Lint[] {
  const numberOf = new Map(stories.map((story, index) => [story.id, numbers[index] ?? '']))
  const tasks = boxes.map((box) => box.task)
  return [
    ...boxes.flatMap((box, index) => lintBox(box, index, tasks, numberOf.get(box.storyId) ?? '')),
    ...duplicateIds(boxes),
    ...stories.flatMap(lintSize),
  ]
}

function lintBox(box: PlanBox, index: number, tasks: readonly Task[], storyNumber: string): Lint[] {
  const { task, ownId } = box
  const at = { file: task.file, line: task.line }
  if (task.state === 'phantom') {
    const why = box.description === '' ? 'without a text' : 'in a fence or a comment'
    return [{ ...at, message: `this box is ${why}: OpenSpec counts it, but there is nothing to run` }]
  }
  const found: Lint[] = []
  // Not run is never silent: a `[-]` that meant "in progress" to its author would be left out unseen.
  if (task.state === 'human')
    found.push({ ...at, message: `task ${task.id} is for a person; no agent gets it` })
  if (task.state === 'deferred')
    found.push({ ...at, message: `task ${task.id} is put off; no agent gets it` })
  const group = /^(\d+)\.\d/.exec(ownId)?.[1]
  if (group !== undefined && /^\d+$/.test(storyNumber) && group !== storyNumber) {
    found.push({ ...at, message: `task ${ownId} is under group ${storyNumber}` })
  }
  if (task.state === 'done' && descendants(tasks, index).some((child) => tasks[child]?.state === 'open')) {
    found.push({ ...at, message: `task ${task.id} is ticked, but a task below it is open` })
  }
  return found
}

function duplicateIds(boxes: readonly PlanBox[]): Lint[] {
  const first = new Map<string, PlanBox>()
  const found: Lint[] = []
  for (const box of boxes) {
    if (box.ownId === '') continue
    const key = `${box.task.file}\n${box.ownId}`
    const earlier = first.get(key)
    if (earlier === undefined) first.set(key, box)
    else {
      const message = `task id ${box.ownId} is already used in line ${earlier.task.line}`
      found.push({ file: box.task.file, line: box.task.line, message })
    }
  }
  return found
}

function lintSize(story: Story): Lint[] {
  const [first] = story.tasks
  if (story.tasks.length <= largeStory || first === undefined) return []
  const message = `story ${story.id} has ${story.tasks.length} boxes: an agent gets a part of them at a time`
  return [{ file: first.file, line: first.line, message }]
}
