// What is left of a loop for colleagues to see: its commits, one commit, or commits with the names of the stories.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { goodAgent, longDead, ralph, scratch, tasksOf, type Scratch } from './harness.ts'
import { onTerminal } from './on-terminal.ts'
import { install } from './usage-kit.ts'

describe('commits', () => {
  test('F37: a checkpoint tells its story, its tasks and its agent, in the name of the user', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect(at.git('log', '-1', '--format=%an <%ae>%n%cn%n%B').trim()).toBe(
      [
        'User <user@example.invalid>',
        'ralph',
        'checkpoint: 1',
        '',
        'Story 1',
        '',
        '- [x] 1.1 first',
        '- [x] 1.2 second',
        '',
        'Ralph-Change: demo',
        'Ralph-Story: 1',
        'Ralph-Agent: command',
      ].join('\n'),
    )
    expect(at.git('log', '-1', '--format=%B', 'HEAD~1').trim()).toBe(
      'initial state\n\nempty\n\nRalph-Change: demo',
    )
  })
})

async function looped(stories = 2): Promise<Scratch> {
  const at = scratch({ tasks: tasksOf(stories) })
  await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
  return at
}

function hook(at: Scratch, body: string): void {
  const file = join(at.repo, '.git/hooks/pre-commit')
  writeFileSync(file, `#!/bin/sh\n${body}\n`)
  chmodSync(file, 0o755)
}

const trailers = 'Ralph-Change: demo\nCo-authored-by: ralph <ralph@localhost>'

describe('finish --squash', () => {
  test('F37: what a hook of the user’s adds to the commit is named, and not said to be uncommitted still', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('mine.txt', 'mine\n')
    writeFileSync(join(at.repo, '.git/hooks/pre-commit'), '#!/bin/sh\ngit add -A\n', { mode: 0o755 })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    const { stdout } = await ralph(at, ['finish', 'demo', '--squash'])
    expect(stdout).toContain('. Also in it, added or changed by a hook of yours: mine.txt.')
    expect(stdout).not.toContain('other uncommitted files')
    expect(at.git('show', 'HEAD:mine.txt')).toBe('mine')
  })

  test.each([['--soft'], ['--hard']])(
    'F37: a hook of the user’s that takes the commit back (reset %s): said, and the command commits the work',
    async (how) => {
      const at = await looped(1)
      const file = join(at.repo, '.git/hooks/post-commit')
      writeFileSync(file, `#!/bin/sh\ngit reset -q ${how} HEAD~1\n`, { mode: 0o755 })
      const end = await ralph(at, ['finish', 'demo', '--squash'])
      expect([end.code, end.stderr]).toEqual([
        1,
        expect.stringContaining('a hook of yours took the commit back'),
      ])
      rmSync(file)
      const command = /(git restore .* )?git commit -F .*/.exec(end.stderr)?.[0] ?? 'false'
      execFileSync('sh', ['-c', command], { cwd: at.repo, env: at.env })
      expect([at.git('log', '--format=%s', 'main'), at.git('show', 'main:story-1.txt')]).toEqual([
        'Demo change\nstart',
        'work of 1',
      ])
      expect(at.git('status', '--porcelain')).toBe('')
    },
  )

  test.each([
    ['--no-tui', 'finish demo --squash'],
    ['--no-tui', 'finish demo --cleanup'],
    ['--worktree', 'finish demo --squash'],
    ['--worktree', 'resume demo'],
  ])(
    'F37, G25: killed right behind its commit (%s): status says what git may show, and after `ralph %s` the index is not behind',
    async (mode, command) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('staged.txt', 'mine\n')
      at.git('add', 'staged.txt')
      await ralph(at, ['loop', 'demo', mode, '--agent-command', goodAgent])
      const file = join(at.repo, '.git/hooks/post-commit')
      // Its parent is git, whose parent is ralph.
      writeFileSync(file, '#!/bin/sh\nread -r _ _ _ ralph _ < /proc/$PPID/stat; kill -KILL $ralph\n', {
        mode: 0o755,
      })
      expect((await ralph(at, ['finish', 'demo', '--squash'])).signal).toBe('SIGKILL')
      const { stdout } = await ralph(at, ['status'])
      expect(stdout).toContain('a finish was cut off in the middle: until ralph finish demo --cleanup')
      expect(stdout).not.toContain('the attempt that died')
      expect((await ralph(at, command.split(' '))).code).toBe(0)
      expect([at.git('log', '--format=%s', 'main'), at.git('status', '--porcelain')]).toEqual([
        'Demo change\nstart',
        'A  staged.txt',
      ])
      expect([at.git('branch', '--format=%(refname:short)'), existsSync(file)]).toEqual(['main', true])
      expect((await ralph(at, ['status', 'demo'])).stdout).toContain(
        `one commit on main, ${at.git('rev-parse', '--short=12', 'main')}`,
      )
    },
  )

  test('F37: one commit on main with a message from the proposal and the stories', async () => {
    const at = await looped()
    const end = await ralph(at, ['finish', 'demo', '--squash', '--json'])
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(at.git('log', '--format=%s', 'main')).toBe('Demo change\nstart')
    expect(at.git('log', '-1', '--format=%B').trim()).toBe(
      `Demo change\n\n- 1 Story 1\n- 2 Story 2\n\n${trailers}`,
    )
    expect([at.git('branch', '--show-current'), at.git('status', '--porcelain')]).toEqual(['main', ''])
    expect(JSON.parse(end.stdout)).toMatchObject({ choice: 'squash', commit: at.git('rev-parse', 'HEAD') })
    const again = await ralph(at, ['finish', 'demo', '--squash'])
    const said = `demo is finished already: squashed into ${at.git('rev-parse', '--short=7', 'HEAD')} on main.\n`
    expect([again.code, again.stdout]).toEqual([0, said])
  })

  test("F12: without a title in the proposal the change's name in words is the subject; an agent of the user's own is no co-author by the name of command", async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/add-login/proposal.md', '## Why\nBecause.\n')
    at.write('openspec/changes/add-login/tasks.md', tasksOf(1))
    await ralph(at, ['loop', 'add-login', '--agent-command', goodAgent])
    expect((await ralph(at, ['finish', 'add-login', '--squash'])).code).toBe(0)
    expect(at.git('log', '-1', '--format=%B')).toBe(
      'Add login\n\n- 1 Story 1\n\nRalph-Change: add-login\nCo-authored-by: ralph <ralph@localhost>',
    )
  })

  test('F37: with a message of the user’s own, and after a halt: the run goes on from there', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = `[ "$RALPH_STORY" = 1 ] && { ${goodAgent}; } || echo "<promise>FAILED: no</promise>"`
    await ralph(at, ['loop', 'demo', '--agent-command', agent, '--max-retries', '0'])
    const end = await ralph(at, ['finish', 'demo', '--squash', '-m', 'The first half'])
    expect(end.code).toBe(0)
    expect(at.git('log', '-1', '--format=%B').trim()).toBe(`The first half\n\n${trailers}`)
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect(resumed.code).toBe(0)
    expect((await ralph(at, ['finish', 'demo', '--squash'])).code).toBe(0)
    expect(at.git('log', '--format=%s', 'main')).toBe('Demo change\nThe first half\nstart')
  })

  test('F37: a hook that refuses: exit 1, its words, the work staged on main, the command to go on with', async () => {
    const at = await looped()
    hook(at, 'echo "lint: 3 problems" >&2; exit 1')
    const end = await ralph(at, ['finish', 'demo', '--squash'])
    expect(end.code).toBe(1)
    expect(end.stderr).toContain('lint: 3 problems')
    expect(end.stderr).toMatch(/nothing is lost.*git commit -F \S+/s)
    expect(at.git('status', '--porcelain').split('\n')).toHaveLength(3)
    hook(at, 'exit 0')
    const [, file = ''] = /git commit -F (\S+)/.exec(end.stderr) ?? []
    at.git('commit', '-q', '-F', file)
    expect(at.git('status', '--porcelain')).toBe('')
  })

  test('F6: a squash that is asked for again after a hook’s refusal ends with 1 until its commit is made, and names it', async () => {
    const at = await looped()
    hook(at, 'exit 1')
    const squash = ['finish', 'demo', '--squash']
    expect((await ralph(at, squash)).code).toBe(1)
    hook(at, 'exit 0')
    const again = await ralph(at, squash)
    expect([again.code, again.stdout]).toEqual([1, ''])
    expect(again.stderr).toContain('The work of demo is on main, uncommitted')
    const [, file = ''] = /git commit -F (\S+)/.exec(again.stderr) ?? []
    at.git('commit', '-q', '-F', file)
    expect((await ralph(at, squash)).code).toBe(0)
    // Of a cleanup that was no squash there is no message.
    const cleaned = await looped()
    expect((await ralph(cleaned, ['finish', 'demo', '--cleanup'])).code).toBe(0)
    const { code, stderr } = await ralph(cleaned, squash)
    expect([code, stderr]).toEqual([1, expect.stringContaining('git add and git commit')])
  })

  test('F37: status names the one commit, whatever else is uncommitted there', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('README.md', '# mine\n')
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    await ralph(at, ['finish', 'demo', '--squash'])
    expect(at.git('status', '--porcelain')).toBe(' M README.md')
    const { stdout } = await ralph(at, ['status', 'demo'])
    expect(stdout).toContain(`one commit on main, ${at.git('rev-parse', '--short=12', 'HEAD')}\n`)
    expect(stdout).not.toContain('uncommitted')
    at.git('reset', '-q', '--soft', 'HEAD~1')
    expect((await ralph(at, ['status', 'demo'])).stdout).toContain('on main, uncommitted')
  })

  test('F37: a plan that was not committed when the loop began goes with the work, and is named', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('rm', '-q', '-r', '--cached', 'openspec')
    at.git('commit', '-qm', 'no plan yet')
    at.write('mine.txt', 'm')
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    const end = await ralph(at, ['finish', 'demo', '--squash'])
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(end.stdout).toMatch(/Also in it, since it is the plan .*openspec\/changes\/demo\/tasks\.md/)
    expect(end.stdout).toContain('Your other uncommitted files are as they were')
    expect(at.git('show', '--name-only', '--format=').split('\n')).toEqual([
      'openspec/changes/demo/proposal.md',
      'openspec/changes/demo/tasks.md',
      'story-1.txt',
    ])
    expect(at.git('show', 'HEAD:openspec/changes/demo/tasks.md')).toContain('- [x] 1.2 second')
    expect(at.git('status', '--porcelain')).toBe('?? mine.txt')
  })

  test('F37: so does the tasks.md of the root, where it is the plan; where it is not, it is the user’s', async () => {
    const end = async (own: boolean) => {
      const at = scratch(own ? { tasks: tasksOf(1) } : { tasks: '' })
      at.write('tasks.md', tasksOf(1))
      const agent = own ? `echo more >> tasks.md; ${goodAgent}` : goodAgent
      await ralph(at, ['loop', 'demo', '--agent-command', agent])
      return { at, said: await ralph(at, ['finish', 'demo', '--squash']) }
    }
    const { at, said } = await end(false)
    expect([said.code, said.stderr]).toEqual([0, ''])
    expect(said.stdout).toContain('Also in it, since it is the plan that you had not committed: tasks.md')
    expect(at.git('show', '--name-only', '--format=').split('\n')).toEqual(['story-1.txt', 'tasks.md'])
    expect(at.git('status', '--porcelain')).toBe('')
    const { said: refused } = await end(true)
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('lines that you had not committed when it began: tasks.md')
    expect(refused.stderr).toContain('ralph finish demo --cleanup')
  })

  test('F37: other lines that were not committed still refuse it, with the plan or without; status says squash', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('story-1.txt', 'mine\n')
    at.write('openspec/changes/demo/tasks.md', `Note.\n\n${tasksOf(1)}`)
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    const tip = at.git('rev-parse', 'ralph/demo')
    expect((await ralph(at, ['finish', 'demo', '--squash'])).code).toBe(1)
    expect([at.git('rev-parse', 'ralph/demo'), at.git('log', '--format=%s', 'main')]).toEqual([tip, 'start'])
    expect((await ralph(at, ['status', 'demo'])).stdout).toMatch(/refused +the last squash: .*story-1\.txt/)
  })

  test('F37, O5: what the user changed after a kill -9 is named where the commit holds it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = `[ "$RALPH_STORY" = 2 ] && [ ! -e ../struck ] && { touch ../struck; kill -9 $PPID; exit; }; ${goodAgent}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent])
    expect(end.signal).toBe('SIGKILL')
    longDead(at)
    at.write('README.md', '# mine\n')
    expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
    const { stdout } = await ralph(at, ['finish', 'demo', '--squash'])
    expect(at.git('show', '--name-only', '--format=').split('\n')).toContain('README.md')
    expect(stdout).toContain('Also in it, since you changed it between two attempts: README.md.')
  })

  test.each(['true', 'git stash -uq'])(
    'F37, G25: killed while a hook runs, then `%s`: the next command ends the hook and makes the commit',
    async (meanwhile) => {
      const at = await looped()
      hook(
        at,
        `[ -e ../struck ] && exit 0; touch ../struck; read -r _ _ _ ralph _ < /proc/$PPID/stat; kill -9 $ralph; exec sleep 1000`,
      )
      const end = await ralph(at, ['finish', 'demo', '--squash'])
      expect(end.signal).toBe('SIGKILL')
      execFileSync('sh', ['-c', meanwhile], { cwd: at.repo, env: at.env })
      const next = await ralph(at, ['finish', 'demo', '--squash'])
      expect([next.code, next.stderr]).toEqual([0, expect.stringContaining('The work is one commit now')])
      expect(at.git('log', '--format=%s', 'main')).toBe('Demo change\nstart')
      expect([at.git('branch', '--show-current'), at.git('status', '--porcelain')]).toEqual(['main', ''])
    },
  )
})

test('F36: after a finish the next steps are there to copy: push, and the archive of OpenSpec', async () => {
  const at = await looped(1)
  const next = async (...args: string[]): Promise<string> =>
    (await ralph(at, ['finish', 'demo', ...args])).stdout
      .split('\n')
      .filter((line) => /^ {2}next {3}| {9}\S/.test(line))
      .map((line) => line.slice(9))
      .join('; ')
  expect(await next('--keep')).toBe('')
  at.git('remote', 'add', 'upstream', '/nowhere')
  expect(await next('--keep', '--rename')).toBe('git push -u upstream ralph/demo')
  const again = await looped(1)
  expect(await next('--squash')).toBe('git push; npx @fission-ai/openspec archive demo')
  install(again, 'openspec', '#!/bin/sh\n')
  expect((await ralph(again, ['finish', 'demo', '--squash'])).stdout).toMatch(
    /^ {2}next {3}openspec archive demo$/m,
  )
})

test('F36: the end offers a push only where there is a remote, and says what of the user’s own would go with any push', async () => {
  const end = async (remote: boolean, ...own: string[]): Promise<string> => {
    const at = scratch({ tasks: tasksOf(1) })
    if (remote) at.git('remote', 'add', 'upstream', '/nowhere')
    for (const path of own) at.write(path, 'mine')
    return (await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])).stdout
  }
  const none = await end(false, 'a.txt')
  expect(none).toContain('one commit on main')
  expect(none).not.toContain('git push')
  expect(none).toContain(
    'Its first commit holds files that you had not committed, and a push publishes them: a.txt.',
  )
  const clean = await end(true)
  expect(clean).toMatch(/share +git push -u upstream ralph\/demo +then a pull request/)
  expect(clean).not.toContain('first commit')
  const four = await end(true, 'README.md', 'a.txt', 'b.txt', 'c.txt')
  expect(four).toContain(
    'Its first commit holds files that you had not committed, and a push publishes them: README.md, a.txt, b.txt and 1 more.',
  )
})

describe('a run that is finished', () => {
  test('B1: another finish says where the work is, and leaves the record as it is', async () => {
    const at = await looped()
    expect((await ralph(at, ['finish', 'demo', '--squash'])).code).toBe(0)
    const journal = join(at.repo, '.git/ralph/changes/demo/journal.ndjson')
    const [before, status] = [readFileSync(journal, 'utf8'), (await ralph(at, ['status', 'demo'])).stdout]
    const commit = at.git('rev-parse', '--short=7', 'HEAD')
    for (const args of [['--keep'], ['--cleanup'], ['--keep', '--rename']]) {
      const again = await ralph(at, ['finish', ...args])
      expect([again.code, again.stdout, again.stderr]).toEqual([
        0,
        `demo is finished already: squashed into ${commit} on main.\n`,
        '',
      ])
    }
    const unasked = onTerminal(at, ['finish'])
    expect((await unasked.exited).exitCode).toBe(0)
    expect(unasked.raw()).toContain(`squashed into ${commit} on main.`)
    expect(unasked.raw()).not.toContain('What should happen')
    expect(readFileSync(journal, 'utf8')).toBe(before)
    expect((await ralph(at, ['status', 'demo'])).stdout).toBe(status)
  })

  test('B1: after a cleanup, too; a run that is kept stays to be finished', async () => {
    const at = await looped()
    for (const choice of ['--keep', '--cleanup'])
      expect((await ralph(at, ['finish', 'demo', choice])).stdout).not.toContain('already')
    const { stdout } = await ralph(at, ['finish', 'demo', '--keep'])
    expect(stdout).toMatch(
      /^demo is finished already: its work is on main, uncommitted, since the cleanup at [\d:]{8}\.\n$/,
    )
    expect((await ralph(at, ['why', 'demo'])).stdout).not.toContain('ralph finish')
  })
})

test('F12: what was staged when the loop began, and is in no file, is named by a keep with what shows it', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('part.txt', 'staged\n')
  at.write('gone.txt', 'staged\n')
  at.write('plain.txt', 'staged\n')
  at.git('add', '-A')
  at.write('part.txt', 'staged\nand edited\n')
  rmSync(join(at.repo, 'gone.txt'))
  const ended = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--on-complete', 'keep'])
  const kept = await ralph(at, ['finish', 'demo', '--keep'])
  for (const { code, stdout } of [ended, kept]) {
    expect(code).toBe(0)
    expect(stdout).toContain('hat you had staged when the loop began is in no file: gone.txt, part.txt')
    const shows = stdout.match(/git show '[^']+'/g) ?? []
    const blobs = shows.map((line) =>
      execFileSync('sh', ['-c', line], { cwd: at.repo, env: at.env }).toString(),
    )
    expect(blobs).toEqual(['staged\n', 'staged\n'])
  }
})

describe('finish --keep --rename', () => {
  test('F37: the branch can be pushed as it is', async () => {
    const at = await looped()
    const end = await ralph(at, ['finish', 'demo', '--keep', '--rename'])
    expect(end.code).toBe(0)
    expect(at.git('log', '--format=%s')).toBe('Story 2\nStory 1\nstart')
    expect([at.git('branch', '--show-current'), at.git('status', '--porcelain')]).toEqual(['ralph/demo', ''])
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
    expect(at.read('story-2.txt')).toBe('work of 2\n')
  })
})
