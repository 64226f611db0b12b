// Branches, tags, stashes and HEAD: what the agent did goes back, what the user or another loop did beside it stays.
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { eventsOf, goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'
import { after, scene } from './scenes.ts'
import type { Finished, Scratch } from './harness.ts'

/** In the user's own checkout and with nothing of the agent's environment: what a person types beside the loop. */
function beside(at: Scratch, script: string): string {
  const path = at.script(`beside-${script.length}.sh`, `#!/bin/sh\ncd "${at.repo}"\n${script}\n`)
  const kept = ['PATH', 'HOME', 'GIT_CONFIG_NOSYSTEM'].map((name) => `${name}="$${name}"`).join(' ')
  return `env -i ${kept} sh -e "${path}"`
}

/** What was said about git. */
function told(end: Finished): string[] {
  return eventsOf(end).flatMap((event) =>
    event.type === 'warning' && ['agent_git', 'beside', 'commit_off', 'gate_git'].includes(event.code)
      ? [event.message]
      : [],
  )
}

const failed = 'echo "<promise>FAILED: no</promise>"'
const once = (first: string, then = goodAgent): string =>
  `if [ "$RALPH_ITERATION" = 1 ]; then ${first}; else ${then}; fi`

/** The first of two stories is saved; the other fails. */
function halfDone(): Promise<Scratch> {
  const agent = `if [ $RALPH_STORY = 2 ]; then ${failed}; else ${goodAgent}; fi`
  const args = ['loop', 'demo', '--max-retries', '0', '--on-complete', 'keep', '--agent-command', agent]
  return after(args, { tasks: tasksOf(2), code: 3 })
}

describe("O12, M4: the user's own refs", () => {
  test.each([['--worktree'], ['--no-tui']])(
    'made, moved, deleted and fetched beside the loop (%s) stay as they were left, and nobody is blamed',
    async (mode) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.git('branch', 'old')
      at.git('branch', 'moved')
      at.git('clone', '-q', '--bare', '.', '../away')
      at.git('tag', 'v1')
      execFileSync('git', ['tag', 'v9'], { cwd: join(at.root, 'away'), env: at.env })
      const old = at.git('rev-parse', 'old')
      const user = beside(
        at,
        `git branch -qD old; git tag -d v1 >/dev/null; git branch mine; git fetch -q --tags ../away
        git update-ref refs/heads/moved $(git commit-tree -m moved HEAD^{tree})`,
      )
      const agent = once(`${user}; ${failed}`)
      const end = await ralph(at, ['loop', 'demo', mode, '--agent-command', agent, '--json'])
      expect(end.code).toBe(0)
      const left = at.git('for-each-ref', '--format=%(refname:short)', 'refs/heads', 'refs/tags')
      expect(left.split('\n').filter((name) => !name.startsWith('ralph'))).toEqual([
        'main',
        'mine',
        'moved',
        'v9',
      ])
      expect(at.git('log', '-1', '--format=%s', 'moved')).toBe('moved')
      const lines = told(end)
      expect(lines).toEqual([
        expect.stringMatching(
          /^changed while the loop ran, not by the agent as far as ralph can tell: moved moved, old was deleted, tags\/v1 was deleted, mine is new, tags\/v9 is new; they are left as they are/,
        ),
      ])
      expect(lines[0]).toContain('git branch old refs/ralph/demo/moved/1/before/heads/old')
      // What they were is not lost to a `git gc`.
      expect(at.git('rev-parse', 'refs/ralph/demo/moved/1/before/heads/old')).toBe(old)
    },
  )

  /** A `git commit` of the user's, with its editor open until the revert has begun, which then waits for the index. */
  async function committedLate(at: Scratch, checkpoint: string, ...how: string[]): Promise<Finished> {
    const editor = at.script(
      'editor.sh',
      '#!/bin/sh\ntouch "$HOME/open"; while [ -e made.txt ]; do sleep 0.05; done; echo mine > "$1"\n',
    )
    const agent = once(
      `echo x > made.txt; echo ready; until [ -e "$HOME/open" ]; do sleep 0.05; done; ${failed}`,
    )
    const loop = start(at, ['loop', 'demo', '--checkpoint', checkpoint, '--agent-command', agent, '--json'])
    await loop.seen((out) => out.includes('"text":"ready'))
    at.write('README.md', '# scratch\nmine\n')
    const env = { ...at.env, GIT_EDITOR: editor }
    await promisify(execFile)('git', ['commit', '-q', '-a', ...how], { cwd: at.repo, env })
    return await loop.ended
  }

  test('O12: a commit of the user’s that is open in an editor when the attempt is undone is named, and not undone in silence', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await committedLate(at, 'branch')
    expect(end.code).toBe(0)
    const line = told(end).find((each) => each.includes('(mine)')) ?? ''
    expect(line).toMatch(
      /^your commit \w+ \(mine\), made while the agent ran, is not on the branch; it is kept/,
    )
    expect(at.git('log', '--format=%s', 'main..ralph/demo').split('\n')).not.toContain('changes before 1')
    expect(at.git('status', '--porcelain')).toBe('')
    const [pick = 'false'] = /git cherry-pick \w+/.exec(line) ?? []
    execFileSync('sh', ['-ec', pick], { cwd: at.repo, env: at.env, stdio: 'ignore' })
    expect(at.read('README.md')).toBe('# scratch\nmine\n')
  })

  test.each([
    ['branch', 'COMPLETE'],
    ['stash', 'COMPLETE'],
    ['stash', 'FAILED: no'],
  ])(
    'O12: %s: a commit of what was staged, open in an editor until the next attempt, which ends %s: its reverse in the work tree is named, with the command that mends it',
    async (checkpoint, promise) => {
      const at = scratch({ tasks: tasksOf(1) })
      const until = (file: string): string => `until [ -e "$HOME/${file}" ]; do sleep 0.05; done`
      const editor = at.script(
        'editor.sh',
        `#!/bin/sh\ntouch "$HOME/open"; ${until('second')}; echo mine > "$1"\n`,
      )
      const second = `touch "$HOME/second"; ${until('committed')}; echo "<promise>${promise}</promise>"`
      const agent = `if [ -e "$HOME/open" ]; then ${second}; else echo ready; ${until('open')}; ${failed}; fi`
      const args = ['--checkpoint', checkpoint, '--agent-command', agent, '--max-retries', '1', '--json']
      const loop = start(at, ['loop', 'demo', ...args])
      await loop.seen((out) => out.includes('"text":"ready'))
      at.write('README.md', '# scratch\nmine\n')
      at.write('notes.txt', 'mine\n')
      at.git('add', 'README.md', 'notes.txt')
      const env = { ...at.env, GIT_EDITOR: editor }
      await promisify(execFile)('git', ['commit', '-q'], { cwd: at.repo, env })
      at.write('../home/committed', '')
      const end = await loop.ended
      expect(end.code).toBe(promise === 'COMPLETE' ? 0 : 3)
      const line = told(end).find((each) => each.includes('(mine)')) ?? ''
      expect(line).toMatch(
        /^your commit \w+ \(mine\) is on the branch, but the work tree has README\.md, notes\.txt as before it/,
      )
      const [, back = 'false'] = /to bring that back: (.*)$/.exec(line) ?? []
      execFileSync('sh', ['-ec', back], { cwd: at.repo, env: at.env })
      expect([at.read('README.md'), at.read('notes.txt')]).toEqual(['# scratch\nmine\n', 'mine\n'])
    },
  )

  test('O12: with stashes the same commit stays on the user’s branch, and what is in it stands in the work tree', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await committedLate(at, 'stash')
    expect(end.code).toBe(0)
    expect(at.git('log', '-1', '--format=%s', 'main')).toBe('mine')
    expect(at.read('README.md')).toBe('# scratch\nmine\n')
    expect(at.git('status', '--porcelain')).toBe(' M openspec/changes/demo/tasks.md\n?? story-1.txt')
  })

  test('O12: with stashes a commit on top of one of the agent’s goes with that, and the command that is named makes it again', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('notes.txt', 'mine\n')
    const agent = once(
      `git commit -q --allow-empty -m other; echo ready; until [ -e "$HOME/go" ]; do sleep 0.05; done; ${failed}`,
    )
    const loop = start(at, ['loop', 'demo', '--checkpoint', 'stash', '--agent-command', agent, '--json'])
    await loop.seen((out) => out.includes('"text":"ready'))
    at.git('add', 'notes.txt')
    at.git('commit', '-qm', 'mine')
    at.write('../home/go', '')
    const end = await loop.ended
    expect(end.code).toBe(0)
    const line = told(end).find((each) => each.includes('(mine)')) ?? ''
    const [, back = 'false'] = /: (git diff-tree .*) brings it back$/.exec(line) ?? []
    execFileSync('sh', ['-ec', back], { cwd: at.repo, env: at.env, stdio: 'pipe' })
    expect(at.git('log', '--format=%s', '-2')).toBe('mine\nstart')
    expect(at.git('show', '--format=', '--name-only', 'HEAD')).toBe('notes.txt')
  })

  test('O12: with stashes on no branch the same commit is named, with the command that brings it back', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('switch', '-q', '--detach')
    const end = await committedLate(at, 'stash')
    expect(end.code).toBe(0)
    const line = told(end).find((each) => each.includes('(mine)')) ?? ''
    expect(line).toMatch(/^your commit \w+ \(mine\), made while the agent ran, is no longer what HEAD is at/)
    const [pick = 'false'] = /git cherry-pick \w+/.exec(line) ?? []
    execFileSync('sh', ['-ec', pick], { cwd: at.repo, env: at.env, stdio: 'ignore' })
    expect(at.read('README.md')).toBe('# scratch\nmine\n')
  })

  test.for([
    { mode: 'branch', undone: '2 files: made.txt, mine.txt' },
    { mode: 'stash', undone: '1 file: made.txt' },
  ])(
    'O12: $mode: a commit of the user’s is called undone only where it is, and then the end and status name it until it is back',
    async ({ mode, undone }) => {
      const at = scratch({ tasks: tasksOf(1) })
      const user = beside(at, 'echo mine > mine.txt; git add mine.txt; git commit -qm "by hand"')
      const agent = `echo x > made.txt; ${user}; ${failed}`
      const flags = ['--checkpoint', mode, '--max-retries', '0', '--agent-command', agent]
      const end = await ralph(at, ['loop', 'demo', ...flags])
      expect(end.code).toBe(3)
      expect(end.stdout).toContain(`undone, ${undone}`)
      const note = /note: your commit \w+ \(by hand\)/
      expect(note.test(end.stdout)).toBe(mode === 'branch')
      if (mode === 'stash') return
      const words = 'your commit'
      expect((await ralph(at, ['status', 'demo'])).stdout).toContain(words)
      const [pick = 'false'] = /git cherry-pick \w+/.exec(end.stderr) ?? []
      execFileSync('sh', ['-ec', pick], { cwd: at.repo, env: at.env, stdio: 'ignore' })
      expect((await ralph(at, ['status', 'demo'])).stdout).not.toContain(words)
    },
  )

  /** What brings a commit of the user's back, that no branch held: named, held, and left there by a cleaning. */
  async function expectHeld(at: Scratch, hash: string, said: string): Promise<void> {
    const [, ref = '', pick = 'false'] =
      new RegExp(`your commit ${hash.slice(0, 12)} .*kept as (\\S+): (git cherry-pick \\S+)`).exec(said) ?? []
    expect(at.git('rev-parse', ref)).toBe(hash)
    const cleaned = await ralph(at, ['clean', 'demo', '--attempts', '--yes'])
    expect(cleaned.stdout).toContain(`${ref}   ${hash.slice(0, 12)}`)
    at.git('reflog', 'expire', '--expire-unreachable=now', '--all')
    at.git('gc', '-q', '--prune=now')
    execFileSync('sh', ['-ec', pick], { cwd: at.repo, env: at.env, stdio: 'ignore' })
    expect(at.read('mine.txt')).toBe('mine\n')
  }

  const detached = 'git checkout -q --detach; echo mine > mine.txt; git add mine.txt; git commit -qm mine'

  test('O12: a commit of the user’s at a detached HEAD while an attempt fails is named and held, and no cleaning takes it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = `echo x > made.txt; ${beside(at, `${detached}; git rev-parse HEAD > ../mine`)}; ${failed}`
    const flags = ['--max-retries', '0', '--on-complete', 'cleanup', '--agent-command', agent]
    const end = await ralph(at, ['loop', 'demo', ...flags])
    expect([end.code, existsSync(join(at.repo, 'mine.txt'))]).toEqual([3, false])
    await expectHeld(at, readFileSync(join(at.root, 'mine'), 'utf8').trim(), end.stderr)
  })

  test.for([
    { how: 'resume', agent: goodAgent, flags: [] },
    { how: 'resume --feedback', agent: 'echo "<promise>COMPLETE</promise>"', flags: ['--feedback', 'more'] },
  ])(
    'O12: $how leaves no commit behind that the user made at a detached HEAD in a pause',
    async ({ agent, flags }) => {
      const manual = ['loop', 'demo', '--done', 'manual', '--on-complete', 'keep', '--agent-command', agent]
      const at = flags.length > 0 ? await after(manual, { tasks: tasksOf(2), code: 5 }) : await halfDone()
      execFileSync('sh', ['-ec', detached], { cwd: at.repo, env: at.env })
      const mine = at.git('rev-parse', 'HEAD')
      const end = await ralph(at, [
        'resume',
        'demo',
        ...flags,
        '--on-complete',
        'keep',
        '--agent-command',
        agent,
      ])
      expect([end.code, at.git('branch', '--show-current')]).toEqual([flags.length > 0 ? 5 : 0, 'ralph/demo'])
      expect(end.stderr).toContain(`to go back afterwards: git switch --detach ${mine.slice(0, 12)}\n`)
      await expectHeld(at, mine, end.stderr)
    },
  )

  test('O12: nor does a cleanup, of what was committed in a work tree of the loop’s own; of several the range is named', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--worktree', '--on-complete', 'keep', '--agent-command', goodAgent])
    const own = { cwd: join(at.root, 'repo-ralph-demo'), env: at.env }
    execFileSync(
      'sh',
      ['-ec', `git checkout -q main^0; git commit -q --allow-empty -m before; ${detached}`],
      own,
    )
    const mine = execFileSync('git', ['rev-parse', 'HEAD'], { ...own, encoding: 'utf8' }).trim()
    const end = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(end.code).toBe(0)
    expect(end.stdout).toContain(
      `git cherry-pick ${at.git('rev-parse', 'main').slice(0, 12)}..${mine.slice(0, 12)}`,
    )
    expect(at.git('for-each-ref', '--contains', mine)).not.toBe('')
  })

  test('O12: ralph’s own state file is no change of the user’s, also where they have written info/exclude anew', async () => {
    const at = await halfDone()
    at.git('checkout', '-q', 'main')
    at.write('.git/info/exclude', '*.o\n')
    const end = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect([end.code, at.git('branch', '--show-current')]).toEqual([0, 'ralph/demo'])
    expect(at.git('ls-files', '.claude')).toBe('')
    expect(at.git('status', '--porcelain')).toBe('')
  })

  test('O12: with stashes one that takes the place of the last commit is named, with what holds it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await committedLate(at, 'stash', '--amend')
    expect(end.code).toBe(0)
    const line = told(end).find((each) => each.includes('(mine)')) ?? ''
    const [, ref = ''] = /it is kept as (\S+)/.exec(line) ?? []
    expect(at.git('show', `${ref}:README.md`)).toBe('# scratch\nmine')
  })

  test('O12, O13: a branch that the user makes, and the agent commits on, goes back to where the user left it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const user = beside(at, 'git switch -q -c side; git rev-parse HEAD > ../left')
    const agent = once(`${user}; echo x > x.txt; git add x.txt; git commit -qm x; ${failed}`)
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    expect(end.code).toBe(0)
    expect(at.git('rev-parse', 'side')).toBe(readFileSync(join(at.root, 'left'), 'utf8').trim())
    expect(told(end).filter((line) => line.includes('made side'))).toEqual([])
    expect(told(end)).toContainEqual(expect.stringMatching(/the agent moved side; it is back/))
  })

  test('O12, O13: a branch that the user makes, and the agent deletes, is back where the user left it; one that the agent made is not', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const user = beside(
      at,
      'git branch side "$(git commit-tree -m theirs HEAD^{tree})"; git rev-parse side > ../left',
    )
    const own = 'git branch old; git branch -m old new; git branch -D new'
    const agent = once(`${user}; git branch -D side; ${own}; ${failed}`)
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    expect(end.code).toBe(0)
    expect(at.git('rev-parse', 'side')).toBe(readFileSync(join(at.root, 'left'), 'utf8').trim())
    expect(told(end).filter((line) => line.includes('the agent'))).toEqual([
      'the agent deleted side; it is back',
    ])
    expect(at.git('branch', '--list', 'old', 'new')).toBe('')
  })

  test('O12, O13: a tag that the user deletes and the agent makes again, as it was, is told and stays', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('tag', 'v1')
    const agent = once(`${beside(at, 'git tag -d v1 >/dev/null')}; git tag -f v1 main; ${failed}`)
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    expect([end.code, at.git('tag')]).toEqual([0, 'v1'])
    expect(told(end)).toEqual([
      'tags/v1 was deleted while the loop ran, and the agent made it again; it stays: git update-ref -d refs/tags/v1 deletes it',
    ])
  })

  test('O12, O13: a tag that the user moves and the agent moves to what it was at first goes back to where the user left it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('tag', 'v1')
    const user = beside(
      at,
      'git tag -f v1 $(git commit-tree -m theirs HEAD^{tree}) >/dev/null; git rev-parse v1 > ../left',
    )
    const agent = once(`${user}; git tag -f v1 main; ${failed}`)
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    expect([end.code, at.git('rev-parse', 'v1')]).toEqual([
      0,
      readFileSync(join(at.root, 'left'), 'utf8').trim(),
    ])
    expect(told(end)).toContainEqual(expect.stringMatching(/the agent moved tags\/v1; it is back/))
  })

  test.each(['branch', 'stash'])(
    'O12, O13: a commit of the user’s that the agent resets away again (%s) is named with what brings it back, and the tree is whole',
    async (checkpoint) => {
      const at = scratch({ tasks: tasksOf(1) })
      const user = beside(at, 'echo mine > mine.txt; git add mine.txt; git commit -qm "my own"')
      const agent = once(`${user}; git reset -q --hard HEAD~1; ${failed}`)
      const end = await ralph(at, [
        'loop',
        'demo',
        '--checkpoint',
        checkpoint,
        '--agent-command',
        agent,
        '--json',
      ])
      expect([end.code, at.git('status', '--porcelain', 'mine.txt')]).toEqual([0, ''])
      expect(told(end)).toEqual([
        expect.stringMatching(/^your commit \w+ \(my own\), .* git cherry-pick \w+ brings it back$/),
      ])
    },
  )

  test('O13: a tag that the agent itself deletes and makes again is no news', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('tag', 'v1')
    const agent = once(
      `git tag -d v1 >/dev/null; git tag v1 main; git tag -f v1 main; git pack-refs --all; ${failed}`,
    )
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    expect([end.code, at.git('tag'), told(end)]).toEqual([0, 'v1', []])
  })

  test('section 6.4: what another loop does to its own branch is not undone, and not even told', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('branch', 'ralph/b')
    const agent = once(`${beside(at, 'git branch -qD ralph/b; git branch ralph/c')}; ${failed}`)
    const end = await ralph(at, ['loop', 'demo', '--worktree', '--agent-command', agent, '--json'])
    expect([end.code, told(end)]).toEqual([0, []])
    expect(at.git('branch', '--format=%(refname:short)', '--list', 'ralph/b', 'ralph/c')).toBe('ralph/c')
  })

  test('a commit of the user’s on the loop’s branch stays in the history after COMPLETE', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const user = beside(at, 'echo mine > mine.txt; git add mine.txt; git commit -qm "my own"')
    const end = await ralph(at, ['loop', 'demo', '--agent-command', `${user}; ${goodAgent}`, '--json'])
    expect([end.code, told(end)]).toEqual([0, []])
    expect(at.git('log', '--format=%s', 'ralph/demo')).toContain('my own')
  })

  test.each([['branch'], ['stash']])(
    'a commit of the user’s during a failed attempt (%s) is named with what holds it',
    async (checkpoint) => {
      const at = scratch({ tasks: tasksOf(1) })
      const user = beside(at, 'echo mine > mine.txt; git add mine.txt; git commit -qm "my own"')
      const agent = once(`git commit -q --allow-empty -m agent; ${user}; ${failed}`)
      const args = ['loop', 'demo', '--checkpoint', checkpoint, '--agent-command', agent, '--json']
      const end = await ralph(at, args)
      expect(end.code).toBe(0)
      const line = told(end).find((message) => message.includes('your commit')) ?? ''
      const [, hash = '', ref = ''] =
        /^your commit (\w+) \(my own\), .* is kept as (\S+): git cherry-pick \1/.exec(line) ?? []
      expect(at.git('rev-parse', ref)).toBe(at.git('rev-parse', hash))
      expect(told(end)).toEqual([line])
    },
  )
})

describe('O13, G3: the same by the agent', () => {
  const doings = `git branch -qD old; git tag -d v1 >/dev/null; git tag v2; git branch -q -m moved renamed
    git checkout -q -b feature/x; echo x > x.txt; git add x.txt; git commit -qm x; git branch -f other HEAD`

  test.each([
    ['COMPLETE', goodAgent],
    ['FAILED', failed],
  ])('goes back after %s, is kept and told with the command that brings it back', async (_, word) => {
    const at = scratch({ tasks: tasksOf(1) })
    for (const name of ['old', 'moved', 'other']) at.git('branch', name)
    at.git('tag', 'v1')
    const before = at.git('for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads', 'refs/tags')
    const agent = `${once(doings, 'true')}; ${once(word)}`
    const end = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      agent,
      '--on-complete',
      'cleanup',
      '--json',
    ])
    expect(end.code).toBe(0)
    expect(at.git('for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads', 'refs/tags')).toBe(
      before,
    )
    const lines = told(end)
    for (const name of ['old', 'tags/v1', 'moved'])
      expect(lines).toContain(`the agent deleted ${name}; it is back`)
    expect(lines).toContainEqual(expect.stringMatching(/^the agent moved other; it is back/))
    const made = lines.flatMap(
      (line) => /^the agent made (\S+); .* to get it back: (.*)$/.exec(line)?.slice(1) ?? [],
    )
    expect(made.filter((word) => !word.startsWith('git '))).toEqual(['feature/x', 'renamed', 'tags/v2'])
    for (const command of made.filter((word) => word.startsWith('git ')))
      at.git(...command.split(' ').slice(1))
    expect(at.git('log', '-1', '--format=%s', 'feature/x')).toBe('x')
  })

  test('a gate that tags and moves branches: they go back and it is named', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('branch', 'other')
    const gate = 'git tag gated; git update-ref refs/heads/other $(git commit-tree -m gate HEAD^{tree})'
    const before = at.git('rev-parse', 'other')
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--verify', gate, '--json'])
    expect([end.code, at.git('tag'), at.git('rev-parse', 'other')]).toEqual([0, '', before])
    expect(told(end)).toEqual([
      'a gate moved other; it is back, its version is refs/ralph/demo/moved/1-gates/heads/other',
      expect.stringMatching(/^a gate made tags\/gated; .* to get it back: git tag gated /),
    ])
  })

  test('L: a work tree that the agent made goes with its branch if nothing in it is uncommitted, else it is named', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = once(
      `git worktree add -q ../clean -b clean; git worktree add -q ../dirty -b dirty; echo x > ../dirty/x; ${failed}`,
    )
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    expect(end.code).toBe(0)
    expect([existsSync(join(at.root, 'clean')), existsSync(join(at.root, 'dirty'))]).toEqual([false, true])
    expect(at.git('branch', '--format=%(refname:short)')).toBe('dirty\nmain\nralph/demo')
    const line = told(end).find((message) => message.includes('so it stays')) ?? ''
    const [, command = ''] = /This removes it: (.*)$/.exec(line) ?? []
    execFileSync('sh', ['-c', command], { cwd: at.repo, env: at.env })
    expect(at.git('worktree', 'list').split('\n')).toHaveLength(1)
  })

  test('L: a work tree of the user’s that the agent claims to have made stays, and so does one with ignored files', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('.gitignore', '.env\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'ignored')
    at.git('worktree', 'add', '-q', join(at.root, 'mine'), '-b', 'mine')
    writeFileSync(join(at.root, 'mine/.env'), 'secret')
    at.git('worktree', 'add', '-q', join(at.root, 'bare'), '-b', 'bare')
    const forged = ['mine', 'bare', '../../../../repo/.git/worktrees/bare'].map(
      (name) => `echo "switched ${name} ${'0'.repeat(40)} $(git rev-parse HEAD) 1 ref: refs/heads/x"`,
    )
    const agent = once(
      `(${forged.join('; ')}) >> $(dirname $GIT_TRACE2_EVENT)/ledger; git worktree add -q ../made -b made; echo x > ../made/.env; ${failed}`,
    )
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    expect(end.code).toBe(0)
    expect(['mine/.env', 'bare/.git', 'made/.env'].map((name) => existsSync(join(at.root, name)))).toEqual([
      true,
      true,
      true,
    ])
    expect(told(end).filter((message) => message.includes('work tree'))).toEqual([
      expect.stringContaining('the agent made the work tree'),
    ])
  })
})

describe('stashes', () => {
  test.each([['branch'], ['stash']])(
    'O12, M5: the user’s `git stash` and `git stash drop` beside the loop (%s) stay as they are',
    async (checkpoint) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('README.md', '# for the stash\n')
      at.git('stash', 'push', '-q', '-m', 'dropped later')
      const user = beside(
        at,
        `git stash drop -q "$(git stash list --format='%gd %gs' | sed -n 's/ .*dropped later$//p')"
        echo mine > README.md; git stash push -q -m mine`,
      )
      const agent = once(`${user}; ${failed}`)
      const args = ['loop', 'demo', '--checkpoint', checkpoint, '--agent-command', agent, '--json']
      const end = await ralph(at, args)
      expect(end.code).toBe(0)
      expect(at.git('stash', 'list', '--format=%gs')).toMatch(/^On \S+: mine$/)
      expect(
        told(end).filter((line) => line.includes('agent stashed') || line.includes('agent dropped')),
      ).toEqual([])
    },
  )

  test.each([['branch'], ['stash']])(
    'O13, G4: the agent’s own (%s) are put away, and what it dropped comes back',
    async (checkpoint) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('README.md', '# for the stash\n')
      at.git('stash', 'push', '-q', '-m', 'the user')
      const list = at.git('stash', 'list', '--format=%H %gs')
      const agent = once(`git stash clear; echo x > README.md; git stash push -q -m agent; ${failed}`)
      const args = ['loop', 'demo', '--checkpoint', checkpoint, '--agent-command', agent, '--json']
      const end = await ralph(at, [...args, '--on-complete', 'cleanup'])
      expect([end.code, at.git('stash', 'list', '--format=%H %gs')]).toEqual([0, list])
      expect(told(end)).toContain('the agent dropped stash entries; they are back')
    },
  )

  test.each([
    ['branch', 'COMPLETE', 'git stash clear'],
    ['stash', 'COMPLETE', 'git stash clear'],
    ['stash', 'COMPLETE', 'git reflog expire --expire=now --all; git gc -q --prune=now'],
    ['stash', 'FAILED', 'git reflog expire --expire=now --all; git gc -q --prune=now'],
  ])(
    'O12: one of the user’s that goes while a gate runs (%s, %s: %s) is kept, and told with its command',
    async (checkpoint, promise, deed) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('old.txt', 'stashed by the user\n')
      at.git('stash', 'push', '-q', '-u')
      const hash = at.git('rev-parse', 'stash')
      const exit = promise === 'FAILED' ? '1' : '0'
      const gate = `[ -e '${at.root}/went' ] || { touch '${at.root}/went'; ${beside(at, deed)}; exit ${exit}; }`
      const args = ['loop', 'demo', '--checkpoint', checkpoint, '--on-complete', 'cleanup', '--json']
      const end = await ralph(at, [...args, '--agent-command', goodAgent, '--verify', gate])
      expect(end.code).toBe(0)
      const lines = told(end).filter((line) => line.includes('git stash store'))
      expect(lines).toEqual([expect.stringContaining(`git stash store ${hash}`)])
      at.git('gc', '-q', '--prune=now')
      at.git('stash', 'store', hash)
      expect(at.git('show', 'stash^3:old.txt')).toBe('stashed by the user')
    },
  )

  test('L: stash mode with `git reflog expire --all` by the agent or by the user goes on', async () => {
    for (const by of [(_: Scratch, script: string) => script, beside]) {
      const at = scratch({ tasks: tasksOf(2) })
      const agent = once(`${by(at, 'git reflog expire --expire=now --all')}; ${failed}`)
      const args = ['loop', 'demo', '--checkpoint', 'stash', '--agent-command', agent, '--json']
      const end = await ralph(at, args)
      expect([end.code, end.stderr.match(/error/i)]).toEqual([0, null])
    }
  })
})

test('O12, O13: after a kill -9 the recovery still knows who did what', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  for (const name of ['old', 'mine']) at.git('branch', name)
  const refs = at.git('for-each-ref', 'refs/heads/main', 'refs/heads/old')
  const agent = `git branch -qD old; git tag made; git branch -f main HEAD; ${beside(at, 'git branch -qD mine')}; kill -9 $PPID`
  expect((await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])).signal).toBe('SIGKILL')
  const end = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
  expect(end.code).toBe(0)
  expect(at.git('for-each-ref', 'refs/heads/main', 'refs/heads/old')).toBe(refs)
  expect([at.git('tag'), at.git('branch', '--list', 'mine')]).toEqual(['', ''])
  const journal = at.read('.git/ralph/changes/demo/journal.ndjson')
  expect(journal).toContain('the agent deleted old; it is back')
  expect(journal).toContain(
    'changed while the loop ran, not by the agent as far as ralph can tell: mine was deleted',
  )
})

test('section 6.6, O17: a branch, a tag and a stash whose names are not UTF-8 break neither revert nor resume', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const bytes = (script: string): void => {
    writeFileSync(join(at.root, 'bytes.sh'), Buffer.from(script, 'latin1'))
    execFileSync('sh', ['-e', join(at.root, 'bytes.sh')], { cwd: at.repo, env: at.env })
  }
  bytes(
    'git branch caf\xe9; echo x > README.md; git stash push -q -m "gar\xe7on"; git checkout -q -b "\xfcber"',
  )
  const before = at.git('for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads').length
  const doings = "git branch -D $(printf 'caf\\351') >/dev/null; git branch $(printf 'na\\357f')"
  const agent = once(`${doings}; ${failed}`, failed)
  const args = ['loop', 'demo', '--agent-command', agent, '--max-retries', '1', '--json']
  expect((await ralph(at, args)).code).toBe(3)
  const end = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, '--on-complete', 'cleanup'])
  expect([end.code, end.stderr.match(/error/i)]).toEqual([0, null])
  expect(at.git('for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads')).toHaveLength(before)
  const head = execFileSync('git', ['symbolic-ref', 'HEAD'], { cwd: at.repo, env: at.env }).toString('latin1')
  expect(head).toBe('refs/heads/\xfcber\n')
})

describe('work that is not where the loop works', () => {
  test.each([
    [
      'on a branch of its own',
      'git checkout -qb own; echo w > w; git add w; git commit -qm w; git checkout -q -',
      /branch own/,
    ],
    [
      'on no branch',
      'git checkout -q --detach; echo w > w; git add w; git commit -qm w; git checkout -q ralph/demo',
      /commit \w+, which is on no branch/,
    ],
    [
      'on a branch that is gone again',
      'git checkout -qb own; echo w > w; git add w; git commit -qm w; git checkout -q -; git branch -q -D own',
      /commit \w+, which is on no branch/,
    ],
    [
      'in a work tree of its own',
      'git worktree add -q ../other main; echo w > ../other/w',
      /work tree .*other/,
    ],
    [
      'on main, in a work tree of its own',
      'git worktree add -q ../other main; cd ../other; echo w > w; git add w; git commit -qm w',
      /branch main/,
    ],
  ])(
    'O1: %s: COMPLETE does not count, the reason says where it is, and nothing is lost',
    async (_where, deed, why) => {
      const at = scratch({ tasks: tasksOf(1) })
      const agent = `cat > /dev/null; ${deed}; echo '<promise>COMPLETE</promise>'`
      const end = await ralph(at, ['loop', 'demo', '--max-retries', '0', '--agent-command', agent])
      expect([end.code, at.state().status]).toEqual([3, 'stuck'])
      expect(at.state().iterations[0]).toMatchObject({
        verdict: 'failed',
        reason: expect.stringMatching(why),
      })
      const kept = at.git('for-each-ref', '--format=%(refname)', 'refs/ralph').split('\n')
      const held = kept.some((ref) => at.git('ls-tree', '-r', '--name-only', ref).split('\n').includes('w'))
      expect(held || existsSync(join(at.root, 'other', 'w'))).toBe(true)
    },
  )
})

test('O1: a merge that was left with its conflicts: COMPLETE does not count, and the markers are in no checkpoint', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const merge =
    'git checkout -qb f; echo X > README.md; git commit -qam X; git checkout -q -; echo Y > README.md; git commit -qam Y; git merge f'
  const agent = `cat > /dev/null; ${merge}; echo '<promise>COMPLETE</promise>'`
  const end = await ralph(at, ['loop', 'demo', '--max-retries', '0', '--agent-command', agent])
  expect(end.code).toBe(3)
  expect(at.state().iterations[0]).toMatchObject({
    verdict: 'failed',
    reason: expect.stringContaining('conflicts in README.md'),
  })
  expect(at.read('README.md')).not.toContain('<<<<<<<')
})

describe('O3: a merge of the user’s on the loop’s branch is theirs to end', () => {
  /** A run that did not finish; then a merge there, with a conflict. */
  function midMerge(): Promise<Scratch> {
    const agent = `cat > /dev/null; if [ $RALPH_STORY = 1 ]; then echo w > w.txt; echo '<promise>COMPLETE</promise>'; else echo '<promise>FAILED: no</promise>'; fi`
    return scene('in the middle of a merge', async () => {
      const at = scratch({ tasks: tasksOf(2) })
      await ralph(at, ['loop', 'demo', '--max-retries', '0', '--agent-command', agent])
      at.git('branch', 'side', 'main')
      at.git('switch', '-q', 'side')
      at.write('README.md', 'side\n')
      at.git('commit', '-qam', 'side')
      at.git('switch', '-q', 'ralph/demo')
      at.write('README.md', 'mine\n')
      at.git('commit', '-qam', 'mine')
      expect(() => at.git('merge', '-q', 'side')).toThrow()
      return at
    })
  }

  test.each([['finish', '--cleanup'], ['finish', '--squash'], ['finish', '--keep', '--rename'], ['resume']])(
    '%s %s refuses, and the merge goes on',
    async (command, ...flags) => {
      const at = await midMerge()
      const stages = at.git('ls-files', '--stage')
      const refused = await ralph(at, [command, 'demo', ...flags])
      expect(refused.code).toBe(command === 'resume' ? 2 : 1)
      expect(refused.stderr).toContain('in the middle of a merge')
      expect(at.git('ls-files', '--stage')).toBe(stages)
      // Resolved and staged it is a merge still.
      at.write('README.md', 'both\n')
      at.git('add', 'README.md')
      expect((await ralph(at, [command, 'demo', ...flags])).stderr).toContain('in the middle of a merge')
      at.git('commit', '-qm', 'merged')
      const end = await ralph(at, [command, 'demo', ...flags])
      expect(end.stderr).not.toContain('in the middle of a merge')
      if (command === 'resume') at.git('merge-base', '--is-ancestor', 'side', 'HEAD')
    },
  )

  test('conflicts without a merge: refused, too', async () => {
    const at = await midMerge()
    at.git('merge', '--quit')
    const refused = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('conflicts to resolve')])
    expect(at.git('ls-files', '--unmerged')).not.toBe('')
  })
})

describe('O12, G25: refs of another kind than branches and tags (refs/backup, say)', () => {
  const deeds =
    'git update-ref -d refs/backup/gone; git update-ref refs/backup/moved $(git commit-tree -m agents HEAD^{tree}); git update-ref refs/tool/new HEAD; git update-ref refs/remotes/o/x HEAD; git reflog expire --expire=now --all; git gc -q --prune=now'

  test.each(['loose', 'packed'])(
    'what the agent’s own git deletes or moves is back, after FAILED and after COMPLETE; new ones stay (%s)',
    async (how) => {
      const at = scratch({ tasks: tasksOf(1) })
      for (const name of ['gone', 'moved'])
        at.git('update-ref', `refs/backup/${name}`, at.git('commit-tree', '-m', name, 'HEAD^{tree}'))
      if (how === 'packed') at.git('pack-refs', '--all')
      const backup = (): string => at.git('for-each-ref', 'refs/backup')
      const before = backup()
      const agent = once(`${deeds}; ${failed}`, `${deeds}; ${goodAgent}`)
      const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
      expect(end.code).toBe(0)
      expect(backup()).toBe(before)
      expect(at.git('for-each-ref', '--format=%(refname)', 'refs/tool', 'refs/remotes')).toBe(
        'refs/remotes/o/x\nrefs/tool/new',
      )
      const lines = told(end).join('\n')
      for (const n of [1, 2]) expect(lines).toContain(`refs/ralph/demo/moved/${n}/backup/moved`)
      expect(lines.match(/deleted backup\/gone; it is back/g)).toHaveLength(2)
    },
  )
})

test('U5: refs/ that somebody removed by hand is there again, the branch of the loop with it, and the rest is named with its command', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.git('branch', 'side')
  const agent = `rm -rf .git/refs .git/packed-refs; ${goodAgent}`
  const end = await ralph(at, ['loop', 'demo', '--agent-command', agent])
  expect(end.code, end.stderr).toBe(0)
  expect(end.stderr).toContain("git's folder refs was removed while the agent worked")
  expect(at.git('log', '-1', '--format=%s')).toBe('checkpoint: 1')
  const [branch = 'false'] = /git branch main \S+main/.exec(end.stderr) ?? []
  execFileSync('sh', ['-ec', branch], { cwd: at.repo, env: at.env, stdio: 'ignore' })
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
})

test('U5: in what is left of a repository, the command that mends it', async () => {
  const done = ['loop', 'demo', '--agent-command', goodAgent, '--max-retries', '0']
  const at = await after(done, { tasks: tasksOf(1), code: 0 })
  execFileSync('rm', ['-r', join(at.repo, '.git/refs')])
  const end = await ralph(at, ['status'])
  expect([end.code, end.stderr]).toEqual([2, expect.stringContaining('it has no refs')])
  const [, init = 'false'] = /`(git init [^`]*)`/.exec(end.stderr) ?? []
  execFileSync('sh', ['-ec', init], { cwd: at.root, env: at.env, stdio: 'ignore' })
  expect((await ralph(at, ['status'])).code).toBe(0)
})

test('G4: an agent that amends a checkpoint is not said to have left the branch', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const agent = `echo w > w.txt; git add w.txt; git commit -q --amend -m mine; ${goodAgent}`
  const end = await ralph(at, ['loop', 'demo', '--json', '--agent-command', agent])
  expect(end.code).toBe(0)
  expect(told(end)).toEqual([
    'the agent rewrote ralph/demo (amend, reset or rebase); its commits are as they were',
  ])
  expect(at.git('log', '--format=%s', 'main..')).toBe('checkpoint: 1\ninitial state')
})

test.each([
  ['another branch', 'git symbolic-ref refs/heads/main refs/heads/other'],
  ['its own new name', 'git branch -m main trunk; git symbolic-ref refs/heads/main refs/heads/trunk'],
])('O13: a branch that the agent makes another name for %s is a plain one again', async (_, deed) => {
  const at = scratch({ tasks: tasksOf(1) })
  at.git('branch', 'other')
  const before = at.git('rev-parse', 'main')
  const end = await ralph(at, ['loop', 'demo', '--agent-command', once(`${deed}; ${failed}`), '--json'])
  expect([end.code, told(end).join()]).toEqual([0, expect.stringContaining('main another name for')])
  expect(told(end).join()).not.toContain('deleted main')
  expect(at.git('for-each-ref', '--format=%(refname:short)%(symref)', 'refs/heads')).toBe(
    'main\nother\nralph/demo',
  )
  expect(at.git('rev-parse', 'main')).toBe(before)
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
})

/** Each that is another name for one, with what it leads to. */
function aliases(at: Scratch): string[] {
  return at
    .git(
      'for-each-ref',
      '--format=%(refname:short)%(if)%(symref)%(then) -> %(symref:short)%(end)',
      'refs/heads',
    )
    .split('\n')
    .filter((line) => line.includes(' -> '))
}

test.each([['the agent'], ['a gate']])(
  "O13: what %s does to another name for a branch of the user's goes back: deleted, made plain, or led elsewhere",
  async (who) => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('branch', 'other')
    for (const name of ['deleted', 'gone-d', 'plain', 'over', 'led', 'Größe', 'beside'])
      at.git('symbolic-ref', `refs/heads/${name}`, 'refs/heads/main')
    at.git('symbolic-ref', 'refs/heads/nowhere', 'refs/heads/none')
    const were = aliases(at)
    const deed = [
      'git symbolic-ref --delete refs/heads/deleted',
      'git branch -q -D gone-d Größe nowhere',
      'git symbolic-ref -d refs/heads/plain',
      'git branch plain HEAD~0',
      'git branch x',
      'git branch -M x over',
      'git symbolic-ref -m why refs/heads/led refs/heads/other',
      'git symbolic-ref refs/heads/fresh refs/heads/other',
      beside(at, 'git symbolic-ref -d refs/heads/beside'),
    ].join('; ')
    const isAgents = who === 'the agent'
    const gate = at.script('gate.sh', `#!/bin/sh\n[ -e ../deeds ] && exit 0\n: > ../deeds\n${deed}\n`)
    const options = isAgents
      ? ['--agent-command', once(`${deed}; ${failed}`)]
      : ['--agent-command', goodAgent, '--verify', gate]
    const end = await ralph(at, ['loop', 'demo', ...options, '--json'])
    expect(end.code).toBe(0)
    expect(aliases(at)).toEqual(were.filter((line) => !line.startsWith('beside')))
    expect(at.git('symbolic-ref', 'refs/heads/nowhere')).toBe('refs/heads/none')
    expect(at.git('branch', '--list', 'fresh', 'x')).toBe('')
    const n = isAgents ? '1' : '1-gates'
    const lines = told(end)
    expect(lines).toEqual(
      expect.arrayContaining([
        `${who} deleted deleted, another name for main; it is that again`,
        `${who} deleted nowhere, another name for none; it is that again`,
        `${who} made plain, another name for main, a branch of its own; it is that name again, and the branch is refs/ralph/demo/moved/${n}/heads/plain`,
        `${who} made led another name for other; it is one for main again`,
        `${who} made fresh, another name for other; it is removed; to get it back: git symbolic-ref refs/heads/fresh refs/heads/other`,
      ]),
    )
    expect(lines.join('\n')).not.toMatch(/moved (plain|over)\b|deleted (plain|over)\b/)
    if (isAgents)
      expect(lines.join('\n')).toContain(
        'beside was deleted; it is left as it is; to get it back: git symbolic-ref refs/heads/beside refs/heads/main',
      )
  },
)
