// Turns one group of boxes into a story: nesting, bodies, sub-headings, and which tasks an agent may run.
import { indentOf } from './box.ts'
import type { Story, Task, TaskState } from './story.ts'
import type { Group } from './tasks-groups.ts'
import type { Line } from './tasks-lines.ts'
import { normalised, readState, readTaskName, withoutDoneMark } from './tasks-names.ts'

/** A box with all that is needed to find it again after the file has changed. */
export interface PlanBox {
  readonly task: Task
  /** Everything behind the box, id and all. */
  readonly description: string
  /** The file's own id, or ''. */
  readonly ownId: string
  readonly mark: string
  readonly storyId: string
  /** Normalised heading of its story: survives a renumbering of the ids. */
  readonly storyKey: string
}

interface OpenTask {
  line: Line
  description: string
  depth: number
  subheading: string
  body: string[]
}

export function readStory(
  file: string,
  group: Group,
  id: string,
  title: string,
): { story: Story; boxes: readonly PlanBox[] } {
  const { tasks: found, intro } = collect(group)
  const names = found.map((each) => readTaskName(each.description))
  const states = settleParents(found)
  const storyKey = normalised(withoutDoneMark(group.heading))
  const tasks = found.map((each, index): Task => {
    const ownId = names[index]?.id ?? ''
    return {
      id: ownId === '' ? `${id}#${index + 1}` : ownId,
      text: names[index]?.text ?? '',
      state: states[index] ?? 'phantom',
      line: each.line.number,
      file,
      depth: each.depth,
      body: each.body.join('\n').trimEnd(),
      subheading: each.subheading,
    }
  })
  const boxes = tasks.map((task, index) => ({
    task,
    description: found[index]?.description ?? '',
    ownId: names[index]?.id ?? '',
    mark: found[index]?.line.box?.mark ?? '',
    storyId: id,
    storyKey,
  }))
  return { story: { id, title, intro, tasks }, boxes }
}

function collect(group: Group): { tasks: OpenTask[]; intro: string } {
  const tasks: OpenTask[] = []
  const intro: string[] = []
  const parents: number[] = []
  let current: OpenTask | undefined
  let subheading = ''
  let pendingHeading = ''
  for (const line of [...group.boxes, ...group.prose].sort((a, b) => a.number - b.number)) {
    const isIndented = indentOf(line.text) > 0
    if (line.heading !== undefined) {
      subheading = line.heading.title
      pendingHeading = line.text.trim()
      parents.length = 0
      current = undefined
      continue
    }
    if (line.box !== undefined) {
      const { indent, text } = line.box
      while (!line.hidden && (parents.at(-1) ?? -1) >= indent) parents.pop()
      const task = { line, description: text, depth: parents.length, subheading, body: [] }
      tasks.push(task)
      if (!line.hidden) {
        parents.push(indent)
        current = task
        pendingHeading = ''
        continue
      }
    }
    if (current !== undefined && (isIndented || line.text.trim() === '')) current.body.push(line.text)
    else {
      current = undefined
      if (pendingHeading !== '' && line.text.trim() !== '') {
        intro.push(pendingHeading)
        pendingHeading = ''
      }
      intro.push(line.text)
    }
  }
  return { tasks, intro: intro.join('\n').trim() }
}

/**
 * A parent whose remaining children are a person's waits for that person too: an agent could neither finish nor tick it,
 * and a loop would run it for ever.
 */
function settleParents(tasks: readonly OpenTask[]): TaskState[] {
  const states = tasks.map(({ line, description }) =>
    readState(line.box?.mark ?? '', description, line.hidden),
  )
  for (let index = tasks.length - 1; index >= 0; index -= 1) {
    if (states[index] !== 'open') continue
    const below = descendants(tasks, index).map((child) => states[child])
    if (below.includes('human') && !below.includes('open')) states[index] = 'human'
  }
  return states
}

/** Indices of the boxes nested below one. */
export function descendants(tasks: readonly { readonly depth: number }[], parent: number): number[] {
  const depth = tasks[parent]?.depth ?? 0
  const found: number[] = []
  for (let index = parent + 1; index < tasks.length && (tasks[index]?.depth ?? 0) > depth; index += 1)
    found.push(index)
  return found
}
