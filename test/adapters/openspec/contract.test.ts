// Against the real openspec program: the same counts for every file, and its validate and archive as they are.
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkBy } from '../../../src/adapters/openspec/check.ts'
import { findRoot, listChanges } from '../../../src/adapters/openspec/changes.ts'
import { findCli, type OpenSpecCli } from '../../../src/adapters/openspec/cli.ts'
import { archiveChange } from '../../../src/adapters/openspec/finish.ts'
import { readProject } from '../../../src/adapters/openspec/project.ts'
import { setBoxes } from '../../../src/core/box.ts'
import { parseTasks } from '../../../src/core/tasks.ts'
import { makeProject, program, tempFolder, testEnv, writeFiles } from './project.ts'

const fixtures = new URL('../../fixtures/tasks/', import.meta.url)
const fixtureNames = readdirSync(fixtures)

async function realCli(home: string, from = home): Promise<OpenSpecCli> {
  const env = testEnv(home)
  const PATH = `${dirname(program)}:${env['PATH'] ?? ''}`
  const { cli, note } = await findCli({ from, env: { ...env, PATH } })
  if (cli === undefined) throw new Error(note)
  return cli
}

/** `name: done/total` as the program says and as we say. */
async function bothCounts(root: string): Promise<[string[], string[]]> {
  const answer = await (await realCli(root)).run(['list', '--json'], root)
  const { changes } = answer.json as {
    changes: { name: string; completedTasks: number; totalTasks: number }[]
  }
  const theirs = changes.map((each) => `${each.name}: ${each.completedTasks}/${each.totalTasks}`).sort()
  const ours = (await listChanges(root, testEnv(root)))
    .map((each) => `${each.name}: ${each.tasks_done}/${each.tasks_total}`)
    .sort()
  return [theirs, ours]
}

describe('counts', () => {
  test('P11: every fixture counts as in `openspec list`', async () => {
    const root = await tempFolder()
    for (const name of fixtureNames) {
      await writeFiles(root, {
        [`openspec/changes/${name.replace('.md', '')}/tasks.md`]: readFileSync(
          new URL(name, fixtures),
          'utf8',
        ),
      })
    }
    const [theirs, ours] = await bothCounts(root)
    expect(ours).toEqual(theirs)
    expect(ours).toHaveLength(14)
  })

  test('P11: 300 generated files count as in `openspec list`', async () => {
    const root = await tempFolder()
    const seed = Date.now() % 2 ** 31
    const start = fc.constantFrom(
      '- ',
      '* ',
      '+ ',
      '1. ',
      '12) ',
      '-',
      '1234567890. ',
      '> - ',
      '',
      '# ',
      '## 1. ',
      '```',
      '<!-- ',
      '\uFEFF- ',
    )
    const box = fc.constantFrom(
      '[ ]',
      '[x]',
      '[X]',
      '[]',
      '[ x ]',
      '[~]',
      '[?]',
      '[-]',
      '[WIP]',
      '[ ',
      '[\t]',
      '[x](a)',
      '[ ](a)',
      '[ ][b]',
      '[😀]',
      '[界]',
      '[ ]x',
      '',
    )
    const line = fc
      .tuple(
        fc.constantFrom('', '  ', '\t', '\u00A0'),
        start,
        box,
        fc.constantFrom('', ' text', ' 1.1 text', '\r', ' a\u2028b', ' ~~x~~'),
      )
      .map((parts) => parts.join(''))
    const file = fc
      .tuple(fc.constantFrom('', '\uFEFF'), fc.array(line, { maxLength: 25 }), fc.constantFrom('\n', '\r\n'))
      .map(([bom, lines, end]) => bom + lines.join(end))
    const texts = fc.sample(file, { numRuns: 300, seed })
    for (const [index, text] of texts.entries())
      await writeFiles(root, { [`openspec/changes/c${index}/tasks.md`]: text })
    const [theirs, ours] = await bothCounts(root)
    expect(ours, `seed ${seed}`).toEqual(theirs)
    expect(ours).toHaveLength(300)
  })

  test('P11: custom schemas, globs and broken metadata count as in `openspec list`', async () => {
    const root = await tempFolder()
    const schema = (name: string, generates: string, apply: string): string =>
      `name: ${name}\nversion: 1\nartifacts:\n  - id: tasks\n    generates: "${generates}"\n    description: d\n    template: t.md\n${apply}`
    const tracking = (tracks: string): string => `apply:\n  requires: [tasks]\n  tracks: ${tracks}\n`
    await writeFiles(join(root, 'openspec'), {
      'config.yaml': 'schema: many\n',
      'schemas/many/schema.yaml': schema('many', '**/tasks.md', tracking('"**/tasks.md"')),
      'schemas/one/schema.yaml': schema('one', 'plan/steps.md', tracking('plan/steps.md')),
      'schemas/none/schema.yaml': schema('none', 'tasks.md', tracking('null')),
      'schemas/plain/schema.yaml': schema('plain', 'steps.md', ''),
      'changes/by-config/a/tasks.md': '- [x] a\n- [ ] b\n',
      'changes/by-config/tasks.md': '- [ ] c\n',
      'changes/by-config/.hidden/tasks.md': '- [ ] d\n',
      'changes/by-file/.openspec.yaml': 'schema: one\n',
      'changes/by-file/plan/steps.md': '- [x] a\n',
      'changes/by-file/tasks.md': '- [ ] c\n- [ ] d\n',
      'changes/untracked/.openspec.yaml': 'schema: none\n',
      'changes/untracked/tasks.md': '- [ ] c\n- [ ] d\n',
      'changes/plain/.openspec.yaml': 'schema: plain\n',
      'changes/plain/steps.md': '- [ ] c\n- [ ] d\n- [x] e\n',
      'changes/unknown/.openspec.yaml': 'schema: nowhere\n',
      'changes/unknown/tasks.md': '- [ ] c\n',
      'changes/unknown/x/tasks.md': '- [ ] c\n',
      'changes/broken/.openspec.yaml': 'schema: [oops\n',
      'changes/broken/tasks.md': '- [ ] c\n',
      'changes/broken/x/tasks.md': '- [ ] c\n',
      'changes/empty/proposal.md': 'x',
    })
    const [theirs, ours] = await bothCounts(root)
    expect(ours).toEqual(theirs)
  })

  test.each(fixtureNames)('P11: %s: ticking and unticking every box changes nothing but boxes', (name) => {
    const bytes = readFileSync(new URL(name, fixtures))
    const { boxes } = parseTasks([{ file: name, text: bytes.toString('utf8') }])
    const blanked = (content: Uint8Array): string =>
      Buffer.from(content)
        .toString('utf8')
        .replaceAll(/\[[ xX]?\] ?/g, '[]')
    for (const { task, mark } of boxes) {
      const [there, back] = mark === 'x' ? [false, true] : [true, false]
      const flipped = setBoxes(setBoxes(bytes, new Set([task.line]), there), new Set([task.line]), back)
      if (mark === 'x' || bytes.toString('utf8').split('\n')[task.line - 1]?.includes('[ ] '))
        expect(Buffer.from(flipped)).toEqual(bytes)
      else if (mark === '' || mark === 'X') expect(blanked(flipped)).toBe(blanked(bytes))
      const ticked = setBoxes(bytes, new Set([task.line]), true)
      const now = parseTasks([{ file: name, text: Buffer.from(ticked).toString('utf8') }])
      expect(now.boxes.map((box) => box.description)).toEqual(boxes.map((box) => box.description))
    }
  })
})

describe('the program', () => {
  let home = ''
  let cli: OpenSpecCli
  beforeAll(async () => {
    // Not a folder of `tempFolder`, which goes after each test.
    home = await mkdtemp(join(tmpdir(), 'ralph-openspec-home-'))
    cli = await realCli(home)
  })
  afterAll(async () => rm(home, { recursive: true, force: true }))

  test('is found beside the project, and its absence is one line', async () => {
    const { root } = await makeProject()
    await writeFiles(root, { 'node_modules/.bin/openspec': '#!/bin/sh\necho 1.4.9\n' })
    const env = { ...testEnv(root), PATH: '/nowhere' }
    expect((await findCli({ from: join(root, 'openspec'), env })).note).toContain('not installed')
    await rm(join(root, 'node_modules'), { recursive: true })
    await mkdir(join(root, 'node_modules/.bin'), { recursive: true })
    await writeFile(join(root, 'node_modules/.bin/openspec'), '#!/bin/sh\necho 1.4.9\n', { mode: 0o755 })
    expect((await findCli({ from: join(root, 'openspec'), env: testEnv(root) })).note).toContain(
      'openspec 1.4.9 is older than 1.5',
    )
    await writeFile(join(root, 'node_modules/.bin/openspec'), '#!/bin/sh\nsleep 60\n', { mode: 0o755 })
    expect((await findCli({ from: root, env: testEnv(root), timeoutMs: 200 })).note).toContain(
      'does not tell its version',
    )
  })

  test('tells context, guidance and progress, and writes nothing to the home folder', async () => {
    const { root } = await makeProject()
    await writeFiles(root, {
      'openspec/config.yaml':
        'schema: spec-driven\ncontext: Tech\noperations:\n  apply:\n    guidance: [Be brief]\n',
    })
    // What a prompt has of it is read from the files, and is the same.
    const asked = ['instructions', 'apply', '--change', 'add-export', '--json']
    const { context, guidance } = await readProject(root)
    expect(await cli.run(asked, root)).toMatchObject({
      ok: true,
      json: { context, operationGuidance: guidance, state: 'ready', progress: { total: 4, complete: 1 } },
    })
    expect([context, guidance]).toEqual(['Tech', ['Be brief']])
    expect(await checkBy(cli, root, 'add-export').count(4)).toBe('')
    expect(await checkBy(cli, root, 'add-export').count(3)).toContain('openspec counts 4 tasks, ralph 3')
    expect(await checkBy(cli, root, 'nope').count(4)).toContain('the built-in rules are used')
    expect(await readdir(home)).toEqual([])
  })

  test('a store in another folder is found through it', async () => {
    const store = await makeProject()
    await writeFiles(store.root, {
      'openspec/config.yaml': 'schema: spec-driven\n',
      'openspec/specs/README.md': '',
      'openspec/changes/archive/README.md': '',
    })
    const code = await tempFolder()
    await writeFiles(code, { 'openspec/config.yaml': 'store: team-plans\n' })
    const storeHome = await tempFolder()
    const storeCli = await realCli(storeHome)
    const registered = await storeCli.run(
      ['store', 'register', store.root, '--id', 'team-plans', '--yes', '--json'],
      store.root,
    )
    expect(registered).toMatchObject({ ok: true, json: { status: [] } })
    expect(await findRoot(code, () => Promise.resolve(storeCli))).toBe(store.root)
  })

  test('validates: a good change, and one whose requirement lacks a scenario; again only when more than a box has changed', async () => {
    const { root, dir, tasks } = await makeProject()
    let asked = 0
    const counted: OpenSpecCli = {
      ...cli,
      run: (...args) => {
        asked += 1
        return cli.run(...args)
      },
    }
    const check = checkBy(counted, root, 'add-export')
    expect(await check.validate()).toMatchObject({ valid: true })
    await writeFile(tasks, (await readFile(tasks, 'utf8')).replace('[ ]', '[x]'))
    expect(await check.validate()).toMatchObject({ valid: true })
    expect(asked).toBe(1)
    await writeFiles(dir, {
      'specs/csv/spec.md': '## ADDED Requirements\n### Requirement: Rows\nIt writes rows.\n',
    })
    const bad = await check.validate()
    expect([bad?.valid, asked]).toEqual([false, 2])
    expect(bad?.issues[0]).toMatch(/^ERROR /)
  })

  test('archives only when no box is open', async () => {
    const { root, dir, tasks } = await makeProject()
    await expect(archiveChange(cli, root, 'add-export', testEnv(home))).rejects.toMatchObject({
      code: 'human_needed',
      exitCode: 5,
      message: expect.stringContaining('3 boxes are open'),
    })
    expect((await stat(dir)).isDirectory()).toBe(true)
    await writeFile(tasks, (await readFile(tasks, 'utf8')).replaceAll(/\[[ ?]\]/g, '[x]'))
    const archived = await archiveChange(cli, root, 'add-export', testEnv(home))
    expect(archived.archivedAs).toMatch(/^\d{4}-\d{2}-\d{2}-add-export$/)
    expect(await readdir(join(root, 'openspec/changes'))).toEqual(['archive'])
    expect(await readFile(join(root, 'openspec/specs/csv/spec.md'), 'utf8')).toContain('Rows')
  })
})
