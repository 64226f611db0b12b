// The plan under an agent's hands: guarded, judged, put back, ticked.
import { execFileSync } from 'node:child_process'
import {
  chmod,
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openspecSource } from '../../../src/adapters/openspec/source.ts'
import { doneCriteria } from '../../../src/adapters/openspec/tracked.ts'
import { RalphError } from '../../../src/core/error.ts'
import { changeFiles, makeProject, project, someTasks, tempFolder, writeFiles } from './project.ts'

const edit = async (path: string, from: string, to: string): Promise<void> =>
  writeFile(path, (await readFile(path, 'utf8')).replace(from, to))
const thrown = async (action: Promise<unknown>): Promise<RalphError> => {
  const error: unknown = await action.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof RalphError)) throw new Error(`expected a RalphError, got ${String(error)}`)
  return error
}

describe('read', () => {
  test('gives the stories of the change', async () => {
    const { source } = await makeProject()
    const plan = await source.read()
    expect(plan.stories.map(({ id, title }) => `${id} ${title}`)).toEqual(['1 First', '2 Second'])
    expect(plan).toMatchObject({ tasksDone: 1, tasksTotal: 4 })
  })

  test.each([
    ['empty', ''],
    ['blank', ' \n\n'],
    ['without boxes', '## 1. A\n- do this\n'],
    ['a megabyte of noise', '\u0000\uFFFD- [\n'.repeat(200_000)],
  ])('P10: a tasks.md that is %s is an error, never "no tasks left"', async (_, text) => {
    const { source } = await makeProject(text)
    expect(await thrown(source.read())).toMatchObject({ code: 'no_tasks', exitCode: 2 })
  })

  test('P10: a missing tasks.md is an error', async () => {
    const { source, tasks } = await makeProject()
    await rm(tasks)
    expect(await thrown(source.read())).toMatchObject({ code: 'spec_unreadable', exitCode: 2 })
  })

  test('P10: a tasks.md that is a link to nowhere is an error, not a missing plan', async () => {
    const { source, tasks, dir, root } = await makeProject()
    await rm(tasks)
    await symlink('nowhere', tasks)
    await writeFile(join(root, 'tasks.md'), '- [x] all done\n')
    expect(await thrown(source.read())).toMatchObject({ code: 'spec_unreadable', exitCode: 2 })
    expect((await doneCriteria(dir, 'tasks.md', root)).criteria).toBe('tasks')
  })

  test('P10: a pipe or a device in the place of the plan is an error and lost, never read for ever', async () => {
    const { source, tasks, dir } = await makeProject()
    await source.guard()
    await rm(tasks)
    execFileSync('mkfifo', [tasks, join(dir, 'notes.md')])
    await symlink('/dev/zero', join(dir, 'more.md'))
    expect(await thrown(source.read())).toMatchObject({ code: 'spec_unreadable', exitCode: 2 })
    expect((await source.judge('1')).lost).toContain('made unreadable')
    expect(await readFile(tasks, 'utf8')).toBe(someTasks)
    expect(await source.prompt({ storyId: '1', attempt: 1, attempts: 1 })).toContain('1.2 two')
  })

  test("contract 5: tasks.md of the work tree's root serves when the change has none", async () => {
    const { source, tasks, root } = await makeProject()
    await rm(tasks)
    await writeFile(join(root, 'tasks.md'), '- [ ] from the root\n')
    expect((await source.read()).stories[0]?.tasks[0]?.text).toBe('from the root')
  })
})

describe('judge', () => {
  test.each([
    ['a file', async (folder: string) => writeFile(folder, 'x')],
    ['a link to a copy elsewhere', async (folder: string) => symlink(join(dirname(folder), 'copy'), folder)],
  ])('P9: %s in the place of openspec/ is set aside and the plan is back', async (_, replace) => {
    const { source, root, tasks, text } = await makeProject()
    await source.guard()
    await cp(join(root, 'openspec'), join(root, 'copy'), { recursive: true })
    await rm(join(root, 'openspec'), { recursive: true })
    await replace(join(root, 'openspec'))
    expect((await source.judge('1')).lost).toContain('tasks.md')
    expect(await text()).toBe(someTasks)
    expect((await lstat(join(root, 'openspec'))).isDirectory()).toBe(true)
    expect(await text('proposal.md')).toBe(changeFiles['proposal.md'])
    expect(await readFile(tasks, 'utf8')).toBe(someTasks)
  })

  test('P9: own ticks and added lines stay; the lines are told', async () => {
    const { source, tasks, text } = await makeProject()
    await source.guard()
    await edit(tasks, '[ ] 1.2 two', '[x] 1.2 two\n  a note')
    expect(await source.judge('1')).toEqual({
      putBack: [],
      added: ['1 line was added to tasks.md (9 bytes)'],
      lost: undefined,
      ticked: 1,
      stillOpen: 0,
      notAsked: 0,
    })
    // A ralph that died right after judging judges again.
    expect(await source.judge('1')).toMatchObject({ putBack: [], ticked: 1, stillOpen: 0 })
    expect(await text()).toBe(someTasks.replace('[ ] 1.2 two', '[x] 1.2 two\n  a note'))
  })

  test('P9: foreign ticks, rewording, and edits of proposal, design and specs are put back and reported', async () => {
    const { source, tasks, dir, text } = await makeProject()
    await source.guard()
    await edit(tasks, '[ ] 2.1 three', '[x] 2.1 three')
    await edit(tasks, '1.1 one', '1.1 won')
    await edit(join(dir, 'proposal.md'), 'People ask', 'Nobody asks')
    await rm(join(dir, 'design.md'))
    await writeFiles(dir, {
      'specs/other/spec.md': 'new',
      'notes.md': 'mine',
      '.openspec.yaml': 'schema: other',
    })
    const { putBack, lost } = await source.judge('1')
    expect(lost).toBe(undefined)
    expect(putBack.join('\n')).toMatch(/2\.1 three" belongs to another story/)
    expect(putBack.join('\n')).toMatch(/1\.1 one" was reworded/)
    for (const name of [
      'proposal.md was changed',
      'design.md was removed; put back',
      'specs/other was added',
      '.openspec.yaml was added',
    ]) {
      expect(putBack.join('\n')).toContain(name)
    }
    expect(await text()).toBe(someTasks)
    for (const [name, content] of Object.entries(changeFiles)) expect(await text(name)).toBe(content)
    expect(await text('notes.md')).toBe('mine')
    expect((await readdir(dir)).sort()).toEqual(['design.md', 'notes.md', 'proposal.md', 'specs', 'tasks.md'])
    // C7: whoever it was, the commands that are told bring each version back.
    for (const [, command = ''] of putBack.join('\n').matchAll(/If it was you: (.*)/g))
      execFileSync('sh', ['-c', command])
    expect(await text('proposal.md')).toContain('Nobody asks')
    expect(await text('specs/other/spec.md')).toBe('new')
    expect(await text()).toContain('1.1 won')
  })

  test('P9: a change moved into archive/ comes back with its ticks, and the specs that archiving changed too', async () => {
    const { source, tasks, dir, root, text } = await makeProject()
    await writeFiles(root, { 'openspec/specs/csv/spec.md': 'before' })
    await source.guard()
    await edit(tasks, '[ ] 1.2 two', '[x] 1.2 two')
    const archive = join(dirname(dir), 'archive')
    await mkdir(archive)
    await rename(dir, join(archive, '2026-02-09-add-export'))
    await writeFiles(root, { 'openspec/specs/csv/spec.md': 'after', 'openspec/specs/new/spec.md': 'new' })
    const { putBack, ticked, lost } = await source.judge('1')
    expect(putBack[0]).toContain('moved to archive/2026-02-09-add-export')
    expect({ ticked, lost }).toEqual({ ticked: 1, lost: undefined })
    expect(await text()).toContain('[x] 1.2 two')
    expect(await readdir(archive)).toEqual([])
    expect(await readFile(join(root, 'openspec/specs/csv/spec.md'), 'utf8')).toBe('before')
    expect(await readdir(join(root, 'openspec/specs'))).toEqual(['csv'])
  })

  test.each([
    ['deleted', async (path: string) => rm(path)],
    ['emptied', async (path: string) => writeFile(path, '')],
    ['stripped of its boxes', async (path: string) => writeFile(path, 'All done.\n')],
    [
      'made unreadable (a folder in its place)',
      async (path: string) => {
        await rm(path)
        await mkdir(path)
      },
    ],
    [
      'made unreadable (a link to nowhere in its place)',
      async (path: string) => {
        await rm(path)
        await symlink('nowhere', path)
      },
    ],
    ['removed with its folder', async (path: string) => rm(dirname(dirname(path)), { recursive: true })],
  ])('P10: a plan that was %s is restored and the attempt has lost', async (_, harm) => {
    const { source, tasks, text } = await makeProject()
    await chmod(tasks, 0o640)
    await source.guard()
    await harm(tasks)
    const judgement = await source.judge('1')
    expect(judgement.lost).toContain('tasks.md')
    expect(judgement).toMatchObject({ ticked: 0, stillOpen: 1 })
    expect(await text()).toBe(someTasks)
    expect((await lstat(tasks)).mode & 0o777).toBe(0o640)
    for (const [name, content] of Object.entries(changeFiles)) expect(await text(name)).toBe(content)
  })

  test('L, P10: a change folder that somebody renames during an attempt is named with its new name, nobody is blamed, and both are there', async () => {
    const { source, tasks, dir, text } = await makeProject()
    await source.guard()
    await edit(tasks, '[ ] 1.2 two', '[x] 1.2 two')
    await rename(dir, join(dirname(dir), 'other'))
    const { lost, putBack } = await source.judge('1')
    expect(lost).toBe('the folder of the change was renamed to other while the agent ran; it is restored')
    expect(putBack[0]).toMatch(
      /by you or by the agent; .*: ralph stop add-export, and then ralph loop other$/,
    )
    expect(await text()).toBe(someTasks)
    expect(await readFile(join(dirname(dir), 'other', 'tasks.md'), 'utf8')).toContain('[x] 1.2 two')
  })

  test("P9: a tasks.md that the agent puts into the change does not replace the root's", async () => {
    const { source, tasks, root } = await makeProject()
    await rm(tasks)
    await writeFile(join(root, 'tasks.md'), '- [ ] from the root\n')
    await source.guard()
    await writeFile(tasks, '- [x] all done\n')
    expect((await source.judge('1')).putBack).toEqual([
      expect.stringContaining('tasks.md was added to the plan; taken out'),
    ])
    expect((await source.read()).tasksDone).toBe(0)
  })

  test('bytes that are no UTF-8 survive a judgement', async () => {
    const { source, tasks } = await makeProject()
    const bytes = Buffer.concat([
      Buffer.from('- [ ] a '),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('\r\n- [ ] b\n'),
    ])
    await writeFile(tasks, bytes)
    await source.guard()
    await writeFile(
      tasks,
      Buffer.concat([Buffer.from('- [x] a '), Buffer.from([0xff, 0xfe]), Buffer.from('\n')]),
    )
    await source.judge('1')
    const expected = Buffer.from(bytes)
    expected[3] = 0x78
    expect(await readFile(tasks)).toEqual(expected)
  })
})

describe('hold', () => {
  test('P9, P10: a gate that removes openspec/ is named; the plan is back with the ticks of the agent', async () => {
    const { source, root, tasks, text } = await makeProject()
    await source.guard()
    await edit(tasks, '[ ] 1.2 two', '[x] 1.2 two')
    await source.judge('1')
    const held = await source.watch()
    await rm(join(root, 'openspec'), { recursive: true })
    const { lost, putBack } = await held('make clean')
    expect(lost).toContain('tasks.md was deleted, moved or made unreadable while the gate `make clean` ran')
    expect(putBack).toContain('the gate `make clean`: proposal.md was removed; put back')
    expect(await text()).toBe(someTasks.replace('[ ] 1.2 two', '[x] 1.2 two'))
    expect(await text('proposal.md')).toBe(changeFiles['proposal.md'])
    // What is undone with the attempt is still what stood before the agent.
    await source.putBack()
    expect(await text()).toBe(someTasks)
  })

  test('P9: no tick of a gate counts and no rewording stays; added lines do, and a gate that changes nothing is not named', async () => {
    const { source, tasks, text } = await makeProject()
    await source.guard()
    const held = await source.watch()
    expect(await held('true')).toEqual({ putBack: [], lost: undefined })
    await edit(tasks, '[ ] 1.2 two', '[x] 1.2 two')
    await edit(tasks, '1.1 one', '1.1 won')
    await writeFile(tasks, `${await text()}- [ ] 9.9 added by hand meanwhile\n`)
    const { putBack } = await held('sh tick.sh')
    expect(putBack.join('\n')).toMatch(/gate `sh tick\.sh`: tasks\.md:\d+ "1\.2 two" was ticked; unticked/)
    expect(await text()).toBe(`${someTasks}- [ ] 9.9 added by hand meanwhile\n`)
  })

  test('P9: where nothing but boxes was changed the one sentence is enough; a rewording is kept aside and named', async () => {
    const { source, tasks } = await makeProject()
    await source.guard()
    const held = await source.watch()
    await edit(tasks, '[ ] 1.2 two', '[x] 1.2 two')
    expect((await held('true')).putBack).toEqual([expect.stringContaining('"1.2 two" was ticked; unticked')])
    await edit(tasks, '1.2 two', '1.2 too')
    expect((await held('true')).putBack.join('\n')).toContain('what was in tasks.md is kept. If it was you: ')
  })
})

describe('added, before a revert', () => {
  const prose =
    '\n## Notes\n\n```\n- [ ] no task\n```\n\n<!-- a comment -->\nA note.\n- [x] 9.1 done by hand\n'

  test('P9: open tasks stay in the plan with the fences, notes and ticked ones that came along', async () => {
    const { source, tasks, text } = await makeProject()
    await source.guard()
    const edited = `${someTasks}${prose}- [ ] 9.2 open\n`
    await writeFile(tasks, edited)
    await edit(tasks, '[ ] 1.2 two', '[x] 1.2 two')
    await source.judge('1')
    const bringBack = await source.added()
    await source.putBack()
    expect(await bringBack()).toEqual([expect.stringMatching(/^a task was added .* it stays in the plan$/)])
    expect(await text()).toBe(edited)
  })

  test('P9: other lines go with the attempt, and the command that brings them back is told', async () => {
    const { source, tasks, text } = await makeProject()
    await source.guard()
    await writeFile(tasks, `${someTasks}${prose}`)
    await source.judge('1')
    const bringBack = await source.added()
    await source.putBack()
    const told = await bringBack()
    expect(told).toEqual([expect.stringContaining('lines were added to tasks.md while the attempt ran')])
    expect(await text()).toBe(someTasks)
    // Ticked since: the command merges.
    await edit(tasks, '[ ] 1.2 two', '[x] 1.2 two')
    execFileSync('sh', ['-c', /If it was you: (.*)/.exec(told.join('\n'))?.[1] ?? 'false'])
    expect(await text()).toBe(`${someTasks.replace('[ ] 1.2 two', '[x] 1.2 two')}${prose}`)
  })
})

describe('putBack', () => {
  test('restores every byte, link, mode and empty folder, and is idempotent', async () => {
    const { source, dir, tasks } = await makeProject()
    await mkdir(join(dir, 'empty'))
    await symlink('proposal.md', join(dir, 'link.md'))
    await chmod(join(dir, 'design.md'), 0o600)
    const copy = join(await tempFolder(), 'copy')
    await cp(dir, copy, { recursive: true, verbatimSymlinks: true })
    await source.guard()
    await rm(join(dir, 'empty'), { recursive: true })
    await rm(join(dir, 'link.md'))
    await writeFiles(dir, { 'link.md': 'no link', 'new/deep/file': 'x', 'design.md': 'y' })
    await chmod(join(dir, 'design.md'), 0o644)
    await edit(tasks, '[ ] 1.2', '[x] 1.2')
    for (const _ of ['first', 'second']) {
      await source.putBack()
      expect(await listing(dir)).toEqual(await listing(copy))
    }
  })

  test('G17: survives a crash of ralph: another process restores from the same guard', async () => {
    const { source, dir, deps } = await makeProject()
    const before = await listing(dir)
    await source.guard()
    await rm(dir, { recursive: true })
    await openspecSource(deps).putBack()
    expect(await listing(dir)).toEqual(before)
  })

  test('G25: what a ralph killed in mid-guard left behind, torn copies and half-written files, does no harm', async () => {
    const { source, dir, deps, text } = await makeProject()
    await source.guard()
    const blobs = join(deps.guardDir, 'blobs')
    for (const name of await readdir(blobs))
      await writeFile(join(blobs, name), Buffer.alloc((await stat(join(blobs, name))).size))
    await writeFile(join(dir, '.tasks.md.ralph-tmp'), 'half')
    await source.guard()
    await rm(dir, { recursive: true })
    await source.putBack()
    expect(await text()).toBe(someTasks)
    for (const [name, content] of Object.entries(changeFiles)) expect(await text(name)).toBe(content)
    expect((await readdir(dir)).sort()).toEqual(['design.md', 'proposal.md', 'specs', 'tasks.md'])
  })

  test('a guard taken in another work tree is left alone', async () => {
    const [one, two] = [await makeProject(), await makeProject()]
    await one.source.guard()
    await rm(one.tasks)
    await openspecSource({ ...two.deps, guardDir: one.deps.guardDir }).putBack()
    expect(await stat(one.tasks).catch(() => 'missing')).toBe('missing')
  })

  test('before the first guard there is nothing to put back', async () => {
    const { source, text } = await makeProject()
    await source.putBack()
    expect(await text()).toBe(someTasks)
  })
})

describe('G17: plans that git does not hold', () => {
  test('an ignored openspec/ keeps the ticks of a failed attempt through git, but not through putBack', async () => {
    const { source, tasks, root, text } = await makeProject()
    await writeFile(join(root, '.gitignore'), 'openspec/\n')
    git(root, 'init', '-q')
    git(root, 'add', '-A')
    git(root, 'commit', '-qm', 'start')
    await source.guard()
    await edit(tasks, '[ ] 1.2', '[x] 1.2')
    git(root, 'reset', '-q', '--hard')
    git(root, 'clean', '-fdq')
    expect(await text()).toContain('[x] 1.2')
    await source.putBack()
    expect(await text()).toBe(someTasks)
  })

  test('an openspec/ that is a repository of its own: its git data stay out of the guard', async () => {
    const { source, root, dir, tasks, deps, text } = await makeProject()
    git(dir, 'init', '-q')
    git(join(root, 'openspec'), 'init', '-q')
    await source.guard()
    await edit(tasks, '[ ] 2.1', '[x] 2.1')
    git(dir, 'config', 'user.name', 'somebody')
    await source.putBack()
    expect(await text()).toBe(someTasks)
    expect(await readFile(join(dir, '.git/config'), 'utf8')).toContain('somebody')
    expect(await readFile(join(deps.guardDir, 'manifest.json'), 'utf8')).not.toContain('.git/')
  })

  test('a change folder that is a link into another folder', async () => {
    const elsewhere = await tempFolder()
    await writeFiles(elsewhere, { ...changeFiles, 'tasks.md': someTasks })
    const root = await tempFolder()
    await mkdir(join(root, 'openspec', 'changes'), { recursive: true })
    await symlink(elsewhere, join(root, 'openspec', 'changes', 'add-export'))
    const { source, dir, tasks } = await project(root)
    await source.guard()
    await edit(tasks, '[ ] 2.1', '[x] 2.1')
    await rm(dir)
    await writeFiles(dir, { 'tasks.md': '- [x] all\n' })
    await source.judge('1')
    expect((await lstat(dir)).isSymbolicLink()).toBe(true)
    expect(await readFile(join(elsewhere, 'tasks.md'), 'utf8')).toBe(someTasks)
  })

  test('a tasks.md that is a link: its target is ticked, judged and restored, the link stays', async () => {
    const elsewhere = await tempFolder()
    const { source, tasks, dir } = await makeProject()
    await rename(tasks, join(elsewhere, 'plan.md'))
    await symlink(join(elsewhere, 'plan.md'), tasks)
    await source.guard()
    await edit(tasks, '[ ] 2.1', '[x] 2.1')
    await source.judge('1')
    expect(await readFile(join(elsewhere, 'plan.md'), 'utf8')).toBe(someTasks)
    expect(await source.tick('1')).toBe(1)
    expect((await lstat(tasks)).isSymbolicLink()).toBe(true)
    await source.putBack()
    expect(await readFile(join(elsewhere, 'plan.md'), 'utf8')).toBe(someTasks)
    expect((await readdir(dir)).sort()).toEqual(['design.md', 'proposal.md', 'specs', 'tasks.md'])
  })
})

describe('tick', () => {
  test("ticks the open runnable tasks of the story; a person's stays", async () => {
    const { source, text, tasks } = await makeProject(someTasks.replaceAll('\n', '\r\n'))
    await chmod(tasks, 0o600)
    await source.guard()
    expect(await source.tick('1')).toBe(1)
    expect(await text()).toBe(someTasks.replaceAll('\n', '\r\n').replace('[ ] 1.2', '[x] 1.2'))
    expect((await stat(tasks)).mode & 0o777).toBe(0o600)
    expect(await source.tick('1')).toBe(0)
  })

  test('finds the tasks again by their text when lines were added above', async () => {
    const { source, text, tasks } = await makeProject()
    await source.guard()
    await edit(tasks, '- [x] 1.1', 'a new line\n- [x] 1.1')
    await source.tick('1')
    expect(await text()).toContain('- [x] 1.2 two')
  })

  test('a task that could be two boxes stops it, and no box is touched', async () => {
    const { source, tasks, text } = await makeProject('## 1. A\n- [ ] same\n- [ ] other\n')
    await source.guard()
    const ambiguous = '## 1. A\nx\n- [ ] same\n- [ ] other\n- [ ] same\n'
    await writeFile(tasks, ambiguous)
    expect(await thrown(source.tick('1'))).toMatchObject({ code: 'box_ambiguous', exitCode: 1 })
    expect(await text()).toBe(ambiguous)
  })

  test('of a large story only what was handed over is ticked', async () => {
    const { source } = await makeProject(
      `## 1. Big\n${Array.from({ length: 20 }, (_, n) => `- [ ] task ${n}\n`).join('')}`,
    )
    await source.guard()
    expect(await source.tick('1')).toBe(8)
    await source.guard()
    expect(await source.tick('1')).toBe(8)
    await source.guard()
    expect(await source.tick('1')).toBe(4)
    expect(await source.read()).toMatchObject({ tasksDone: 20 })
  })

  test('a parent with a task of a person below it is not ticked', async () => {
    const { source, text } = await makeProject(
      '## 1. A\n- [ ] 1.1 deploy\n  - [ ] 1.1.1 script\n  - [?] 1.1.2 approve\n',
    )
    await source.guard()
    expect(await source.tick('1')).toBe(1)
    expect(await text()).toBe('## 1. A\n- [ ] 1.1 deploy\n  - [x] 1.1.1 script\n  - [?] 1.1.2 approve\n')
  })
})

/** Real git, without the settings of this machine. */
function git(cwd: string, ...args: readonly string[]): void {
  const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.com']
  const env = {
    PATH: process.env['PATH'],
    HOME: cwd,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
  }
  execFileSync('git', [...identity, ...args], { cwd, env, stdio: 'pipe' })
}

async function listing(folder: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const { mode } = await lstat(path)
    const content = entry.isFile() ? await readFile(path, 'utf8') : entry.isSymbolicLink() ? 'link' : 'folder'
    found[path.slice(folder.length)] = `${mode.toString(8)} ${content}`
  }
  return found
}
