// A ref that is read and explained in two looks: what a loop puts back in between, which no process can be stopped at from outside.
import { expect, test } from 'vitest'
import { emptyQueue } from '../../src/core/queue.ts'
import type { QueueBody } from '../../src/core/queue-event.ts'
import { basesOf } from '../../src/engine/queue-base.ts'
import type { Landing, QueuePorts, TargetRefs } from '../../src/engine/queue-ports.ts'

const [own, evil] = ['1'.repeat(40), '2'.repeat(40)]

async function baseAfter(...looks: readonly (string | undefined)[]): Promise<{
  commit: string | undefined
  told: QueueBody[]
}> {
  const left = [...looks]
  const landing: Pick<Landing, 'refs' | 'movedBy' | 'base'> = {
    refs: () => {
      const landed = left.length > 1 ? left.shift() : left[0]
      return Promise.resolve<TargetRefs>({ own, landed, isHome: landed === undefined })
    },
    movedBy: () => Promise.resolve(undefined),
    base: () => Promise.resolve({ commit: own }),
  }
  const told: QueueBody[] = []
  const bases = basesOf({
    ports: { landing } as unknown as QueuePorts,
    now: () => ({ ...emptyQueue, target: 'main' }),
    tell: (body) => told.push(body),
    note: () => undefined,
  })
  const base = await bases.now('a', new AbortController().signal)
  return { commit: base?.commit, told }
}

test('Q1: what an agent moved and its loop has put back between the two looks halts no queue', async () => {
  expect(await baseAfter(evil, undefined)).toEqual({ commit: own, told: [] })
})

test('I1: what nobody has put back, and no loop knows of, does', async () => {
  const { commit, told } = await baseAfter(evil)
  expect([commit, told.map(({ type }) => type)]).toEqual([undefined, ['queue.halted']])
})
