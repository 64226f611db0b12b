// Which change is meant, and what it is made of.
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  findRoot,
  listChanges,
  readTitle,
  refuseBadName,
  resolveChange,
} from '../../../src/adapters/openspec/changes.ts'
import { findFiles } from '../../../src/adapters/openspec/glob.ts'
import { ensureLearnings, readLearnings } from '../../../src/adapters/openspec/learnings.ts'
import { manualSource } from '../../../src/adapters/openspec/manual.ts'
import { showChange } from '../../../src/adapters/openspec/show.ts'
import { doneCriteria } from '../../../src/adapters/openspec/tracked.ts'
import { verificationCommands } from '../../../src/adapters/openspec/verification.ts'
import { makeProject, project, someTasks, tempFolder, testEnv, writeFiles } from './project.ts'

describe('findRoot', () => {
  test('G18: finds the nearest folder with openspec/ upward', async () => {
    const { root } = await makeProject()
    await writeFiles(root, { 'packages/a/src/x.ts': '', 'packages/b/openspec/specs/x/spec.md': '' })
    expect(await findRoot(join(root, 'packages/a/src'))).toBe(root)
    expect(await findRoot(join(root, 'packages/b'))).toBe(join(root, 'packages/b'))
  })

  test('without one it says so', async () => {
    await expect(findRoot(await tempFolder())).rejects.toMatchObject({
      code: 'openspec_missing',
      exitCode: 2,
    })
  })

  test('a store that only the openspec program can find is an error without it', async () => {
    const folder = await tempFolder()
    await writeFiles(folder, { 'openspec/config.yaml': 'store: team-plans\n' })
    await expect(findRoot(folder)).rejects.toMatchObject({
      code: 'openspec_missing',
      message: expect.stringContaining('team-plans'),
    })
  })
})

describe('listChanges', () => {
  test('names, titles and counts; archive and files are no changes, a link is one', async () => {
    const { root } = await makeProject()
    const changes = join(root, 'openspec/changes')
    await writeFiles(changes, {
      'archive/2026-01-01-old/tasks.md': '- [ ] x',
      'README.md': '',
      'broken/tasks.md/x': '',
    })
    const elsewhere = await tempFolder()
    await writeFile(join(elsewhere, 'tasks.md'), '- [x] a\n')
    await symlink(elsewhere, join(changes, 'linked'))
    const found = await listChanges(root, testEnv(root))
    expect(found.map(({ problem, ...rest }) => ({ ...rest, hasProblem: problem !== '' }))).toEqual([
      {
        name: 'add-export',
        title: 'Add export',
        stories_done: 0,
        stories_total: 2,
        stories_open: 2,
        tasks_done: 1,
        tasks_total: 4,
        hasProblem: false,
      },
      {
        name: 'broken',
        title: 'broken',
        stories_done: 0,
        stories_total: 0,
        stories_open: 0,
        tasks_done: 0,
        tasks_total: 0,
        hasProblem: true,
      },
      {
        name: 'linked',
        title: 'linked',
        stories_done: 1,
        stories_total: 1,
        stories_open: 0,
        tasks_done: 1,
        tasks_total: 1,
        hasProblem: false,
      },
    ])
  })

  test.each([
    ['# Change: Add x\n', 'Add x'],
    ['\uFEFF# Proposal — Add y\r\n', 'Add y'],
    ['# Proposal\n', 'add-export'],
    ['## Why\n', 'add-export'],
    ['# Why\n', 'add-export'],
  ])('the title of %j is %s', async (text, title) => {
    const { root, dir } = await makeProject()
    await writeFile(join(dir, 'proposal.md'), text)
    expect(await readTitle(root, 'add-export')).toBe(title)
  })
})

describe('resolveChange', () => {
  test('left out, it is the only open one', async () => {
    const { root } = await makeProject()
    await writeFiles(root, { 'openspec/changes/finished/tasks.md': '- [x] a' })
    expect(await resolveChange(root, undefined, testEnv(root))).toBe('add-export')
  })

  test('left out with several open ones, they are listed', async () => {
    const { root } = await makeProject()
    await writeFiles(root, { 'openspec/changes/other/tasks.md': '- [ ] a' })
    await expect(resolveChange(root, undefined, testEnv(root))).rejects.toMatchObject({
      code: 'change_ambiguous',
      exitCode: 2,
      message: expect.stringMatching(/add-export, other/),
    })
  })

  test('a mistyped name gets the nearest real one', async () => {
    const { root } = await makeProject()
    await expect(resolveChange(root, 'add-exprot', testEnv(root))).rejects.toMatchObject({
      code: 'change_not_found',
      exitCode: 2,
      hint: expect.stringContaining('Did you mean add-export'),
    })
  })

  test('an archived change is said to be archived', async () => {
    const { root } = await makeProject()
    await writeFiles(root, { 'openspec/changes/archive/2026-01-01-old-one/tasks.md': '' })
    await expect(resolveChange(root, 'old-one', testEnv(root))).rejects.toMatchObject({
      code: 'change_not_found',
      hint: expect.stringContaining('It is archived as 2026-01-01-old-one.'),
    })
  })

  test.each([
    '',
    '..',
    '../x',
    'a/b',
    'a..b',
    '-x',
    '.x',
    'a b',
    'a\nb',
    'x.lock',
    'x.',
    'a~b',
    'a:b',
    '@',
    'a@{b',
    'archive',
    'a\\b',
  ])('G23: %j cannot be a change', (name) => {
    expect(() => refuseBadName(name)).toThrow(expect.objectContaining({ code: 'bad_name', exitCode: 2 }))
  })

  test.each(['add-export', 'v1.2', 'größe', 'x_y', '修复'])('G23: %j can be one', (name) => {
    expect(() => refuseBadName(name)).not.toThrow()
  })
})

describe('which files hold the boxes', () => {
  const schema = (tracks: string): string =>
    `name: mine\nversion: 1\nartifacts:\n  - id: steps\n    generates: "${tracks}"\n    description: d\n    template: t.md\napply:\n  requires: [steps]\n  tracks: "${tracks}"\n`

  test('a custom schema with a glob: all files, in path order, with their folders in the ids', async () => {
    const { root, dir, source } = await makeProject()
    await writeFiles(root, { 'openspec/schemas/mine/schema.yaml': schema('**/tasks.md') })
    await writeFiles(dir, {
      '.openspec.yaml': 'schema: mine\n',
      'web/tasks.md': '## 1. W\n- [ ] w\n',
      'api/tasks.md': '## 1. A\n- [x] a\n',
    })
    const plan = await source.read()
    expect(plan.stories.map(({ id }) => id)).toEqual(['api/1', '1', '2', 'web/1'])
    await source.guard()
    expect(await source.tick('web/1')).toBe(1)
    expect(await listChanges(root, testEnv(root))).toMatchObject([{ tasks_done: 3, tasks_total: 6 }])
  })

  test('a custom schema named in config.yaml with a plain path', async () => {
    const { root, dir, source } = await makeProject()
    await writeFiles(root, {
      'openspec/schemas/mine/schema.yaml': schema('plan/steps.md'),
      'openspec/config.yaml': 'schema: mine\n',
    })
    await writeFiles(dir, { 'plan/steps.md': '- [ ] step\n' })
    expect((await source.read()).tasksTotal).toBe(1)
  })

  test.each([
    ['*.md', ['a.md']],
    ['**/*.md', ['a.md', 'x/b.md', 'x/y/c.md']],
    ['{a,z}.md', ['a.md']],
    ['x/[a-c].md', ['x/b.md']],
    ['x/[!a].md', ['x/b.md']],
    ['[!a].md', []],
    ['x/?.md', ['x/b.md']],
    ['x/**', ['x/b.md', 'x/y/c.md']],
    ['missing.md', []],
  ])('the pattern %s names %j', async (pattern, files) => {
    const folder = await tempFolder()
    await writeFiles(folder, { 'a.md': '', 'x/b.md': '', 'x/y/c.md': '', '.hidden/d.md': '' })
    await symlink('.', join(folder, 'x', 'loop'))
    const found = await findFiles(folder, pattern)
    expect(found.filter((path) => !path.includes('loop'))).toEqual(files)
  })

  test('contract 5: done criteria are tasks where there is a tasks.md, else manual with a warning', async () => {
    const { dir, root, tasks } = await makeProject()
    expect(await doneCriteria(dir, 'tasks.md', root)).toEqual({
      criteria: 'tasks',
      tasksFile: tasks,
      warning: '',
    })
    expect(await doneCriteria(join(root, 'none'), 'tasks.md', root)).toEqual({
      criteria: 'manual',
      tasksFile: '',
      warning: 'No tasks.md found, using manual done criteria',
    })
    await writeFile(join(root, 'tasks.md'), '')
    expect(await doneCriteria(join(root, 'none'), 'tasks.md', root)).toMatchObject({
      criteria: 'tasks',
      tasksFile: join(root, 'tasks.md'),
    })
  })
})

describe('prompt', () => {
  test('holds what the project and the change say, fresh from disk', async () => {
    const { root, dir, source, deps } = await makeProject()
    await writeFiles(root, {
      'openspec/config.yaml':
        'context: |\n  Tech is TypeScript\noperations:\n  apply:\n    guidance:\n      - Be brief\n',
      'openspec/specs/csv/spec.md': '## Requirements\n### Requirement: Columns\nIt MAY have columns.\n',
      'package.json': JSON.stringify({ scripts: { test: 'vitest', lint: 'oxlint' } }),
    })
    await writeFiles(dir, {
      'specs/csv/spec.md': '## MODIFIED Requirements\n### Requirement: Columns\nIt SHALL have columns.\n',
    })
    await ensureLearnings(deps.learningsPath)
    const prompt = await source.prompt({ storyId: '1', attempt: 2, attempts: 4, previousFailure: 'red' })
    for (const words of [
      'Tech is TypeScript',
      'Be brief',
      'npm test',
      'npm run lint',
      'People ask',
      'Plain text.',
      'It SHALL have columns',
      'It MAY have columns',
      'openspec/changes/add-export/tasks.md',
      '- [ ] 1.2 two',
      '## Previous Attempt Failed',
      'attempt 2 of 4',
      deps.learningsPath,
    ]) {
      expect(prompt).toContain(words)
    }
    expect(prompt).not.toContain('Learnings of earlier iterations')
    await writeFile(join(root, 'openspec/config.yaml'), 'context: [broken')
    expect(await source.prompt({ storyId: '1', attempt: 1, attempts: 1 })).not.toContain('Tech is')
    await expect(source.prompt({ storyId: '9', attempt: 1, attempts: 1 })).rejects.toMatchObject({
      code: 'usage',
      exitCode: 2,
    })
  })

  test('project.md of older projects serves as context', async () => {
    const { root, source } = await makeProject()
    await writeFiles(root, { 'openspec/project.md': 'We use tabs.' })
    expect(await source.prompt({ storyId: '1', attempt: 1, attempts: 1 })).toContain('We use tabs.')
  })

  test('a manual loop gets the words of the user and no stories, and keeps the plan guarded', async () => {
    const { deps, dir, text } = await makeProject()
    const source = manualSource({ ...deps, task: 'Make it fast' })
    expect(await source.read()).toMatchObject({ stories: [], tasksTotal: 4 })
    expect(await source.prompt({ storyId: '', attempt: 1, attempts: 1 })).toMatch(
      /## Your task\n\nMake it fast/,
    )
    await source.guard()
    await writeFiles(dir, { 'proposal.md': 'x', 'tasks.md': someTasks.replace('[ ] 2.1', '[x] 2.1') })
    expect((await source.judge('')).putBack).toEqual([
      expect.stringMatching(/^proposal\.md was changed; put back\./),
    ])
    expect(await text()).toContain('[x] 2.1')
    await source.putBack()
    expect(await text()).toBe(someTasks)
  })

  test('a repository without openspec/ has a manual loop all the same', async () => {
    const { deps } = await project(await tempFolder(), 'my-work')
    const source = manualSource({ ...deps, task: 'Make it fast' })
    await source.guard()
    expect(await source.judge('')).toMatchObject({ putBack: [], lost: undefined })
    await source.putBack()
    expect(await source.prompt({ storyId: '', attempt: 1, attempts: 1 })).toContain('Make it fast')
  })
})

describe('verificationCommands', () => {
  test.each([
    [{ 'package.json': '{"scripts":{"test":"echo \\"Error: no test specified\\" && exit 1"}}' }, []],
    [
      { 'package.json': '{"scripts":{"test":"x","build":"y","start":"z"}}', 'pnpm-lock.yaml': '' },
      ['pnpm test', 'pnpm run build'],
    ],
    [{ 'package.json': '{broken' }, []],
    [{ 'Cargo.toml': '' }, ['cargo test']],
    [{ 'go.mod': '' }, ['go vet ./...', 'go test ./...']],
    [{ 'pyproject.toml': '[project]\nname = "x"\n' }, []],
    [{ 'pyproject.toml': '[tool.ruff]\n[tool.pytest.ini_options]\n' }, ['ruff check .', 'pytest']],
    [{ Makefile: 'TEST := 1\ntest:\n\tgo test\nlint : x\ncheck := 2\n' }, ['make lint', 'make test']],
    [{ 'README.md': 'npm test' }, []],
  ])('P13: for %j it names %j', async (files, commands) => {
    const folder = await tempFolder()
    await writeFiles(folder, files)
    expect(await verificationCommands(folder)).toEqual(commands)
  })
})

describe('learnings', () => {
  test('a fresh file has nothing to say; what agents add is shown, the newest if it is much', async () => {
    const path = join(await tempFolder(), 'private', 'learnings.md')
    expect(await readLearnings(path)).toBe('')
    await ensureLearnings(path)
    expect(await readLearnings(path)).toBe('')
    await writeFile(path, 'use pnpm\n', { flag: 'a' })
    await ensureLearnings(path)
    expect(await readLearnings(path)).toBe('use pnpm')
    await writeFile(path, `${'old line\n'.repeat(20_000)}newest\n`, { flag: 'a' })
    const shown = await readLearnings(path)
    expect(Buffer.byteLength(shown)).toBeLessThan(33_000)
    expect(shown.endsWith('newest')).toBe(true)
  })

  test('whatever an agent makes of the file, no loop breaks over it', async () => {
    const path = join(await tempFolder(), 'learnings.md')
    await symlink('/dev/zero', path)
    await ensureLearnings(path)
    expect(await readLearnings(path)).toBe('')
    await rm(path)
    await mkdir(path)
    await ensureLearnings(path)
    expect(await readLearnings(path)).toBe('')
  })
})

test('showChange gives the fields of contract 9', async () => {
  const { root } = await makeProject()
  await mkdir(join(root, 'x'))
  const { lints, ...shown } = await showChange(root, 'add-export', testEnv(root))
  expect(lints).toEqual(['tasks.md:7 task 1.3 is for a person; no agent gets it'])
  expect(shown).toEqual({
    name: 'add-export',
    title: 'Add export',
    stories: [
      {
        id: '1',
        title: 'First',
        status: 'open',
        tasks: [
          { id: '1.1', text: 'one', state: 'done', line: 5 },
          { id: '1.2', text: 'two', state: 'open', line: 6 },
          { id: '1.3', text: 'ask', state: 'human', line: 7 },
        ],
      },
      {
        id: '2',
        title: 'Second',
        status: 'open',
        tasks: [{ id: '2.1', text: 'three', state: 'open', line: 11 }],
      },
    ],
    scenarios: [
      { capability: 'csv', requirement: 'Rows', name: 'One', steps: ['WHEN asked', 'THEN written'] },
    ],
  })
})
