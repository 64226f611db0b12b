// What a commit of ralph's says to people: the story, its tasks, and trailers for programs.
import type { Story, Task } from './story.ts'

/** The text below the subject of a checkpoint. */
export function checkpointAbout(about: {
  readonly changeId: string
  readonly storyId: string
  readonly agent: string
  /** Absent where the plan could not be read, and in a manual loop. */
  readonly story?: Story | undefined
  readonly title: string
}): string {
  const { changeId, storyId, agent, story, title } = about
  const tasks = (story?.tasks ?? []).filter(({ state }) => state !== 'phantom')
  const lines = tasks.slice(0, mostTasks).map((task) => `- [${boxes[task.state]}] ${inLine(named(task))}`)
  if (tasks.length > mostTasks) lines.push(`- and ${tasks.length - mostTasks} more`)
  const trailers = [
    `Ralph-Change: ${inLine(changeId)}`,
    `Ralph-Story: ${inLine(storyId)}`,
    ...(agent === '' ? [] : [`Ralph-Agent: ${inLine(agent)}`]),
  ]
  return [inLine(title), lines.join('\n'), trailers.join('\n')].filter((part) => part !== '').join('\n\n')
}

/** The message with the story's title as its subject; undefined where it is no checkpoint that has one. */
export function retitled(message: string): string | undefined {
  const [, title = '', rest = ''] = /^checkpoint: .+\n\n(.+)\n\n([^]*)$/.exec(message) ?? []
  const isTitle = title !== '' && !/^(- |Ralph-\w+: )/.test(title) && /^Ralph-Story: /m.test(rest)
  return isTitle ? `${title}\n\n${rest}` : undefined
}

/** Of the one commit that a whole run becomes. */
export function squashMessage(about: {
  readonly changeId: string
  /** The proposal's. */
  readonly title: string
  /** Instead of all that: the user's own. */
  readonly own: string | undefined
  readonly stories: readonly { readonly id: string; readonly title: string }[]
  readonly agents: readonly string[]
}): string {
  const { changeId, title, own, stories, agents } = about
  const listed = stories.map((story) => `- ${inLine(`${story.id} ${story.title}`)}`).join('\n')
  const written = own === undefined ? [inLine(title), listed] : [own.trim()]
  // What `command` is nobody else knows.
  const known = agents.filter((agent) => agent !== 'command')
  const by = known.length === 0 ? 'ralph' : `ralph (${known.map(inLine).join(', ')})`
  const trailers = [`Ralph-Change: ${inLine(changeId)}`, `Co-authored-by: ${by} <ralph@localhost>`]
  return [...written, trailers.join('\n')].filter((part) => part !== '').join('\n\n')
}

const mostTasks = 50
const boxes = { done: 'x', open: ' ', human: '?', deferred: '-', phantom: ' ' } as const

/** With its id, unless that is made up. */
function named({ id, text }: Task): string {
  return id.includes('#') || text.startsWith(id) ? text : `${id} ${text}`
}

/** Of a plan's text: on one line, without control characters, and not without end. */
function inLine(text: string): string {
  const line = text
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
  return line.length > 200 ? `${line.slice(0, 199).trimEnd()}…` : line
}
