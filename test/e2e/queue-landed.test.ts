// A change that the merge queue has landed: what every look at it says, and that nothing brings it a second time.
import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { ChangeList } from '../../src/ui/app.ts'
import { plain } from '../../src/ui/io.ts'
import { homeText } from '../../src/ui/print/list.ts'
import { ralph, start, tasksOf } from './harness.ts'
import { events, landedTree, picture, project, ranUp } from './queue-kit.ts'

it('I4 I6: what has landed says so in status, list and bare ralph; finish, up and land do not bring it again; nothing is removed', async () => {
  const at = await ranUp({ a: '', b: '' }, ['a'])
  expect(at.up.stdout).toMatch(/1 folder of what landed can go:\n {2}git worktree remove \S*-ralph-a\n/)
  const [before, landed] = [picture(at), at.git('rev-parse', 'refs/ralph-landed/main')]
  const refs = at.git('for-each-ref')
  const as = `landed on main as ${landed.slice(0, 7)}`
  const tree = `${at.repo}-ralph-a`
  const status = await ralph(at, ['status', 'a'])
  expect(status.stdout).toContain(as)
  expect(status.stdout).toMatch(/next\s+ralph queue pull[^]*then\s+git worktree remove \S*-ralph-a/)
  expect((await ralph(at, ['list'])).stdout).toContain('✓ landed, not on your main yet')
  const list = JSON.parse((await ralph(at, ['list', '--json'])).stdout) as ChangeList
  const home = homeText(list, { paint: plain, columns: undefined })
  expect(home).toMatch(/ralph queue pull/)
  expect(home).not.toMatch(/ralph finish a/)
  for (const choice of [['--cleanup'], ['--squash'], ['--keep'], []]) {
    const finished = await ralph(at, ['finish', 'a', ...choice])
    expect([finished.code, finished.stdout]).toEqual([
      0,
      expect.stringMatching(
        /^Nothing to finish: a has landed as \w+, and your main does not have it yet\.[^]*ralph queue pull\n +git worktree remove/,
      ),
    ])
  }
  const second = await ralph(at, ['land', 'a'])
  expect([second.code, second.stdout]).toEqual([
    0,
    `a has landed already, as ${landed.slice(0, 7)}; your main does not have all that landed yet: ralph queue pull\n`,
  ])
  const early = await ralph(at, ['queue', 'first', 'a'])
  expect([early.code, early.stderr]).toEqual([2, expect.stringContaining('a has landed.') as string])
  expect((await ralph(at, ['up', 'a', ...at.args])).code).toBe(0)
  expect((await ralph(at, ['queue', 'add', 'a'])).code).toBe(2)
  expect([at.git('for-each-ref'), picture(at), existsSync(tree)]).toEqual([refs, before, true])

  expect((await ralph(at, ['queue', 'pull'])).code).toBe(0)
  expect((await ralph(at, ['list'])).stdout).toContain(`✓ ${as}`)
  const pulled = await ralph(at, ['status', 'a'])
  expect(pulled.stdout).toMatch(new RegExp(`${as}[^]*next\\s+git worktree remove`))
  expect(pulled.stdout).not.toContain('ralph queue pull')
  at.git('worktree', 'remove', tree)
  const over = await ralph(at, ['status', 'a'])
  expect(over.stdout).toContain(as)
  expect(over.stdout).not.toMatch(/next|problem/)
  for (const choice of [['--cleanup'], []]) {
    const finished = await ralph(at, ['finish', 'a', ...choice])
    expect([finished.code, finished.stderr]).toEqual([0, ''])
    expect(finished.stdout).toContain(`Nothing to finish: a has ${as}.`)
  }
  const resumed = await ralph(at, ['resume', 'a'])
  expect([resumed.code, resumed.stdout + resumed.stderr]).toEqual([0, `a is done already; it has ${as}\n`])
  // A finish, which there was to do before, would be refused.
  const looped = await ralph(at, ['loop', 'a', ...at.args])
  expect([looped.code, looped.stderr]).toEqual([
    2,
    expect.stringMatching(/a has landed.*\n.*ralph loop a --fresh\n$/),
  ])

  // What is put on the branch afterwards has not landed.
  at.git('worktree', 'add', '-q', tree, 'ralph/a')
  at.write('../repo-ralph-a/more.txt', 'of the user\n')
  at.git('-C', tree, 'add', 'more.txt')
  at.git('-C', tree, 'commit', '-qm', 'more')
  expect((await ralph(at, ['status', 'a'])).stdout).not.toContain(as)
  expect((await ralph(at, ['land', 'a'])).code).toBe(0)
  expect(landedTree(at)).toMatch(/more\.txt/)
})

it('I4: lands under its title without the folder of its loop; a main that was amended or has more commits has it, one that moved apart is told to merge', async () => {
  const at = await ranUp({ a: '' }, ['--no-land'])
  at.git('worktree', 'remove', '--force', `${at.repo}-ralph-a`)
  expect((await ralph(at, ['land', 'a'])).code).toBe(0)
  expect(at.git('log', '-1', '--format=%s', 'refs/ralph-landed/main')).toBe('The change a')

  const start = at.git('rev-parse', 'main')
  at.git('commit', '-q', '--allow-empty', '-m', 'apart')
  const next = async (): Promise<string> => (await ralph(at, ['queue'])).stdout
  expect(await next()).toMatch(/not updated yet[^]*next +git merge refs\/ralph-landed\/main/)
  at.git('reset', '-q', '--hard', start)

  expect((await ralph(at, ['queue', 'pull'])).code).toBe(0)
  for (const deed of [
    ['--amend', '-m', 'in my words'],
    ['--allow-empty', '-m', 'more'],
  ]) {
    at.git('commit', '-q', ...deed)
    expect(await next()).not.toMatch(/queue pull|not updated/)
    expect((await ralph(at, ['status', 'a'])).stdout).not.toContain('queue pull')
    const pull = await ralph(at, ['queue', 'pull'])
    expect([pull.code, pull.stdout]).toEqual([0, 'main has all that landed.\n'])
  }
})

it('I4: a branch that was set back to its target has nothing to land: it is parked with where its work is, and lands when that is back', async () => {
  const at = await ranUp({ a: '' }, ['--no-land'])
  const tree = `${at.repo}-ralph-a`
  at.git('-C', tree, 'reset', '-q', '--hard', 'main')
  const up = await ralph(at, ['up', '--json'])
  expect([up.code, events(up).at(-1)]).toMatchObject([
    3,
    {
      type: 'entry.parked',
      why: 'its branch has nothing to land; its work is in refs/ralph/a/checkpoint',
    },
  ])
  at.git('-C', tree, 'merge', '-q', 'refs/ralph/a/checkpoint')
  expect((await ralph(at, ['up', 'a'])).code).toBe(0)
  expect(landedTree(at)).toContain('work/a.txt')
})

it('I4: a new plan with the name of a change that has landed runs and lands again; the plan that landed does not', async () => {
  const at = project({ a: '' }, 1)
  expect((await ralph(at, ['up', '--pull', ...at.args])).code).toBe(0)
  at.git('rm', '-rq', '--ignore-unmatch', 'openspec/changes/a')
  at.write('openspec/changes/a/tasks.md', tasksOf(2))
  at.write('openspec/changes/a/proposal.md', '# The next change a\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'the next plan')
  const again = await ralph(at, ['up', '--json', ...at.args])
  const told = events(again).map(({ type }) => type)
  expect([again.code, told.filter((type) => type === 'loop.spawned' || type === 'landed')]).toEqual([
    0,
    ['loop.spawned', 'landed'],
  ])
  expect(at.git('show', 'refs/ralph-landed/main:work/a.txt').split('\n')).toHaveLength(3)
  const third = await ralph(at, ['up', '--json', 'a', ...at.args])
  expect(events(third).filter(({ type }) => type === 'loop.spawned')).toEqual([])
})

it('I6: pull replaces an uncommitted plan that is as its loop began with it, and says where it is; one that was edited since is refused with its name and a command that works', async () => {
  const at = project({ a: '' }, 1)
  at.git('rm', '-rq', '--cached', 'openspec/changes/a')
  at.git('commit', '-qm', 'the plan is in no commit')
  const plan = 'openspec/changes/a/tasks.md'
  const written = at.read(plan)
  const told =
    '! a: the plan is not committed and lands with the work; leave it as it is until ralph queue pull\n'
  expect((await ralph(at, ['up', '--dry-run', ...at.args])).stdout).toContain(told.trim())
  const up = await ralph(at, ['up', ...at.args])
  expect([up.code, up.stdout]).toEqual([0, expect.stringContaining(told) as string])

  at.write(plan, `${written}\nof the user\n`)
  const before = picture(at)
  const refused = await ralph(at, ['queue', 'pull'])
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining(`in the way: openspec/changes/a/proposal.md, ${plan}\n`) as string,
  ])
  expect(refused.stderr).not.toMatch(/error:[^]*error:|overwritten by merge/)
  expect(picture(at)).toBe(before)
  const [, aside = ''] = /Put it aside: (mv -n [^;]*);/.exec(refused.stderr) ?? []
  execFileSync('sh', ['-c', aside], { cwd: at.repo })
  expect(at.read(`${plan}.mine`)).toBe(`${written}\nof the user\n`)
  rmSync(join(at.repo, `${plan}.mine`))
  rmSync(join(at.repo, 'openspec/changes/a/proposal.md.mine'))
  at.write(plan, written)
  at.write('openspec/changes/a/proposal.md', '# The change a\n')

  const pulled = await ralph(at, ['queue', 'pull'])
  expect([pulled.code, pulled.stderr]).toEqual([0, ''])
  const [, place = ''] = /tasks\.md was uncommitted[^]*git show (\S+tasks\.md)\)/.exec(pulled.stdout) ?? []
  expect(`${at.git('show', place)}\n`).toBe(written)
  expect(at.read(plan)).not.toContain('[ ]')
  expect(at.git('status', '--porcelain')).toBe('')
  expect((await ralph(at, ['up', ...at.args])).code).toBe(0)
})

it('Q2 I6: what pull says to type puts an ignored file and a repository aside, and they are there after it: a stash did not come back, and took no repository', async () => {
  const at = project({ a: '', b: '' }, 1)
  expect((await ralph(at, ['up', ...at.args])).code).toBe(0)
  at.write('.git/info/exclude', '*.txt\n')
  at.write('work/a.txt', 'mine\n')
  at.git('init', '-q', 'work/b.txt')
  at.write('work/b.txt/draft', 'in a repository of its own\n')
  const refused = await ralph(at, ['queue', 'pull'])
  const [, aside = ''] = /Put it aside: ([^;]*);/.exec(refused.stderr) ?? []
  expect([refused.code, aside]).toEqual([1, expect.stringContaining('work/b.txt.mine')])
  execFileSync('sh', ['-c', aside], { cwd: at.repo })
  expect((await ralph(at, ['queue', 'pull'])).code).toBe(0)
  expect(at.read('work/a.txt.mine') + at.read('work/b.txt.mine/draft')).toBe(
    'mine\nin a repository of its own\n',
  )
  expect(existsSync(join(at.repo, 'work/b.txt.mine/.git/HEAD'))).toBe(true)
  expect(at.git('rev-parse', 'main')).toBe(at.git('rev-parse', 'refs/ralph-landed/main'))
})

it('up names the folders and the branches that can go, one command on each line, and what it names can be typed: branches when main has it all, and none on which somebody has committed since', async () => {
  const at = project({ a: '', b: '', c: '' }, 1)
  const { stdout } = await ralph(at, ['up', ...at.args])
  expect(stdout).toMatch(/3 folders of what landed can go:\n(?: {2}git worktree remove \S+-ralph-[abc]\n){3}/)
  expect(stdout).not.toContain('git branch -D')
  const tree = `${at.repo}-ralph-b`
  at.git('-C', tree, 'commit', '-q', '--allow-empty', '-m', 'mine')
  const pulled = await ralph(at, ['up', '--pull', ...at.args])
  const again = pulled.code === 0 ? await ralph(at, ['up', ...at.args]) : pulled
  expect(again.stdout).toMatch(/3 folders and 2 branches of what landed can go:\n/)
  const typed = again.stdout.split('\n').filter((line) => /^ {2}git /.test(line))
  expect(typed.filter((line) => line.includes('branch')).map((line) => line.trim())).toEqual([
    'git branch -D ralph/a',
    'git branch -D ralph/c',
  ])
  expect((await ralph(at, ['status'])).stdout).toMatch(/^c .* repo-ralph-c$/m)
  for (const line of typed) at.git(...line.trim().split(' ').slice(1))
  expect(at.git('for-each-ref', '--format=%(refname)', 'refs/heads')).toBe(
    'refs/heads/main\nrefs/heads/ralph/b',
  )
  // F7: a folder that is gone is no place to look into.
  expect((await ralph(at, ['status'])).stdout).toMatch(/^c .* -$/m)
  expect((await ralph(at, ['list'])).stdout).not.toMatch(/○ open|stuck/)
})

it('found by a user: what `ralph finish --squash` brought to the target is landed there, and is not waited for', async () => {
  const at = await ranUp({ a: '', b: '' }, ['a'])
  expect((await ralph(at, ['up', '--no-land', 'b', ...at.args])).code).toBe(0)
  expect((await ralph(at, ['finish', 'b', '--squash'])).code).toBe(0)
  const squashed = at.git('rev-parse', 'main')
  const end = await ralph(at, ['land', 'b'])
  expect([end.code, end.stdout]).toEqual([0, expect.stringContaining(`landed as ${squashed.slice(0, 7)}`)])
  expect((await ralph(at, ['status', 'b'])).stdout).not.toContain('parked')
  // What the queue itself has landed is still its own.
  const pulled = await ralph(at, ['up', ...at.args])
  expect([pulled.code, at.git('rev-parse', 'main')]).toEqual([0, squashed])
  expect((await ralph(at, ['queue'])).stdout).not.toMatch(/halted|parked|gone/)
})

it('Q24: a folder of what landed that holds what is only there is not among those that can go', async () => {
  const at = await ranUp({ a: '', b: '' }, ['a'])
  appendFileSync(join(at.repo, '.git/info/exclude'), '*.ign\n')
  at.write('../repo-ralph-a/notes.ign', 'precious\n')
  const { code, stdout } = await ralph(at, ['up', 'b', ...at.args])
  expect(code).toBe(0)
  expect(stdout).toMatch(/1 folder of what landed can go:\n {2}git worktree remove \S*-ralph-b\n/)
  expect(stdout).toMatch(
    /Before you remove this folder, move what you need out of it:\n {2}cd \S*-ralph-a +only there: notes\.ign\n/,
  )
  expect(stdout).not.toMatch(/worktree remove \S*-ralph-a/)
})

it('Q2 G26: pull brings nothing into a checkout in which a loop runs', async () => {
  const at = await ranUp({ a: '', b: '' }, ['a'])
  const waits =
    'echo working; until test -e "$HOME/go"; do sleep 0.05; done; echo "<promise>FAILED: no</promise>"'
  const options = ['--checkpoint', 'stash', '--max-retries', '0', '--json', '--agent-command', waits]
  const loop = start(at, ['loop', 'b', ...options])
  await loop.seen((out) => out.includes('"text":"working'))
  const before = at.git('rev-parse', 'main')
  const pull = await ralph(at, ['queue', 'pull'])
  expect([pull.code, pull.stderr]).toEqual([
    7,
    expect.stringMatching(/A loop is running already: change b [^]*When that has ended: ralph queue pull/),
  ])
  expect([at.git('rev-parse', 'main'), at.git('status', '--short')]).toEqual([before, ''])
  at.write('../home/go', '')
  await loop.ended
  expect((await ralph(at, ['queue', 'pull'])).code).toBe(0)
  expect(at.git('rev-parse', 'main')).not.toBe(before)
})
