// `--worktree` more than once: cleaned up after a halt and gone on with, begun and killed, beside another loop.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Finished, Scratch } from './harness.ts'
import { goodAgent, killRalph, ralph, scratch, start, tasksOf } from './harness.ts'

/** Every story writes to the same file: what has been carried over twice, or not at all, is seen. */
const appends = 'echo "work of $RALPH_STORY" >> work.txt; echo "<promise>COMPLETE</promise>"'
const untilStory2 = `test $RALPH_STORY = 1 || { echo working; exec tail -f /dev/null; }; ${appends}`
const failsAt2 = `test $RALPH_STORY = 1 || { echo "<promise>FAILED: no</promise>"; exit; }; ${appends}`
const cleanup = ['--on-complete', 'cleanup']

const isWell = ({ code, stderr }: Finished): unknown[] => [
  code,
  stderr.match(/error|in the way|the same lines/i),
]

/** Story 1 is done and in the user's checkout, story 2 is not; the loop has ended in this way. */
const halts: Record<string, (at: Scratch) => Promise<void>> = {
  'a SIGTERM': async (at) => {
    const loop = start(at, [
      'loop',
      'demo',
      '--worktree',
      '--agent-command',
      untilStory2,
      '--json',
      ...cleanup,
    ])
    await loop.seen((out) => out.includes('"text":"working'))
    loop.child.kill('SIGTERM')
    expect((await loop.ended).code).toBe(143)
  },
  'a story that is stuck': async (at) => {
    const options = ['--worktree', '--agent-command', failsAt2, '--max-retries', '0', ...cleanup]
    expect((await ralph(at, ['loop', 'demo', ...options])).code).toBe(3)
  },
  'a kill -9 and ralph finish': async (at) => {
    const loop = start(at, ['loop', 'demo', '--worktree', '--agent-command', untilStory2, '--json'])
    await loop.seen((out) => out.includes('"text":"working'))
    loop.child.kill('SIGKILL')
    await loop.ended
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
  },
}

describe('O7: cleanup after a halt, resume, cleanup again', () => {
  test.each(Object.keys(halts))('H2: after %s the rest arrives', async (halt) => {
    const at = scratch({ tasks: tasksOf(3) })
    await halts[halt]?.(at)
    expect(at.read('work.txt')).toBe('work of 1\n')
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', appends, ...cleanup])
    expect(isWell(resumed)).toEqual([0, null])
    expect(resumed.stdout).toContain('The rest is on main, uncommitted')
    expect(at.read('work.txt')).toBe('work of 1\nwork of 2\nwork of 3\n')
    expect(at.read('openspec/changes/demo/tasks.md')).toBe(tasksOf(3).replaceAll('[ ]', '[x]'))
    expect(at.git('branch', '--show-current')).toBe('main')
    expect(at.git('log', '--format=%s')).toBe('start')
  })

  test('H2: three times, with nothing of the user’s in the way', async () => {
    const at = scratch({ tasks: tasksOf(3) })
    at.write('mine.txt', 'mine\n')
    const one = ['--max-iterations']
    const options = ['--worktree', '--agent-command', appends, ...cleanup]
    expect((await ralph(at, ['loop', 'demo', ...options, ...one, '1'])).code).toBe(3)
    expect((await ralph(at, ['resume', 'demo', ...one, '2'])).code).toBe(3)
    expect(at.read('work.txt')).toBe('work of 1\nwork of 2\n')
    expect(isWell(await ralph(at, ['resume', 'demo', ...one, '9']))).toEqual([0, null])
    expect(at.read('work.txt')).toBe('work of 1\nwork of 2\nwork of 3\n')
    expect(at.read('mine.txt')).toBe('mine\n')
  })

  test('H2: what was carried over may be committed, and more of the user’s beside it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    await halts['a story that is stuck']?.(at)
    at.write('mine.txt', 'mine\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'half of it, and mine')
    expect(isWell(await ralph(at, ['resume', 'demo', '--agent-command', appends]))).toEqual([0, null])
    expect(at.read('work.txt')).toBe('work of 1\nwork of 2\n')
    expect(at.git('log', '-1', '--format=%s')).toBe('half of it, and mine')
    expect(at.git('status', '--porcelain')).not.toContain('mine.txt')
  })

  test('H2: what the user has changed since is not overwritten, and what is said of it is true', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    await halts['a story that is stuck']?.(at)
    at.write('work.txt', 'work of 1\nand mine\n')
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', appends])
    expect(resumed.code).toBe(0)
    expect(resumed.stdout + resumed.stderr).toContain('are in the way: work.txt')
    expect(resumed.stdout + resumed.stderr).not.toContain('main is as it was')
    expect(at.read('work.txt')).toBe('work of 1\nand mine\n')
    const finish = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect([finish.code, at.read('work.txt')]).toEqual([1, 'work of 1\nand mine\n'])
    at.write('work.txt', 'work of 1\n')
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
    expect(at.read('work.txt')).toBe('work of 1\nwork of 2\n')
  })

  test('H2: what the user has thrown away stays away, and it is said', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const options = ['--worktree', '--max-retries', '0', ...cleanup]
    const agent = `test $RALPH_STORY = 1 || { echo "<promise>FAILED: no</promise>"; exit; }; ${goodAgent}`
    expect((await ralph(at, ['loop', 'demo', '--agent-command', agent, ...options])).code).toBe(3)
    at.git('clean', '-fdq', 'story-1.txt')
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect(isWell(resumed)).toEqual([0, null])
    expect(resumed.stdout).toContain('As you left it since the cleanup before: story-1.txt')
    expect(existsSync(join(at.repo, 'story-1.txt'))).toBe(false)
    expect(at.read('story-2.txt')).toBe('work of 2\n')
  })

  test('H2: with a detached HEAD the commit that is named is the user’s', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    at.git('checkout', '-q', '--detach')
    const mine = at.git('rev-parse', '--short=12', 'HEAD')
    await halts['a story that is stuck']?.(at)
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', appends])
    expect(isWell(resumed)).toEqual([0, null])
    expect(resumed.stdout).toContain(`The rest is on the commit ${mine}, uncommitted`)
    expect(at.read('work.txt')).toBe('work of 1\nwork of 2\n')
  })

  test('H2: an untracked change folder, brought along, goes back each time', async () => {
    const at = scratch({ tasks: tasksOf(2), commit: false })
    at.git('add', 'README.md')
    at.git('commit', '-qm', 'without the plan')
    await halts['a story that is stuck']?.(at)
    expect(isWell(await ralph(at, ['resume', 'demo', '--agent-command', appends]))).toEqual([0, null])
    expect(at.read('work.txt')).toBe('work of 1\nwork of 2\n')
    expect(at.read('openspec/changes/demo/tasks.md')).toBe(tasksOf(2).replaceAll('[ ]', '[x]'))
  })

  test('H2: begun anew after a cleanup, the work is for the branch that the user is on now', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    await halts['a story that is stuck']?.(at)
    at.git('switch', '-qc', 'other')
    at.git('add', '-A')
    at.git('commit', '-qm', 'the first part')
    const options = ['--worktree', '--fresh', '--agent-command', appends, ...cleanup]
    const anew = await ralph(at, ['loop', 'demo', ...options])
    expect(isWell(anew)).toEqual([0, null])
    expect(anew.stdout).toContain('Everything is on other, uncommitted')
    expect(at.read('work.txt')).toBe('work of 1\nwork of 2\n')
    expect(at.git('branch', '--show-current')).toBe('other')
  })
})

/** ralph is killed at its `git worktree add`; with `half` so is git, in the middle of it. */
async function killedStart(at: Scratch, half: boolean): Promise<void> {
  const bin = join(at.root, 'bin')
  mkdirSync(bin)
  const admin = join(at.repo, '.git', 'worktrees', 'repo-ralph-demo')
  const tree = join(at.root, 'repo-ralph-demo')
  const begun = `mkdir -p ${admin} ${tree}; echo initializing > ${admin}/locked; echo ${tree}/.git > ${admin}/gitdir; echo gitdir: ${admin} > ${tree}/.git; echo ${'0'.repeat(40)} > ${admin}/HEAD`
  const deed = half ? begun : 'git "$@"'
  const script = `#!/bin/sh\nPATH="\${PATH#*:}"\ncase "$*" in *"worktree add"*) ${deed}; ${killRalph}; exit 1;; esac\nexec git "$@"\n`
  writeFileSync(join(bin, 'git'), script)
  chmodSync(join(bin, 'git'), 0o755)
  const env = { PATH: `${bin}${delimiter}${at.env['PATH'] ?? ''}` }
  const killed = await ralph(at, ['loop', 'demo', '--worktree', '--agent-command', goodAgent], { env })
  expect(killed.signal).toBe('SIGKILL')
}

describe('O8: killed while the work tree is made', () => {
  test.each([
    ['just after', false],
    ['within', true],
  ])('M2: %s `git worktree add`: the same command again works', async (_when, half) => {
    const at = scratch({ tasks: tasksOf(1) })
    await killedStart(at, half)
    const again = await ralph(at, ['loop', 'demo', '--worktree', '--agent-command', goodAgent, ...cleanup])
    expect(isWell(again)).toEqual([0, null])
    expect(at.read('story-1.txt')).toBe('work of 1\n')
  })

  test('L: the folder of a killed start is not left without a word', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await killedStart(at, false)
    expect(existsSync(join(at.root, 'repo-ralph-demo'))).toBe(true)
    const loop = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect(isWell(loop)).toEqual([0, null])
    expect(loop.stderr).toContain('it held nothing of yours and was removed')
    expect(existsSync(join(at.root, 'repo-ralph-demo'))).toBe(false)
    expect(at.git('worktree', 'list').split('\n')).toHaveLength(1)
  })

  test('M2: the tree of a run that has begun is not taken for a leftover', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const loop = start(at, ['loop', 'demo', '--worktree', '--agent-command', untilStory2, '--json'])
    await loop.seen((out) => out.includes('"text":"working'))
    loop.child.kill('SIGKILL')
    await loop.ended
    expect(isWell(await ralph(at, ['resume', 'demo', '--agent-command', appends]))).toEqual([0, null])
    expect(existsSync(join(at.root, 'repo-ralph-demo', 'work.txt'))).toBe(true)
  })
})

test('O7: in the loop’s own tree: a file of the user’s is not said to be brought, and a folder of theirs in its place is not taken for it', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const tree = join(at.root, 'repo-ralph-demo')
  const options = ['--worktree', '--agent-command', failsAt2, '--max-retries', '0']
  expect((await ralph(at, ['loop', 'demo', ...options])).code).toBe(3)
  writeFileSync(join(tree, 'u.txt'), 'mine\n')
  const finish = await ralph(at, ['finish', 'demo', '--cleanup'])
  expect(finish.stdout).toMatch(
    /^What the loop has saved is on main.*: u\.txt\. It stays in .*repo-ralph-demo\./,
  )
  rmSync(tree, { recursive: true })
  mkdirSync(tree)
  writeFileSync(join(tree, 'mine'), 'mine\n')
  const status = await ralph(at, ['status', 'demo'])
  expect(status.stdout).toMatch(/problem .* is gone, and .*repo-ralph-demo is another folder now/)
  const refused = await ralph(at, ['resume', 'demo'])
  expect([refused.code, existsSync(join(tree, 'mine'))]).toEqual([2, true])
  const [, move = 'false', again = 'false'] =
    /^ {4}(mv .+)\n {4}(git worktree add --force --detach \S+ \S+)$/m.exec(refused.stderr) ?? []
  execFileSync('sh', ['-ec', `${move}; ${again}`], { cwd: at.repo, env: at.env, stdio: 'ignore' })
  expect((await ralph(at, ['resume', 'demo', '--agent-command', appends])).code).toBe(0)
})

test('O3 G26: nothing is brought into a checkout in which a loop of another change runs: its revert would take it away', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('openspec/changes/other/tasks.md', tasksOf(1))
  at.git('add', '-A')
  at.git('commit', '-qm', 'another change')
  const waits =
    'echo working; until test -e "$HOME/go"; do sleep 0.05; done; echo "<promise>FAILED: no</promise>"'
  const options = ['--checkpoint', 'stash', '--max-retries', '0', '--json', '--agent-command', waits]
  const other = start(at, ['loop', 'other', ...options, ...cleanup])
  await other.seen((out) => out.includes('"text":"working'))
  const done = await ralph(at, ['loop', 'demo', '--worktree', '--agent-command', goodAgent, ...cleanup])
  expect([done.code, done.stdout + done.stderr]).toEqual([
    0,
    expect.stringMatching(
      /A loop is running already: change other [^]*When that has ended: ralph finish demo --cleanup/,
    ),
  ])
  expect(done.stdout).not.toMatch(/Everything is on main/)
  for (const choice of ['--cleanup', '--squash']) {
    const refused = await ralph(at, ['finish', 'demo', choice])
    expect([refused.code, refused.stderr]).toEqual([
      7,
      expect.stringContaining(`ralph finish demo ${choice}`),
    ])
  }
  expect(existsSync(join(at.repo, 'story-1.txt'))).toBe(false)
  writeFileSync(join(at.root, 'home', 'go'), '')
  expect((await other.ended).code).toBe(3)
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
  expect(at.read('story-1.txt')).toBe('work of 1\n')
})

describe('what is said of it can be typed where the user stands', () => {
  const stuck = async (at: Scratch): Promise<string> => {
    const options = ['--worktree', '--agent-command', failsAt2, '--max-retries', '0']
    expect((await ralph(at, ['loop', 'demo', ...options])).code).toBe(3)
    at.write('README.md', 'mine\n')
    return join(at.root, 'repo-ralph-demo')
  }
  const typed = (cwd: string, at: Scratch, command = 'false'): string =>
    execFileSync('sh', ['-ec', command], { cwd, env: at.env, encoding: 'utf8', stdio: 'pipe' })

  test('H2: another branch and changes in the loop’s folder: the commands are for that folder', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const tree = await stuck(at)
    typed(tree, at, 'git switch -q -c mine; echo later > later.txt')
    const refused = await ralph(at, ['resume', 'demo'])
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining(`changes on mine in ${tree}: later.txt.`),
    ])
    const [, stash, go] = /`(git .*? stash -u)`.*`(git .*? switch ralph\/demo)`/.exec(refused.stderr) ?? []
    typed(at.repo, at, stash)
    typed(at.repo, at, go)
    expect([at.read('README.md'), at.git('branch', '--show-current')]).toEqual(['mine\n', 'main'])
    expect(isWell(await ralph(at, ['resume', 'demo', '--agent-command', appends]))).toEqual([0, null])
    // In the folder itself they need no more words.
    typed(tree, at, 'git switch -q mine; echo later > other.txt')
    const inside = await ralph(at, ['finish', 'demo', '--cleanup'], { cwd: tree })
    expect(inside.code).toBe(0)
    expect(at.read('work.txt')).toBe('work of 1\nwork of 2\n')
  })

  test.each([
    ['its name back', 'branch', 'main'],
    ['it again', 'switch', 'main\ntrunk'],
  ])('H2: the user’s branch was renamed: a cleanup names what gives %s', async (_, verb, branches) => {
    const at = scratch({ tasks: tasksOf(2) })
    await stuck(at)
    at.git('branch', '-m', 'main', 'trunk')
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', appends])
    expect(resumed.stdout).toContain('The branch main is gone (renamed or deleted), and a cleanup needs it.')
    for (const choice of ['--squash', '--cleanup']) {
      const refused = await ralph(at, ['finish', 'demo', choice])
      expect(refused.code).toBe(1)
      const command = new RegExp(`\`(git ${verb} .*?)\``).exec(refused.stderr)?.[1]
      if (choice === '--cleanup') typed(at.repo, at, command)
    }
    expect(at.git('for-each-ref', '--format=%(refname:short)', 'refs/heads/main', 'refs/heads/trunk')).toBe(
      branches,
    )
    expect(isWell(await ralph(at, ['finish', 'demo', '--cleanup']))).toEqual([0, null])
    expect([at.read('work.txt'), at.read('README.md')]).toEqual(['work of 1\nwork of 2\n', 'mine\n'])
  })

  test('H2: the repository was moved: the one command that brings both together is named, and then all goes on', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const tree = await stuck(at)
    const moved = join(at.root, 'moved')
    renameSync(at.repo, moved)
    const inside = await ralph(at, ['resume', 'demo'], { cwd: join(tree, 'openspec') })
    expect(inside.stderr).toContain(`in its folder now: git worktree repair ${tree};`)
    expect(inside.stderr).not.toContain('git init')
    const refused = await ralph(at, ['finish', 'demo', '--cleanup'], { cwd: moved })
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('has lost its repository')])
    typed(moved, at, /(git worktree repair \S+),/.exec(refused.stderr)?.[1])
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', appends], { cwd: tree })
    expect(isWell(resumed)).toEqual([0, null])
    expect(isWell(await ralph(at, ['finish', 'demo', '--cleanup'], { cwd: moved }))).toEqual([0, null])
    expect(typed(moved, at, 'cat work.txt README.md')).toBe('work of 1\nwork of 2\nmine\n')
  })
})

test('O8: a folder that cannot be made for it: exit 2, and nothing is touched', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const before = at.git('for-each-ref') + at.git('worktree', 'list')
  const options = ['--worktree', 'README.md/x', '--agent-command', appends]
  const refused = await ralph(at, ['loop', 'demo', ...options])
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringMatching(/README\.md\/x cannot be made: .*\n {2}Nothing was touched\./),
  ])
  expect(at.git('for-each-ref') + at.git('worktree', 'list')).toBe(before)
  expect(existsSync(join(at.repo, '.git/ralph'))).toBe(false)
  expect((await ralph(at, ['status', 'demo'])).stdout).not.toContain('problem')
})

test('O8: a folder below a symbolic link is known by its real name, the second time too', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  mkdirSync(join(at.root, 'real'))
  symlinkSync('real', join(at.root, 'link'))
  const options = ['--worktree', join(at.root, 'link/tree'), '--on-complete', 'keep']
  const first = await ralph(at, ['loop', 'demo', ...options, '--story', '1', '--agent-command', appends])
  expect(isWell(first)).toEqual([0, null])
  expect(at.git('worktree', 'list')).toContain(join(at.root, 'real/tree'))
  const again = await ralph(at, ['loop', 'demo', ...options, '--fresh', '--agent-command', appends])
  expect(isWell(again)).toEqual([0, null])
  expect(isWell(await ralph(at, ['finish', 'demo', '--cleanup']))).toEqual([0, null])
  expect(at.read('work.txt')).toBe('work of 1\nwork of 2\n')
})

test('O8: a folder in the git directory: exit 2, and nothing is touched', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const refused = await ralph(at, ['loop', 'demo', '--worktree', '.git/x', '--agent-command', appends])
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('Nothing was touched.')])
  expect(existsSync(join(at.repo, '.git/x'))).toBe(false)
})

describe('beside another loop', () => {
  test('L: a loop in the checkout, and another change with --worktree beside it: it begins at the user’s branch, and goes back there', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/other/proposal.md', '# Other\n')
    at.write('openspec/changes/other/tasks.md', tasksOf(1))
    at.write('mine.txt', 'uncommitted\n')
    const hangs = 'echo working; exec tail -f /dev/null'
    const first = start(at, ['loop', 'demo', '--agent-command', hangs, '--json'])
    await first.seen((out) => out.includes('"text":"working'))
    const options = ['--worktree', '--agent-command', appends, ...cleanup]
    const beside = await ralph(at, ['loop', 'other', ...options])
    expect(beside.code).toBe(0)
    const main = at.git('rev-parse', '--short=12', 'main')
    expect(beside.stderr).toContain(`other begins at main (${main})`)
    expect(beside.stderr).toContain('When that has ended: ralph finish other --cleanup')
    expect(at.git('ls-tree', '--name-only', 'ralph/other').split('\n')).not.toContain('mine.txt')
    expect(at.git('log', '--format=%s', 'ralph/other', '--not', 'main')).not.toContain('ralph/demo')
    first.child.kill('SIGTERM')
    expect((await first.ended).code).toBe(143)
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
    const finish = await ralph(at, ['finish', 'other', '--cleanup'])
    expect([finish.code, finish.stderr]).toEqual([0, ''])
    expect(at.git('branch', '--show-current')).toBe('main')
    expect(at.read('work.txt') + at.read('mine.txt')).toBe('work of 1\nuncommitted\n')
    expect(at.read('openspec/changes/other/tasks.md')).toBe(tasksOf(1).replaceAll('[ ]', '[x]'))
  })
})
