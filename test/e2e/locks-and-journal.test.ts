// Locks and journals that are not as ralph left them: no dead end, nothing in silence, and "nothing was changed" only where it is true.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'
import { after } from './scenes.ts'
import type { Scratch } from './harness.ts'

/** Works for one story, then waits until somebody ends it. */
const waiting = 'cat > /dev/null; echo half > half.txt; echo waiting; sleep 600'

/** A loop that was killed, with its agent, in the middle of an attempt. */
async function killed(at: Scratch, ...flags: string[]): Promise<void> {
  const loop = start(at, ['loop', 'demo', '--agent-command', waiting, '--json', ...flags])
  await loop.seen((out) => out.includes('"text":"waiting'))
  loop.child.kill('SIGKILL')
  await loop.ended
}

const done = (stories: number): Promise<Scratch> =>
  after(['loop', 'demo', '--agent-command', goodAgent, '--max-retries', '0'], {
    tasks: tasksOf(stories),
    code: 0,
  })

const gitDir = (at: Scratch, ...parts: string[]): string => join(at.repo, '.git', ...parts)

/** What a user, or the next git command of theirs, can see of the repository. */
function seen(at: Scratch): unknown {
  return {
    head: readFileSync(gitDir(at, 'HEAD'), 'utf8'),
    index: readFileSync(gitDir(at, 'index')).toString('base64'),
    refs: at.git('for-each-ref', '--format=%(refname) %(objectname)'),
    status: execFileSync('git', ['--no-optional-locks', 'status', '--porcelain'], {
      cwd: at.repo,
      env: at.env,
      encoding: 'utf8',
    }),
    exclude: readFileSync(gitDir(at, 'info/exclude'), 'utf8'),
  }
}

/** The user's own: staged, edited and untracked. */
function withWork(at: Scratch): Scratch {
  at.write('staged.txt', 'staged')
  at.git('add', 'staged.txt')
  at.write('README.md', '# edited\n')
  at.write('untracked.txt', 'untracked')
  return at
}

function left(folder: string, pattern: RegExp): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => pattern.test(name))
}

describe('H1, O6: what a git that was killed with ralph left in ralph’s own folders', () => {
  test('locked and half-written files are removed by the next command that has the loop’s lock', async () => {
    const at = withWork(scratch({ tasks: tasksOf(1) }))
    await killed(at)
    const folder = gitDir(at, 'ralph/checkpoints/demo')
    for (const name of ['attempt', 'user', 'apply', 'home', 'own', 'start', 'finish'])
      writeFileSync(join(folder, `${name}-index.lock`), '')
    writeFileSync(join(folder, 'snapshot.json.4000000.tmp'), '{"com')
    writeFileSync(gitDir(at, 'refs/ralph/demo/checkpoint.lock'), '')
    const end = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, '--on-complete', 'cleanup'])
    expect(end).toMatchObject({ code: 0 })
    expect(at.read('untracked.txt')).toBe('untracked')
    expect(left(gitDir(at), /\.lock$|\.tmp$|lock\.json/)).toEqual([])
  })

  test('L: the lock files of a loop that was killed after its end are swept by the next command that may write', async () => {
    const at = await done(1)
    const dead = { pid: 4_000_000, pid_started: '1', boot_id: 'x', token: 't', worktree: at.repo, since: '' }
    const { hostname } = await import('node:os')
    const lock = JSON.stringify({ ...dead, change: 'demo', host: hostname() })
    const files = [gitDir(at, 'ralph/lock.json'), gitDir(at, 'ralph/changes/demo/lock.json')]
    for (const command of [
      ['resume', 'demo'],
      ['stop', 'demo'],
      ['finish', 'demo', '--keep'],
    ]) {
      for (const file of files) writeFileSync(file, lock)
      expect((await ralph(at, command)).code, command.join(' ')).toBe(0)
      expect(
        files.filter((file) => existsSync(file)),
        command.join(' '),
      ).toEqual([])
    }
  })
})

describe('H5, O11: a lock of git’s that is there at the start', () => {
  test.each([
    ['index.lock', 'branch'],
    ['HEAD.lock', 'branch'],
    ['packed-refs.lock', 'branch'],
    ['refs/heads/ralph/demo.lock', 'branch'],
    ['index.lock', 'stash'],
  ])(
    '%s (%s): exit 2, nothing touched; the file, its age and the way on are named',
    async (name, strategy) => {
      const at = withWork(scratch({ tasks: tasksOf(1) }))
      const before = seen(at)
      mkdirSync(gitDir(at, 'refs/heads/ralph'), { recursive: true })
      const lock = gitDir(at, name)
      writeFileSync(lock, '')
      const loop = ['loop', 'demo', '--agent-command', goodAgent, '--checkpoint', strategy]
      const end = await ralph(at, loop)
      expect({ code: end.code, stderr: end.stderr }).toEqual({
        code: 2,
        stderr: expect.stringMatching(
          /is there: .* it is \d+ s old\.\n {2}Nothing was touched\. .*rm /,
        ) as string,
      })
      expect(end.stderr).toContain(lock)
      expect(seen(at)).toEqual(before)
      rmSync(lock)
      expect((await ralph(at, loop)).code).toBe(0)
    },
  )

  /** A git that puts a lock in ralph's way just before (or after) ralph's own command. */
  function gitThatLocks(
    at: Scratch,
    when: 'before' | 'after',
    command: string,
    locks: readonly string[],
  ): NodeJS.ProcessEnv {
    const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8', env: at.env }).trim()
    const bin = join(at.root, 'bin')
    mkdirSync(bin)
    const touch = `case " $* " in *" ${command} "*) [ -e "${at.root}/once" ] || { touch "${at.root}/once" ${locks.map((lock) => `"${gitDir(at, lock)}"`).join(' ')}; };; esac`
    writeFileSync(
      join(bin, 'git'),
      `#!/bin/sh\n${when === 'before' ? touch : ''}\n"${real}" "$@"\ncode=$?\n${when === 'after' ? touch : ''}\nexit $code\n`,
      { mode: 0o755 },
    )
    return { PATH: `${bin}:${at.env['PATH']}` }
  }

  test.each([
    ['HEAD.lock', 'before', 'update-ref'],
    ['index.lock', 'after', 'update-ref'],
    ['refs/ralph/demo/checkpoint.lock', 'before', 'update-ref'],
  ] as const)(
    'H5: %s that appears in the middle of the start: it is undone completely',
    async (name, when, command) => {
      const at = withWork(scratch({ tasks: tasksOf(1) }))
      const before = seen(at) as { exclude: string }
      mkdirSync(gitDir(at, 'refs/ralph/demo'), { recursive: true })
      const env = gitThatLocks(at, when, command, [name])
      const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent], { env })
      expect(end.code).toBe(1)
      expect(end.stderr).toContain(gitDir(at, name))
      expect(end.stdout).toContain('This run has changed nothing in the repository')
      const after = seen(at) as { exclude: string }
      expect({ ...after, exclude: '' }).toEqual({ ...before, exclude: '' })
      rmSync(gitDir(at, name))
      // What it says to type is what works.
      expect(end.stderr).toContain('type: ralph resume demo')
      expect((await ralph(at, ['resume', 'demo', '--on-complete', 'cleanup'])).code).toBe(0)
      expect([at.read('untracked.txt'), at.read('README.md')]).toEqual(['untracked', '# edited\n'])
      expect(at.git('diff', '--cached', '--name-only')).toBe('staged.txt')
    },
    40_000,
  )

  test('H5: a start that cannot be undone is not said to be; resume completes it', async () => {
    const at = withWork(scratch({ tasks: tasksOf(1) }))
    const locks = ['index.lock', 'HEAD.lock']
    const env = gitThatLocks(at, 'before', 'update-ref', ['index.lock'])
    // While ralph waits for the index, the way back is closed as well.
    const [head = '', lock = ''] = ['HEAD', 'HEAD.lock'].map((name) => gitDir(at, name))
    const closing = spawn('sh', ['-c', `until grep -q ralph/demo '${head}'; do :; done; : > '${lock}'`])
    onTestFinished(() => void closing.kill())
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent], { env })
    expect(end.code).toBe(1)
    expect(end.stdout).not.toContain('This run has changed nothing in the repository')
    expect(end.stderr).toContain('The start is half done')
    for (const lock of locks) rmSync(gitDir(at, lock))
    expect((await ralph(at, ['resume', 'demo', '--on-complete', 'cleanup'])).code).toBe(0)
    expect([at.read('untracked.txt'), at.read('README.md')]).toEqual(['untracked', '# edited\n'])
    expect(at.git('diff', '--cached', '--name-only')).toBe('staged.txt')
    expect(at.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
  }, 60_000)
})

describe('section 6.5, O16: every command that writes takes the locks', () => {
  test('restore and clean: exit 7 while a loop of any change runs in this work tree; --to a folder is allowed', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/other/proposal.md', '# Other\n')
    at.write('openspec/changes/other/tasks.md', tasksOf(1))
    at.git('add', '-A')
    at.git('commit', '-qm', 'other')
    const failing = 'echo a > attempt.txt; echo "<promise>FAILED: no</promise>"'
    const flags = ['--max-retries', '0', '--on-complete', 'cleanup']
    expect((await ralph(at, ['loop', 'demo', '--agent-command', failing, ...flags])).code).toBe(3)
    const loop = start(at, ['loop', 'other', '--agent-command', waiting, '--json'])
    await loop.seen((out) => out.includes('"text":"waiting'))
    for (const command of [
      ['restore', '1', 'demo'],
      ['clean', 'demo', '--attempts', '--yes'],
    ]) {
      const refused = await ralph(at, command)
      expect({ code: refused.code, stderr: refused.stderr }, command.join(' ')).toEqual({
        code: 7,
        stderr: expect.stringContaining(`change other in ${at.repo}, pid ${loop.pid}`) as string,
      })
    }
    expect(existsSync(join(at.repo, 'attempt.txt'))).toBe(false)
    const to = join(at.root, 'there')
    expect((await ralph(at, ['restore', '1', 'demo', '--to', to])).code).toBe(0)
    expect(readFileSync(join(to, 'attempt.txt'), 'utf8')).toBe('a\n')
    loop.child.kill('SIGTERM')
    await loop.ended
    expect((await ralph(at, ['finish', 'other', '--cleanup'])).code).toBe(0)
    expect((await ralph(at, ['restore', '1', 'demo'])).code).toBe(0)
    expect(at.read('attempt.txt')).toBe('a\n')
  })
})

describe('H3, O9: a journal that was changed by another program', () => {
  const journalOf = (at: Scratch): string => gitDir(at, 'ralph/changes/demo/journal.ndjson')
  const foreign = '{"v":1,"type":"x"}\\n'

  /** The commands after these words, up to the end of the sentence. */
  function commands(said: string, after: string): string {
    const found = new RegExp(`${after}[^:]*: (git .*?)\\.(?:\\s|$)`).exec(said.replaceAll(/\s+/g, ' '))?.[1]
    if (found === undefined) throw new Error(`no commands in: ${said}`)
    return found
  }

  test.each([
    ['appends a line to it', `printf '${foreign}' >> .git/ralph/changes/demo/journal.ndjson`],
    ['truncates it', ': > .git/ralph/changes/demo/journal.ndjson'],
    ['removes it', 'rm .git/ralph/changes/demo/journal.ndjson'],
  ])('H3: an agent %s: the loop goes by its memory, says so, and cleans up as asked', async (_, deed) => {
    const at = withWork(scratch({ tasks: tasksOf(2) }))
    const agent = `${deed}; ${goodAgent}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'cleanup'])
    expect(end).toMatchObject({ code: 0 })
    expect(end.stderr).toContain('another program has changed the journal')
    expect(at.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
    expect([at.read('untracked.txt'), at.read('story-2.txt')]).toEqual(['untracked', 'work of 2\n'])
    expect(at.git('branch', '--list', 'ralph/*')).toBe('')
    const status = await ralph(at, ['status', 'demo', '--json'])
    expect(JSON.parse(status.stdout)).toMatchObject({ status: 'done', current_iteration: 2 })
    expect(status.stdout).not.toContain('problem')
  })

  test.each([
    ['unknown', '{"v":1,"type":"x"}\n'],
    ['damaged', '{"v":1,"seq":9,"ti\n'],
  ])('H3: a line in the journal of a dead loop that is %s is no dead end', async (_, line) => {
    const at = withWork(scratch({ tasks: tasksOf(2) }))
    const loop = start(at, ['loop', 'demo', '--agent-command', `${waiting} & wait`, '--json'])
    await loop.seen((out) => out.includes('"text":"waiting'))
    loop.child.kill('SIGKILL')
    await loop.ended
    const whole = readFileSync(journalOf(at), 'utf8')
    writeFileSync(journalOf(at), whole + line)
    const number = whole.split('\n').length

    const status = await ralph(at, ['status', 'demo'])
    expect(status).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`Line ${number} of the journal`) as string,
    })
    expect(status.stdout).toContain('ralph loop demo --fresh')
    for (const command of [
      ['history', 'demo'],
      ['attempts', 'demo'],
      ['why', 'demo'],
      ['report', 'demo'],
      ['logs', 'demo'],
    ]) {
      const end = await ralph(at, command)
      expect(end, command.join(' ')).toMatchObject({
        code: 0,
        stderr: expect.stringContaining(`Line ${number} of the journal`) as string,
      })
    }
    const list = JSON.parse((await ralph(at, ['list', '--json'])).stdout) as {
      changes: { status: string; problem: string }[]
    }
    expect(list.changes).toMatchObject([
      { status: 'stopped', problem: expect.stringContaining(`Line ${number}`) as string },
    ])
    const doctor = await ralph(at, ['doctor'])
    expect(doctor.stdout).toContain(`Line ${number} of the journal`)
    expect(readFileSync(journalOf(at), 'utf8')).toBe(whole + line)

    const stopped = await ralph(at, ['stop', 'demo', '--json'])
    expect(stopped.code).toBe(0)
    expect((JSON.parse(stopped.stdout) as { ended_pids: number[] }).ended_pids.length).toBeGreaterThan(0)

    const before = seen(at)
    let said = ''
    for (const command of [
      ['resume', 'demo'],
      ['finish', 'demo', '--cleanup'],
      ['loop', 'demo', '--agent', 'demo'],
    ]) {
      const end = await ralph(at, command)
      expect(end.code, command.join(' ')).toBe(1)
      said = end.stderr
      expect(said).toContain(`Line ${number} of the journal`)
      commands(said, 'All of it')
    }
    expect(seen(at)).toEqual(before)

    const fresh = await ralph(at, [
      'loop',
      'demo',
      '--fresh',
      '--agent-command',
      goodAgent,
      '--on-complete',
      'cleanup',
    ])
    expect(fresh).toMatchObject({ code: 0 })
    expect(at.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
    expect([at.read('untracked.txt'), at.read('README.md')]).toEqual(['untracked', '# edited\n'])
    const archive = gitDir(at, 'ralph/changes/demo/archive')
    const archived = readdirSync(archive).map((name) =>
      readFileSync(join(archive, name, 'journal.ndjson'), 'utf8'),
    )
    expect(archived).toEqual([whole + line])
    expect((await ralph(at, ['status', 'demo'])).stdout).not.toContain('problem')
  })

  test('H3: the rescue commands work as they are typed', async () => {
    const at = withWork(scratch({ tasks: tasksOf(2) }))
    const once = `${goodAgent}; [ $RALPH_STORY = 1 ] || { echo waiting; sleep 600; }`
    const loop = start(at, ['loop', 'demo', '--agent-command', once, '--json'])
    await loop.seen((out) => out.includes('"n":2') && out.includes('waiting'))
    loop.child.kill('SIGKILL')
    await loop.ended
    writeFileSync(journalOf(at), `nonsense\n${readFileSync(journalOf(at), 'utf8')}`)
    await ralph(at, ['stop', 'demo'])
    const end = await ralph(at, ['resume', 'demo'])
    expect(end.code).toBe(1)
    execFileSync('sh', ['-c', commands(end.stderr, 'All of it')], {
      cwd: at.repo,
      env: at.env,
      stdio: 'ignore',
    })
    expect(at.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
    expect([at.read('untracked.txt'), at.read('story-1.txt')]).toEqual(['untracked', 'work of 1\n'])
  })

  test('section 6.7: a done run stays done where a line in the middle is damaged, and status writes nothing', async () => {
    const at = await done(2)
    const lines = readFileSync(journalOf(at), 'utf8').split('\n')
    lines[10] = lines[10]?.slice(0, 20) ?? ''
    writeFileSync(journalOf(at), lines.join('\n'))
    const before = [readFileSync(journalOf(at), 'utf8'), at.read('.claude/loop-state.json')]
    const status = await ralph(at, ['status', 'demo', '--json'])
    expect(JSON.parse(status.stdout)).toMatchObject({
      status: 'done',
      problem: expect.stringContaining('Line 11 of the journal') as string,
    })
    await ralph(at, ['doctor'])
    expect([readFileSync(journalOf(at), 'utf8'), at.read('.claude/loop-state.json')]).toEqual(before)
  })

  test('L: after a truncated journal status tells what the state file knows', async () => {
    const at = await done(1)
    writeFileSync(journalOf(at), '')
    for (const command of [['status', 'demo'], ['status']]) {
      const status = await ralph(at, command)
      expect(status.code).toBe(0)
      expect(status.stdout).toMatch(/^demo {2}✓ done\n.*is empty or gone/)
    }
    const finish = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(finish).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('git merge --squash ralph/demo') as string,
    })
  })
})

describe('L: advice that works where it is given', () => {
  test('L: a required filter that is missing at the start: nothing changed, and what it says to type works', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('.gitattributes', '*.bin filter=lfs\n')
    at.write('a.bin', 'x')
    at.git('config', 'filter.lfs.clean', 'no-such-program')
    at.git('config', 'filter.lfs.required', 'true')
    const before = seen(at)
    const loop = ['loop', 'demo', '--agent-command', goodAgent]
    const end = await ralph(at, loop)
    expect(end.code).not.toBe(0)
    expect(seen(at)).toMatchObject({ ...(before as object), exclude: expect.any(String) as string })
    const advice = /type: (ralph \w+ demo)/.exec(end.stderr)?.[1]
    at.git('config', '--unset', 'filter.lfs.required')
    const again = advice === undefined ? loop : [...advice.split(' ').slice(1), '--agent-command', goodAgent]
    expect((await ralph(at, again)).code).toBe(0)
  })

  test.each(['loop demo --agent demo', 'status', 'resume demo', 'list', 'doctor'])(
    'L: .git/ralph is a file: `ralph %s` says so, and what to type',
    async (command) => {
      const at = scratch({ tasks: tasksOf(1) })
      writeFileSync(gitDir(at, 'ralph'), 'mine')
      const end = await ralph(at, command.split(' '))
      expect(end.stderr + end.stdout).toMatch(/is not a folder, and ralph keeps its own data there[^]*mv /)
      expect(end.stderr).not.toContain('bug')
      expect(readFileSync(gitDir(at, 'ralph'), 'utf8')).toBe('mine')
    },
  )

  test('L: refs/ralph/demo is a ref: exit 2, and what it says to type works', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('update-ref', 'refs/ralph/demo', 'HEAD')
    const loop = ['loop', 'demo', '--agent-command', goodAgent]
    const end = await ralph(at, loop)
    expect(end).toMatchObject({ code: 2, stderr: expect.stringContaining('Nothing was touched') as string })
    const advice = /`(git update-ref .*?)`/.exec(end.stderr)?.[1] ?? ''
    execFileSync('sh', ['-c', advice], { cwd: at.repo, env: at.env })
    expect((await ralph(at, loop)).code).toBe(0)
  })

  test('L: a name of 240 letters is refused for its length', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await ralph(at, ['loop', 'a'.repeat(240), '--agent', 'demo'])
    expect(end).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('at most 200 bytes, and it has 240') as string,
    })
  })

  test('L: the work tree of a stopped run was removed: status does not advise what cannot be', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const once = `[ $RALPH_STORY = 1 ] || exit 1; ${goodAgent}`
    const flags = ['--worktree', '--max-retries', '0']
    expect((await ralph(at, ['loop', 'demo', '--agent-command', once, ...flags])).code).toBe(3)
    rmSync(`${at.repo}-ralph-demo`, { recursive: true })
    const status = await ralph(at, ['status', 'demo'])
    expect(status.stdout).toContain('The work tree of demo is gone')
    expect(status.stdout).not.toMatch(/next +ralph resume demo$/m)
    const resumed = await ralph(at, ['resume', 'demo'])
    expect([resumed.code, resumed.stderr]).toEqual([2, expect.not.stringContaining('prune')])
    const [, clear = ''] = /start over: git (.*) && ralph loop demo --fresh/.exec(resumed.stderr) ?? []
    // Its folder comes back with the disk that it is on, and its record must be there still.
    at.git('worktree', 'add', '-q', '../away')
    renameSync(`${at.root}/away`, `${at.root}/unmounted`)
    at.git(...clear.split(' '))
    expect(
      (await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent, '--worktree'])).code,
    ).toBe(0)
    renameSync(`${at.root}/unmounted`, `${at.root}/away`)
    expect(at.git('-C', '../away', 'branch', '--show-current')).toBe('away')
  })
})
