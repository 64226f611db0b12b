// Where changes land: a target of their own for each, a target that somebody sets back, and a queue whose journal is gone.
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { ralph } from './harness.ts'
import { events, landedTree, project, ranUp, report } from './queue-kit.ts'

const states = async (at: ReturnType<typeof project>): Promise<unknown> =>
  (await report(at)).entries.map(({ change, target, state }) => [change, target, state])

it('on a branch of ralph’s own nothing lands: ralph up says where the user is, and where to go', async () => {
  const at = project({ a: '' }, 1)
  at.git('switch', '-qc', 'ralph/other')
  const { code, stderr } = await ralph(at, ['up', ...at.args])
  expect([code, stderr]).toEqual([2, expect.stringMatching(/You are on ralph\/other[^]*git switch main/)])
})

it('I5: each change lands on the branch that it was added for, whatever the queue is opened for later', async () => {
  const at = await ranUp({ a: '', b: '' }, ['a', '--no-land'])
  at.git('branch', 'release')
  for (const command of ['up', 'land']) {
    const other = await ralph(at, [command, 'a', '--into', 'release', ...at.args])
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('a is in the queue for main')])
  }
  expect((await ralph(at, ['up', '--into', 'release', ...at.args])).code).toBe(0)
  expect(await states(at)).toEqual([
    ['a', 'main', 'landed'],
    ['b', 'release', 'landed'],
  ])
  expect(landedTree(at)).not.toContain('work/b.txt')
  const release = (): string => at.git('ls-tree', '-r', '--name-only', 'release')
  expect([release().includes('work/a.txt'), release().includes('work/b.txt')]).toEqual([false, true])
  // Landed on one branch, it can land on another, too.
  expect((await ralph(at, ['land', 'a', '--into', 'release', '--verify', 'sh gate.sh'])).code).toBe(0)
  expect(release()).toContain('work/a.txt')
})

it('I4 Q4: a target that somebody sets back stays so: the queue halts, pull refuses, and what was taken back lands again only by its name', async () => {
  const at = project({ a: '', b: '' }, 1)
  const before = at.git('rev-parse', 'main')
  expect((await ralph(at, ['up', 'a', '--pull', ...at.args])).code).toBe(0)
  at.git('reset', '-q', '--hard', before)
  // No command that would be refused is named.
  expect((await report(at)).take).toBe('git merge refs/ralph-landed/main')
  const halted = await ralph(at, ['up', 'b', ...at.args])
  expect([halted.code, halted.stdout]).toEqual([5, expect.stringContaining('main was reset or rewritten')])
  const pull = await ralph(at, ['queue', 'pull'])
  expect([pull.code, pull.stderr]).toEqual([1, expect.stringContaining('was reset or rewritten')])
  expect(at.git('rev-parse', 'main')).toBe(before)

  at.git('update-ref', 'refs/ralph-landed/main', 'refs/heads/main')
  expect((await report(at)).entries[0]).toMatchObject({
    change: 'a',
    state: 'parked',
    why: expect.stringContaining('neither on main nor on refs/ralph-landed/main any more') as string,
  })
  const onlyB = await ralph(at, ['up', '--json', ...at.args])
  expect(events(onlyB).flatMap((event) => (event.type === 'landed' ? [event.change] : []))).toEqual(['b'])
  expect(landedTree(at)).not.toContain('work/a.txt')
  expect(await states(at)).toEqual([
    ['a', 'main', 'parked'],
    ['b', 'main', 'landed'],
  ])
  expect((await ralph(at, ['up', 'a', ...at.args])).code).toBe(0)
  expect(landedTree(at)).toMatch(/work\/a\.txt[^]*work\/b\.txt/)
})

it('I8: a queue whose journal is gone knows from git what has landed and says so; a damaged one is refused with the way out', async () => {
  const at = await ranUp({ a: '', b: '' }, ['a'])
  const landed = at.git('rev-parse', 'refs/ralph-landed/main')
  const journal = join(at.repo, '.git/ralph/queue/journal.ndjson')
  at.write('.git/ralph/queue/journal.ndjson', `{"v":1}\n${at.read('.git/ralph/queue/journal.ndjson')}`)
  const damaged = await ralph(at, ['up', 'b', ...at.args])
  expect([damaged.code, damaged.stderr]).toEqual([1, expect.stringContaining('Line 1 of the queue')])
  rmSync(dirname(journal), { recursive: true })
  at.git('pack-refs', '--all')
  expect(await states(at)).toEqual([['a', 'main', 'landed']])
  expect((await ralph(at, ['status', 'a'])).stdout).toContain(`landed on main as ${landed.slice(0, 7)}`)
  const done = await ralph(at, ['up', ...at.args])
  expect([done.code, done.stdout]).toEqual([
    0,
    expect.stringMatching(/journal was gone: from git, a landed on main[^]*b: landed as/),
  ])
  expect(at.git('log', '--format=%s', 'main..refs/ralph-landed/main').split('\n')).toEqual([
    'The change b',
    'The change a',
  ])
})

it('I1 I4: what the user took off the target does not come back with a change that began on it; one that builds on that is parked with the way out, which works', async () => {
  const at = project({ a: '', b: 'echo more >> secret.txt' }, 1)
  const before = at.git('rev-parse', 'main')
  at.write('secret.txt', 'key\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'oops')
  const start = at.git('rev-parse', 'main').slice(0, 12)
  expect((await ralph(at, ['up', '--no-land', ...at.args])).code).toBe(0)
  at.git('reset', '-q', '--hard', before)
  const done = await ralph(at, ['up', '--land', 'merge', ...at.args])
  expect([done.code, await states(at)]).toEqual([
    3,
    [
      ['a', 'main', 'landed'],
      ['b', 'main', 'parked'],
    ],
  ])
  expect(landedTree(at)).toContain('work/a.txt')
  expect(at.git('log', '--format=%s', '--name-only', `${before}..refs/ralph-landed/main`)).not.toMatch(
    /oops|secret/,
  )
  const { why, hint = '' } = (await report(at)).entries[1] ?? {}
  expect(why).toContain(`it began at ${start}, which was taken off its target since`)
  const [, tree = '', base = ''] = /git -C (\S+) rebase --onto (\S+) \S+ ralph\/b;/.exec(hint) ?? []
  expect(() => at.git('-C', tree, 'rebase', '-q', '--onto', base, start, 'ralph/b')).toThrow()
  at.git('-C', tree, 'rm', '-q', 'secret.txt')
  at.git('-C', tree, '-c', 'core.editor=true', 'rebase', '--continue')
  expect((await ralph(at, ['queue', 'retry', 'b'])).code).toBe(0)
  expect((await ralph(at, ['up', ...at.args])).code).toBe(0)
  expect(landedTree(at)).toMatch(/work\/a\.txt[^]*work\/b\.txt/)
  expect(landedTree(at)).not.toContain('secret.txt')
})

it('I2 Q9: a name for another branch is no target; a target that was renamed parks what is for it, stops no other change, and the way out works', async () => {
  const at = await ranUp({ a: '', b: '' }, ['a', '--no-land'])
  at.git('symbolic-ref', 'refs/heads/other', 'refs/heads/main')
  const other = await ralph(at, ['up', '--into', 'other', ...at.args])
  expect([other.code, other.stderr]).toEqual([
    2,
    expect.stringContaining('other is only another name for main'),
  ])
  at.git('symbolic-ref', '-d', 'refs/heads/other')
  at.git('branch', '-m', 'main', 'trunk')
  const parked = await ralph(at, ['up', ...at.args])
  expect([parked.code, await states(at)]).toEqual([
    5,
    [
      ['a', 'main', 'parked'],
      ['b', 'trunk', 'landed'],
    ],
  ])
  expect(parked.stdout).toMatch(/there is no branch main[^]*ralph up a --into <branch>/)
  expect((await ralph(at, ['up', 'a', '--into', 'trunk', ...at.args])).code).toBe(0)
  expect(at.git('ls-tree', '-r', '--name-only', 'refs/ralph-landed/trunk')).toMatch(
    /work\/a\.txt[^]*work\/b\.txt/,
  )
})

it('Q11 I1: the merge of what landed with what the user committed is gated before anything begins on it; red, the queue halts, and no loop is started or blamed', async () => {
  const at = project({ a: 'touch one.txt', b: '' }, 1)
  expect((await ralph(at, ['up', 'a', ...at.args])).code).toBe(0)
  at.write('two.txt', '')
  at.git('add', '-A')
  at.git('commit', '-qm', 'mine')
  const red = await ralph(at, ['up', 'b', ...at.args])
  expect([red.code, red.stdout]).toEqual([
    5,
    expect.stringContaining('the gate `sh gate.sh` fails on main together with what landed, without b'),
  ])
  expect([red.stdout.includes('its loop runs'), at.git('branch', '--list', 'ralph/b')]).toEqual([false, ''])
  at.git('rm', '-q', 'two.txt')
  at.git('commit', '-qm', 'mended')
  expect((await ralph(at, ['up', 'b', ...at.args])).code).toBe(0)
  expect(landedTree(at)).toContain('work/b.txt')
})

it('I4 I6: what landed on a branch that is gone is in nobody’s way: feature/x is a target after feature was; where only ralph’s ref holds it, the command that keeps it is named, and works', async () => {
  const at = project({ a: '', b: '', c: '' }, 1)
  at.git('checkout', '-qb', 'feature')
  expect((await ralph(at, ['up', 'a', '--pull', ...at.args])).code).toBe(0)
  at.git('checkout', '-q', 'main')
  at.git('merge', '-q', 'feature')
  at.git('branch', '-qD', 'feature')
  at.git('checkout', '-qb', 'feature/x')
  const second = await ralph(at, ['up', 'b', ...at.args])
  expect([second.code, second.stderr]).toEqual([0, ''])
  expect(await states(at)).toEqual([
    ['a', 'feature', 'landed'],
    ['b', 'feature/x', 'landed'],
  ])
  expect((await ralph(at, ['status', 'a'])).stdout).toContain('landed on feature')
  at.git('checkout', '-q', 'main')
  at.git('branch', '-qD', 'feature/x')
  at.git('checkout', '-qb', 'feature')
  const refused = await ralph(at, ['up', 'c', ...at.args])
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('refs/ralph-landed/feature/x')])
  const [, command = ''] = /git (branch \S+ \S+)\./.exec(refused.stderr) ?? []
  at.git(...command.split(' '))
  const third = await ralph(at, ['up', 'c', ...at.args])
  expect([third.code, third.stderr]).toEqual([0, ''])
  expect(await states(at)).toEqual([
    ['a', 'feature', 'landed'],
    ['b', 'feature/x', 'landed'],
    ['c', 'feature', 'landed'],
  ])
})
