// What `npm run torture` found, each as the shortest story that shows it.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { goodAgent, killRalph, longDead, ralph, scratch, tasksOf, type Scratch } from './harness.ts'

/** A git on PATH that kills ralph, or dies itself, at the first call whose arguments hold these words. */
function gitThat(at: Scratch, words: string, deed: string): NodeJS.ProcessEnv {
  const bin = join(at.root, 'bin')
  mkdirSync(bin, { recursive: true })
  // Of a repository without rules ralph asks git less.
  mkdirSync(join(at.repo, '.git/info'), { recursive: true })
  writeFileSync(join(at.repo, '.git/info/attributes'), '*.none text\n')
  at.script(
    'bin/git',
    `#!/bin/sh
case "$GIT_AUTHOR_EMAIL $*" in
  ralph@localhost*${words}*) [ -e '${at.root}/struck' ] || { touch '${at.root}/struck'; ${deed}; } ;;
esac
PATH="\${PATH#*:}" exec git "$@"
`,
  )
  return { PATH: `${bin}:${at.env['PATH']}` }
}

/** Where HEAD has no log, git moves the branch; else ralph does it by itself, and there is no process to kill. */
const unloggedAgent = `rm -f .git/logs/HEAD; ${goodAgent}`

test('O8: a fresh start that is killed before its first checkpoint goes on as one', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const agent = ['--agent-command', 'rm -rf x; echo "<promise>FAILED: no</promise>"', '--max-retries', '0']
  expect((await ralph(at, ['loop', 'demo', ...agent])).code).toBe(3)
  const earlier = at.git('rev-parse', 'refs/ralph/demo/attempts/1')
  const env = gitThat(at, 'diff-index', killRalph)
  const killed = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent], { env })
  expect(killed.signal).toBe('SIGKILL')
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
  expect(at.state()).toMatchObject({ status: 'done' })
  // The attempts of the run before are those of an earlier run, not of this one.
  expect(at.git('for-each-ref', '--format=%(objectname)', 'refs/ralph/demo/earlier')).toContain(earlier)
  expect(at.git('log', '-1', '--format=%B', 'refs/ralph/demo/attempts/1')).not.toBe('')
  expect(at.git('rev-parse', 'refs/ralph/demo/attempts/1')).not.toBe(earlier)
})

test.for([
  { when: 'before its first checkpoint', words: 'diff-index', again: ['resume', 'demo'] },
  { when: 'before its first record', words: 'rev-parse?--short', again: ['loop', 'demo', '--fresh'] },
])(
  'O8: a fresh start that was cut off $when, gone on with elsewhere, names the files of the user that stay behind',
  async ({ words, again }) => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('notes.txt', 'of the user\n')
    const failing = ['--agent-command', 'echo "<promise>FAILED: no</promise>"', '--max-retries', '0']
    expect((await ralph(at, ['loop', 'demo', ...failing])).code).toBe(3)
    const env = gitThat(at, words, killRalph)
    const fresh = ['--agent-command', goodAgent, '--on-complete', 'cleanup']
    expect((await ralph(at, ['loop', 'demo', '--fresh', ...fresh], { env })).signal).toBe('SIGKILL')
    at.git('switch', '-q', 'main')
    const end = await ralph(at, [...again, ...fresh])
    expect(end.code).toBe(0)
    const said = (end.stdout + end.stderr).replaceAll(/\s+/g, ' ')
    expect(said).toContain('This one begins where you stand, main at')
    const [command = ''] = /git (?:-C \S+ )?restore --source=[0-9a-f]+ -- \S*notes\.txt\S*/.exec(said) ?? []
    execFileSync('bash', ['-c', command], { cwd: at.repo, env: at.env })
    expect(at.read('notes.txt')).toBe('of the user\n')
  },
)

test('O8: a fresh start that was cut off before it had said a word: the next one names the run that it put away', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const failing = ['--agent-command', 'echo x > x.txt; echo "<promise>FAILED: no</promise>"']
  expect((await ralph(at, ['loop', 'demo', '--max-retries', '0', ...failing])).code).toBe(3)
  const env = gitThat(at, 'rev-parse?--short', killRalph)
  const fresh = ['loop', 'demo', '--fresh', '--agent-command', goodAgent]
  const killed = await ralph(at, fresh, { env })
  expect([killed.signal, killed.stdout.includes('earlier/')]).toEqual(['SIGKILL', false])
  const end = await ralph(at, fresh)
  expect(end.code).toBe(0)
  expect(end.stdout + end.stderr).toContain('the earlier run is archived (ralph attempts demo --all)')
  const ref = at.git('for-each-ref', '--format=%(refname)', 'refs/ralph/demo/earlier/**/attempts/1')
  expect(at.git('show', `${ref}:x.txt`)).toBe('x')
  // Said once: it has begun.
  const again = await ralph(at, ['resume', 'demo'])
  expect(again.stdout + again.stderr).not.toContain('the earlier run is archived')
})

test.for([
  { next: 'finish', flags: ['--cleanup'] },
  { next: 'resume', flags: ['--agent-command', goodAgent, '--on-complete', 'cleanup'] },
])(
  'O8: a fresh start that was cut off before its first record: the run that it was to replace is there whole, and $next goes on with it',
  async ({ next, flags }) => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write('staged.txt', 'staged\n')
    at.git('add', 'staged.txt')
    at.write('staged.txt', 'edited\n')
    const failing = `[ $RALPH_STORY = 2 ] && { echo x > x.txt; echo "<promise>FAILED: no</promise>"; exit; }; ${goodAgent}`
    const loop = ['loop', 'demo', '--max-retries', '0', '--on-complete', 'keep', '--agent-command', failing]
    expect((await ralph(at, loop)).code).toBe(3)
    const env = gitThat(at, 'rev-parse?--short', killRalph)
    expect((await ralph(at, [...loop, '--fresh'], { env })).signal).toBe('SIGKILL')
    const journal = join(at.repo, '.git/ralph/changes/demo/journal.ndjson')
    expect(existsSync(journal)).toBe(false)
    expect((await ralph(at, ['status', 'demo'])).stdout).toMatch(/✕ stuck[^]*ralph diff 2 demo/)
    const looks = ['diff 2 demo', 'logs demo', 'attempts demo', 'list'].map(async (words) => {
      const { code, stderr } = await ralph(at, words.split(' '))
      return [words, code, stderr]
    })
    expect(await Promise.all(looks)).toEqual(looks.map(() => [expect.any(String), 0, '']))
    expect(existsSync(journal)).toBe(false)
    const again = await ralph(at, [next, 'demo', ...flags])
    expect([again.code, again.stderr]).toEqual([0, ''])
    expect(at.git('show', ':staged.txt')).toBe('staged')
    expect([at.read('staged.txt'), at.read('story-1.txt')]).toEqual(['edited\n', 'work of 1\n'])
    expect((await ralph(at, ['attempts', 'demo'])).stdout).not.toContain('earlier')
  },
)

test.for([{ flags: [] }, { flags: ['--worktree'] }])(
  'O8: $flags a fresh start names what the user edited beside the earlier run, and what it leaves behind',
  async ({ flags: more }) => {
    const at = scratch({ tasks: tasksOf(2) })
    const tree = more.length > 0 ? join(at.root, 'repo-ralph-demo') : at.repo
    const failing = ['--agent-command', 'echo "<promise>FAILED: no</promise>"', '--max-retries', '0']
    expect((await ralph(at, ['loop', 'demo', ...more, ...failing])).code).toBe(3)
    writeFileSync(join(tree, 'README.md'), 'edited beside the loop\n')
    expect((await ralph(at, ['resume', 'demo', ...failing])).code).toBe(3)
    if (more.length === 0) at.git('switch', '-q', 'main')
    const fresh = ['loop', 'demo', '--fresh', ...more, '--agent-command', goodAgent, '--on-complete', 'keep']
    const end = await ralph(at, fresh)
    expect(end.code).toBe(0)
    const said = (end.stdout + end.stderr).replaceAll(/\s+/g, ' ')
    expect(said).toContain(
      'README.md was edited while the earlier run was there; it is only in the archive now',
    )
    const [command = ''] = /git (?:-C \S+ )?restore --source=[0-9a-f]+ -- \S*README\.md\S*/.exec(said) ?? []
    execFileSync('bash', ['-c', command], { cwd: tree, env: at.env })
    expect(readFileSync(join(tree, 'README.md'), 'utf8')).toBe('edited beside the loop\n')
  },
)

test('G14: a git that is killed while it is asked where the repository is: that is said, and nothing else', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  // Of a plain repository git is not asked.
  at.git('config', 'core.worktree', at.repo)
  const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent], {
    env: gitThat(at, 'rev-parse', 'kill -KILL $$'),
  })
  expect(end.code).toBe(2)
  expect(end.stderr).toMatch(
    /^error: git was ended by SIGKILL when it was asked about .*\n {2}Type the same command again\./,
  )
  expect(at.git('branch', '--format=%(refname:short)')).toBe('main')
})

test('O2: the command that brings a file back works whatever its name begins with', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const names = ['_notes.txt', '-dash.txt', '!bang.txt', ':colon.txt', '~tilde.txt', '#hash.txt', 'plain.txt']
  for (const name of names) at.write(name, `${name} of the user\n`)
  const agent = `rm -f -- ${names.map((name) => `'${name}'`).join(' ')}; ${goodAgent}`
  const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'cleanup'])
  expect(end.code).toBe(0)
  const commands = [...new Set(end.stdout.match(/git restore --source=.*$/gm))]
  for (const command of commands) execFileSync('bash', ['-c', command], { cwd: at.repo, env: at.env })
  expect(names.map((name) => at.read(name))).toEqual(names.map((name) => `${name} of the user\n`))
})

test('O5, O20: a checkpoint that only had to be completed counts, whatever the user has edited since', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const env = gitThat(at, 'ralph:?checkpoint', killRalph)
  const killed = await ralph(at, ['loop', 'demo', '--agent-command', unloggedAgent], { env })
  expect(killed.signal).toBe('SIGKILL')
  longDead(at)
  at.write('README.md', 'edited after the crash\n')
  const finished = await ralph(at, ['finish', 'demo', '--keep'])
  expect(finished.code).toBe(0)
  expect(finished.stdout + finished.stderr).toMatch(/(?:Iteration |#)1 was complete/)
  const end = await ralph(at, ['resume', 'demo'])
  expect(end.code).toBe(0)
  // Not done a second time on top of itself.
  expect(at.state().iterations.map(({ story_id: story, verdict }) => [story, verdict])).toEqual([
    ['1', 'complete'],
    ['2', 'complete'],
  ])
  expect(at.read('README.md')).toBe('edited after the crash\n')
})

test('H1: a git that was killed in the work tree of the loop, on the way to its branch, leaves no lock that has to be removed by hand', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const failing = ['--agent-command', 'echo "<promise>FAILED: no</promise>"', '--max-retries', '0']
  expect((await ralph(at, ['loop', 'demo', '--worktree', ...failing])).code).toBe(3)
  at.git('-C', '../repo-ralph-demo', 'switch', '-q', '--detach')
  at.write('.git/worktrees/repo-ralph-demo/index.lock', '')
  expect(await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])).toMatchObject({ code: 0 })
  expect(existsSync(join(at.repo, '.git/worktrees/repo-ralph-demo/index.lock'))).toBe(false)
})

test('U3: where a repair has saved the last story, --fresh has nothing to begin, and leaves the run and its way out', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const env = gitThat(at, 'ralph:?checkpoint', 'kill -KILL $$')
  expect((await ralph(at, ['loop', 'demo', '--agent-command', unloggedAgent], { env })).code).toBe(1)
  const fresh = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])
  expect([fresh.code, fresh.stderr]).toEqual([
    2,
    expect.stringMatching(
      /Every box in \S*tasks\.md is ticked; open those to be done again: - \[ \]\. The earlier run stays as it is\.\n.*ralph resume demo/,
    ),
  ])
  expect(at.git('for-each-ref', 'refs/ralph/demo/earlier')).toBe('')
  expect((await ralph(at, ['status', 'demo'])).stdout).toMatch(/next +ralph (resume|finish) demo/)
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
  expect(at.read('story-1.txt')).toBe('work of 1\n')
})

test('O8: --fresh on a plan that is done leaves the run that did it, and its cleanup, where they are', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  expect((await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])).code).toBe(0)
  const fresh = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])
  expect([fresh.code, fresh.stdout + fresh.stderr]).toEqual([
    0,
    expect.stringContaining('The earlier run stays as it is. See: ralph status demo'),
  ])
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
  expect(at.git('symbolic-ref', '--short', 'HEAD')).toBe('main')
  expect(at.git('status', '--porcelain')).toContain('story-1.txt')
})

test('O7: a fresh start in the tree of the loop that is killed before its first checkpoint goes on where it was to begin, not on the earlier run', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const appends = 'echo "work of $RALPH_STORY" >> work.txt; echo "<promise>COMPLETE</promise>"'
  const loop = ['loop', 'demo', '--worktree', '--agent-command', appends]
  expect((await ralph(at, [...loop, '--max-iterations', '1'])).code).toBe(3)
  const killed = await ralph(at, [...loop, '--fresh'], { env: gitThat(at, 'ralph:?start', killRalph) })
  expect(killed.signal).toBe('SIGKILL')
  expect((await ralph(at, ['resume', 'demo', '--on-complete', 'cleanup'])).code).toBe(0)
  expect(at.read('work.txt')).toBe('work of 1\nwork of 2\n')
  expect(at.read('openspec/changes/demo/tasks.md')).toBe(tasksOf(2).replaceAll('[ ]', '[x]'))
})

test('O8: a fresh start that fails speaks for itself alone, and status knows the cleanup of the run before that follows', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const loop = ['loop', 'demo', '--agent-command', goodAgent]
  expect((await ralph(at, [...loop, '--max-iterations', '1'])).code).toBe(3)
  const failed = await ralph(at, [...loop, '--fresh'], { env: gitThat(at, 'diff-index', 'kill -KILL $$') })
  expect(failed.code).toBe(1)
  expect(failed.stdout).toContain('  This run has changed nothing in the repository.\n')
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).stdout).toContain('Everything is on main')
  expect(at.read('story-1.txt')).toBe('work of 1\n')
  expect((await ralph(at, ['status', 'demo'])).stdout).toMatch(
    / work +on main, uncommitted, since the cleanup/,
  )
})

test('O5: a cleanup from the original branch, after the loop had died, is completed there when it was killed half-way', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  expect(
    (await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--max-iterations', '1'])).code,
  ).toBe(3)
  const resume = ['resume', 'demo', '--max-iterations', '9']
  expect((await ralph(at, resume, { env: gitThat(at, 'ignored=matching', killRalph) })).signal).toBe(
    'SIGKILL',
  )
  longDead(at)
  expect((await ralph(at, ['status', 'demo'])).stdout).toContain('stopped by  a kill of ralph')
  at.git('switch', '-q', 'main')
  rmSync(join(at.root, 'struck'))
  const deed = `PATH="\${PATH#*:}" git "$@"; ${killRalph}`
  const cleanup = ['finish', 'demo', '--cleanup']
  expect((await ralph(at, cleanup, { env: gitThat(at, 'checkout-index', deed) })).signal).toBe('SIGKILL')
  expect(await ralph(at, cleanup)).toMatchObject({ code: 0 })
  expect(at.read('story-1.txt')).toBe('work of 1\n')
  expect(at.git('branch', '--format=%(refname:short)')).toBe('main')
})

test('O5: a commit on the detached HEAD that a killed cleanup had gone back to stays there, and the cleanup is completed', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.git('switch', '-q', '--detach')
  expect((await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])).code).toBe(0)
  const deed = `PATH="\${PATH#*:}" git "$@"; ${killRalph}; exit 1`
  const killed = await ralph(at, ['finish', 'demo', '--cleanup'], { env: gitThat(at, 'cleanup*HEAD', deed) })
  expect(killed.signal).toBe('SIGKILL')
  longDead(at)
  at.write('README.md', 'since\n')
  at.git('commit', '-qm', 'mine', '--only', 'README.md')
  const mine = at.git('rev-parse', 'HEAD')
  const end = await ralph(at, ['finish', 'demo', '--cleanup'])
  expect([end.code, end.stderr]).toEqual([0, expect.any(String)])
  expect([at.git('rev-parse', 'HEAD'), at.read('README.md')]).toEqual([mine, 'since\n'])
  expect(at.git('status', '--porcelain')).toContain('story-1.txt')
})

test('O8: status after a fresh start that was killed before its first record names the way on', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.git('branch', 'ralph/demo')
  const status = await ralph(at, ['status', 'demo'])
  expect([status.code, status.stderr]).toEqual([2, expect.stringMatching(/ralph loop demo --fresh\n$/)])
  expect((await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])).code).toBe(0)
})

test.for([{ mode: 'branch' }, { mode: 'stash' }])(
  'C1, O2: $mode: whatever was told on the way, the end names the edits of the user that the result has not, by what the refs hold',
  async ({ mode }) => {
    const at = scratch({ tasks: tasksOf(2) })
    const flags = ['--checkpoint', mode, '--max-retries', '0', '--on-complete', 'keep', '--agent-command']
    const stops = `if [ "$RALPH_STORY" = 2 ]; then echo "<promise>FAILED: no</promise>"; else ${goodAgent}; fi`
    expect((await ralph(at, ['loop', 'demo', ...flags, stops])).code).toBe(3)
    at.write('README.md', 'edited by the user between two attempts\n')
    at.write('both.txt', 'made and removed by the user\n')
    expect((await ralph(at, ['resume', 'demo', ...flags, stops])).code).toBe(3)
    rmSync(join(at.repo, 'both.txt'))
    const sets = `git show main:README.md > README.md; ${goodAgent}`
    const end = await ralph(at, ['resume', 'demo', ...flags, sets])
    expect(end.code).toBe(0)
    expect(at.read('README.md')).toBe('# scratch\n')
    const [command = ''] = /git restore --source=\S+ -- \S*README\.md\S*/.exec(end.stdout) ?? []
    expect(end.stdout).not.toContain('both.txt')
    execFileSync('bash', ['-c', command], { cwd: at.repo, env: at.env })
    expect(at.read('README.md')).toBe('edited by the user between two attempts\n')
  },
)

test.for([
  { when: 'before it left its branch', words: 'ralph:?archive', goes: 'main', back: 'ralph/demo' },
  { when: 'after that', words: 'ralph:?cleanup', goes: '-c feature', back: 'main' },
])(
  'G25 O3: a cleanup that was cut off $when is completed where its files are: the user who has switched away is told where',
  async ({ words, goes, back }) => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('notes.txt', 'of the user\n')
    expect((await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])).code).toBe(0)
    const finish = ['finish', 'demo', '--cleanup']
    expect((await ralph(at, finish, { env: gitThat(at, words, killRalph) })).signal).toBe('SIGKILL')
    at.git('switch', '-q', ...goes.split(' '))
    const refused = await ralph(at, finish)
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(
        new RegExp(`Nothing was touched\\. git switch ${back}, then ralph finish demo --cleanup again`),
      ),
    ])
    at.git('switch', '-q', back)
    expect((await ralph(at, finish)).code).toBe(0)
    expect([at.read('notes.txt'), at.read('story-1.txt')]).toEqual(['of the user\n', 'work of 1\n'])
    expect(at.git('branch', '--show-current')).toBe('main')
  },
)

test('O6: a finish that was killed behind its last record leaves no lock behind the next one', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const loop = ['loop', 'demo', '--worktree', '--agent-command', goodAgent, '--on-complete', 'keep']
  expect((await ralph(at, loop)).code).toBe(0)
  const finish = ['finish', 'demo', '--cleanup']
  const env = gitThat(at, '--not?--exclude', killRalph)
  expect((await ralph(at, finish, { env })).signal).toBe('SIGKILL')
  const lock = join(at.repo, '.git/worktrees/repo-ralph-demo/ralph/lock.json')
  expect(existsSync(lock)).toBe(true)
  const again = await ralph(at, finish)
  expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('finished already')])
  expect(existsSync(lock)).toBe(false)
})
