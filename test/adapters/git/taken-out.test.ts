// A file that is saved in the very moment in which a revert takes it out of the work tree, or by an editor that has it open.
import { execSync } from 'node:child_process'
import { existsSync, linkSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { blankMemory, remember } from '../../../src/core/git-memory.ts'
import { gitIn } from '../../../src/adapters/git/git.ts'
import { findRepository } from '../../../src/adapters/git/repository.ts'
import { lookAgain, takeOut } from '../../../src/adapters/git/revert/taken-out.ts'
import { openStore, type Store } from '../../../src/adapters/git/store.ts'
import { worldOfTest, type World } from './world.ts'

const told = ({ journal }: World): string[] =>
  journal.flatMap((event) => (event.type === 'warning' && event.code === 'set_aside' ? [event.message] : []))

/** The command that a message ends with. */
const wayBack = (message = ''): string => message.split('To have both: ')[1] ?? 'false'

const storeOf = (w: World): Store =>
  openStore({
    git: w.gitPort,
    change: 'demo',
    writeAhead: (body) => w.note(body),
    memory: () => w.journal.reduce(remember, blankMemory),
    protectedPaths: [],
    clock: { now: () => 0 },
  })

it.each([
  ['branch', 'a.txt'],
  ['branch', 'agent.txt'],
  ['stash', 'a.txt'],
  ['stash', 'agent.txt'],
] as const)(
  'what an editor that has the file open writes during a revert is kept (%s, %s)',
  async (strategy, name) => {
    const w = worldOfTest()
    const [file, open] = [join(w.dir, name), join(w.root, 'open')]
    const real = execSync('command -v git', { encoding: 'utf8' }).trim()
    const shim = `[ ! -e '${open}' ] || [ '${file}' -ef '${open}' ] || echo late > '${open}'`
    writeFileSync(join(w.root, 'git'), `#!/bin/sh\n${shim}\nexec ${real} "$@"\n`, { mode: 0o755 })
    const settings = { timeoutMs: 30_000, env: { ...w.env, PATH: `${w.root}:${w.env['PATH'] ?? ''}` } }
    const git = gitIn(await findRepository(w.dir, settings), settings)
    const checkpoints = w.checkpoints(strategy, { clock: { now: () => Date.now() }, git })
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('a.txt', 'by the agent\n')
    w.write('agent.txt', 'by the agent\n')
    // Leads to the file when its own name does not any more, as what an editor has open.
    linkSync(file, open)
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect(readFileSync(open, 'utf8')).toBe('late\n')
    expect([w.read('a.txt'), existsSync(join(w.dir, 'agent.txt'))]).toEqual(['one\n', false])
    expect(told(w)).toEqual([
      `${name} was written while the attempt was undone: these bytes are kept in ralph's folder. To have both: mv '.git/ralph/checkpoints/demo/aside/1/${name}' '${name}.saved'`,
    ])
    execSync(wayBack(told(w)[0]), { cwd: w.dir, env: w.env })
    expect(w.read(`${name}.saved`)).toBe('late\n')
  },
)

it('what is saved between the last look and the removal is told when the revert looks again, after a kill by the next one', async () => {
  const w = worldOfTest()
  for (const name of ['renamed', 'in place', 'other', 'later']) w.write(`b/${name}`, 'by the agent\n')
  const store = storeOf(w)
  takeOut(store, ['b/renamed', 'b/in place', 'b/other', 'b/later', 'b/gone'], (path) => {
    if (path === 'b/renamed') {
      w.write('draft', 'mine, renamed\n')
      renameSync(join(w.dir, 'draft'), join(w.dir, path))
    }
    if (path === 'b/in place') w.write(path, 'mine, in place\n')
    return path !== 'b/later'
  })
  // What has been written since the look stays for the next one.
  expect(readdirSync(join(w.dir, 'b'))).toEqual(['later'])
  // Another process after a kill knows no more than this one.
  await lookAgain(storeOf(w))
  const commands = told(w).map(wayBack)
  expect(commands).toHaveLength(2)
  for (const command of commands) execSync(command, { cwd: w.dir, env: w.env })
  expect([w.read('b/renamed.saved'), w.read('b/in place.saved')]).toEqual([
    'mine, renamed\n',
    'mine, in place\n',
  ])
  expect(readdirSync(join(store.folder, 'taken'))).toEqual([])
})
