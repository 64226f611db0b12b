// `ralph up` on a terminal: the queue's table, the way to one of its loops and back, and how both are left.
import { expect, test } from 'vitest'
import { project, report } from './queue-kit.ts'
import { onScreen } from './screen.ts'

const until = (name: string): string => `until [ -f "$HOME/${name}" ]; do sleep 0.05; done\n`

test('ralph up: a table; Enter joins a loop, Esc comes back; q stops it and its loops go on; bare ralph has u for it; the next one ends with its words', async () => {
  const at = project({ a: until('go'), b: until('go'), c: '' }, 1)
  const first = onScreen(at, ['up', '--jobs', '2', ...at.args])
  await first.until((text) => /▸ a +running/.test(text) && /▸ b +running/.test(text))
  await first.until(/○ c +waiting +0\/1 .*waits for a free place/)
  first.type('\u001B[B')
  await first.until((text) => /› ▸ b +running +0\/1/.test(text) && text.includes('enter join it'))
  first.type('\r')
  await first.until((text) => text.includes('[Agent]') && /^ b +▸ running/.test(text))
  first.type('\u001B')
  await first.until(/› ▸ b/)
  first.type('q')
  const stopped = await first.ended
  expect([stopped.code, stopped.changed]).toEqual([130, []])
  expect(first.text()).toMatch(/Stopped\. 2 loops continue: a, b\. To continue: ralph up/)

  const bare = onScreen(at, [])
  await bare.until('u queue')
  bare.type('u')
  await bare.until(/▸ a +running .*continues; ralph up lands it/)
  bare.type('\u001B')
  await bare.until('/ filter')
  bare.type('q')
  expect(await bare.ended).toMatchObject({ code: 0, changed: [] })

  at.write('../home/go', '')
  const second = onScreen(at, ['up', ...at.args])
  const over = await second.ended
  expect([over.code, over.changed]).toEqual([0, []])
  expect(second.text()).toMatch(
    /Queue for main +3 of 3 landed +your main is not updated yet[^]*Take it: +ralph queue pull/,
  )
  expect((await report(at)).entries.map(({ state }) => state)).toEqual(['landed', 'landed', 'landed'])
})
