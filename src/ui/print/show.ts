// One change on the screen: stories with their boxes, the scenarios they must meet, and what is odd in the plan.
import type { ChangeDetail } from '../../core/change.ts'
import type { TaskState } from '../../core/story.ts'
import type { Paint } from '../io.ts'
import { storyName } from './describe.ts'
import { oneLine, plural } from './text.ts'

const boxes: Record<TaskState, string> = {
  open: '[ ]',
  done: '[x]',
  human: '[?]',
  deferred: '[-]',
  phantom: '[ ]',
}

export function showText(change: ChangeDetail, paint: Paint): string {
  const title = change.title === change.name ? '' : `  ${oneLine(change.title)}`
  const lines = [`${paint.bold(oneLine(change.name))}${title}`]
  if (change.stories.length === 0) lines.push(...emptyLines(change))
  for (const story of change.stories) {
    const done = story.tasks.filter((task) => task.state === 'done').length
    const note =
      story.status === 'open' || story.status === 'done' ? '' : ` ${paint.yellow(storyNotes[story.status])}`
    lines.push(
      '',
      `${paint.bold(storyName(story.id, story.title))} ${paint.dim(`${String(done)}/${String(story.tasks.length)}`)}${note}`,
    )
    for (const task of story.tasks) {
      const box = task.state === 'done' ? paint.green(boxes.done) : boxes[task.state]
      const remark = task.state === 'phantom' ? paint.dim(' (not run: in a comment or a code block)') : ''
      lines.push(`  ${box} ${taskName(task.id, task.text)}${remark}`)
    }
  }
  if (change.scenarios.length > 0) lines.push('', paint.bold(plural(change.scenarios.length, 'scenario')))
  for (const { capability, requirement, name, steps } of change.scenarios) {
    lines.push(`  ${oneLine(name)} ${paint.dim(`(${oneLine(capability)}: ${oneLine(requirement)})`)}`)
    for (const step of steps) lines.push(`    ${oneLine(step)}`)
  }
  const lints = change.lints ?? []
  if (lints.length > 0) lines.push('', paint.bold('worth knowing before a run'))
  for (const lint of lints) lines.push(`  ${paint.yellow(oneLine(lint))}`)
  return lines.join('\n')
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
