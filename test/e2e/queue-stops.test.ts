// What the merge queue says and does after a stop: of one loop, of all, and of the queue itself.
import { expect, it } from 'vitest'
import { ralph, start } from './harness.ts'
import { events, project, report } from './queue-kit.ts'

it('stop: one loop beside the queue is parked for who stopped it; stop --all ends the rest, every look says so, and the next ralph up goes on with all of it', async () => {
  const wait = `until [ -f "$HOME/go" ]; do sleep 0.05; done`
  const at = project({ a: wait, b: wait }, 1)
  const running = start(at, ['up', '--json', ...at.args])
  await running.seen((out) => out.split('loop.spawned').length > 2)
  // Until both agents are at work.
  while ((await report(at)).entries.some(({ attempt }) => attempt === 0));
  expect((await ralph(at, ['stop', 'b'])).code).toBe(0)
  await running.seen((out) => out.includes('entry.parked'))
  expect(await report(at)).toMatchObject({
    alive: true,
    entries: [
      { change: 'a', state: 'running', why: '' },
      {
        change: 'b',
        state: 'parked',
        why: 'its loop was stopped',
        hint: 'To continue it: ralph queue retry b',
      },
    ],
  })
  const all = await ralph(at, ['stop', '--all'])
  expect([all.code, all.stdout]).toEqual([
    0,
    expect.stringMatching(/^Stopped: ralph up\.\nStopped: a[^]*next {3}ralph up$/m),
  ])
  expect((await running.ended).code).toBe(143)
  expect(await report(at)).toMatchObject({
    alive: false,
    entries: [
      { change: 'a', state: 'waiting', why: 'its loop was stopped' },
      { change: 'b', state: 'parked' },
    ],
  })
  expect((await ralph(at, ['queue'])).stdout).toMatch(
    /0 of 2 landed, 1 waiting, 1 parked[^]*next +ralph up +it is not running/,
  )
  at.write('../home/go', '')
  const again = await ralph(at, ['up', '--json', ...at.args])
  expect([again.code, again.stderr]).toEqual([0, ''])
  expect(events(again).filter(({ type }) => type === 'landed')).toHaveLength(2)
  const { entries, ...head } = await report(at)
  expect(Object.keys(head).slice(0, 3)).toEqual(['target', 'target_commit', 'landed_commit'])
  expect(Object.keys(entries[0] ?? {}).slice(0, 10)).toEqual([
    'change',
    'state',
    'why',
    'after',
    'stories_done',
    'stories_total',
    'cost_usd',
    'branch',
    'candidate',
    'landed',
  ])
})

it('land: one change that is done lands, and the others of the queue stay as they are; one that never ran, or is not there, is refused', async () => {
  const at = project({ a: '', b: '', c: '' }, 1)
  expect((await ralph(at, ['up', 'a', 'b', '--no-land', ...at.args])).code).toBe(0)
  expect((await ralph(at, ['queue', 'add', 'c'])).code).toBe(0)
  const landed = await ralph(at, ['land', 'b', ...at.args])
  expect([landed.code, landed.stderr]).toEqual([0, ''])
  expect((await report(at)).entries.map(({ change, state }) => [change, state])).toEqual([
    ['a', 'done'],
    ['b', 'landed'],
    ['c', 'waiting'],
  ])
  expect(at.git('log', '--format=%s', 'main..refs/ralph-landed/main')).toBe('The change b')
  const never = await ralph(at, ['land', 'c'])
  expect([never.code, never.stderr]).toEqual([2, expect.stringContaining('ralph up c')])
  const unknown = await ralph(at, ['land', 'nope'])
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('There is no open change nope')])
})
