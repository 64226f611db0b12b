// A plan whose last task is for a person: what is theirs, where they tick it, and that the tick comes with the work.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Scratch } from './harness.ts'
import { goodAgent, ralph, scratch } from './harness.ts'

const plan = 'openspec/changes/demo/tasks.md'
const tasks = '## 1. A\n\n- [ ] 1.1 code it\n- [ ] 1.2 (manual) call the bank\n'

async function waiting(args: readonly string[] = ['--worktree']): Promise<{ at: Scratch; tree: string }> {
  const at = scratch({ tasks })
  const end = await ralph(at, ['loop', 'demo', ...args, '--agent-command', goodAgent])
  expect(end.code).toBe(5)
  return { at, tree: args.length === 0 ? at.repo : join(at.root, 'repo-ralph-demo') }
}

function tick(folder: string): void {
  const file = join(folder, plan)
  writeFileSync(file, readFileSync(file, 'utf8').replace('[ ] 1.2', '[x] 1.2'))
}

describe('a task for a person', () => {
  test.each(['--squash', '--cleanup'])(
    'B1: after finish %s the folder of a run that can be resumed is not called superfluous',
    async (choice) => {
      const { at, tree } = await waiting()
      expect((await ralph(at, ['finish', 'demo', choice])).code).toBe(0)
      const { stdout } = await ralph(at, ['status', 'demo'])
      expect(stdout).not.toContain('worktree remove')
      tick(tree)
      expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
    },
  )

  test('B1: a tick in the loop’s own folder is brought by the squash, and nothing else is said of it', async () => {
    const { at, tree } = await waiting()
    tick(tree)
    expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
    const end = await ralph(at, ['finish', 'demo', '--squash'])
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(end.stdout).not.toMatch(/not brought|also in it/i)
    expect(at.git('show', `HEAD:${plan}`)).toContain('- [x] 1.2 (manual)')
    expect(at.git('status', '--porcelain')).toBe('')
  })

  test('U1: a task that a person has done counts once the gates pass, and its tick is saved', async () => {
    const { at } = await waiting([])
    tick(at.repo)
    const red = await ralph(at, ['resume', 'demo', '--verify', 'test -e bank.txt'])
    expect([red.code, red.stdout]).toEqual([
      3,
      expect.stringContaining('1 is ticked by hand, but test -e bank.txt'),
    ])
    at.write('bank.txt', 'called\n')
    expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
    expect(at.git('status', '--porcelain')).toBe('')
    expect(at.git('show', 'ralph/demo:bank.txt')).toBe('called')
  })

  test('B1: so it is with a plan that was never committed', async () => {
    const at = scratch({ tasks, commit: false })
    at.git('add', 'README.md')
    at.git('commit', '-qm', 'start')
    const tree = join(at.root, 'repo-ralph-demo')
    await ralph(at, ['loop', 'demo', '--worktree', '--agent-command', goodAgent])
    tick(tree)
    expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
    const end = await ralph(at, ['finish', 'demo', '--squash'])
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(end.stdout).not.toMatch(/not brought/i)
    expect(at.git('show', `HEAD:${plan}`)).toContain('- [x] 1.2 (manual)')
  })

  test('B1: what else a person left in the loop’s own folder is still theirs, and stays', async () => {
    const { at, tree } = await waiting()
    tick(tree)
    writeFileSync(join(tree, 'mine.txt'), 'mine\n')
    const end = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(end.stdout).toMatch(/[Nn]ot brought, since it is in no commit of the loop's: mine\.txt/)
    expect(at.read(plan)).toContain('- [x] 1.2 (manual)')
    expect(readFileSync(join(tree, 'mine.txt'), 'utf8')).toBe('mine\n')
  })

  test.each(['status', 'why'])(
    'B2: %s names the task, the line of its box, and what to type then',
    async (look) => {
      const { at, tree } = await waiting()
      const { stdout } = await ralph(at, [look, 'demo'])
      expect(stdout).toContain(`(manual) call the bank: do it, then tick its box in ${tree}/${plan}:4\n`)
      expect(stdout).toMatch(/next +ralph resume demo +when its box is ticked/)
      const here = await waiting([])
      const said = await ralph(here.at, [look, 'demo'])
      expect(said.stdout).toContain(`tick its box in ${plan}:4\n`)
    },
  )

  test('B2: a tick in the user’s own checkout: the resume names the file that counts', async () => {
    const { at, tree } = await waiting()
    tick(at.repo)
    const end = await ralph(at, ['resume', 'demo'])
    expect(end.code).toBe(5)
    expect((end.stdout + end.stderr).replaceAll(/\s+/g, ' ')).toContain(
      `tick their boxes in ${tree}/${plan}, then`,
    )
  })

  test('B6: after the cleanup a tick in the user’s own checkout counts: status names that box, resume says done', async () => {
    const { at } = await waiting(['--worktree', '--verify', 'true'])
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
    const early = await ralph(at, ['resume', 'demo'])
    expect(early.code).toBe(5)
    for (const look of ['status', 'why']) {
      const { stdout } = await ralph(at, [look, 'demo'])
      expect(stdout).toContain(`tick its box in ${plan}:4`)
      expect(stdout).toContain('since the cleanup')
      expect(stdout).not.toMatch(/deleted or renamed|finish demo --cleanup/)
    }
    tick(at.repo)
    at.git('add', '-A')
    at.git('commit', '-qm', 'mine')
    const end = await ralph(at, ['resume', 'demo'])
    expect([end.code, end.stderr + end.stdout]).toEqual([
      0,
      expect.stringMatching(/demo is done already; no gate has judged [^]* run them: true/),
    ])
    for (const look of ['status', 'why']) {
      const { stdout } = await ralph(at, [look, 'demo'])
      expect(stdout).not.toMatch(/deleted or renamed|finish demo --cleanup|tick its box|resume/)
    }
  })

  test('B2: finish, where the user’s own uncommitted plan is in the way: what it says to type works', async () => {
    const at = scratch({ tasks, commit: false })
    at.git('add', 'README.md')
    at.git('commit', '-qm', 'start')
    await ralph(at, ['loop', 'demo', '--worktree', '--agent-command', goodAgent])
    tick(at.repo)
    const refused = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(refused.code).toBe(1)
    const said = refused.stderr.replaceAll(/\s+/g, ' ')
    expect(said).toContain(`are in the way: ${plan}`)
    expect(said).not.toContain('git merge')
    const [, command = ''] = /a copy of yours: (mv .*); then ralph finish demo --cleanup/.exec(said) ?? []
    execFileSync('sh', ['-c', command], { cwd: at.repo })
    const end = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(at.read(plan)).toContain('- [x] 1.1 code it')
    expect(at.read(`${plan}.mine`)).toContain('- [x] 1.2 (manual)')
  })
})

test('B6: who stands on another branch is told to switch before the box is ticked: a tick there is in the way of the resume', async () => {
  const { at } = await waiting([])
  // What is left is theirs: that says more than that a loop has stopped.
  const looks = ['status', 'list', 'report', 'why']
  for (const command of looks) expect((await ralph(at, [command])).stdout, command).toContain('! needs you')
  expect(at.state().status).toBe('stopped')
  at.git('checkout', '-q', 'main')
  const { stdout } = await ralph(at, ['status', 'demo'])
  expect(stdout).toMatch(
    /next +git switch ralph\/demo +its boxes are there\n +then +ralph resume demo +when its box is ticked\n/,
  )
  at.git('switch', '-q', 'ralph/demo')
  tick(at.repo)
  // Nobody has looked at it yet.
  for (const command of looks)
    expect((await ralph(at, [command])).stdout, command).toMatch(/! needs you(?![^]*✓ done)/)
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
  for (const command of looks) expect((await ralph(at, [command])).stdout, command).toContain('✓ done')
})
