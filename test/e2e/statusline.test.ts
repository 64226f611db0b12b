// `ralph statusline`: one line, whoever draws it; never late, never an error, never a written byte.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { statusLineText } from '../../src/ui/print/status-line.ts'
import type { LineLoop } from '../../src/ui/print/status-line.ts'
import { goodAgent, program, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'
import { pictureOf } from './mcp-kit.ts'
import { install } from './usage-kit.ts'

const nowMs = Date.parse('2026-11-17T12:00:00Z')
const running: LineLoop = {
  change_id: 'add-greeting',
  status: 'running',
  written_by: 'ralph',
  freshness: 'alive',
  current_iteration: 5,
  max_iterations: 16,
  started_at: '2026-11-17T11:48:00+00:00',
  updated_at: '2026-11-17T12:00:00+00:00',
  task: '',
  total_tokens: 1,
  stories_done: 2,
  stories_total: 4,
  cost_usd: 1.4249,
}

describe('the line', () => {
  test.each<[string, Partial<LineLoop>, string]>([
    ['of a loop that runs', {}, '▸ add-greeting 2/4 #5 12m $1.42'],
    ['of a manual one', { stories_done: 0, stories_total: 0, cost_usd: 0 }, '▸ add-greeting #5 12m'],
    [
      'of one that waits for a limit',
      { waiting_for: 'limit', waiting_until: '2026-11-17T14:30:00+01:00' },
      '‖ add-greeting 2/4 #5 waiting until 14:30 $1.42',
    ],
    ['of one that is paused', { waiting_for: 'pause' }, '‖ add-greeting 2/4 #5 paused $1.42'],
    ['of one that asks', { waiting_for: 'human' }, '! add-greeting 2/4 #5 needs you $1.42'],
    ['of one that hangs', { freshness: 'stale' }, '! add-greeting 2/4 #5 no activity for 3m $1.42'],
    ['of one that was killed', { freshness: 'dead' }, '✕ add-greeting 2/4 #5 died $1.42'],
    [
      'of one that is done',
      { freshness: 'ended', status: 'done', stories_done: 4 },
      '✓ add-greeting 4/4 done $1.42',
    ],
    ['of one that is stuck', { freshness: 'ended', status: 'stuck' }, '✕ add-greeting 2/4 stuck $1.42'],
    ['after days', { started_at: '2026-11-15T09:00:00Z' }, '▸ add-greeting 2/4 #5 2d3h $1.42'],
    ['without control characters', { change_id: 'a\u001B[2J\nb' }, '▸ a b 2/4 #5 12m $1.42'],
  ])('%s', (_, fields, text) => {
    expect(statusLineText({ ...running, ...fields }, { nowMs, silentMs: 190_000, others: 0 })).toBe(text)
  })

  test('says how many others run', () => {
    expect(statusLineText(running, { nowMs, silentMs: 0, others: 2 })).toBe(
      '▸ add-greeting 2/4 #5 12m $1.42 +2',
    )
  })
})

/** As a host starts it; `stdin`: what is written there, or `open` and silent as tmux leaves it. */
function line(
  at: Scratch,
  { cwd = at.repo, stdin = '', args = [] as readonly string[] } = {},
): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, [program, 'statusline', ...args], { cwd, env: at.env, stdio: 'pipe' })
  onTestFinished(() => void (child.exitCode === null && child.kill('SIGKILL')))
  child.stdin.on('error', () => undefined)
  if (stdin !== 'open') child.stdin.end(stdin)
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')))
  let wrong = ''
  child.stderr.on('data', (chunk: Buffer) => (wrong += chunk.toString('utf8')))
  return new Promise((done) => child.on('close', (code) => done({ code, text: text + wrong })))
}

test('statusline: tells of the loop that runs, from any folder and any work tree, with and without a word on stdin, and writes nothing', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  expect(await line(at)).toEqual({ code: 0, text: '' })
  const agent = `echo begun; until [ -e '${at.root}/go' ]; do sleep 0.05; done; echo "<promise>COMPLETE</promise>"`
  const loop = start(at, ['loop', 'demo', '--agent-command', agent])
  await loop.seen((out) => out.includes('begun'))
  const elsewhere = join(at.root, 'elsewhere')
  at.git('worktree', 'add', '-q', '--detach', elsewhere)
  const claude = JSON.stringify({ session_id: 'x', workspace: { current_dir: join(at.repo, 'openspec') } })
  const shown = { code: 0, text: '▸ demo 0/2 #1 0m\n' }
  expect(await line(at)).toEqual(shown)
  expect(await line(at, { stdin: 'open' })).toEqual(shown)
  expect(await line(at, { stdin: 'no JSON' })).toEqual(shown)
  expect(await line(at, { cwd: at.root, stdin: claude })).toEqual(shown)
  expect(await line(at, { cwd: join(at.repo, 'openspec') })).toEqual(shown)
  expect(await line(at, { cwd: elsewhere })).toEqual(shown)
  expect((await ralph(at, ['-C', at.repo, 'statusline'], { cwd: '/' })).stdout).toBe(shown.text)
  expect((await ralph(at, ['statusline', '-C', at.repo], { cwd: '/' })).stdout).toBe(shown.text)
  expect(JSON.parse((await line(at, { args: ['--json'] })).text)).toMatchObject({
    text: '▸ demo 0/2 #1 0m',
    running: 1,
    loop: { change_id: 'demo', status: 'running', freshness: 'alive' },
  })
  expect((await ralph(at, ['statusline'], { env: { LANG: 'C', LC_ALL: 'C' } })).stdout).toBe(
    '> demo 0/2 #1 0m\n',
  )

  // Killed: nothing in the file says so, and nothing is written down.
  process.kill(loop.pid, 'SIGKILL')
  await loop.ended
  const before = pictureOf(at.repo)
  expect(await line(at)).toEqual({ code: 0, text: '✕ demo 0/2 #1 died\n' })
  expect(pictureOf(at.repo)).toBe(before)
})

test('statusline: says how the last loop ended for a day, and is empty where nothing can be read', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
  expect(await line(at)).toEqual({ code: 0, text: '✓ demo 1/1 done\n' })
  const old = Date.now() / 1000 - 2 * 24 * 3600
  const file = join(at.repo, '.claude/loop-state.json')
  utimesSync(file, old, old)
  utimesSync(join(at.repo, '.git/ralph/changes/demo/alive'), old, old)
  expect(await line(at)).toEqual({ code: 0, text: '' })
  for (const text of ['', '{', '[]', 'null', '{"status":"running"}']) {
    writeFileSync(file, text)
    expect(await line(at)).toEqual({ code: 0, text: '' })
  }
  expect(await line(at, { cwd: at.root })).toEqual({ code: 0, text: '' })
  const broken = join(at.root, 'broken')
  mkdirSync(broken)
  writeFileSync(join(broken, '.git'), 'gitdir: /nowhere\n')
  expect(await line(at, { cwd: broken })).toEqual({ code: 0, text: '' })
})

test('statusline: what the how-to tells Claude Code, a shell and tmux to run works as it is printed', async () => {
  const page = readFileSync(resolve(import.meta.dirname, '../../docs/how-to/status-line.md'), 'utf8')
  const [, settings = ''] = /^```json\n(.*?)^```$/ms.exec(page) ?? []
  const [, script = ''] = /^```sh\n(.*?)^```$/ms.exec(page) ?? []
  const [, bar = ''] = /status-right '#\((.*)\)'$/m.exec(page) ?? []
  const at = scratch({ tasks: tasksOf(1) })
  await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
  install(at, 'ralph', `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`)
  install(at, 'jq', '#!/bin/sh\ncat > /dev/null; echo Opus\n')
  const input = JSON.stringify({ model: { display_name: 'Opus' }, workspace: { current_dir: at.repo } })
  const sh = (command: string): string =>
    execFileSync('sh', ['-c', command], { cwd: at.root, env: at.env, input, encoding: 'utf8' })
  const { statusLine } = JSON.parse(settings) as { statusLine: { type: string; command: string } }
  expect(statusLine.type).toBe('command')
  expect(sh(statusLine.command)).toBe('✓ demo 1/1 done\n')
  expect(sh(script)).toBe('Opus\n✓ demo 1/1 done\n')
  // tmux puts the folder in before it asks the shell.
  expect(sh(bar.replace('#{pane_current_path}', at.repo))).toBe('✓ demo 1/1 done\n')
})

test('statusline: a loop of wt-tools has its line, too', async () => {
  const at = scratch()
  at.write(
    '.claude/loop-state.json',
    JSON.stringify({
      worktree_name: 'repo-wt-theirs',
      status: 'running',
      current_iteration: 3,
      max_iterations: 10,
      started_at: new Date().toISOString(),
      terminal_pid: process.pid,
    }),
  )
  expect(await line(at)).toEqual({ code: 0, text: '▸ theirs #3 0m\n' })
})

test('statusline: a pipe or a device in place of the state file is not waited for', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  mkdirSync(join(at.repo, '.claude'))
  const file = join(at.repo, '.claude/loop-state.json')
  execFileSync('mkfifo', [file])
  expect((await ralph(at, ['statusline'])).code).toBe(0)
  execFileSync('ln', ['-sf', '/dev/zero', file])
  expect((await ralph(at, ['statusline'])).code).toBe(0)
})
