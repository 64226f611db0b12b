// The program as a plain user, among folders and files that it may not read or write.
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { goodAgent, program, scratch, tasksOf, type Scratch } from './harness.ts'

/** Root may do everything: as root the tests go on as this one. */
const nobody = 65_534
const isRoot = process.getuid?.() === 0

interface Told {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface PlainUser extends Scratch {
  ralph(...args: string[]): Told
}

function plainUser(tasks = tasksOf(1)): PlainUser {
  const at = scratch({ tasks })
  // Where the program lies others may not look; a build of it needs nothing around it.
  const copy = join(at.root, 'ralph', 'dist')
  cpSync(dirname(program), copy, { recursive: true })
  writeFileSync(join(at.root, 'ralph', 'package.json'), '{"type":"module"}')
  if (isRoot) execFileSync('chown', ['-R', `${nobody}:${nobody}`, at.root])
  else onTestFinished(() => void spawnSync('chmod', ['-R', 'u+rwX', at.root]))
  return {
    ...at,
    ralph(...args) {
      const options = { cwd: at.repo, env: { ...at.env, USER: 'plain' }, encoding: 'utf8' as const }
      const user = isRoot ? { uid: nobody, gid: nobody } : {}
      const { status, stdout, stderr } = spawnSync(process.execPath, [join(copy, 'main.js'), ...args], {
        ...options,
        ...user,
      })
      return { code: status, stdout, stderr }
    },
  }
}

const failing = (deed: string): string => `cat >/dev/null; ${deed}; echo "<promise>FAILED: n</promise>"`
const bug = 'This is a bug'

describe('what the agent left', () => {
  test.each([
    ['a read-only cache', 'mkdir -p go/mod; echo y > go/mod/f; chmod -R a-w go'],
    ['a plan that cannot be written', 'chmod 555 openspec/changes/demo'],
    ['a plan that cannot be entered', 'chmod 444 openspec/changes/demo'],
    ['the whole work tree read-only', 'echo y > y; chmod -R a-w .'],
    ['a work tree that cannot be entered', 'echo y > y; chmod 444 .'],
  ])('G2: %s: the loop goes on, and so do status, resume and finish', (_what, deed) => {
    const at = plainUser()
    const loop = at.ralph('loop', 'demo', '--max-retries', '1', '--agent-command', failing(deed))
    expect([loop.code, loop.stdout + loop.stderr]).toEqual([3, expect.not.stringContaining(bug)])
    expect(at.git('-c', 'safe.directory=*', 'status', '--porcelain')).toBe('')
    expect(at.ralph('status').code).toBe(0)
    for (const args of [
      ['resume', '--agent-command', goodAgent],
      ['finish', 'demo', '--cleanup'],
    ]) {
      const { code, stdout, stderr } = at.ralph(...args)
      expect([code, stdout + stderr]).toEqual([0, expect.any(String)])
    }
    expect(at.read('story-1.txt')).toContain('work of 1')
  })

  test('W20: a folder for the state file that is read-only: exit 1, said before an agent is started', () => {
    const at = plainUser()
    mkdirSync(join(at.repo, '.claude'))
    chmodSync(join(at.repo, '.claude'), 0o500)
    if (isRoot) execFileSync('chown', [`${nobody}:${nobody}`, join(at.repo, '.claude')])
    const loop = at.ralph('loop', 'demo', '--agent-command', 'echo agent was here')
    expect([loop.code, loop.stdout + loop.stderr]).toEqual([1, expect.stringContaining('.claude')])
    expect(loop.stdout).not.toContain('agent was here')
  })

  test.skipIf(!isRoot)(
    'G2: files of another user (as root only, who can make them): one error, a status all the same, and on after a chown',
    () => {
      const at = plainUser()
      const shared = join(at.root, 'shared')
      mkdirSync(shared)
      writeFileSync(join(shared, 'file'), 'made in a container')
      // The plain user may move it, but not empty it.
      chmodSync(shared, 0o1777)
      const loop = at.ralph('loop', 'demo', '--agent-command', failing('mv ../shared data'))
      const said = loop.stdout + loop.stderr
      expect([loop.code, said]).toEqual([1, expect.not.stringContaining(bug)])
      expect(said).toContain(`${join(at.repo, 'data')} belongs to another user (root)`)
      expect(said).toContain('what attempt 1 did is in git as refs/ralph/demo/attempts/1')
      expect(at.ralph('status', '--json').stdout).toContain('"status": "stopped"')
      for (const args of [['resume'], ['finish', 'demo', '--cleanup']]) {
        const again = at.ralph(...args)
        expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('sudo chown -R "$USER"')])
      }
      execFileSync('chown', ['-R', `${nobody}`, join(at.repo, 'data')])
      expect(at.ralph('resume', '--agent-command', goodAgent).code).toBe(0)
      expect(at.git('-c', 'safe.directory=*', 'show', 'refs/ralph/demo/attempts/1:data/file')).toContain(
        'container',
      )
    },
  )
})

describe('what the user may not read or write', () => {
  test('G14: a read-only git directory is refused before anything is touched, and doctor says so', () => {
    const at = plainUser()
    chmodSync(join(at.repo, '.git'), 0o555)
    const loop = at.ralph('loop', 'demo', '--agent-command', goodAgent)
    expect([loop.code, loop.stderr]).toEqual([2, expect.stringContaining('chmod -R u+rwX')])
    expect(at.ralph('doctor').stdout).toMatch(/✕ repository +.*\.git cannot be written/)
    expect(at.ralph('list').code).toBe(0)
  })

  test('a TMPDIR that cannot be written is not used', () => {
    const at = plainUser()
    const closed = join(at.root, 'closed')
    mkdirSync(closed, { mode: 0o555 })
    at.env['TMPDIR'] = closed
    expect(at.ralph('loop', 'demo', '--agent-command', goodAgent).code).toBe(0)
  })

  test('one change that cannot be read hides no other, and is refused by its name', () => {
    const at = plainUser()
    at.write('openspec/changes/other/tasks.md', tasksOf(1))
    chmodSync(join(at.repo, 'openspec/changes/other'), 0)
    const list = at.ralph('list')
    expect([list.code, list.stdout]).toEqual([
      0,
      expect.stringMatching(/demo +0\/1[^]*other: .*cannot be read/),
    ])
    for (const args of [
      ['show', 'other'],
      ['loop', 'other', '--agent-command', goodAgent],
    ]) {
      const told = at.ralph(...args)
      expect([told.code, told.stderr]).toEqual([2, expect.stringContaining('changes/other cannot be read')])
    }
  })

  test('any other file that cannot be read is named with a remedy, and is no bug', () => {
    const at = plainUser()
    at.write('openspec/config.yaml', 'context: x')
    chmodSync(join(at.repo, 'openspec/config.yaml'), 0)
    const told = at.ralph('show', 'demo')
    expect([told.code, told.stderr]).toEqual([1, expect.stringMatching(/config\.yaml[^]*chmod u\+rwX/)])
    expect(told.stderr).not.toContain(bug)
  })

  test('a journal that cannot be read is one error with its remedy; list shows the changes all the same', () => {
    const at = plainUser()
    at.ralph('loop', 'demo', '--agent-command', goodAgent)
    chmodSync(join(at.repo, '.git/ralph/changes/demo/journal.ndjson'), 0)
    for (const args of [['status'], ['resume'], ['finish', 'demo', '--cleanup']]) {
      const told = at.ralph(...args)
      expect([told.code, told.stderr]).toEqual([1, expect.stringMatching(/^error: The journal .*\n.*chmod/)])
    }
    expect(at.ralph('list').stdout).toMatch(/demo +1\/1/)
  })

  test.skipIf(!isRoot)(
    'a repository of another user (as root only) is refused with the reason of git',
    () => {
      const at = plainUser()
      execFileSync('chown', ['-R', '0:0', at.repo])
      const told = at.ralph('list')
      expect(told.code).toBe(2)
      expect(told.stderr).toContain('dubious ownership')
      expect(told.stderr).toContain(`git config --global --add safe.directory ${at.repo}`)
      expect(told.stderr).not.toContain('git init')
    },
  )
})

test.runIf(isRoot).each([
  ['a file of one’s own', 'secret.txt', nobody, 'chmod u+rwX'],
  ['another user’s file', 'secret.txt', 0, 'sudo chown -R "$USER"'],
  ['a folder of one’s own', 'folder', nobody, 'chmod u+rwX'],
  ['another user’s folder', 'folder', 0, 'sudo chown -R "$USER"'],
])('U5: %s that cannot be read: the advice works', (_, name, owner, advice) => {
  const at = plainUser()
  at.write('secret.txt', 'x')
  at.write('folder/known.txt', 'x')
  at.git('-c', 'safe.directory=*', 'add', 'folder')
  chownSync(join(at.repo, name), owner, owner)
  chmodSync(join(at.repo, name), 0)
  const refused = at.ralph('loop', 'demo', '--agent-command', goodAgent)
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain(name)
  expect(refused.stderr).toContain(advice)
})
