// The folder of a loop that is moved or deleted while it runs, and what the user puts in its place: that is theirs.
import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ralph, scratch, start, tasksOf, type Finished, type Scratch } from './harness.ts'

/** The user does this beside the first attempt, which then ends so. */
async function beside(
  at: Scratch,
  flags: readonly string[],
  verdict: string,
  act: () => void,
): Promise<Finished> {
  const agent = `cat > /dev/null; echo work > made; touch ${at.root}/started; while [ ! -e ${at.root}/acted ]; do sleep .05; done; echo '<promise>${verdict}</promise>'`
  const running = start(at, ['loop', 'demo', '--max-retries', '0', '--agent-command', agent, ...flags])
  while (!existsSync(join(at.root, 'started'))) await delay(20)
  act()
  writeFileSync(join(at.root, 'acted'), '')
  return await running.ended
}

const good = "cat > /dev/null; echo work > made; echo '<promise>COMPLETE</promise>'"
const own = (at: Scratch): string => join(at.root, 'repo-ralph-demo')
const typed = (at: Scratch, command: string): string =>
  execFileSync('sh', ['-c', command], { cwd: at.repo, env: at.env, encoding: 'utf8' })

test.each(['COMPLETE', 'FAILED: no'])(
  'O7, R14: --worktree: what stands in the place of the loop’s folder is not touched (%s)',
  async (verdict) => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await beside(at, ['--worktree'], verdict, () => {
      renameSync(own(at), `${own(at)}.moved`)
      mkdirSync(own(at))
      writeFileSync(join(own(at), 'mine'), 'mine\n')
    })
    expect(end.code).toBe(1)
    expect(end.stderr).toContain('repo-ralph-demo is another folder now: the loop')
    expect(end.stdout).toContain('Nothing was written there.')
    expect(end.stdout).not.toContain('undone')
    expect(readdirSync(own(at))).toEqual(['mine'])
    expect(existsSync(join(`${own(at)}.moved`, 'made'))).toBe(true)
  },
)

test.each([
  ['work tree', ['-b', 'mine']],
  ['work tree without a branch', ['--detach']],
  ['clone', undefined],
])(
  'O7: --worktree: a %s of the user’s own in that place is theirs for resume and finish, too; the way that they tell works',
  async (_, how) => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await beside(at, ['--worktree'], 'FAILED: no', () => {
      renameSync(own(at), join(at.root, 'away'))
      if (how === undefined) at.git('clone', '-q', at.repo, own(at))
      else {
        at.git('worktree', 'prune')
        at.git('worktree', 'add', '-q', ...how, own(at), 'main')
      }
      writeFileSync(join(own(at), 'mine'), 'mine\n')
    })
    expect(end.code).toBe(1)
    const there = (): string[] => [
      at.git('-C', own(at), 'rev-parse', '--symbolic-full-name', 'HEAD'),
      at.git('-C', own(at), 'status', '--porcelain'),
    ]
    const before = there()
    for (const command of ['finish --cleanup', 'resume']) {
      const refused = await ralph(at, [...command.split(' '), 'demo'])
      expect([refused.code, there()]).toEqual([2, before])
      expect(refused.stderr).toContain('is another folder now, not ralph')
    }
    const { stderr } = await ralph(at, ['resume', 'demo'])
    const [, move = 'false', make = 'false'] =
      /^ {4}((?:git worktree move|mv) .+)\n {4}(.+)$/m.exec(stderr) ?? []
    typed(at, move)
    typed(at, make)
    expect((await ralph(at, ['resume', 'demo', '--agent-command', good])).code).toBe(0)
    expect(existsSync(join(`${own(at)}.mine`, 'mine'))).toBe(true)
  },
)

test('O7: --worktree: a folder that the user made again for the loop is the loop’s, also where its agent left the branch', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  expect(
    (await ralph(at, ['loop', 'demo', '--worktree', '--max-iterations', '1', '--agent-command', good])).code,
  ).toBe(3)
  at.git('worktree', 'remove', '--force', own(at))
  at.git('worktree', 'add', '-q', own(at), 'ralph/demo')
  const leaves = `cat > /dev/null; git checkout -q --detach main; touch ${at.root}/started; exec sleep 60`
  const running = start(at, ['resume', 'demo', '--max-iterations', '5', '--agent-command', leaves])
  while (!existsSync(join(at.root, 'started'))) await delay(20)
  process.kill(running.pid, 'SIGKILL')
  await running.ended
  expect((await ralph(at, ['resume', 'demo', '--agent-command', good])).code).toBe(0)
})

test('B13: --worktree: of a work tree that was removed, status, why and report say what to type; it works as printed', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  await ralph(at, ['loop', 'demo', '--worktree', '--max-iterations', '1', '--agent-command', good])
  at.git('worktree', 'remove', '--force', own(at))
  const { stdout } = await ralph(at, ['status', 'demo'])
  expect(stdout).toContain(`problem     The work tree of demo is gone: ${own(at)}\n`)
  expect(stdout).toMatch(/^ {2}work +on ralph\/demo, from main$/m)
  const steps = / {2}next +(git .*?worktree add .*?)(?: {3}| *\n).*?\n? +then +(ralph resume demo) {3}/s.exec(
    stdout,
  )
  for (const command of ['why', 'report'])
    expect((await ralph(at, [command, 'demo'])).stdout, command).toContain(steps?.[1])
  typed(at, steps?.[1] ?? 'false')
  expect((await ralph(at, [...(steps?.[2] ?? '').split(' ').slice(1), '--max-iterations', '9'])).code).toBe(0)
})

test('R14: a checkout that is moved away: its copy, or what else is put there, is not touched, and resume goes on', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const end = await beside(at, [], 'FAILED: no', () => {
    // The copy first: as long as nothing stood there, a state file that cannot be written would be the reason.
    execFileSync('cp', ['-a', at.repo, `${at.repo}.copy`])
    renameSync(at.repo, `${at.repo}.moved`)
    renameSync(`${at.repo}.copy`, at.repo)
    at.write('mine', 'mine\n')
  })
  expect([end.code, end.stderr]).toEqual([1, expect.stringContaining('is another folder now')])
  expect([at.read('mine'), at.read('made')]).toEqual(['mine\n', 'work\n'])
  expect((await ralph(at, ['resume', 'demo', '--agent-command', good])).code).toBe(0)
})

test.each(['elsewhere', 'here'])(
  'O7: --worktree: removed, and its branch checked out %s: the way that finish tells works as it is printed',
  async (where) => {
    const at = scratch({ tasks: tasksOf(1) })
    expect((await ralph(at, ['loop', 'demo', '--worktree', '--agent-command', good])).code).toBe(0)
    at.git('worktree', 'remove', '--force', own(at))
    if (where === 'here') at.git('switch', '-q', 'ralph/demo')
    else at.git('worktree', 'add', '-q', `${own(at)}.mine`, 'ralph/demo')
    const { stderr } = await ralph(at, ['finish', 'demo', '--cleanup'])
    typed(at, /^ {4}(git -C .+)$/m.exec(stderr)?.[1] ?? 'false')
    at.git('switch', '-q', 'main')
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
    expect(at.read('made')).toBe('work\n')
  },
)
