// What of an agent's edits to the plan stands and what goes back.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { joinLines, setBox, splitLines } from '../../src/core/box.ts'
import { alignLines } from '../../src/core/tasks-align.ts'
import { judgeTasks, type TasksJudgement } from '../../src/core/tasks-judge.ts'
import { handedTasks } from '../../src/core/tasks-locate.ts'
import { parseTasks } from '../../src/core/tasks.ts'

const before = `# Tasks

## 1. First
- [x] 1.1 one
- [ ] 1.2 two
  - [ ] 1.2.1 two a
- [?] 1.3 ask
## 2. Second
- [ ] 2.1 three
- [ ] 2.2 four
`

function judge(after: string, storyId: string | null = '1', old = before): TasksJudgement & { text: string } {
  const judgement = judgeTasks(
    [{ file: 'tasks.md', text: old }],
    [{ file: 'tasks.md', text: after }],
    storyId ?? undefined,
  )
  const [oldLines, newLines] = [splitLines(Buffer.from(old)), splitLines(Buffer.from(after))]
  const lines = (judgement.merged.get('tasks.md') ?? []).map(({ from, line, tick }) => {
    const bytes = (from === 'before' ? oldLines : newLines)[line - 1] ?? new Uint8Array()
    return tick ? setBox(bytes, true) : bytes
  })
  return { ...judgement, text: Buffer.from(joinLines(lines)).toString() }
}

describe('judgeTasks', () => {
  test('P9: an untouched plan comes back byte for byte', () => {
    expect(judge(before)).toMatchObject({ text: before, putBack: [], ticked: 0, stillOpen: 2, notAsked: 0 })
  })

  test("P9: the story's own ticks and added lines stay", () => {
    const after =
      before.replace('[ ] 1.2 two\n', '[x] 1.2 two\n  note\n').replace('[ ] 1.2.1', '[x] 1.2.1') +
      '- [ ] 2.3 new\n'
    expect(judge(after)).toMatchObject({ text: after, putBack: [], ticked: 2, stillOpen: 0 })
  })

  test('P9: a new task in the words of one in another story stays; a copy in its own story, or a ticked one, does not', () => {
    const words = before.replace('1.2 two\n', '1.2 two\n- [ ] write tests\n')
    const added = `${words}- [ ] write tests\n`
    expect(judge(added, '1', words)).toMatchObject({ text: added, putBack: [] })
    expect(judge(`${words}- [x] write tests\n`, '1', words).text).toBe(words)
    expect(judge(`${before}- [ ] 2.2 four\n`).text).toBe(before)
  })

  test.each([
    [
      'a tick in another story',
      (text: string) => text.replace('[ ] 2.1', '[x] 2.1'),
      'belongs to another story and was ticked',
    ],
    [
      "a tick on a person's task",
      (text: string) => text.replace('[?] 1.3', '[x] 1.3'),
      'is for a person and was ticked',
    ],
    ['an untick', (text: string) => text.replace('[x] 1.1', '[ ] 1.1'), 'was unticked'],
    ['another mark', (text: string) => text.replace('[ ] 1.2 two', '[-] 1.2 two'), 'was changed to [-]'],
    ['a reworded task', (text: string) => text.replace('2.1 three', '2.1 nothing at all'), 'was reworded'],
    ['a removed task', (text: string) => text.replace('- [ ] 2.2 four\n', ''), 'was removed'],
    ['a removed own task', (text: string) => text.replace('- [ ] 1.2 two\n', ''), 'was removed'],
    [
      'a renumbered heading',
      (text: string) => text.replace('## 2. Second', '## 9. Second'),
      '1 line besides the tasks was changed or removed; put back',
    ],
    [
      'swapped tasks',
      (text: string) =>
        text.replace('- [ ] 2.1 three\n- [ ] 2.2 four\n', '- [ ] 2.2 four\n- [ ] 2.1 three\n'),
      '',
    ],
    [
      'a fence around tasks',
      (text: string) => text.replace('- [ ] 2.1', '```\n- [ ] 2.1') + '```\n',
      'hide or regroup tasks',
    ],
    [
      'a comment around tasks',
      (text: string) => text.replace('- [ ] 2.1', '<!--\n- [ ] 2.1') + '-->\n',
      'hide or regroup tasks',
    ],
    [
      'a heading that takes tasks away',
      (text: string) => text.replace('- [ ] 1.2 two', '## 7. Mine\n- [ ] 1.2 two'),
      'hide or regroup tasks',
    ],
    [
      "a person's task put below an own one",
      (text: string) =>
        text.replace('- [?] 1.3', '  - [?] wait\n- [?] 1.3').replace('  - [ ] 1.2.1 two a\n', ''),
      '',
    ],
    [
      'a heading without a number, which would change all ids',
      (text: string) => `${text}## More\n- [ ] 3.1 x\n`.replace('## 2.', '## 2.'),
      '',
    ],
  ])('P9: %s is put back', (_, edit, message) => {
    const found = judge(edit(before))
    expect(found.putBack.join('\n')).toContain(message)
    const plan = parseTasks([{ file: 'tasks.md', text: found.text }])
    const old = parseTasks([{ file: 'tasks.md', text: before }])
    expect(
      plan.boxes.map((box) => [box.storyId, box.description, box.mark]).slice(0, old.boxes.length),
    ).toEqual(old.boxes.map((box) => [box.storyId, box.description, box.mark]))
    expect(plan.tasksTotal - old.tasksTotal).toBeLessThanOrEqual(1)
  })

  test('P9: an own task that was ticked and reworded is ticked in its old words', () => {
    const found = judge(before.replace('[ ] 1.2 two\n', '[x] 1.2 two, done in src/two.ts\n'))
    expect(found.text).toBe(before.replace('[ ] 1.2 two\n', '[x] 1.2 two\n'))
    expect(found).toMatchObject({ ticked: 1, stillOpen: 1 })
    expect(found.putBack).toHaveLength(1)
  })

  test('P9: an agent that ticks all children has done the parent', () => {
    expect(judge(before.replace('[ ] 1.2.1', '[x] 1.2.1'))).toMatchObject({ ticked: 2, stillOpen: 0 })
  })

  test('P9: line ends that an editor changed come back as they were', () => {
    const crlf = before.replaceAll('\n', '\r\n')
    const found = judge(before.replace('[ ] 1.2 two', '[x] 1.2 two'), '1', crlf)
    expect(found.text).toBe(crlf.replace('[ ] 1.2 two', '[x] 1.2 two'))
  })

  test('a manual loop may tick anything that is open', () => {
    expect(judge(before.replace('[ ] 2.1', '[x] 2.1'), null)).toMatchObject({ putBack: [], ticked: 1 })
  })

  test('P9: a large story is asked for in parts; ticks beyond the part count, what is left is not missed', () => {
    const tasks = Array.from({ length: 12 }, (_, index) => `- [ ] task ${index + 1}\n`)
    const old = `## 1. Big\n${tasks.join('')}`
    const plan = parseTasks([{ file: 'tasks.md', text: old }])
    expect(handedTasks(plan.stories[0] ?? { id: '', title: '', intro: '', tasks: [] })).toHaveLength(8)
    const ticked = tasks.map((line, index) => (index < 9 ? line.replace('[ ]', '[x]') : line))
    expect(judge(`## 1. Big\n${ticked.join('')}`, '1', old)).toMatchObject({
      ticked: 9,
      stillOpen: 0,
      notAsked: 3,
    })
  })

  test('P9: whatever an agent does to the lines, no task of the plan is lost, moved or ticked without right', () => {
    const lines = before.split('\n')
    const edit = fc.record({
      at: fc.nat(lines.length),
      take: fc.nat(3),
      put: fc.array(
        fc.constantFrom(...lines, '```', '<!--', '-->', '## X', '- [x] 2.1 three', '- [ ] new', '# T'),
        { maxLength: 3 },
      ),
    })
    fc.assert(
      fc.property(fc.array(edit, { maxLength: 5 }), (edits) => {
        const after = [...lines]
        for (const { at, take, put } of edits) after.splice(at, take, ...put)
        const { text } = judge(after.join('\n'))
        const [old, now] = [before, text].map((each) => parseTasks([{ file: 'tasks.md', text: each }]))
        for (const box of old?.boxes ?? []) {
          const same = now?.boxes.filter(
            (each) => each.storyId === box.storyId && each.description === box.description,
          )
          expect(same?.length).toBeGreaterThan(0)
          if (box.storyId === '2' || box.task.state !== 'open') expect(same?.[0]?.mark).toBe(box.mark)
        }
      }),
      { numRuns: 1000 },
    )
  })
})

test('alignLines pairs every old line when lines were only added', () => {
  const line = fc.constantFrom('', 'a', 'b', 'c')
  fc.assert(
    fc.property(fc.array(fc.tuple(line, fc.boolean()), { maxLength: 30 }), (marked) => {
      const after = marked.map(([text]) => text)
      const old = marked.filter(([, isOld]) => isOld).map(([text]) => text)
      const pairs = alignLines(old, after)
      expect(pairs.map(([b]) => b)).toEqual(old.map((_, index) => index))
      for (const [b, a] of pairs) expect(after[a]).toBe(old[b])
      for (const [index, [, a]] of pairs.entries()) expect(a).toBeGreaterThan(pairs[index - 1]?.[1] ?? -1)
    }),
    { numRuns: 1000 },
  )
})
