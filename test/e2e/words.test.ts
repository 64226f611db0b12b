// What ralph says at the edges of a run: what is not kept, not there any more, or not to be counted (U5).
import { spawnSync } from 'node:child_process'
import type { SpawnSyncReturns } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { AttemptList, Decisions } from '../../src/ui/app.ts'
import { goodAgent, program, ralph, scratch, tasksOf } from './harness.ts'
import { shellOnTerminal } from './on-terminal.ts'

describe('a resume without the --agent-env of its run', () => {
  const needy = 'test -n "$SECRET_A" || { echo "<promise>FAILED: no secret</promise>"; exit; }; '

  test('U5: it names the variables that are not set any more, and their values are on no disk', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const env = ['--agent-env', 'SECRET_A=hush-hush-1', '--agent-env', 'SECRET_B=hush-hush-2']
    const first = ['--agent-command', 'echo "<promise>FAILED: no</promise>"', '--max-retries', '0']
    expect((await ralph(at, ['loop', 'demo', ...first, ...env])).code).toBe(3)
    expect(filesWith(join(at.repo, '.git', 'ralph'), 'hush-hush')).toEqual([])

    const one = ['--agent-command', needy + goodAgent, '--agent-env', 'SECRET_A=hush-hush-1']
    const without = await ralph(at, ['resume', 'demo', '--agent-command', needy + goodAgent])
    expect(without.code).toBe(3)
    expect(without.stderr).toMatch(
      /warning: not set any more: SECRET_A, SECRET_B\..*--agent-env SECRET_A=VALUE/,
    )
    const half = await ralph(at, ['resume', 'demo', ...one])
    expect(half.code).toBe(0)
    expect(half.stderr).toMatch(/not set any more: SECRET_B\./)
  })

  test('U5, H4: what the settings set by now is not missed once it is agreed to', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const failing = ['--agent-command', 'echo "<promise>FAILED: no</promise>"', '--max-retries', '0']
    expect((await ralph(at, ['loop', 'demo', ...failing, '--agent-env', 'SECRET_A=x'])).code).toBe(3)
    at.write('ralph.yaml', 'agent_env:\n  SECRET_A: y\n')
    const resumed = await ralph(at, ['resume', 'demo', ...failing])
    expect(resumed.stderr).toMatch(/agent_env: not set -> SECRET_A[^]*not set any more: SECRET_A/)
    const agreed = await ralph(at, ['resume', 'demo', ...failing, '--accept-config'])
    expect(agreed.code).toBe(3)
    expect(agreed.stderr).not.toContain('not set any more')
  })
})

describe('a current folder that is gone', () => {
  const inGone = (...args: string[]): SpawnSyncReturns<string> => {
    const at = scratch()
    const gone = join(at.root, 'gone')
    const script = `mkdir '${gone}' && cd '${gone}' && rmdir '${gone}' && exec '${process.execPath}' '${program}' "$@"`
    return spawnSync('sh', ['-c', script, 'sh', ...args], { env: at.env, encoding: 'utf8' })
  }

  test.each([['list'], ['loop', 'demo'], ['status'], ['doctor'], ['resume']])(
    'U5: ralph %s says so, exit 2',
    (...args) => {
      const end = inGone(...args)
      expect([end.status, end.stdout]).toEqual([2, ''])
      expect(end.stderr).toMatch(/^error: The current folder is gone: it was deleted or moved\.\n.*cd .*\n$/)
    },
  )

  test.each([[''], ['loop demo'], ['attach']])(
    'U5: so does ralph %s where the screens would open',
    async (words) => {
      const at = scratch()
      const gone = join(at.root, 'gone')
      const terminal = shellOnTerminal(
        at,
        `unset RALPH_NO_TUI; mkdir '${gone}'; cd '${gone}'; rmdir '${gone}'; '${process.execPath}' '${program}' ${words}; echo "exit $?"`,
      )
      await terminal.exited
      expect(terminal.raw()).toMatch(/The current folder is gone: it was deleted or moved\.[^]*exit 2/)
      expect(terminal.raw()).not.toContain('bug in ralph')
    },
  )

  test('what needs no folder works there', () => {
    expect(inGone('completion', 'bash').status).toBe(0)
  })
})

describe('runs that a new one has replaced', () => {
  const failing = (word: string): string[] => [
    '--agent-command',
    `echo ${word} > tried.txt; echo "<promise>FAILED: ${word}</promise>"`,
    '--max-retries',
    '0',
  ]

  test('U5: attempts lists theirs too, marked, and says where they are; diff and history show one by its number; why --trace names their folders', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', ...failing('first')])
    expect((await ralph(at, ['attempts', 'demo'])).stdout).not.toContain('earlier')
    await ralph(at, ['loop', 'demo', '--fresh', ...failing('second')])
    await ralph(at, ['loop', 'demo', '--fresh', ...failing('third')])

    const listed = JSON.parse((await ralph(at, ['attempts', 'demo', '--json'])).stdout) as AttemptList
    expect(listed.attempts).toMatchObject([{ n: 1, reason: 'third' }])
    expect(listed.earlier).toMatchObject([
      { n: 1, story_id: '1', verdict: 'failed', reason: 'first' },
      { n: 1, story_id: '1', verdict: 'failed', reason: 'second' },
    ])
    const short = (await ralph(at, ['attempts', 'demo'])).stdout
    expect(short).toMatch(/third[^]*ralph attempts demo --all +2 attempts of 2 earlier runs too/)
    expect(short).not.toMatch(/second|--run/)
    const text = (await ralph(at, ['attempts', 'demo', '--all'])).stdout
    const shown = /^ {2}ralph (diff 1 demo --run 2) +see the last of them$/m.exec(text)?.[1] ?? ''
    expect((await ralph(at, shown.split(' '))).stdout).toContain('+second')
    expect((await ralph(at, ['diff', '1', 'demo', '--run', '1'])).stdout).toContain('+first')

    const { stdout } = await ralph(at, ['why', 'demo', '--trace'])
    expect(stdout).toContain('2 earlier runs are not shown')
    const folders = stdout.split('\n').filter((line) => line.includes('/ralph/changes/demo/archive/'))
    expect(folders.map((folder) => existsSync(join(folder.trim(), 'journal.ndjson')))).toEqual([true, true])
    const { stdout: history } = await ralph(at, ['history', 'demo'])
    expect(history).toContain('third')
    expect(history).toContain('2 earlier runs: ralph history demo --all (or --run 2)')
    expect((await ralph(at, ['history', 'demo', '--all'])).stdout).toMatch(/first[^]*second[^]*third/)
    const second = (await ralph(at, ['history', 'demo', '--run', '2'])).stdout
    expect(second).toMatch(/^demo {2}run 2, \d{4}-\d\d-\d\d \d\d:\d\d: stuck\n[^]*second/)
    expect(second).not.toMatch(/first|third/)
  })

  test('G5: a run of the same second takes nobody’s place in the archive', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', ...failing('first')])
    const archive = join(at.repo, '.git/ralph/changes/demo/archive')
    const taken = join(archive, at.state().started_at.replaceAll(':', ''))
    mkdirSync(taken, { recursive: true })
    writeFileSync(join(taken, 'journal.ndjson'), '')
    await ralph(at, ['loop', 'demo', '--fresh', ...failing('second')])
    expect(readFileSync(join(taken, 'journal.ndjson'), 'utf8')).toBe('')
    expect(readFileSync(join(`${taken}-2`, 'journal.ndjson'), 'utf8')).toContain('first')
    const listed = JSON.parse((await ralph(at, ['attempts', 'demo', '--json'])).stdout) as AttemptList
    expect(listed.earlier).toMatchObject([{ reason: 'first' }])
  })

  test('why tells the whole run, what was before a resume too', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', ...failing('first')])
    await ralph(at, ['resume', 'demo', ...failing('second')])
    const { decisions } = JSON.parse((await ralph(at, ['why', 'demo', '--json'])).stdout) as Decisions
    expect(decisions.map(({ decision }) => decision)).toEqual(
      expect.arrayContaining(['the run begins', 'the run continues']),
    )
    expect(JSON.stringify(decisions)).toContain('first')
  })
})

test('the demo agent has no model: no word about a missing token count', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const end = await ralph(at, ['loop', 'demo', '--agent', 'demo'])
  expect(end.code).toBe(0)
  expect(end.stderr).not.toContain('token')
  expect(end.stdout).not.toContain('tokens unknown')
  expect(at.state().iterations[0]).toMatchObject({ tokens_used: 0 })
  expect(at.state().iterations[0]).not.toHaveProperty('tokens_estimated')
})

function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile() && readFileSync(path, 'latin1').includes(text))
}
