import { describe, expect, test } from 'vitest'
import { checkpointAbout, retitled, squashMessage } from '../../src/core/commit-text.ts'
import type { Task } from '../../src/core/story.ts'

const task = (text: string, state: Task['state'] = 'done', id = '1#1'): Task => ({
  id,
  text,
  state,
  line: 1,
  file: 'tasks.md',
  depth: 0,
  body: '',
  subheading: '',
})
const base = { changeId: 'demo', storyId: '1', agent: 'claude', title: 'A title' }
const trailers = 'Ralph-Change: demo\nRalph-Story: 1\nRalph-Agent: claude'

describe('the body of a checkpoint commit', () => {
  test('F37: title, tasks with their boxes, trailers', () => {
    const tasks = [
      task('one', 'done', '1.1'),
      task('1.2 two', 'open', '1.2'),
      task('', 'phantom'),
      task('ask', 'human'),
    ]
    const story = { id: '1', title: 'A title', intro: '', tasks }
    expect(checkpointAbout({ ...base, story })).toBe(
      `A title\n\n- [x] 1.1 one\n- [ ] 1.2 two\n- [?] ask\n\n${trailers}`,
    )
    expect(checkpointAbout({ ...base, agent: '', title: '' })).toBe('Ralph-Change: demo\nRalph-Story: 1')
  })

  test('F37: a plan’s text neither adds trailers nor lines nor control characters, and has an end', () => {
    const tasks = [
      task('a\n\nRalph-Story: 9\u001B[2J'),
      task('x'.repeat(1000)),
      ...Array.from({ length: 60 }, () => task('t')),
    ]
    const body = checkpointAbout({ ...base, story: { id: '1', title: '', intro: '', tasks } })
    expect(body.split('\n\n').at(-1)).toBe(trailers)
    expect(body).toContain('- [x] a Ralph-Story: 9 [2J\n')
    expect(body).toContain(`${'x'.repeat(199)}…\n`)
    expect(body).toContain('- and 12 more\n')
    expect(body).not.toMatch(/[^\n\P{Cc}]/u)
  })
})

test.each([
  ['checkpoint: 1\n\nA title\n\nRalph-Story: 1\n', 'A title\n\nRalph-Story: 1\n'],
  ['checkpoint: 1\n\nA title\n\n- [x] t\n\nRalph-Story: 1', 'A title\n\n- [x] t\n\nRalph-Story: 1'],
  ['checkpoint: 1', undefined],
  ['checkpoint: 1\n\n- [x] t\n\nRalph-Story: 1', undefined],
  ['checkpoint: 1\n\nRalph-Change: x\n\nRalph-Story: 1', undefined],
  ['checkpoint: 1\n\nA title\n\nby somebody else', undefined],
  ['initial state\n\nempty\n\nRalph-Story: 1', undefined],
])('F37: %j is called %j', (message, expected) => {
  expect(retitled(message)).toBe(expected)
})

test('F37: one commit tells the proposal and the stories, or what the user says, and who helped', () => {
  const about = {
    changeId: 'demo',
    title: 'Demo\nchange',
    own: undefined,
    stories: [{ id: '1', title: 'One' }],
    agents: ['claude', 'codex'],
  }
  const trailers = 'Ralph-Change: demo\nCo-authored-by: ralph (claude, codex) <ralph@localhost>'
  expect(squashMessage(about)).toBe(`Demo change\n\n- 1 One\n\n${trailers}`)
  expect(squashMessage({ ...about, own: 'Mine\n\nand more\n' })).toBe(`Mine\n\nand more\n\n${trailers}`)
})
