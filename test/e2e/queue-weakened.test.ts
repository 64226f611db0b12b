// What a landed change has made of the gates and the tests is said by everything that tells of its landing.
import { expect, it } from 'vitest'
import { ralph } from './harness.ts'
import { project, report } from './queue-kit.ts'

it('a change that changed what a gate runs, or deleted the only test, lands, and each line, look and record of that says so', async () => {
  const at = project({ one: 'echo true > gate.sh', two: 'rm -r test' }, 1)
  at.write('test/a.test.mjs', "import test from 'node:test'\ntest('a', () => {})\n")
  at.git('add', '-A')
  at.git('commit', '-qm', 'a test')
  const args = [...at.args, '--verify', 'node --test']
  const { code, stdout } = await ralph(at, ['up', '--jobs', '1', ...args])
  expect(code).toBe(0)
  const changed = '#1 changed what a gate runs: gate.sh (gate `sh gate.sh`)'
  const gone = '#1 deleted or emptied a test: test/a.test.mjs.'
  expect(stdout).toMatch(/^\S+ ! one: its loop is done, but #1 changed what a gate runs: gate\.sh/m)
  expect(stdout).toMatch(/^\S+ ! one: landed as \w+, but #1 changed what a gate runs: gate\.sh/m)
  expect(stdout).toMatch(/^\S+ ! two: landed as \w+, but .*#1 deleted or emptied a test/m)
  expect(stdout).toMatch(/^! one +landed \w+ .*! #1 changed what a gate runs/m)
  const { entries } = await report(at)
  expect(entries.map(({ warnings }) => warnings)).toEqual([
    [changed],
    expect.arrayContaining([expect.stringContaining(gone)]),
  ])
  const table = (await ralph(at, ['queue'])).stdout
  for (const words of [changed, gone]) expect(table).toContain(words)
  // It forgets nothing when it is opened anew.
  await ralph(at, ['up', '--pull'])
  expect((await report(at)).entries[0]?.warnings).toEqual([changed])
})

it('a loop that was weakened before the queue had it lands by land with the same words, and 0 tests in the gate of a landing are said', async () => {
  const at = project({ one: 'echo true > gate.sh', two: '' }, 1)
  at.write('test/a.test.mjs', "import test from 'node:test'\ntest('a', () => {})\n")
  at.git('add', '-A')
  at.git('commit', '-qm', 'a test')
  for (const name of ['one', 'two'])
    await ralph(at, ['loop', name, '--worktree', ...at.args, '--verify', 'node --test $(ls test/*.mjs)'])
  const changed = '#1 changed what a gate runs: gate.sh (gate `sh gate.sh`)'
  const first = await ralph(at, ['land', 'one'])
  expect([first.code, first.stdout]).toEqual([0, expect.stringContaining(`, but ${changed}`)])
  at.git('rm', '-rq', 'test')
  at.git('commit', '-qm', 'no test any more')
  const second = await ralph(at, ['land', 'two'])
  expect(second.stdout).toContain('(0 tests ran)')
  expect(second.stdout).toMatch(/! two: landed as \w+, but the gate passed and ran 0 tests: node --test/)
})

it('a change that changed no file is called that by the lines of up, its table, queue and its record', async () => {
  const at = project({ one: "echo '<promise>COMPLETE</promise>'; exit" }, 1)
  const { stdout } = await ralph(at, ['up', '--jobs', '1', ...at.args])
  const words = "no file was changed: the agent's word only"
  expect(stdout).toContain(`! one: its loop is done, but ${words}`)
  expect(stdout).toMatch(new RegExp(`! one: landed as \\w+, but ${words}`))
  expect((await ralph(at, ['queue'])).stdout).toContain(`! ${words}`)
  expect((await report(at)).entries[0]?.warnings).toEqual([words])
})
