// The shapes of tasks.md that people write, and what becomes of them.
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { storyStatus } from '../../src/core/story.ts'
import { parseTasks, type ReadPlan } from '../../src/core/tasks.ts'

const fixtures = new URL('../fixtures/tasks/', import.meta.url)
const parse = (text: string): ReadPlan => parseTasks([{ file: 'tasks.md', text }])
const fixture = (name: string): ReadPlan => parse(readFileSync(new URL(name, fixtures), 'utf8'))
const shape = (plan: ReadPlan): string[] =>
  plan.stories.map((story) => `${story.id} ${story.title}: ${story.tasks.map((task) => task.id).join(' ')}`)
const states = (plan: ReadPlan): Record<string, string> =>
  Object.fromEntries(plan.boxes.map(({ task }) => [task.id, task.state]))

describe('stories', () => {
  test.each([
    ['annotated-groups.md', ['1 Foundation (sequential): 1.1', '2 API (parallel, depends: 1): 2.1 2.2']],
    ['checkbox-tree.md', ['1 Exception type: 1 1.1 1.2', '2 Wire service: 2 2.1']],
    ['chinese.md', ['1 实施清单: 1#1 1#2', '2 自测步骤（手工）: 2#1']],
    ['crlf-bom-nofinalnewline.md', ['1 A: 1.1 1.2', '2 B: 2.1']],
    ['duplicate-numbers.md', ['1 A: 1.1 1.1', '2 B: 1.1', '3 C: 2.1']],
    ['fence-and-comment.md', ['1 A: 1.1 9.9 8.8 1.2', '2 B: 2.1']],
    ['flat-h1.md', ['1 Tasks: 1#1 1#2 1#3']],
    ['h2-wrapper-plus-loose.md', ['1 Tasks: 1#1', '2 1. First: 1.1', '3 2. Second: 2.1']],
    ['multi-h1.md', ['1 Phase 1: One: 1#1', '2 Phase 2: Two: 2#1']],
    ['no-checkbox.md', []],
    ['speckit-ids.md', ['1 Phase 1: Setup: T001 T002', '2 Phase 2: User Story 1 (P1): T003']],
    ['unclosed-fence.md', ['1 A: 1.1 1.2', '2 B: 2.1']],
    [
      'wrapper-h2-phase-h3-task-h4.md',
      ['0 Phase 0: Database Migration (30 min): 0#1 0#2', '1 Phase 1: Data Layer: 1#1 1#2 1#3 1#4'],
    ],
  ])('P11: %s has the stories a reader sees', (name, expected) => {
    expect(shape(fixture(name))).toEqual(expected)
  })

  test('P11: every fixture is covered by a test of its own', () => {
    expect(readdirSync(fixtures)).toHaveLength(14)
  })

  test('P11: boxes without any heading are one story', () => {
    expect(shape(parse('- [ ] a\n- [x] b\n'))).toEqual(['1 All tasks: 1#1 1#2'])
  })

  test('P11: file order is run order, whatever the numbers say', () => {
    expect(parse('## 8. H\n- [ ] 8.1 a\n## 7. G\n- [ ] 7.1 b\n').stories.map((story) => story.id)).toEqual([
      '8',
      '7',
    ])
  })

  test('P11: a tick behind a heading is no part of its name', () => {
    expect(
      parse('## 1. Done part ✅\n- [x] a\n## 2. Rest (DONE)\n- [x] b').stories.map((story) => story.title),
    ).toEqual(['Done part', 'Rest'])
  })

  test('P11: a bare number in front of words is a title, not a number', () => {
    expect(shape(parse('## 3 new things\n- [ ] a\n## 2 old things\n- [ ] b'))).toEqual([
      '1 3 new things: 1#1',
      '2 2 old things: 2#1',
    ])
  })

  test('P11: several files keep their folders in ids and titles', () => {
    const files = ['api/tasks.md', 'web/tasks.md'].map((file) => ({
      file,
      text: '## 1. Part\n- [ ] 1.1 x\n',
    }))
    expect(shape(parseTasks(files))).toEqual(['api/1 api/Part: 1.1', 'web/1 web/Part: 1.1'])
  })

  test('sections without boxes are notes', () => {
    expect(fixture('wrapper-h2-phase-h3-task-h4.md').notes).toEqual([{ title: 'Notes', text: 'nothing' }])
  })

  test('nested boxes, bodies, sub-headings and prose end up where they belong', () => {
    const [story] = parse(
      '## 1. A\nWhy.\n### Sub\n- [ ] 1.1 parent\n  detail\n\n  - [ ] child\n    more\nAfterwards.\n',
    ).stories
    expect(story?.intro).toBe('Why.\n\nAfterwards.'.replace('\n\n', '\n'))
    expect(
      story?.tasks.map(({ text, depth, body, subheading }) => ({ text, depth, body, subheading })),
    ).toEqual([
      { text: 'parent', depth: 0, body: '  detail', subheading: 'Sub' },
      { text: 'child', depth: 1, body: '    more', subheading: 'Sub' },
    ])
  })
})

describe('tasks', () => {
  test('P11: marks and tags say who may do a task', () => {
    expect(states(fixture('markers.md'))).toEqual({
      '1.1': 'open',
      '1.2': 'done',
      '1.3': 'done',
      '1.4': 'done',
      '1.5': 'open',
      '1.6': 'open',
      '1.7': 'deferred',
      '1.8': 'deferred',
      '1.9': 'human',
      '1.10': 'human',
      '1.11': 'human',
      '1.12': 'deferred',
      '1#13': 'open',
      '1#14': 'phantom',
      '1#15': 'open',
      '1#16': 'open',
      '1#17': 'open',
      '1#18': 'open',
      '1#19': 'open',
    })
  })

  test.each([
    ['Restart the router (manual)', 'human'],
    ['Add [user] route', 'open'],
    ['[user]/page.tsx needs a test', 'open'],
    ['**[HUMAN]** sign the contract', 'human'],
    ['the word (manual) in mid-text', 'open'],
    ['3.1 (manual) sign', 'human'],
    ['(manual): 3.1 sign', 'human'],
    ['3.1 [MANUAL] sign', 'human'],
    ['[MANUAL] 3.1 sign', 'human'],
    ['3.1 sign [MANUAL]', 'human'],
    ['3.1 sign **[HUMAN]**', 'human'],
    ['3.1 sign (human).', 'human'],
    ['3.1 (Human) sign', 'human'],
    ['3.1 read [manual](docs/manual.md)', 'open'],
  ])('%j is %s', (text, state) => {
    expect(parse(`- [ ] ${text}`).boxes[0]?.task.state).toBe(state)
  })

  test.each([
    ['1.2 x', '1.2', 'x'],
    ['1.2.3 x', '1.2.3', 'x'],
    ['1.2a x', '1.2a', 'x'],
    ['1. x', '1', 'x'],
    ['T01: x', 'T01', 'x'],
    ['AC-1: x', 'AC-1', 'x'],
    ['**1.2** x', '1.2', 'x'],
    ['**1.2 x** y', '1.2', '**x** y'],
    ['Task 1.2: x', '1.2', 'x'],
    ['3 things', '1#1', '3 things'],
    ['UTF-8 support', '1#1', 'UTF-8 support'],
  ])('P11: %j has id %s', (description, id, text) => {
    expect(parse(`- [ ] ${description}`).boxes[0]?.task).toMatchObject({ id, text })
  })

  test('a parent whose open children are all for a person waits for that person', () => {
    const plan = parse('## 1. A\n- [ ] 1.1 deploy\n  - [x] 1.1.1 script\n  - [?] 1.1.2 approve\n')
    expect(states(plan)).toEqual({ '1.1': 'human', '1.1.1': 'done', '1.1.2': 'human' })
    expect(plan.stories.map(storyStatus)).toEqual(['human'])
  })
})

describe('lints', () => {
  test.each([
    ['no-checkbox.md', 'there are lists but no boxes'],
    ['duplicate-numbers.md', 'task id 1.1 is already used in line 2'],
    ['duplicate-numbers.md', 'task 2.1 is under group 3'],
    ['unclosed-fence.md', 'this fence never closes'],
    ['fence-and-comment.md', 'in a fence or a comment'],
    ['markers.md', 'story 1 has 19 boxes'],
    ['markers.md', 'without a text'],
    ['markers.md', 'task 1.9 is for a person; no agent gets it'],
    ['markers.md', 'task 1.7 is put off; no agent gets it'],
  ])('%s: %s', (name, message) => {
    expect(
      fixture(name)
        .lints.map((lint) => lint.message)
        .join('\n'),
    ).toContain(message)
  })

  test('a heading without a blank is named, and no story; a tag in the text is neither', () => {
    const { lints, stories } = parse('##1. A\n- [ ] a\n#tag and ## in a line\n')
    expect(stories).toHaveLength(1)
    expect(lints).toEqual([
      { file: 'tasks.md', line: 1, message: '"##1. A" is no heading: write a blank after the #' },
    ])
  })

  test('a ticked parent with an open child is named', () => {
    expect(parse('- [x] a\n  - [ ] b').lints).toMatchObject([
      { line: 1, message: expect.stringContaining('a task below it is open') },
    ])
  })
})

describe('no task is lost', () => {
  const line = fc.constantFrom(
    '# A',
    '## 1. B',
    '## C',
    '### D',
    '- [ ] 1.1 x',
    '  - [x] y',
    '* [ ] z',
    '1. [?] w',
    '```',
    '~~~',
    '<!--',
    '-->',
    '',
    'prose',
    '- [ ]',
    '\t- [ ] t',
  )
  test('P11: every box is in exactly one story', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 40 }), (lines) => {
        const plan = parse(lines.join('\n'))
        const listed = plan.stories.flatMap((story) => story.tasks.map((task) => task.line))
        const boxes = lines.flatMap((text, index) => (/^\s*(?:[-*]|1\.) \[/.test(text) ? [index + 1] : []))
        expect([...listed].sort((a, b) => a - b)).toEqual(boxes)
        expect(new Set(plan.stories.map((story) => story.id)).size).toBe(plan.stories.length)
        expect(plan.tasksTotal).toBe(boxes.length)
      }),
      { numRuns: 1000 },
    )
  })

  test('P11: files of a megabyte that only look like plans are read to their end', () => {
    const shapes = {
      '- [': 0,
      '```\n': 0,
      '# # ': 0,
      '<!-- ': 0,
      '- [ ] [input:': 1,
      '    ': 0,
      '- [ ] 1.1 x\n': 50_000,
      '- [ ]\n## 1. A\n': 50_000,
    }
    for (const [shape, total] of Object.entries(shapes))
      expect(parse(shape.repeat(50_000)).tasksTotal).toBe(total)
    expect(parse(`- [${' '.repeat(1_000_000)}\n- [ ] a`).tasksTotal).toBe(1)
    expect(parse(`${'`'.repeat(500_000)}\n${'~'.repeat(500_000)}\n- [ ] a`).tasksTotal).toBe(1)
  })
})
