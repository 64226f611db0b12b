// The built-in demo: a scripted program that edits files like an agent would, without a key, a network or a model.
import type { AgentKind } from './kind.ts'

export const demo: AgentKind = {
  speaks: 'text',
  keys: [],
  launch: ({ prompt }) => ({
    file: process.execPath,
    args: ['--input-type=module', '-e', demoProgram],
    env: {},
    input: prompt,
  }),
  listen: () => ({ hear: () => [] }),
}

/**
 * Writes one note per open task of its story, in its change's own folder: several changes must land without a conflict.
 * Gives up once, on the first attempt at the second story, so that a retry is seen.
 */
const demoProgram = `
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

const { RALPH_CHANGE: change = 'change', RALPH_STORY: storyId = '', RALPH_ATTEMPT: attempt = '1' } = process.env
process.stdin.resume()
for await (const _ of process.stdin);

const file = ['openspec/changes/' + change + '/tasks.md', 'tasks.md'].find((path) => existsSync(path))
const stories = []
for (const line of file === undefined ? [] : readFileSync(file, 'utf8').split(/\\r?\\n/)) {
  const heading = /^#{1,6}\\s+(.*)$/.exec(line)
  if (heading) stories.push({ title: heading[1], tasks: [] })
  const box = /^\\s*(?:[-*+]|\\d+[.)])\\s+\\[ \\]\\s+(.*)$/.exec(line)
  const done = /^\\s*(?:[-*+]|\\d+[.)])\\s+\\[[^ ]\\]\\s/.test(line)
  if (box || done) {
    if (stories.length === 0) stories.push({ title: 'Tasks', tasks: [] })
    stories.at(-1).hasBoxes = true
    if (box) stories.at(-1).tasks.push(box[1])
  }
}
const groups = stories.filter((story) => story.hasBoxes)
const byNumber = groups.findIndex((story) => story.title.replace(/[.):\\s].*$/s, '') === storyId)
const index = byNumber === -1 ? Number(storyId) - 1 : byNumber
const story = groups[index] ?? { title: 'the task', tasks: ['the task'] }

console.log('Demo agent, no model: ' + story.title)
const folder = 'ralph-demo/' + change
mkdirSync(folder, { recursive: true })
const note = folder + '/story-' + (storyId.replace(/[^\\w.-]/g, '_') || '1') + '.md'
let text = '# ' + story.title + '\\n'
for (const task of story.tasks) {
  await delay(Math.min(400, 1500 / story.tasks.length))
  text += '\\n- ' + task + '\\n'
  writeFileSync(note, text)
  console.log('Wrote ' + note + ': ' + task)
}
const givesUp = index === 1 && attempt === '1'
if (givesUp) console.log('I stop here once, so that you see a retry.')
await delay(200)
if (givesUp) {
  console.log('<promise>FAILED: the demo agent gives up once, on purpose; the next attempt succeeds</promise>')
} else {
  console.log('<promise>COMPLETE</promise>')
}
`
