// The merge queue, shown to whoever has nothing but the program.
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { ralph, scratch } from './harness.ts'

it('ralph demo --parallel lands six changes, three at once, and leaves nothing behind with --remove', async () => {
  const done = await ralph(scratch(), ['demo', '--parallel', '--remove'])
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(done.stdout).toMatch(/\$ ralph up --jobs 3 --pull[^]*6 of 6 landed[^]*all that landed is there/)
  const [, repo = ''] = /throw-away repository: (\S+)/.exec(done.stdout) ?? []
  expect([repo === '', existsSync(repo)]).toEqual([false, false])
})
