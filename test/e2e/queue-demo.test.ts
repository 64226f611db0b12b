// The merge queue, shown to whoever has nothing but the program.
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { ralph, scratch, tasksOf } from './harness.ts'

it('ralph demo --parallel lands six changes, three at once, and leaves nothing behind with --remove', async () => {
  const done = await ralph(scratch(), ['demo', '--parallel', '--remove'])
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(done.stdout).toMatch(/\$ ralph up --jobs 3 --pull[^]*6 of 6 landed[^]*all that landed is there/)
  const [, repo = ''] = /throw-away repository: (\S+)/.exec(done.stdout) ?? []
  expect([repo === '', existsSync(repo)]).toEqual([false, false])
})

it('the demo agent works in a folder of its change: two changes with the same stories land without a conflict', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  at.write('openspec/changes/other/tasks.md', tasksOf(2))
  at.git('add', '-A')
  at.git('commit', '-qm', 'two plans')
  const done = await ralph(at, ['up', '--agent', 'demo', '--pull'])
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(done.stdout).toContain('2 of 2 landed')
  expect(at.git('ls-files', 'ralph-demo').split('\n')).toEqual([
    'ralph-demo/demo/story-1.md',
    'ralph-demo/demo/story-2.md',
    'ralph-demo/other/story-1.md',
    'ralph-demo/other/story-2.md',
  ])
})
