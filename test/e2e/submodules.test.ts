// O19, G19: whole loops in a repository whose submodules hold the user's work.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { run } from '../shell.ts'
import { keep, longDead, ralph, scratch, start, tasksOf, type Scratch } from './harness.ts'

/** `sub` on a branch and `sub/inner` detached; in both something staged, edited, untracked and ignored. */
function withSubmodules(): Scratch {
  if (again !== undefined) return again()
  const at = scratch({ tasks: tasksOf(1) })
  const git = (cwd: string, ...args: string[]): void => {
    const own = [
      '-c',
      'protocol.file.allow=always',
      '-c',
      'user.name=User',
      '-c',
      'user.email=u@example.invalid',
    ]
    run('git', [...own, ...args], { cwd, env: at.env })
  }
  for (const name of ['inner', 'outer']) {
    const lib = join(at.root, name)
    mkdirSync(lib)
    git(lib, 'init', '-q', '-b', 'main')
    for (const file of ['one.txt', 'two.txt']) writeFileSync(join(lib, file), `${file}\n`)
    writeFileSync(join(lib, '.gitignore'), '*.log\n')
    if (name === 'outer') git(lib, 'submodule', 'add', join(at.root, 'inner'), 'inner')
    git(lib, 'add', '-A')
    git(lib, 'commit', '-qm', 'first')
  }
  git(at.repo, 'submodule', 'add', join(at.root, 'outer'), 'sub')
  git(at.repo, 'submodule', 'update', '--init', '--recursive')
  git(at.repo, 'commit', '-qm', 'a submodule')
  git(join(at.repo, 'sub'), 'checkout', '-q', '-b', 'mine')
  for (const path of ['sub', 'sub/inner']) {
    at.write(`${path}/one.txt`, 'staged\n')
    at.git('-C', path, 'add', 'one.txt')
    at.write(`${path}/one.txt`, 'staged and edited\n')
    at.write(`${path}/new.txt`, 'untracked\n')
    at.write(`${path}/build.log`, 'ignored\n')
  }
  again = keep(at)
  return at
}

let again: (() => Scratch) | undefined

/** All of the user's in the submodules. */
function inside(at: Scratch): unknown {
  return ['sub', 'sub/inner'].map((path) => ({
    head: at.git('-C', path, 'rev-parse', '--symbolic-full-name', 'HEAD', 'HEAD^{commit}'),
    branches: at.git('-C', path, 'for-each-ref', '--format=%(refname) %(objectname)', 'refs/heads'),
    index: at.git('-C', path, 'ls-files', '-s'),
    status: at.git('-C', path, 'status', '--porcelain', '-uall'),
    files: ['one.txt', 'two.txt', 'new.txt', 'build.log'].map((file) => at.read(`${path}/${file}`)),
  }))
}

const identity =
  'GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.invalid GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.invalid'

/** The first attempt wrecks the submodules and fails; the second works in them. */
const failsThenWorks = `
if [ "$RALPH_ATTEMPT" = 1 ]; then
  git -C sub reset -q --hard && git -C sub clean -fdq && git submodule --quiet deinit -f sub && rm -rf .git/modules
  echo "<promise>FAILED: no</promise>"
else
  echo agent > sub/agent.txt
  git -C sub add agent.txt
  ${identity} git -C sub commit -q -m "of the agent" -- agent.txt
  echo edited by the agent > sub/two.txt
  echo "<promise>COMPLETE</promise>"
fi`

test.each(['branch', 'stash'])(
  "O19: fails, is reverted, completes, is cleaned up: the user's work inside is as it was, with the agent's (%s)",
  async (checkpoint) => {
    const at = withSubmodules()
    const was = at.git('-C', 'sub', 'rev-parse', 'HEAD')
    const done = await ralph(at, [
      'loop',
      'demo',
      '--checkpoint',
      checkpoint,
      '--agent-command',
      failsThenWorks,
      '--on-complete',
      'cleanup',
    ])
    expect(done.code).toBe(0)
    expect(done.stdout).toContain('uncommitted work is in the submodules sub, sub/inner')
    expect(at.git('branch', '--show-current')).toBe('main')
    expect(at.git('-C', 'sub', 'branch', '--show-current')).toBe('mine')
    expect(at.git('-C', 'sub', 'log', '--format=%s', `${was}..`)).toBe('of the agent')
    expect(at.git('-C', 'sub', 'status', '--porcelain', '-uall')).toBe(
      ' M inner\nMM one.txt\n M two.txt\n?? new.txt',
    )
    for (const path of ['sub', 'sub/inner']) {
      expect(at.read(`${path}/one.txt`)).toBe('staged and edited\n')
      expect(at.git('-C', path, 'show', ':one.txt')).toBe('staged')
      expect(at.read(`${path}/new.txt`)).toBe('untracked\n')
    }
    expect(at.read('sub/two.txt')).toBe('edited by the agent\n')
    expect(at.git('diff', '--ignore-submodules=dirty', '--name-only')).toContain('sub')
    expect(at.git('-C', 'sub', 'for-each-ref', '--format=%(refname)', 'refs/ralph')).not.toMatch(
      /pins|checkpoint$/m,
    )
  },
)

test.each(['before the loop', 'on its branch'])(
  'O19, G15: a commit of a submodule that is staged %s is staged after finish, and not called lost',
  async (when) => {
    const at = withSubmodules()
    const stage = (): void => {
      run('sh', ['-c', `${identity} git -C sub commit -qm newer`], { cwd: at.repo, env: at.env })
      at.git('add', 'sub')
    }
    if (when === 'before the loop') stage()
    const agent = 'echo x > made; echo "<promise>COMPLETE</promise>"'
    expect((await ralph(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'keep'])).code).toBe(
      0,
    )
    if (when === 'on its branch') stage()
    const end = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect([end.code, end.stdout]).toEqual([0, expect.not.stringContaining('is lost')])
    expect(at.git('rev-parse', ':sub')).toBe(at.git('-C', 'sub', 'rev-parse', 'HEAD'))
  },
)

test.each(['--cleanup', '--squash'])(
  'O19, G15: back on the branch by hand, which leaves the submodule as it is: finish %s is not hindered by it',
  async (how) => {
    const at = withSubmodules()
    run('sh', ['-c', `${identity} git -C sub commit -qm newer`], { cwd: at.repo, env: at.env })
    at.git('add', 'sub')
    const before = inside(at)
    const agent = 'echo x > made; echo "<promise>COMPLETE</promise>"'
    expect((await ralph(at, ['loop', 'demo', '--agent-command', agent])).code).toBe(0)
    at.git('switch', '-q', 'main')
    expect((await ralph(at, ['finish', 'demo', how])).code).toBe(0)
    expect([inside(at), at.read('made')]).toEqual([before, 'x\n'])
    expect(at.git('rev-parse', ':sub')).toBe(at.git('-C', 'sub', 'rev-parse', 'HEAD'))
    expect(at.git('diff', '--cached', '--name-only')).toBe('sub')
  },
)

test('O19: ralph diff and ralph restore have what an attempt did inside; keep says what is uncommitted there', async () => {
  const at = withSubmodules()
  const before = inside(at)
  const agent =
    'echo agent > sub/inner/two.txt; echo "new of the agent" > sub/agent.txt; echo "<promise>FAILED: no</promise>"'
  const stuck = await ralph(at, [
    'loop',
    'demo',
    '--agent-command',
    agent,
    '--max-retries',
    '0',
    '--on-complete',
    'keep',
  ])
  expect(stuck.code).toBe(3)
  expect(stuck.stdout).toContain('uncommitted work is in the submodules sub, sub/inner')
  expect(inside(at)).toEqual(before)
  const { stdout } = await ralph(at, ['diff', '1'])
  expect(stdout).toContain('+++ b/sub/inner/two.txt\n')
  expect(stdout).toContain('+++ b/sub/agent.txt\n')
  expect(stdout).not.toContain('new.txt')
  expect((await ralph(at, ['restore', '1', '--to', '../look'])).code).toBe(0)
  expect(existsSync(join(at.root, 'look/sub/inner/two.txt'))).toBe(true)
  expect((await ralph(at, ['restore', '1'])).code).toBe(0)
  expect(at.read('sub/inner/two.txt')).toBe('agent\n')
  expect(at.read('sub/inner/one.txt')).toBe('staged and edited\n')
})

test('O19: kill -9 in the middle of an attempt, then resume: the submodules are as before it, and the loop goes on', async () => {
  const at = withSubmodules()
  const before = inside(at)
  const wrecks = 'rm -rf sub .git/modules; echo wrecked; exec tail -f /dev/null'
  const loop = start(at, ['loop', 'demo', '--agent-command', wrecks, '--json'])
  await loop.seen((out) => out.includes('"text":"wrecked'))
  loop.child.kill('SIGKILL')
  await loop.ended
  const agent = 'echo x > x.txt; echo "<promise>COMPLETE</promise>"'
  const resumed = await ralph(at, ['resume', 'demo', '--agent-command', agent, '--on-complete', 'cleanup'])
  expect(resumed.code).toBe(0)
  // What is ignored nobody has saved.
  for (const path of ['sub', 'sub/inner']) at.write(`${path}/build.log`, 'ignored\n')
  expect(inside(at)).toEqual(before)
  expect(at.read('x.txt')).toBe('x\n')
})

test('O5, O19: what the user edits in a submodule after a kill -9 stays, and the rest of the attempt is undone there', async () => {
  const at = withSubmodules()
  const works =
    'echo agent > sub/two.txt; echo agent > sub/inner/two.txt; echo worked; exec tail -f /dev/null'
  const loop = start(at, ['loop', 'demo', '--agent-command', works, '--json'])
  await loop.seen((out) => out.includes('"text":"worked'))
  loop.child.kill('SIGKILL')
  await loop.ended
  longDead(at)
  expect((await ralph(at, ['stop', 'demo'])).code).toBe(0)
  at.write('sub/new.txt', 'edited after the death\n')
  at.write('sub/inner/later.txt', 'made after the death\n')
  const agent = 'echo x > x.txt; echo "<promise>COMPLETE</promise>"'
  const resumed = await ralph(at, ['resume', 'demo', '--agent-command', agent, '--on-complete', 'cleanup'])
  expect(resumed.code).toBe(0)
  expect(at.read('sub/new.txt')).toBe('edited after the death\n')
  expect(at.read('sub/inner/later.txt')).toBe('made after the death\n')
  for (const path of ['sub', 'sub/inner']) {
    expect(at.read(`${path}/two.txt`)).toBe('two.txt\n')
    expect(at.read(`${path}/one.txt`)).toBe('staged and edited\n')
  }
})

test("O19: --worktree: submodules stay empty; what an agent commits in one it fills is in the user's at cleanup", async () => {
  const at = withSubmodules()
  const before = inside(at)
  const agent = `git -c protocol.file.allow=always submodule --quiet update --init sub || exit
echo agent > sub/agent.txt; git -C sub add agent.txt; ${identity} git -C sub commit -q -m "of the agent"
echo "<promise>COMPLETE</promise>"`
  const done = await ralph(at, [
    'loop',
    'demo',
    '--worktree',
    '--agent-command',
    agent,
    '--on-complete',
    'cleanup',
  ])
  expect(done.code).toBe(0)
  expect(inside(at)).toEqual(before)
  const commit = /git -C sub checkout ([0-9a-f]{12})/.exec(done.stdout)?.[1] ?? ''
  expect(at.git('-C', 'sub', 'log', '-1', '--format=%s', commit)).toBe('of the agent')
})

test('O19: the original branch moved and took the submodule away: its folder stays, nothing in it is touched', async () => {
  const at = withSubmodules()
  const before = inside(at)
  const agent = 'echo x > x.txt; echo "<promise>COMPLETE</promise>"'
  expect((await ralph(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'keep'])).code).toBe(0)
  const index = { ...at.env, GIT_INDEX_FILE: join(at.root, 'other-index') }
  const git = (...args: string[]): string => run('git', args, { cwd: at.repo, env: index }).trim()
  git('read-tree', 'main')
  git('update-index', '--force-remove', 'sub')
  git(
    'update-ref',
    'refs/heads/main',
    git('commit-tree', '-p', 'main', '-m', 'without it', git('write-tree')),
  )
  rmSync(join(at.root, 'other-index'))
  const finished = await ralph(at, ['finish', 'demo', '--cleanup'])
  expect(finished.code).toBe(0)
  expect(inside(at)).toEqual(before)
  expect(at.read('x.txt')).toBe('x\n')
})

test('L, O15, O19: a required filter in a submodule that is missing at the start: nothing changed, and what it says to type works', async () => {
  const at = withSubmodules()
  at.write('sub/inner/.gitattributes', '*.txt filter=lfs\n')
  at.git('config', '--global', 'filter.lfs.clean', 'no-such-program')
  at.git('config', '--global', 'filter.lfs.required', 'true')
  const before = at.git('for-each-ref')
  const loop = ['loop', 'demo', '--agent-command', failsThenWorks]
  const end = await ralph(at, loop)
  expect([end.code, at.git('for-each-ref'), at.git('symbolic-ref', 'HEAD')]).toEqual([
    1,
    before,
    'refs/heads/main',
  ])
  at.git('config', '--global', '--unset', 'filter.lfs.required')
  const advice = /type: (ralph \w+ demo)/.exec(end.stderr)?.[1]
  const again =
    advice === undefined ? loop : [...advice.split(' ').slice(1), '--agent-command', failsThenWorks]
  expect((await ralph(at, again)).code).toBe(0)
})
