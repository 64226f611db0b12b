// Whose files are they? An agent or a user who leaves the loop's branch, sweeps its tree or writes beside the gates loses nothing of the user's.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { eventsOf, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'

const lines = (word: string): string => Array.from({ length: 20 }, (_, at) => `${word} ${at}\n`).join('')

/** Untracked, staged new, edited, deleted, renamed and chmod: none of it committed. */
function withUsersFiles(at: Scratch): Scratch {
  at.write('src/a.txt', lines('a'))
  at.write('del.txt', 'to be deleted\n')
  at.write('old.txt', lines('old'))
  at.write('run.sh', '#!/bin/sh\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'files')
  at.git('branch', 'feature')
  at.write('un tracked.txt', 'untracked\n')
  chmodSync(join(at.repo, 'un tracked.txt'), 0o600)
  at.write('st.txt', 'staged new\n')
  at.git('add', 'st.txt')
  at.write('src/a.txt', `${lines('a')}edited\n`)
  rmSync(join(at.repo, 'del.txt'))
  renameSync(join(at.repo, 'old.txt'), join(at.repo, 'new.txt'))
  chmodSync(join(at.repo, 'run.sh'), 0o755)
  return at
}

/** On main, that is: it lies there untracked. */
function withoutPlan(at: Scratch): Scratch {
  at.git('stash', '-qu')
  at.git('rm', '-rq', '--cached', 'openspec')
  at.git('commit', '-qm', 'without the plan')
  at.git('branch', '-f', 'feature')
  at.git('stash', 'pop', '-q', '--index')
  return at
}

function usersFiles(folder: string): Record<string, string | undefined> {
  const names = ['un tracked.txt', 'st.txt', 'src/a.txt', 'del.txt', 'old.txt', 'new.txt', 'run.sh']
  return Object.fromEntries(
    names.map((name) => {
      const path = join(folder, name)
      if (!existsSync(path)) return [name, undefined]
      return [name, `${(statSync(path).mode & 0o777).toString(8)} ${readFileSync(path, 'utf8')}`]
    }),
  )
}

/** Runs the words in its first iteration, works, and says COMPLETE. */
const agent = (words: string): string =>
  `cat > /dev/null; if [ "$RALPH_ITERATION" = 1 ]; then ${words}; fi; echo "$RALPH_STORY" >> work.txt; echo "<promise>COMPLETE</promise>"`

const sweep = 'git checkout -q . && git clean -fdq'
const newBranch =
  'git checkout -qb topic/x main && echo c > committed.txt && git add committed.txt && git -c user.name=a -c user.email=a@b commit -qm c'

function loop(at: Scratch, words: string, ...more: string[]): Promise<Finished> {
  return ralph(at, ['loop', 'demo', '--json', '--max-retries', '0', '--agent-command', agent(words), ...more])
}

const warningsOf = (finished: Finished): string[] =>
  eventsOf(finished).flatMap((event) => (event.type === 'warning' ? [event.message] : []))

describe('an agent that leaves the branch, or sweeps the tree, and says COMPLETE', () => {
  test.each([
    ['git checkout main', 'git checkout -q main', 'main'],
    ['git checkout -f main', 'git checkout -qf main', 'main'],
    ['git reset --hard main', 'git reset -q --hard main', 'ralph/demo'],
    ['a new branch from main with a commit', newBranch, 'topic/x'],
    ['git checkout --detach main', 'git checkout -q --detach main', 'the commit'],
    ['git switch of another branch', 'git switch -q feature', 'feature'],
  ])('C1 O1: branch mode, %s: the files of the user and its work are there', async (_, words, place) => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(2) }))
    const before = usersFiles(at.repo)
    const done = await loop(at, words, '--on-complete', 'cleanup')
    expect(done.code, done.stderr).toBe(0)
    expect(usersFiles(at.repo)).toEqual(before)
    expect(at.read('work.txt')).toBe('1\n2\n')
    expect(existsSync(join(at.repo, 'committed.txt'))).toBe(words === newBranch)
    expect(at.git('symbolic-ref', '--short', 'HEAD')).toBe('main')
    const told = warningsOf(done).find((message) => message.includes('is back in it'))
    const isSame = place === 'ralph/demo'
    expect(told).toContain(
      isSame ? 'the agent rewrote ralph/demo (amend' : `the agent left the branch of the loop for ${place}`,
    )
    expect(told).toContain('un tracked.txt')
  })

  test('C1: with keep, and a later finish --cleanup', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    const before = usersFiles(at.repo)
    expect((await loop(at, 'git checkout -q main', '--on-complete', 'keep')).code).toBe(0)
    expect(usersFiles(at.repo)).toEqual(before)
    const finished = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(finished.code, finished.stderr).toBe(0)
    expect(usersFiles(at.repo)).toEqual(before)
    expect(at.read('work.txt')).toBe('1\n')
  })

  test('C1: earlier stories are there too, though only the second left', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(3) }))
    const before = usersFiles(at.repo)
    const words =
      'cat > /dev/null; [ "$RALPH_ITERATION" = 2 ] && git checkout -q main; echo "$RALPH_STORY" > "s$RALPH_STORY.txt"; echo "<promise>COMPLETE</promise>"'
    const done = await ralph(at, [
      'loop',
      'demo',
      '--json',
      '--on-complete',
      'cleanup',
      '--agent-command',
      words,
    ])
    expect(done.code, done.stderr).toBe(0)
    expect(usersFiles(at.repo)).toEqual(before)
    expect(['s1.txt', 's2.txt', 's3.txt'].map((name) => at.read(name))).toEqual(['1\n', '2\n', '3\n'])
  })

  test('C1: commits of the branch it went to are no part of its work', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    at.git('stash', '-qu')
    at.git('switch', '-q', 'feature')
    at.write('of-feature.txt', 'x\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'of feature')
    at.git('switch', '-q', 'main')
    at.git('stash', 'pop', '-q', '--index')
    const before = usersFiles(at.repo)
    const done = await loop(at, 'git checkout -q feature', '--on-complete', 'cleanup')
    expect(done.code, done.stderr).toBe(0)
    expect(usersFiles(at.repo)).toEqual(before)
    expect(at.read('work.txt')).toBe('1\n')
    expect(existsSync(join(at.repo, 'of-feature.txt'))).toBe(false)
  })

  test('C1: an amended checkpoint is no switch: its tree is taken as it is', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    const words =
      'echo more >> src/a.txt; rm st.txt; git add -A; git -c user.name=a -c user.email=a@b commit -q --amend -m x'
    const done = await loop(at, words, '--on-complete', 'cleanup')
    expect(done.code, done.stderr).toBe(0)
    expect(at.read('src/a.txt')).toBe(`${lines('a')}edited\nmore\n`)
    expect(at.read('work.txt')).toBe('1\n')
  })

  test('C1: what cannot be put together fails the attempt with that reason, told to the next one; nothing is lost', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    const before = usersFiles(at.repo)
    const words = 'git checkout -q main; echo of-the-agent >> src/a.txt'
    const seen = `tee prompt-$RALPH_ITERATION > /dev/null; cp prompt-$RALPH_ITERATION ${at.root}; ${agent(words)}`
    const done = await ralph(at, [
      'loop',
      'demo',
      '--json',
      '--max-retries',
      '1',
      '--on-complete',
      'cleanup',
      '--agent-command',
      seen,
    ])
    expect(done.code, done.stderr).toBe(0)
    const [first] = at.state().iterations
    expect(first).toMatchObject({ verdict: 'failed' })
    expect(first?.reason).toContain('the agent left the branch of the loop for main')
    expect(first?.reason).toContain('src/a.txt')
    expect(readFileSync(join(at.root, 'prompt-2'), 'utf8')).toContain('left the branch of the loop for main')
    expect(usersFiles(at.repo)).toEqual(before)
  })

  test('C1: a history of its own fails the attempt with that reason', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    const before = usersFiles(at.repo)
    const words =
      'git checkout -q --orphan lone; git rm -rfq .; echo x > x.txt; git add x.txt; git -c user.name=a -c user.email=a@b commit -qm x'
    const done = await loop(at, words, '--on-complete', 'cleanup')
    expect(done.code).toBe(3)
    expect(at.state().iterations[0]?.reason).toContain('no history in common')
    expect(usersFiles(at.repo)).toEqual(before)
  })

  test('C1 O1: from a detached HEAD', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    at.git('switch', '-q', '--detach')
    const before = usersFiles(at.repo)
    const done = await loop(at, 'git checkout -q main', '--on-complete', 'cleanup')
    expect(done.code, done.stderr).toBe(0)
    expect(usersFiles(at.repo)).toEqual(before)
    expect(at.read('work.txt')).toBe('1\n')
  })

  test('C1 O1: in a repository without a commit', async () => {
    const at = scratch({ tasks: tasksOf(2), commit: false })
    at.write('mine.txt', 'mine\n')
    const words =
      'git checkout -q --orphan other; git rm -rfq --cached .; git add README.md; git -c user.name=a -c user.email=a@b commit -qm x; git clean -fdqe openspec'
    const done = await loop(at, words, '--on-complete', 'cleanup')
    expect(done.code).toBe(3)
    expect(at.state().iterations[0]?.reason).toContain('no history in common')
    expect(at.read('mine.txt')).toBe('mine\n')
  })

  test('C1 O1: --worktree, with a plan that is in no commit', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    at.git('rm', '-rq', '--cached', 'openspec')
    at.git('commit', '-qm', 'the plan is not committed')
    const done = await loop(at, newBranch, '--worktree', '--on-complete', 'cleanup')
    expect(done.code, done.stderr).toBe(0)
    expect(at.read('work.txt')).toBe('1\n2\n')
    expect(at.read('committed.txt')).toBe('c\n')
    expect(at.read('openspec/changes/demo/tasks.md')).toContain('- [x] 2.2')
  })

  test.each([
    ['git checkout . && git clean -fd', sweep],
    ['git reset --hard and git clean', 'git reset -q --hard && git clean -fdq'],
    ['git stash -u', 'git stash -qu'],
    ['git checkout -f feature', 'git checkout -qf feature && git clean -fdq'],
    ['a new branch with a commit, and a sweep', `git stash -qu; ${newBranch}`],
  ])('C1 O2: stash mode, %s: the files of the user come back', async (_, words) => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(2) }))
    const before = usersFiles(at.repo)
    const done = await loop(at, words, '--checkpoint', 'stash')
    expect(done.code, done.stderr).toBe(0)
    expect(usersFiles(at.repo)).toEqual(before)
    expect(at.read('work.txt')).toBe('1\n2\n')
    expect(at.git('symbolic-ref', '--short', 'HEAD')).toBe('main')
    expect(at.git('diff', '--cached', '--name-only')).toBe('st.txt')
  })

  test('C1 O2: stash mode, a stash that is popped again is no sweep', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    const words = 'git stash -qu; git stash pop -q; rm st.txt; echo more >> src/a.txt'
    const done = await loop(at, words, '--checkpoint', 'stash')
    expect(done.code, done.stderr).toBe(0)
    expect(at.read('src/a.txt')).toBe(`${lines('a')}edited\nmore\n`)
    expect(existsSync(join(at.repo, 'st.txt'))).toBe(false)
  })
})

describe("a file of the user's that an agent really meant to remove", () => {
  test.each(['branch', 'stash'])(
    'C1 O2: %s mode, it is in the summary, status and finish with the command that brings it back',
    async (mode) => {
      const at = withUsersFiles(scratch({ tasks: tasksOf(2) }))
      at.write("o'd [d].txt", 'mine\n')
      const before = usersFiles(at.repo)
      const words = `rm "un tracked.txt" st.txt "o'd [d].txt"; printf %s "$(git show main:src/a.txt)" > src/a.txt; echo >> src/a.txt`
      const args = [
        'loop',
        'demo',
        '--checkpoint',
        mode,
        '--on-complete',
        'keep',
        '--agent-command',
        agent(words),
      ]
      const done = await ralph(at, args)
      expect(done.code, done.stderr).toBe(0)
      expect(existsSync(join(at.repo, 'st.txt'))).toBe(false)
      const commands = at.state().gone ?? []
      expect(commands.map(({ path }) => path)).toEqual([
        "o'd [d].txt",
        'src/a.txt',
        'st.txt',
        'un tracked.txt',
      ])
      const finished = await ralph(at, ['finish', 'demo', '--cleanup'])
      for (const { restore } of commands) {
        expect(done.stdout).toContain(restore)
        expect(done.stderr).toContain(restore)
        expect(finished.stdout).toContain(restore)
      }
      await ralph(at, ['clean', 'demo', '--attempts', '--yes'])
      at.git('reflog', 'expire', '--expire=now', '--all')
      at.git('gc', '-q', '--prune=now')
      for (const { restore } of commands)
        execFileSync('sh', ['-c', restore], { cwd: join(at.repo, 'src'), env: at.env })
      expect({ ...usersFiles(at.repo), 'un tracked.txt': '' }).toEqual({ ...before, 'un tracked.txt': '' })
      expect(at.read('un tracked.txt')).toBe('untracked\n')
      expect(at.read("o'd [d].txt")).toBe('mine\n')
    },
  )

  test.each(['branch', 'stash'])(
    'C1 O2: %s mode, a file that was deleted and written anew is named too; one that was edited, or whose boxes were ticked, is not',
    async (mode) => {
      const at = withUsersFiles(scratch({ tasks: tasksOf(2) }))
      at.write('odd\n[name].txt', 'first\nsecond\n')
      at.write('edited.txt', '  mine\nand mine\n')
      at.write('plan.md', '- [ ] mine\n')
      const words = String.raw`rm st.txt; echo other > st.txt; echo other > "$(printf 'odd\n[name].txt')"; printf 'mine\nanother\n' > edited.txt; echo '- [x] mine' > plan.md`
      const args = ['loop', 'demo', '--checkpoint', mode, '--on-complete', 'cleanup']
      const done = await ralph(at, [...args, '--agent-command', agent(words)])
      expect(done.code, done.stderr).toBe(0)
      const gone = at.state().gone ?? []
      expect(gone.map(({ path }) => path)).toEqual([String.raw`odd\n[name].txt`, 'st.txt'])
      for (const { restore } of gone) {
        expect(done.stdout).toContain(restore)
        execFileSync('bash', ['-c', restore], { cwd: at.repo, env: at.env })
      }
      expect(at.read('st.txt')).toContain('staged')
      expect(at.read('odd\n[name].txt')).toBe('first\nsecond\n')
    },
  )

  test('C1: an attempt that is reverted took nothing, and nothing is told', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    const before = usersFiles(at.repo)
    const done = await loop(at, 'rm st.txt', '--verify', 'test -f st.txt')
    expect(done.code).toBe(3)
    expect(usersFiles(at.repo)).toEqual(before)
    expect(at.state().gone).toBeUndefined()
    expect(warningsOf(done).join('\n')).not.toContain('git restore')
  })
})

/** Tells the test that it is there, and waits for its word; once, so that a gate may run again. */
const waits = (at: Scratch): string =>
  `if [ ! -e '${at.root}/waited' ]; then touch '${at.root}/waited'; echo here > '${at.root}/here'; read _ < '${at.root}/go'; fi`

/** Starts the loop, does something beside it as soon as the agent or the gate waits, and lets it go on. */
async function beside(at: Scratch, args: readonly string[], deed: () => void): Promise<Finished> {
  execFileSync('mkfifo', [join(at.root, 'here'), join(at.root, 'go')])
  const running = start(at, ['loop', 'demo', '--json', '--max-retries', '0', ...args])
  await readFile(join(at.root, 'here'))
  deed()
  await writeFile(join(at.root, 'go'), 'go\n')
  return running.ended
}

/** Works before and after it waits for the test. */
const waitingAgent = (at: Scratch, promise = 'COMPLETE', last = ':'): string =>
  `cat > /dev/null; echo early > early.txt; ${waits(at)}; echo late > late.txt; ${last}; echo "<promise>${promise}</promise>"`

const userCommit = (at: Scratch): void => {
  at.write('users.txt', 'by the user\n')
  at.git('add', 'users.txt')
  at.git('commit', '-qm', 'by the user')
}

describe('the user, in the tree of the loop, during an attempt', () => {
  test.each([
    // Where the agent then commits, in all innocence.
    ['branch', 'main', (at: Scratch) => at.git('checkout', '-q', 'main'), 'git add -A; git commit -qm x'],
    ['branch', 'ralph/demo', (at: Scratch) => at.git('reset', '-q', '--hard', 'main'), ':'],
    ['stash', 'feature', (at: Scratch) => at.git('checkout', '-q', 'feature'), ':'],
  ])(
    'O3: %s mode, a switch to %s: nothing is lost, the agent is not blamed',
    async (mode, place, deed, last) => {
      const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
      const before = usersFiles(at.repo)
      const main = at.git('rev-parse', 'main')
      const agent = waitingAgent(at, 'COMPLETE', last)
      const args = ['--checkpoint', mode, '--on-complete', 'cleanup', '--agent-command', agent]
      const done = await beside(at, args, () => deed(at))
      expect(done.code, done.stderr).toBe(0)
      expect(usersFiles(at.repo)).toEqual(before)
      expect([at.read('early.txt'), at.read('late.txt')]).toEqual(['early\n', 'late\n'])
      const told = warningsOf(done).join('\n')
      const what =
        place === 'ralph/demo'
          ? 'rewrote ralph/demo (amend, reset or rebase)'
          : `switched the work tree to ${place}`
      expect(told).toContain(`somebody ${what} while the agent worked`)
      expect(told).not.toContain('the agent left')
      expect([at.git('symbolic-ref', '--short', 'HEAD'), at.git('rev-parse', 'main')]).toEqual(['main', main])
    },
  )

  test('O3: a switch during an attempt that fails is told without blame, also where the plan is not committed', async () => {
    const at = withoutPlan(withUsersFiles(scratch({ tasks: tasksOf(1) })))
    const before = usersFiles(at.repo)
    const args = ['--agent-command', waitingAgent(at, 'FAILED: cannot')]
    const done = await beside(at, args, () => at.git('checkout', '-q', 'main'))
    expect(done.code).toBe(3)
    expect(usersFiles(at.repo)).toEqual(before)
    const told = warningsOf(done).join('\n')
    expect(told).toContain('somebody switched the work tree to main while the agent worked; HEAD is back')
    expect(told).not.toContain('the agent left')
    expect(told).not.toContain('the agent deleted')
  })

  test('O3: a commit stays in the history of the branch, and its file in the work', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    const args = ['--on-complete', 'keep', '--agent-command', waitingAgent(at)]
    const done = await beside(at, args, () => userCommit(at))
    expect(done.code, done.stderr).toBe(0)
    expect(at.git('log', '--format=%s', 'ralph/demo')).toContain('by the user')
    expect(at.read('users.txt')).toBe('by the user\n')
    expect(at.read('late.txt')).toBe('late\n')
  })

  test('O3: a stash takes a part of the work with it: the attempt fails with that reason, the entry stays', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    const before = usersFiles(at.repo)
    const args = ['--agent-command', waitingAgent(at)]
    const done = await beside(at, args, () => at.git('stash', '-qu', '-m', 'mine'))
    expect(done.code).toBe(3)
    expect(at.state().iterations[0]).toMatchObject({ verdict: 'failed' })
    const entry = at.git('rev-parse', '--short=12', 'stash')
    expect(at.state().iterations[0]?.reason).toMatch(
      new RegExp(`somebody stashed files of the work tree .*mine": git stash apply ${entry}`),
    )
    expect(at.git('stash', 'list')).toContain('mine')
    expect(usersFiles(at.repo)).toEqual(before)
  })
})

describe('what passed the gates is what is saved', () => {
  test('M6 O14: the user stashes and switches during a gate: the attempt fails with that reason, nothing is blamed on the gate', async () => {
    const at = withoutPlan(withUsersFiles(scratch({ tasks: tasksOf(1) })))
    const before = usersFiles(at.repo)
    const args = ['--verify', waits(at), '--agent-command', agent('true')]
    const done = await beside(at, args, () => {
      at.git('stash', '-qu', '-m', 'mine')
      at.git('checkout', '-q', 'feature')
    })
    expect(done.code).toBe(3)
    const [first] = at.state().iterations
    expect(first).toMatchObject({ verdict: 'failed' })
    expect(first?.reason).toContain('somebody switched the work tree to feature while the gates ran')
    expect(warningsOf(done).join('\n')).not.toContain('the gate `')
    expect(usersFiles(at.repo)).toEqual(before)
    expect(at.git('stash', 'list')).toContain('mine')
    expect(at.git('show', 'refs/ralph/demo/attempts/1~:work.txt')).toBe('1')
    expect(at.git('symbolic-ref', '--short', 'HEAD')).toBe('ralph/demo')
  })

  test('O14: work that is undone while the gates run is not called complete, and what the user did is kept', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    const args = ['--verify', waits(at), '--agent-command', agent('true')]
    const done = await beside(at, args, () => {
      at.git('checkout', '-q', '.')
      at.git('clean', '-fdq')
      at.write('mine.txt', 'typed meanwhile\n')
    })
    expect(done.code).toBe(3)
    expect(at.state().iterations[0]?.reason).toContain('undone')
    expect(at.git('show', 'refs/ralph/demo/attempts/1:mine.txt')).toBe('typed meanwhile')
  })

  test('O3: a commit of the user during a gate: the loop goes on, the commit is in the history', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    const args = ['--on-complete', 'keep', '--verify', waits(at), '--agent-command', agent('true')]
    const done = await beside(at, args, () => {
      at.git('add', 'work.txt')
      at.git('commit', '-qm', 'by the user')
    })
    expect(done.code, done.stderr).toBe(0)
    expect(at.git('log', '--format=%s', 'ralph/demo')).toContain('by the user')
    expect(at.git('show', 'ralph/demo:work.txt')).toBe('1')
  })

  test('O3: a new branch during a gate, no file changed: the loop goes on and says where HEAD is', async () => {
    const at = withUsersFiles(scratch({ tasks: tasksOf(1) }))
    const args = ['--on-complete', 'keep', '--verify', waits(at), '--agent-command', agent('true')]
    const done = await beside(at, args, () => at.git('switch', '-qc', 'mine'))
    expect(done.code, done.stderr).toBe(0)
    expect(warningsOf(done).join('\n')).toContain('HEAD was switched to mine')
    expect(at.git('show', 'ralph/demo:work.txt')).toBe('1')
    expect(at.git('rev-parse', '--verify', 'mine')).not.toBe('')
  })

  test('M6: a process with a cleared environment that waits for the end of the gate and breaks a file: what is broken is not saved', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const breaker = at.script(
      'breaker',
      `#!/bin/sh\ntouch '${at.root}/apart'\nread pid < '${at.root}/gate'\nwhile kill -0 "$pid" 2>/dev/null; do :; done\necho broken >> '${at.repo}/work.txt'\n`,
    )
    const daemon = `env -i PATH="$PATH" setsid '${breaker}' > /dev/null 2>&1 < /dev/null &`
    execFileSync('mkfifo', [join(at.root, 'gate')])
    const gate = `if grep -q broken work.txt; then exit 1; fi; [ -e '${at.root}/told' ] || { touch '${at.root}/told'; echo $$ > '${at.root}/gate'; }`
    // Before it has left the agent's group it would be ended with it, and the gate would wait for nobody.
    const apart = `until [ -e '${at.root}/apart' ]; do :; done;`
    const words = `cat > /dev/null; ${daemon} ${apart} echo good > work.txt; echo "<promise>COMPLETE</promise>"`
    const args = ['loop', 'demo', '--json', '--max-retries', '0', '--on-complete', 'keep']
    const done = await ralph(at, [...args, '--verify', gate, '--agent-command', words])
    expect([0, 3]).toContain(done.code)
    const saved = at.git('log', '--format=%H', '--grep=^checkpoint: 1', 'ralph/demo')
    expect(saved === '').toBe(done.code === 3)
    if (saved !== '') expect(at.git('show', `${saved}:work.txt`)).toBe('good')
  })

  test('M6: a formatter as gate: the gates pass on what it left, and that is saved', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const words = 'cat > /dev/null; echo "  good" > work.txt; echo "<promise>COMPLETE</promise>"'
    const args = ['loop', 'demo', '--json', '--on-complete', 'keep', '--agent-command', words]
    const done = await ralph(at, [
      ...args,
      '--verify',
      'test -s work.txt',
      '--verify',
      "sed -i 's/^ *//' work.txt",
    ])
    expect(done.code, done.stderr).toBe(0)
    expect(at.git('show', 'ralph/demo:work.txt')).toBe('good')
    const ran = eventsOf(done).flatMap((event) => (event.type === 'gate.started' ? [event.command] : []))
    expect(ran).toHaveLength(4)
    expect(warningsOf(done).join('\n')).toContain('Files changed while the gates ran (work.txt)')
  })

  test('M6: a gate that writes a file of its own each time: three rounds for each story, then it is saved as it was left, with a warning that names it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const args = ['loop', 'demo', '--json', '--on-complete', 'keep', '--agent-command', agent('true')]
    const done = await ralph(at, [...args, '--verify', 'date +%s%N > stamp.txt'])
    expect(done.code, done.stderr).toBe(0)
    expect(eventsOf(done).filter((event) => event.type === 'gate.started')).toHaveLength(6)
    expect(warningsOf(done).join('\n')).toContain(
      'The gates write files of their own each time they run (stamp.txt); they are saved as the last run left them.',
    )
    expect(`${at.git('show', 'ralph/demo:stamp.txt')}\n`).toBe(at.read('stamp.txt'))
  })

  test('M6 O14: the work changes during each run of the gates, the last time for the worse: that is not saved, and the reason names the file', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    // Stands for somebody who edits while the gate runs: the gate has read the file before.
    const gate = `if grep -q bad work.txt; then exit 1; fi; echo x >> '${at.root}/runs'; if [ $(wc -l < '${at.root}/runs') = 3 ]; then echo bad > work.txt; else date +%s%N > work.txt; fi`
    const words = 'cat > /dev/null; echo good > work.txt; echo "<promise>COMPLETE</promise>"'
    const args = ['loop', 'demo', '--json', '--max-retries', '0', '--on-complete', 'keep']
    const done = await ralph(at, [...args, '--verify', gate, '--agent-command', words])
    expect(done.code, done.stderr).toBe(3)
    expect(at.git('log', '--format=%s', 'ralph/demo')).not.toContain('checkpoint: 1')
    expect(at.state().iterations[0]).toMatchObject({
      verdict: 'failed',
      reason: expect.stringMatching(/each of 3 runs of the gates.*: work\.txt\./) as string,
    })
    expect(at.git('show', 'refs/ralph/demo/attempts/1:work.txt')).toBe('bad')
  })

  test('L: a tracked file that became a pipe in a complete story is told', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const done = await loop(at, 'rm README.md; mkfifo README.md')
    expect(done.code, done.stderr).toBe(0)
    expect(warningsOf(done).join('\n')).toContain('README.md was a file and is a pipe')
  })
})
