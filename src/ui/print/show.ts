// One change on the screen: stories with their boxes, the scenarios they must meet, and what is odd in the plan.
import type { ChangeDetail } from '../../core/change.ts'
import type { TaskState } from '../../core/story.ts'
import { storyName } from './describe.ts'
import { entryLines } from './layout.ts'
import type { Sheet } from './layout.ts'
import { oneLine, plural } from './text.ts'

const boxes: Record<TaskState, string> = {
  open: '[ ]',
  done: '[x]',
  human: '[?]',
  deferred: '[-]',
  phantom: '[ ]',
}

export function showText(change: ChangeDetail, sheet: Sheet): string {
  const { paint } = sheet
  const title = change.title === change.name ? '' : `  ${oneLine(change.title)}`
  const lines = [...hung(sheet, { text: oneLine(change.name), tail: title, style: paint.bold })]
  if (change.stories.length === 0) lines.push(...emptyLines(change))
  for (const story of change.stories) {
    const done = story.tasks.filter((task) => task.state === 'done').length
    const count = ` ${String(done)}/${String(story.tasks.length)}`
    const isUsual = story.status === 'open' || story.status === 'done'
    const note = isUsual ? '' : ` ${storyNotes[story.status]}`
    const text = storyName(story.id, story.title)
    const aside = (tail: string): string =>
      paint.dim(count) + (note === '' ? '' : paint.yellow(tail.slice(count.length)))
    lines.push('', ...hung(sheet, { text, tail: count + note, style: paint.bold, aside }))
    for (const task of story.tasks) {
      const box = task.state === 'done' ? paint.green(boxes.done) : boxes[task.state]
      const tail = task.state === 'phantom' ? ' (not run: in a comment or a code block)' : ''
      const named = taskName(task.id, task.text)
      lines.push(...hung(sheet, { lead: `  ${box} `, indent: 6, text: named, tail, aside: paint.dim }))
    }
  }
  if (change.scenarios.length > 0) lines.push('', paint.bold(plural(change.scenarios.length, 'scenario')))
  for (const { capability, requirement, name, steps } of change.scenarios) {
    const tail = ` (${oneLine(capability)}: ${oneLine(requirement)})`
    lines.push(...hung(sheet, { indent: 2, text: oneLine(name), tail, aside: paint.dim }))
    for (const step of steps) lines.push(...hung(sheet, { indent: 4, text: oneLine(step) }))
  }
  const lints = change.lints ?? []
  if (lints.length > 0) lines.push('', paint.bold('worth knowing before a run'))
  for (const lint of lints)
    lines.push(...hung(sheet, { indent: 2, text: oneLine(lint), style: paint.yellow }))
  return lines.join('\n')
}

/** What is wrapped hangs below the text; what is said aside keeps its colour where it is on one line. */
function hung(
  sheet: Sheet,
  {
    indent = 0,
    lead = ' '.repeat(indent),
    text,
    tail = '',
    style = (part) => part,
    aside = (part) => part,
  }: {
    readonly indent?: number
    readonly lead?: string
    readonly text: string
    readonly tail?: string
    readonly style?: (part: string) => string
    readonly aside?: (part: string) => string
  },
): readonly string[] {
  const painted = (part: string): string =>
    tail !== '' && part.endsWith(tail) ? style(part.slice(0, -tail.length)) + aside(tail) : style(part)
  const [first = '', ...rest] = entryLines({ indent, text: text + tail, style: painted }, sheet)
  return [lead + first.slice(indent), ...rest]
}

function emptyLines({ name }: ChangeDetail): readonly string[] {
  return [
    'It has no tasks yet. Write them (/opsx:propose in your agent, or by hand) into',
    `openspec/changes/${oneLine(name)}/tasks.md:`,
    '  ## 1. First story',
    '  - [ ] 1.1 a task',
  ]
}

/** An id that ralph made up (`2#1`) says nothing; one that the text repeats is said once. */
function taskName(id: string, text: string): string {
  return oneLine(id.includes('#') || text.startsWith(id) ? text : `${id} ${text}`)
}

const storyNotes = { human: 'only a person can do it', deferred: 'put off' }
