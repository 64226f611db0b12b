// What people and agents write into a change: tasks, specs, project settings. Any text is read, none breaks the reader.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { readProject, taskPattern } from '../../src/adapters/openspec/project.ts'
import { verificationCommands } from '../../src/adapters/openspec/verification.ts'
import { joinLines, setBoxes, splitLines } from '../../src/core/box.ts'
import { parseSpec } from '../../src/core/deltas.ts'
import { promiseScanner } from '../../src/core/promise.ts'
import { judgeTasks } from '../../src/core/tasks-judge.ts'
import { parseTasks } from '../../src/core/tasks.ts'
import { anyBytes, isUnspoilt, recorded, seeded, settings, wounded } from './foreign.ts'

const plans = recorded('tasks')
const specs = [
  Buffer.from(
    '## Purpose\nWhy.\n\n## ADDED Requirements\n\n### Requirement: One\nIt SHALL.\n\n#### Scenario: A\n- **WHEN** x\n- **THEN** y\n\n## REMOVED Requirements\n- `### Requirement: Two`\n\n## RENAMED Requirements\n- FROM: `### Requirement: A`\n- TO: `### Requirement: B`\n',
  ),
]
const folder = mkdtempSync(join(tmpdir(), 'ralph-fuzz-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Large and of one kind: a reader that looks back from every line never comes to an end. */
const heaps = [
  '- [ ] task\n',
  '  - [ ] deeper\n',
  '## heading\n',
  '```\n',
  '<!--',
  '<!-- x -->\n',
  '#### Scenario: x\n',
  '- ',
  '\t',
  ' ',
  '\n',
  '[',
  '1.',
  '\\',
  '<promise>FAILED: ',
  '<promise>COMPLETE</promise> ',
]

describe('fuzz: the plan', () => {
  test(`tasks.md: whatever is in it is a plan, and ticking its boxes changes nothing else ${seeded}`, () => {
    fc.assert(
      fc.property(fc.oneof(anyBytes, wounded(plans)), (bytes) => {
        const plan = parseTasks([{ file: 'tasks.md', text: bytes.toString('utf8') }])
        const lines = new Set(plan.boxes.map(({ task }) => task.line))
        const once = setBoxes(bytes, lines, true)
        expect(Buffer.from(setBoxes(once, lines, true)).equals(Buffer.from(once))).toBe(true)
        expect(Buffer.from(joinLines(splitLines(bytes))).equals(bytes)).toBe(true)
        expect(isUnspoilt()).toBe(true)
      }),
      settings(),
    )
  })

  test(`tasks.md: whatever an agent makes of it is judged ${seeded}`, () => {
    fc.assert(
      fc.property(
        fc.oneof(wounded(plans), anyBytes),
        fc.oneof(wounded(plans), anyBytes),
        fc.constantFrom(undefined, '', '1', '2', '__proto__'),
        (before, after, story) => {
          const judged = judgeTasks(
            [{ file: 'tasks.md', text: before.toString('utf8') }],
            [{ file: 'tasks.md', text: after.toString('utf8') }],
            story,
          )
          expect(judged.merged.has('tasks.md')).toBe(true)
        },
      ),
      settings(2),
    )
  })

  test(`specs: any text has its requirements ${seeded}`, () => {
    fc.assert(
      fc.property(fc.oneof(anyBytes, wounded(specs)), (bytes) => {
        expect(parseSpec('x', 'x/spec.md', bytes.toString('utf8')).requirements).toBeInstanceOf(Array)
      }),
      settings(),
    )
  })

  test.each(heaps)('500 KB of %j come to an end', (heap) => {
    const text = heap.repeat(Math.ceil(500_000 / heap.length))
    expect(parseTasks([{ file: 'tasks.md', text }]).boxes).toBeInstanceOf(Array)
    expect(parseSpec('x', 'x', text).requirements).toBeInstanceOf(Array)
    const scanner = promiseScanner()
    scanner.feed(text)
    scanner.endMessage()
    expect(scanner).toBeDefined()
  })

  test(`openspec's own files: any YAML is a setting or a note ${seeded}`, async () => {
    const change = join(folder, 'openspec', 'changes', 'x')
    mkdirSync(change, { recursive: true })
    mkdirSync(join(folder, 'openspec', 'schemas', 'mine'), { recursive: true })
    const yamls = [
      Buffer.from('schema: mine\ncontext: |\n  text\noperations:\n  apply:\n    guidance: [a, b]\n'),
      Buffer.from('artifacts:\n  - id: tasks\n    generates: "**/tasks.md"\napply:\n  tracks: tasks.md\n'),
      Buffer.from('{"name":"x","scripts":{"test":"vitest","lint":"oxlint"}}'),
    ]
    await fc.assert(
      fc.asyncProperty(fc.oneof(anyBytes, wounded(yamls)), async (bytes) => {
        for (const path of [
          'openspec/config.yaml',
          'openspec/changes/x/.openspec.yaml',
          'openspec/schemas/mine/schema.yaml',
          'package.json',
          'Makefile',
        ])
          writeFileSync(join(folder, path), bytes)
        expect((await readProject(folder)).notes).toBeInstanceOf(Array)
        expect(typeof (await taskPattern(folder, change, {}))).toBe('string')
        expect(await verificationCommands(folder)).toBeInstanceOf(Array)
        expect(isUnspoilt()).toBe(true)
      }),
      settings(3),
    )
  })
})
