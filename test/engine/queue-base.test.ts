// A ref that is read and explained in two looks: what a loop puts back in between, which no process can be stopped at from outside.
import { expect, test } from 'vitest'
import { emptyQueue } from '../../src/core/queue.ts'
import type { QueueBody } from '../../src/core/queue-event.ts'
import { basesOf } from '../../src/engine/queue-base.ts'
import type { Landing, QueuePorts, TargetRefs } from '../../src/engine/queue-ports.ts'

const [own, evil] = ['1'.repeat(40), '2'.repeat(40)]

/** Each look with who is known to have moved it by then. */
async function baseAfter(...looks: readonly (readonly [string | undefined, by?: string])[]): Promise<{
  commit: string | undefined
  told: QueueBody[]
}> {
  const left = [...looks]
  let by: string | undefined
  const landing: Pick<Landing, 'refs' | 'movedBy' | 'base'> = {
    refs: () => {
      const [landed, mover] = (left.length > 1 ? left.shift() : left[0]) ?? []
      by = mover
      return Promise.resolve<TargetRefs>({ own, landed, isHome: landed === undefined })
    },
    movedBy: () => Promise.resolve(by),
    base: (_, { landed }) => Promise.resolve({ commit: landed ?? own }),
  }
  const told: QueueBody[] = []
  const bases = basesOf({
    ports: { landing, pulse: () => Promise.resolve() } as unknown as QueuePorts,
    now: () => ({ ...emptyQueue, target: 'main' }),
    tell: (body) => told.push(body),
    note: () => undefined,
  })
  const base = await bases.now('a', new AbortController().signal)
  return { commit: base?.commit, told }
}

test('Q1: what an agent moved and its loop has put back between the two looks halts no queue', async () => {
  expect(await baseAfter([evil], [undefined])).toEqual({ commit: own, told: [] })
})

test('Q1: what an agent makes of it behind the look is not what the next one begins from', async () => {
  expect(await baseAfter([undefined], [evil, 'b'])).toEqual({ commit: own, told: [] })
})

test('Q1: what was moved again between the two looks is looked at anew', async () => {
  const { told } = await baseAfter([evil], ['3'.repeat(40)], ['3'.repeat(40), 'b'])
  expect(told).toMatchObject([{ type: 'entry.waiting', why: expect.stringContaining('the loop of b') }])
})

test('I1: what nobody has put back, and no loop knows of, does', async () => {
  const { commit, told } = await baseAfter([evil])
  expect([commit, told.map(({ type }) => type)]).toEqual([undefined, ['queue.halted']])
})
