// The part of the prompt that changes: where the plan stands, and what this iteration is asked to do.
import { fenced, headOf, inline } from './prompt-text.ts'
import { storyStatus, type Plan, type Story, type Task } from './story.ts'
import { handedTasks } from './tasks-locate.ts'

export interface StorySectionInput {
  readonly plan: Plan
  readonly story: Story
  readonly tasksPath: string
  readonly attempt: number
  readonly attempts: number
}

export function storySection(input: StorySectionInput): string {
  const { story, tasksPath } = input
  const asked = new Set(handedTasks(story))
  const later = story.tasks.filter((task) => task.state === 'open' && !asked.has(task))
  const parts = [
    outline(input),
    `## Your story: ${inline(story.id)} ${inline(story.title)}\n\nThis is attempt ${input.attempt} of ${input.attempts}.`,
  ]
  if (story.intro !== '') parts.push(fenced(headOf(story.intro, 4_000, tasksPath), 'markdown'))
  if (asked.size === 0) parts.push('No task of this story is open for you.')
  else parts.push(`Open tasks, to be done now:\n${fenced(openTasks(story, asked, tasksPath), 'markdown')}`)
  if (later.length > 0) {
    const intro = `This story is large, so it is done in parts. These ${later.length} tasks come in a later iteration; do not start them now:`
    parts.push(`${intro}\n${fenced(titles(later, tasksPath))}`)
  }
  parts.push(...listed(story, 'done', 'Already done:', tasksPath))
  parts.push(...listed(story, 'human', 'For a person. Do not do these, and do not tick them:', tasksPath))
  parts.push(...listed(story, 'deferred', 'Put off. Do not do these, and do not tick them:', tasksPath))
  return parts.join('\n\n')
}

/** Every story with its count, so that the agent knows what is not its business. */
function outline({ plan, story, tasksPath }: StorySectionInput): string {
  const lines = plan.stories.map((each) => {
    const done = each.tasks.filter((task) => task.state === 'done').length
    const here = each.id === story.id ? ' <- your story' : ''
    return `${inline(each.id, 40)} ${inline(each.title, 100)}: ${done} of ${each.tasks.length} done (${storyStatus(each)})${here}`
  })
  const notes = plan.notes.map((note) => `${note.title}\n${note.text}`).join('\n\n')
  const shownNotes =
    notes === '' ? '' : `\n\nNotes in it:\n${fenced(headOf(notes, 4_000, tasksPath), 'markdown')}`
  return `## The plan (${inline(tasksPath, 300)})\n\n${fenced(headOf(lines.join('\n'), 6_000, tasksPath))}${shownNotes}`
}

/** Tasks that were asked for, with their bodies; a done parent of an open task is shown for its place. */
function openTasks(story: Story, asked: ReadonlySet<Task>, tasksPath: string): string {
  const lines: string[] = []
  let subheading = ''
  for (const task of story.tasks) {
    if (!asked.has(task)) continue
    if (task.subheading !== subheading && task.subheading !== '') lines.push('', `### ${task.subheading}`, '')
    subheading = task.subheading
    const indent = '  '.repeat(Math.min(task.depth, 8))
    const id = task.id.includes('#') ? '' : `${task.id} `
    const where = `${tasksPath}, line ${task.line}`
    lines.push(`${indent}- [ ] ${headOf(`${id}${task.text}`, 8_000, where)}`)
    if (task.body !== '') lines.push(headOf(task.body, 12_000, where))
  }
  return headOf(lines.join('\n').trim(), 24_000, tasksPath)
}

function listed(story: Story, state: Task['state'], intro: string, tasksPath: string): string[] {
  const tasks = story.tasks.filter((task) => task.state === state)
  return tasks.length === 0 ? [] : [`${intro}\n${fenced(titles(tasks, tasksPath))}`]
}

function titles(tasks: readonly Task[], tasksPath: string): string {
  const lines = tasks.map(
    (task) => `- ${task.id.includes('#') ? '' : `${task.id} `}${inline(task.text, 120)}`,
  )
  return headOf(lines.join('\n'), 3_000, tasksPath)
}
