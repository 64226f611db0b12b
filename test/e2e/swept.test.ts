// What git ignores and an agent's git takes away, or an agent's own rules hide: put back or named, and never cleaned away.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ralph, scratch, tasksOf } from './harness.ts'
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
      expect(end.stderr).toMatch(/a\.env; it is back/)
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
  const end = await ralph(at, ['loop', 'demo', '--verify', 'test -f hidden.js', '--agent-command', agent])
  expect(end.code).toBe(0)
  for (const text of [end.stderr, end.stdout.replace(/\s+/g, ' ')])
    expect(text).toMatch(
      /that they hide: hidden\.js\. The gates may have used them, and no checkpoint holds them/,
    )
  const [, command = ''] =
    /(git restore --source=\S+ -- \S*hidden\.js\S*)/.exec(end.stdout.replace(/\s*\n\s*/g, ' ')) ?? []
  at.git('clean', '-fdxq', '-e', 'openspec')
  at.git(...command.replaceAll("'", '').split(' ').slice(1))
  expect(at.read('hidden.js')).toBe('w\n')
})
