// Finds a task again in a plan that may have been edited since: by line and text, by text, by id; never by line alone.
import type { Story, Task } from './story.ts'
import { normalised } from './tasks-names.ts'
import type { PlanBox } from './tasks-story.ts'

/** How many open root tasks an agent is given at a time: splitting the story itself would change ids while boxes get ticked. */
const openRootsPerIteration = 8

export type Located =
  | { readonly kind: 'found'; readonly box: PlanBox }
  | { readonly kind: 'missing' }
  /** Several boxes could be it: who changes one of them would guess. */
  | { readonly kind: 'ambiguous'; readonly lines: readonly number[] }

/** Made once per plan: a plan may have thousands of boxes, even of equal ones, and each of them is looked up. */
export interface BoxIndex {
  readonly byText: ReadonlyMap<string, readonly PlanBox[]>
  readonly byStory: ReadonlyMap<string, readonly PlanBox[]>
  readonly byId: ReadonlyMap<string, readonly PlanBox[]>
  readonly byLine: ReadonlyMap<string, readonly PlanBox[]>
  /** Which of the equal boxes of its story a box is. */
  readonly turn: ReadonlyMap<PlanBox, number>
}

/** A plan that is parsed once is indexed once. */
export function indexBoxes(boxes: readonly PlanBox[]): BoxIndex {
  const known = indexes.get(boxes) ?? indexOf(boxes)
  indexes.set(boxes, known)
  return known
}

const indexes = new WeakMap<readonly PlanBox[], BoxIndex>()

function indexOf(boxes: readonly PlanBox[]): BoxIndex {
  const byStory = groupedBy(boxes, storyKey)
  const turn = new Map(
    [...byStory.values()].flatMap((twins) => twins.map((box, index) => [box, index] as const)),
  )
  return {
    byText: groupedBy(boxes, textKey),
    byStory,
    byId: groupedBy(boxes, idKey),
    byLine: groupedBy(boxes, lineKey),
    turn,
  }
}

/** `from` is the plan that `wanted` was read in, `into` the one it is looked for in. */
export function locate(wanted: PlanBox, from: BoxIndex, into: BoxIndex): Located {
  const key = storyKey(wanted)
  const sameText = into.byText.get(textKey(wanted)) ?? []
  const sameStory = into.byStory.get(key) ?? []
  const sameLine = (into.byLine.get(lineKey(wanted)) ?? []).filter((box) => storyKey(box) === key)
  // The same words several times in one story: as long as none came or went, their order tells them apart.
  const turn = from.turn.get(wanted) ?? 0
  const sameTurn = from.byStory.get(key)?.length === sameStory.length ? sameStory.slice(turn, turn + 1) : []
  const isDotted = wanted.ownId.includes('.')
  const sameId = isDotted && sameText.length === 0 ? (into.byId.get(idKey(wanted)) ?? []) : []
  for (const candidates of [sameTurn, sameLine, sameStory, sameText, sameId]) {
    const [box] = candidates
    if (candidates.length === 1 && box !== undefined) return { kind: 'found', box }
    if (candidates.length > 1) {
      return { kind: 'ambiguous', lines: candidates.slice(0, 10).map((each) => each.task.line) }
    }
  }
  return { kind: 'missing' }
}

function groupedBy(boxes: readonly PlanBox[], key: (box: PlanBox) => string): Map<string, PlanBox[]> {
  const groups = new Map<string, PlanBox[]>()
  for (const box of boxes) {
    const name = key(box)
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [box])
    else group.push(box)
  }
  return groups
}

function textKey(box: PlanBox): string {
  return `${box.task.file}\n${normalised(box.description)}`
}

function storyKey(box: PlanBox): string {
  return `${box.storyKey}\n${textKey(box)}`
}

function lineKey(box: PlanBox): string {
  return `${box.task.file}\n${box.task.line}`
}

function idKey(box: PlanBox): string {
  return `${box.task.file}\n${box.ownId}`
}

/** The open tasks that the next iteration is asked to do: the first open root tasks of the story, each with its subtree. */
export function handedTasks(story: Story): readonly Task[] {
  const handed: Task[] = []
  let units = 0
  let unit: Task[] = []
  const close = (): void => {
    const open = unit.filter((task) => task.state === 'open')
    if (open.length > 0 && units < openRootsPerIteration) {
      units += 1
      handed.push(...open)
    }
    unit = []
  }
  for (const task of story.tasks) {
    if (task.depth === 0) close()
    unit.push(task)
  }
  close()
  return handed
}
