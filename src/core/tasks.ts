// Parses tasks.md, any shape of it, into the plan: stories, tasks, notes and lints, with OpenSpec's own counts.
import { isDoneMark } from './box.ts'
import type { Lint, Plan } from './story.ts'
import { lintPlan } from './tasks-lint.ts'
import { readLines } from './tasks-lines.ts'
import { readStoryName, withoutDoneMark } from './tasks-names.ts'
import { groupBoxes, type Group } from './tasks-groups.ts'
import { readStory, type PlanBox } from './tasks-story.ts'

export interface TasksFile {
  /** Relative to the change folder. */
  readonly file: string
  readonly text: string
}

export interface ReadPlan extends Plan {
  /** Every box of every file, in order. */
  readonly boxes: readonly PlanBox[]
}

interface FileStory {
  readonly file: string
  readonly group: Group
  readonly number: string
  readonly title: string
}

/** What was asked last is asked again: one story reads its plan before and after, ticks it, and reads it once more. */
export function parseTasks(files: readonly TasksFile[]): ReadPlan {
  const known = recent.find((each) => isSame(each.files, files))
  if (known !== undefined) return known.plan
  const plan = readPlan(files)
  recent.unshift({ files: files.map(({ file, text }) => ({ file, text })), plan })
  recent.length = Math.min(recent.length, 3)
  return plan
}

const recent: { readonly files: readonly TasksFile[]; readonly plan: ReadPlan }[] = []

function isSame(one: readonly TasksFile[], other: readonly TasksFile[]): boolean {
  return (
    one.length === other.length &&
    one.every(({ file, text }, at) => file === other[at]?.file && text === other[at]?.text)
  )
}

function readPlan(files: readonly TasksFile[]): ReadPlan {
  const stories: FileStory[] = []
  const notes: { title: string; text: string }[] = []
  const lints: Lint[] = []
  for (const { file, text } of files) {
    const { lines, unclosedFences } = readLines(text)
    const found = groupBoxes(lines)
    for (const group of found.groups) stories.push({ file, group, ...readStoryName(group.heading) })
    notes.push(...found.notes)
    for (const line of unclosedFences)
      lints.push({ file, line, message: 'this fence never closes; it was read as text' })
    // Markdown takes it for text, its author for a story.
    for (const { number: line, text: read } of lines.filter(({ hidden }) => !hidden))
      if (/^#{2,6}[^\s#]/.test(read))
        lints.push({ file, line, message: `"${read.slice(0, 40)}" is no heading: write a blank after the #` })
    if (found.groups.length === 0 && lines.some((line) => /^\s*(?:[-*+]|\d+[.)])\s+\S/.test(line.text))) {
      lints.push({ file, line: 1, message: 'there are lists but no boxes: write each task as `- [ ] text`' })
    }
  }
  const ids = storyIds(stories)
  const isShared = (one: FileStory): boolean =>
    one.number !== '' && stories.some((other) => other !== one && other.number === one.number)
  const read = stories.map((story, index) => {
    const id = ids[index]
    const folder = files.length > 1 ? folderOf(story.file) : ''
    const ordinal = String(index + 1)
    // Beside an ordinal the heading keeps its own number, or `3. C` would be shown as story 2 without a trace of the 3; one that
    // several have says nothing.
    const isNamed = id !== undefined || story.number === ordinal || isShared(story)
    const title = isNamed ? story.title : withoutDoneMark(story.group.heading)
    return readStory(story.file, story.group, id ?? ordinal, folder + (title === '' ? 'All tasks' : title))
  })
  const boxes = read.flatMap((each) => each.boxes)
  const named = read.map((each) => each.story)
  const numbers = stories.map((story) => story.number)
  return {
    stories: named,
    notes,
    tasksDone: boxes.filter((box) => isDoneMark(box.mark)).length,
    tasksTotal: boxes.length,
    lints: [...lints, ...lintPlan(named, boxes, numbers)],
    boxes,
  }
}

/** The headings' numbers if all are there and differ; undefined stands for "use the ordinal". */
function storyIds(stories: readonly FileStory[]): readonly (string | undefined)[] {
  const numbers = stories.map(({ number, file }) => (number === '' ? '' : folderOf(file) + number))
  const areUsable = !numbers.includes('') && new Set(numbers).size === numbers.length
  return areUsable ? numbers : stories.map(() => undefined)
}

function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf('/') + 1)
}
