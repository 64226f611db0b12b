// What comes after what, said of changes that are in the queue already: it counts as if it had been said at once.
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { UpPlan } from '../../src/ui/app.ts'
import { ralph } from './harness.ts'
import { events, picture, project, report } from './queue-kit.ts'

const fails = `[ -f "$HOME/well" ] || { echo '<promise>FAILED: not this evening</promise>'; exit; }`

it('Q14: --after counts for changes that wait in the queue, are parked or are done already: none lands before the other has; a circle with what was said before is exit 2', async () => {
  const at = project({ a: '', b: fails, c: '', d: fails }, 1)
  expect((await ralph(at, ['up', 'a', 'd', '--no-land', ...at.args])).code).toBe(3)
  for (const change of ['b', 'c']) expect((await ralph(at, ['queue', 'add', change])).code).toBe(0)
  const pairs = ['--after', 'c:b', '--after', 'd:b', '--after', 'a:b']
  const evening = await ralph(at, ['up', 'a', 'b', 'c', 'd', ...pairs, ...at.args])
  expect([evening.code, evening.stdout]).toEqual([3, expect.stringContaining('c: comes after b')])
  const why = 'waits for b, which is parked'
  expect((await report(at)).entries).toMatchObject([
    { change: 'a', state: 'done', after: ['b'], why },
    { change: 'd', state: 'waiting', after: ['b'], why },
    { change: 'b', state: 'parked' },
    { change: 'c', state: 'waiting', after: ['b'], why },
  ])
  const circle = await ralph(at, ['up', 'b', 'c', '--after', 'b:c', ...at.args])
  expect([circle.code, circle.stderr]).toEqual([2, expect.stringContaining('b → c → b')])
  at.write('../home/well', '')
  const morning = await ralph(at, ['up', '--json', ...at.args])
  expect([morning.code, morning.stderr]).toEqual([0, ''])
  const landed = events(morning).flatMap((event) => (event.type === 'landed' ? [event.change] : []))
  expect([landed[0], landed.toSorted()]).toEqual(['b', ['a', 'b', 'c', 'd']])
  // Typed again as it was, with all of it landed.
  expect((await ralph(at, ['up', 'a', 'b', 'c', 'd', ...pairs, ...at.args])).code).toBe(0)
})

it('Q14: --after a change that has landed or is archived is no wait; one that is open and not named is said to be so', async () => {
  const at = project({ a: '', b: '', c: '' }, 1)
  at.write('openspec/changes/archive/2026-01-02-old/tasks.md', '- [x] 1.1 done\n')
  const refused = await ralph(at, ['up', 'c', '--after', 'c:b', ...at.args])
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringMatching(/c:b names b, which is not among the changes to run[^]*Run it too: ralph up c b/),
  ])
  const unknown = await ralph(at, ['up', 'c', '--after', 'c:bb', ...at.args])
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('Did you mean b?') as string])
  expect((await ralph(at, ['up', 'b', ...at.args])).code).toBe(0)
  const done = await ralph(at, ['up', 'c', '--after', 'c:b', '--after', 'c:old', ...at.args])
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(done.stdout).not.toContain('waits')
})

it('up --dry-run says what would run, in which order, with which gates, into which branch and what waits; it touches nothing; bad input is exit 2', async () => {
  const at = project({ a: fails, b: '', c: '', d: '' }, 1)
  expect((await ralph(at, ['up', 'd', 'a', '--no-land', ...at.args])).code).toBe(3)
  const everything = (): readonly string[] => [
    picture(at),
    at.git('for-each-ref'),
    at.git('worktree', 'list'),
    at.read('.git/ralph/queue/journal.ndjson'),
  ]
  const before = everything()
  const asked = ['up', '--dry-run', '--into', 'main', '--jobs', '1', '--after', 'c:b', ...at.args]
  const plan = await ralph(at, [...asked, '--json'])
  expect([plan.code, plan.stderr]).toEqual([0, ''])
  const own = { target: 'main', gates: ['sh gate.sh'] }
  const open = { stories_done: 0, stories_total: 1 }
  expect(JSON.parse(plan.stdout)).toEqual({
    target: 'main',
    jobs: 1,
    land: 'squash',
    gates: ['sh gate.sh'],
    agents: ['command'],
    agent_program: 'agent.sh',
    billing: {},
    limits: { max_retries: 0 },
    changes: [
      { change: 'd', does: 'land', why: '', after: [], ...own, stories_done: 1, stories_total: 1 },
      { change: 'a', does: 'resume', why: '', after: [], ...own, ...open },
      { change: 'b', does: 'wait', why: 'waits for the one that runs', after: [], ...own, ...open },
      { change: 'c', does: 'wait', why: 'waits for b', after: ['b'], ...own, ...open },
    ],
  })
  const text = await ralph(at, asked)
  expect([text.code, text.stderr]).toEqual([0, ''])
  expect(text.stdout).toMatch(
    /What ralph up would do[^]*into +main[^]*agent +agent\.sh[^]*gates +sh gate\.sh\n +limits +1 attempt for each story\n[^]*d +1\/1 +lands[^]*a +0\/1 +is resumed[^]*c +0\/1 +b +waits for b/,
  )
  for (const wrong of [
    ['nope'],
    ['--into', 'nope'],
    ['--jobs', '0'],
    ['b', 'c', '--after', 'b:c', '--after', 'c:b'],
  ])
    expect((await ralph(at, ['up', '--dry-run', ...wrong, ...at.args])).code).toBe(2)
  expect(everything()).toEqual(before)
  at.write('openspec/changes/c/.openspec.yaml', 'depends_on: [b\n')
  const torn = await ralph(at, ['up', '--dry-run', ...at.args])
  expect([torn.code, torn.stderr]).toEqual([2, expect.stringContaining('c/.openspec.yaml is no YAML')])
  // Where there is no queue yet none is made.
  const fresh = project({ a: '' }, 1)
  const first = await ralph(fresh, ['up', '--dry-run', ...fresh.args])
  expect([first.code, first.stdout]).toEqual([0, expect.stringMatching(/a +0\/1 +begins/)])
  expect(existsSync(`${fresh.repo}/.git/ralph/queue`)).toBe(false)
})

it('found by a user: what up does not name stays as it is, is said in one line, and does not count; up alone goes on with all', async () => {
  const at = project({ a: 'exit 1', b: '', c: '' }, 1)
  expect((await ralph(at, ['up', 'a', ...at.args])).code).toBe(3)
  expect((await ralph(at, ['queue', 'add', 'b'])).code).toBe(0)
  const stateOf = async () =>
    Object.fromEntries((await report(at)).entries.map(({ change, state }) => [change, state]))
  const dry = await ralph(at, ['up', 'c', ...at.args, '--dry-run', '--json'])
  expect((JSON.parse(dry.stdout) as UpPlan).changes.map(({ change }) => change)).toEqual(['c'])
  const end = await ralph(at, ['up', 'c', ...at.args])
  expect([end.code, await stateOf()]).toEqual([0, { a: 'parked', b: 'waiting', c: 'landed' }])
  expect(end.stdout).toContain(
    '\n  a, b: in the queue, not named, left as they are; with all of them: ralph up\n',
  )
  const all = await ralph(at, ['up', ...at.args])
  expect([all.code, await stateOf()]).toEqual([3, { a: 'parked', b: 'landed', c: 'landed' }])
})
