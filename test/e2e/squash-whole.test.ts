// The one commit of a squash holds all that its message lists, whichever loops of the change made it, and passes the gate in a fresh clone.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { run } from '../shell.ts'
import { goodAgent, ralph, scratch, tasksOf, type Scratch } from './harness.ts'

/** Story 2 and 3 need the file of story 1. */
const gate = '[ ! -e story-2.txt ] || cat story-1.txt'
/** Fails at story 2 until the file `go` is there. */
const agent = `if [ "$RALPH_STORY" = 2 ] && [ ! -e "$GO" ]; then echo "<promise>FAILED: no</promise>"; else ${goodAgent}; fi`

function begun(options: { planned?: boolean } = {}): Scratch {
  const at = scratch({ tasks: tasksOf(3), ...(options.planned === false && { commit: false }) })
  if (options.planned === false) {
    at.git('add', 'README.md')
    at.git('commit', '-qm', 'start')
  }
  at.env['GO'] = join(at.root, 'go')
  return at
}

async function stuck(at: Scratch, ...more: string[]): Promise<void> {
  const end = await ralph(at, [
    'loop',
    'demo',
    '--agent-command',
    agent,
    '--verify',
    gate,
    '--max-retries',
    '0',
    ...more,
  ])
  expect(end.code).toBe(3)
  writeFileSync(join(at.root, 'go'), '')
}

/** Of main, as others get it. */
function clone(at: Scratch): { passes: boolean; files: string[]; plan: string } {
  const there = join(at.root, 'clone')
  rmSync(there, { recursive: true, force: true })
  run('git', ['clone', '-q', at.repo, there], { cwd: at.root, env: at.env })
  const text = run('sh', ['-c', `${gate} >&2 && echo passes || echo fails`], { cwd: there, env: at.env })
  const files = run('git', ['ls-files'], { cwd: there, env: at.env }).trim().split('\n')
  const plan = join(there, 'openspec/changes/demo/tasks.md')
  return {
    passes: text.trim() === 'passes',
    files: files.filter((path) => !path.startsWith('openspec/')),
    plan: existsSync(plan) ? readFileSync(plan, 'utf8') : '',
  }
}

const whole = ['README.md', 'story-1.txt', 'story-2.txt', 'story-3.txt']
const listed = '- 1 Story 1\n- 2 Story 2\n- 3 Story 3'

function expectWhole(at: Scratch, files = whole): void {
  const there = clone(at)
  expect([there.passes, there.files]).toEqual([true, files])
  expect(there.plan).not.toContain('[ ]')
  expect(at.git('log', '-1', '--format=%B')).toContain(listed)
}

describe('finish --squash', () => {
  test.each([
    ['', true],
    [' (the plan was not committed)', false],
  ])(
    'F37: after a cleanup and a resume the commit holds what both loops made; only the user’s own is left out%s',
    async (_, planned) => {
      const at = begun({ planned })
      at.write('mine.txt', 'mine\n')
      await stuck(at)
      expect((await ralph(at, ['finish', '--cleanup'])).code).toBe(0)
      const resumed = await ralph(at, ['resume'])
      expect(resumed.code).toBe(0)
      expect(resumed.stdout).toContain(
        'files that you had not committed, and a push publishes them: mine.txt.',
      )
      const { stdout } = await ralph(at, ['finish', '--squash'])
      expectWhole(at)
      expect(at.git('status', '--porcelain')).toBe('?? mine.txt')
      expect(stdout).toContain('The commit was not run through your gates without your own files: mine.txt.')
    },
  )

  test('F37: after two cleanups, too, and a file that the user changed after one of them is in it, and named', async () => {
    const at = begun()
    at.write('README.md', '# mine\n')
    await stuck(at)
    await ralph(at, ['finish', '--cleanup'])
    rmSync(join(at.root, 'go'))
    expect((await ralph(at, ['resume'])).code).toBe(3)
    await ralph(at, ['finish', '--cleanup'])
    at.write('story-1.txt', 'corrected by hand\n')
    writeFileSync(join(at.root, 'go'), '')
    expect((await ralph(at, ['resume', '--feedback', 'again'])).code).toBe(0)
    const { stdout } = await ralph(at, ['finish', '--squash'])
    expectWhole(at)
    expect(at.git('show', 'main:story-1.txt')).toBe('corrected by hand')
    expect(stdout).toContain('. Also in it, since you changed it after the loop had: story-1.txt.')
    expect([at.git('status', '--porcelain'), at.read('README.md')]).toEqual([' M README.md', '# mine\n'])
  })

  test('F37: after `loop --fresh` on the branch of a stuck run the commit holds the checkpoints of that run', async () => {
    const at = begun()
    at.write('mine.txt', 'mine\n')
    await stuck(at)
    const end = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', agent, '--verify', gate])
    expect(end.code).toBe(0)
    expect(end.stdout).toContain('files that you had not committed, and a push publishes them: mine.txt.')
    await ralph(at, ['finish', '--squash'])
    expectWhole(at)
    expect(at.git('status', '--porcelain')).toBe('?? mine.txt')
  })

  test.each([['loop demo --fresh'], ['resume']])(
    'F37: the user’s own commit on the loop’s branch is in it, and named (%s)',
    async (command) => {
      const at = begun()
      at.write('mine.txt', 'mine\n')
      await stuck(at)
      at.write('fix.txt', 'fix\n')
      at.git('add', 'fix.txt')
      at.git('commit', '-qm', 'my fix')
      const own = at.git('rev-parse', '--short', 'HEAD')
      const more = command === 'resume' ? [] : ['--agent-command', agent, '--verify', gate]
      expect((await ralph(at, [...command.split(' '), ...more])).code).toBe(0)
      const { stdout } = await ralph(at, ['finish', '--squash'])
      expectWhole(at, ['README.md', 'fix.txt', ...whole.slice(1)])
      expect(stdout).toContain(`Among them, made by hand: ${own} my fix`)
      expect(at.git('status', '--porcelain')).toBe('?? mine.txt')
    },
  )

  test('F37: with a work tree of its own, after a cleanup and a resume', async () => {
    const at = begun()
    await stuck(at, '--worktree')
    expect((await ralph(at, ['finish', '--cleanup'])).code).toBe(0)
    expect((await ralph(at, ['resume'])).code).toBe(0)
    const { stdout } = await ralph(at, ['finish', '--squash'])
    expectWhole(at)
    expect(at.git('status', '--porcelain')).toBe('')
    expect(stdout).not.toContain('your own files')
  })

  test('F37: after a cleanup and `loop --fresh` on main', async () => {
    const at = begun()
    at.write('mine.txt', 'mine\n')
    await stuck(at)
    await ralph(at, ['finish', '--cleanup'])
    const end = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', agent, '--verify', gate])
    expect(end.code).toBe(0)
    await ralph(at, ['finish', '--squash'])
    expectWhole(at)
    expect(at.git('status', '--porcelain')).toBe('?? mine.txt')
  })
})

test.each(['--cleanup', '--squash'])(
  'what is brought with finish %s to a branch that has moved is said to be untested, with the gates to type',
  async (choice) => {
    const at = scratch({ tasks: tasksOf(1) })
    const loop = ['loop', 'demo', '--agent-command', goodAgent, '--verify', 'test -f story-1.txt']
    expect((await ralph(at, [...loop, '--on-complete', 'keep'])).code).toBe(0)
    at.git('switch', '-q', 'main')
    at.write('other.txt', 'of the user\n')
    at.git('add', 'other.txt')
    at.git('commit', '-qm', 'mine')
    at.git('switch', '-q', 'ralph/demo')
    const { code, stdout } = await ralph(at, ['finish', 'demo', choice])
    expect([code, stdout.replaceAll(/\s+/g, ' ')]).toEqual([
      0,
      expect.stringContaining(
        'Your gates have not run on it with what came to main since: test -f story-1.txt',
      ),
    ])
  },
)

test('a squash does not name a file that its user made between two attempts and deleted again', async () => {
  const at = begun()
  await stuck(at)
  at.write('scratch.txt', 'of the user\n')
  at.write('stays.txt', 'of the user\n')
  rmSync(join(at.root, 'go'))
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(3)
  rmSync(join(at.repo, 'scratch.txt'))
  writeFileSync(join(at.root, 'go'), '')
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
  const { stdout } = await ralph(at, ['finish', 'demo', '--squash'])
  expect(stdout).toContain('since you changed it between two attempts: stays.txt.')
  expect(stdout).not.toContain('scratch.txt')
})
