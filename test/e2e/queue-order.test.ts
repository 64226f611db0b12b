// What comes after what, said of changes that are in the queue already: it counts as if it had been said at once.
import { expect, it } from 'vitest'
import { ralph } from './harness.ts'
import { events, project, report } from './queue-kit.ts'

const fails = `[ -f "$HOME/well" ] || { echo '<promise>FAILED: not this evening</promise>'; exit; }`

it('Q14: --after counts for changes that wait in the queue, are parked or are done already: none lands before the other has; a circle with what was said before is exit 2', async () => {
  const at = project({ a: '', b: fails, c: '', d: fails }, 1)
  expect((await ralph(at, ['up', 'a', '--no-land', ...at.args])).code).toBe(0)
  expect((await ralph(at, ['up', 'd', '--no-land', ...at.args])).code).toBe(3)
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
