// What git ignores and an agent's git takes away, or an agent's own rules hide: put back or named, and never cleaned away.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { killRalph, longDead, ralph, scratch, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'

const sweeps = {
  'stash --all': 'git stash -q -a',
  'stash --all, and the entry dropped': 'git stash -q -a; git stash drop -q',
  'a forced commit, and a checkout': 'git add -f a.env; git commit -qm e; git checkout -q main',
  'a forced commit, and a reset': 'git add -f a.env; git commit -qm e; git reset -q --hard HEAD~1',
}

function withSecret(): Scratch {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('.gitignore', '*.env\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'rules')
  at.write('a.env', 'SECRET\n')
  return at
}

describe("E3: the user's ignored file, swept by an agent's git", () => {
  test.each(Object.entries(sweeps))(
    'E3: %s: an attempt that is reverted gives it back, and says so',
    async (_, sweep) => {
      const at = withSecret()
      const agent = `${sweep}; echo "<promise>FAILED: no</promise>"`
      const end = await ralph(at, ['loop', 'demo', '--max-retries', '0', '--agent-command', agent])
      expect(at.read('a.env')).toBe('SECRET\n')
      expect(end.stderr).toMatch(/a\.env; they are back/)
    },
  )

  test('E3 E7: a checkpoint leaves it where it is, names it with the command, and a cleaning of the attempts does not take it', async () => {
    const at = withSecret()
    const agent = `${sweeps['a forced commit, and a reset']}; echo w > w.txt; echo "<promise>COMPLETE</promise>"`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent])
    expect([end.code, existsSync(join(at.repo, 'a.env'))]).toEqual([0, false])
    const [, command = ''] = /(git restore --source=\S+ -- \S*a\.env)/.exec(end.stdout) ?? []
    expect(command).not.toBe('')
    const cleaned = await ralph(at, ['clean', 'demo', '--attempts', '--yes'])
    expect(cleaned.stdout).toContain('/moved/1/ignored/')
    at.git('gc', '-q', '--prune=now')
    at.git(...command.replaceAll("'", '').split(' ').slice(1))
    expect(readFileSync(join(at.repo, 'a.env'), 'utf8')).toBe('SECRET\n')
  })
})

test('E5: work under ignore rules that the attempt itself brought is named: no checkpoint holds it', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const agent = `printf 'hid*\\nnode_modules/\\n' > .gitignore; mkdir node_modules; echo m > node_modules/m; echo w > hidden.js; echo "<promise>COMPLETE</promise>"`
  const end = await ralph(at, ['loop', 'demo', '--verify', 'test -d node_modules', '--agent-command', agent])
  expect(end.code).toBe(0)
  expect(end.stderr).toContain('keep hidden.js out of the checkpoint; the gates run once more without that')
  for (const text of [end.stderr, end.stdout.replace(/\s+/g, ' ')])
    expect(text).toMatch(/that they hide: hidden\.js\. No checkpoint holds them; attempt 1 has them/)
  expect(at.read('hidden.js')).toBe('w\n')
  const [, command = ''] =
    /(git restore --source=\S+ -- \S*hidden\.js\S*)/.exec(end.stdout.replace(/\s*\n\s*/g, ' ')) ?? []
  at.git('clean', '-fdxq', '-e', 'openspec')
  at.git(...command.replaceAll("'", '').split(' ').slice(1))
  expect(at.read('hidden.js')).toBe('w\n')
})

test('E5: gates that pass only by what the attempt’s own ignore rules hide have not passed; the agent hears why', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const hides = `echo 'lib/' > .gitignore; mkdir lib; echo w > lib/work.js; echo s > .env`
  const agent = `cat > ../prompt; if [ "$RALPH_ATTEMPT" = 1 ]; then ${hides}; else mkdir lib; echo w > lib/work.js; fi; echo "<promise>COMPLETE</promise>"`
  const end = await ralph(at, ['loop', 'demo', '--verify', 'test -f lib/work.js', '--agent-command', agent])
  expect(end.code).toBe(0)
  expect(at.state().iterations.map(({ verdict, reason }) => [verdict, reason])).toEqual([
    ['gate_failed', expect.stringMatching(/^passes only with lib\/, which the attempt's own ignore rules/)],
    ['complete', ''],
  ])
  expect(readFileSync(join(at.root, 'prompt'), 'utf8')).toContain('Take it out of .gitignore')
  expect(at.git('show', 'HEAD:lib/work.js')).toBe('w')
  // Nothing of the first attempt is left in the tree, and all of it is in its ref.
  expect([at.git('status', '--porcelain', '--ignored'), existsSync(join(at.repo, '.env'))]).toEqual([
    '!! .claude/',
    false,
  ])
  expect(at.git('show', 'refs/ralph/demo/attempts/1:lib/work.js')).toBe('w')
})

test('E5, O5: a kill while the gates run without it: nothing of it is lost, nor what the user has made in its place', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const agent = `echo hid.js > .gitignore; echo w > hid.js; echo "<promise>COMPLETE</promise>"`
  // The second time, without it.
  const gate = `test -f hid.js || { ${killRalph}; }`
  const killed = await ralph(at, ['loop', 'demo', '--verify', gate, '--agent-command', agent])
  expect(killed.signal).toBe('SIGKILL')
  expect(existsSync(join(at.repo, 'hid.js'))).toBe(false)
  longDead(at)
  at.write('hid.js', 'of the user\n')
  const end = await ralph(at, ['finish', 'demo', '--keep'])
  expect(end.code, end.stderr).toBe(0)
  expect(at.read('hid.js')).toBe('of the user\n')
  expect(at.git('show', 'refs/ralph/demo/attempts/1^:hid.js')).toBe('w')
})

test.each(['branch', 'stash'])(
  "E3: a file of the user's that a gate deletes is named with the command that brings it back (%s)",
  async (strategy) => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write('notes.tmp', 'only copy\n')
    const agent = 'echo w > w$RALPH_STORY; echo "<promise>COMPLETE</promise>"'
    const args = ['--verify', 'rm -f *.tmp', '--checkpoint', strategy, '--agent-command', agent]
    const end = await ralph(at, ['loop', 'demo', ...args])
    expect(end.code).toBe(0)
    expect(end.stderr.match(/notes\.tmp was yours and not committed/g)).toHaveLength(1)
    const [, command = ''] = /(git restore --source=\S+ -- \S*notes\.tmp)/.exec(end.stdout) ?? []
    at.git('gc', '-q', '--prune=now')
    at.git(...command.replaceAll("'", '').split(' ').slice(1))
    expect(at.read('notes.tmp')).toBe('only copy\n')
  },
)
