// A ref that is read and explained in two looks: what a loop puts back in between, which no process can be stopped at from outside.
import { expect, test } from 'vitest'
import { withBodies } from '../../src/compose/queue-state.ts'
import { emptyQueue } from '../../src/core/queue.ts'
import type { QueueState } from '../../src/core/queue.ts'
import type { QueueBody } from '../../src/core/queue-event.ts'
import { basesOf } from '../../src/engine/queue-base.ts'
import type { Landing, QueuePorts, TargetRefs } from '../../src/engine/queue-ports.ts'

const [own, evil, good] = ['1'.repeat(40), '2'.repeat(40), '3'.repeat(40)]

interface Look {
  readonly landed?: string
  readonly isHome?: boolean
  /** Whose loop is known to have moved it by then. */
  readonly by?: string
  /** What lands before the look is told, and what lands before it is judged. */
  readonly behind?: string
  readonly later?: string
}

/** The branch as it is looked at each time; the last look stays. */
async function baseAfter(
  looks: readonly Look[],
  start: readonly string[] = [],
): Promise<{ commit: string | undefined; told: QueueBody[] }> {
  const left = [...looks]
  let look: Look = {}
  let state = landedAs(start)
  const landing: Pick<Landing, 'refs' | 'movedBy' | 'isHome' | 'wasHome' | 'notLanded' | 'base'> = {
    refs: () => {
      look = (left.length > 1 ? left.shift() : left[0]) ?? {}
      const { landed, isHome = landed === undefined, behind } = look
      if (behind !== undefined) state = landedAs([...start, behind])
      return Promise.resolve<TargetRefs>({ own, landed, isHome })
    },
    movedBy: () => Promise.resolve(look.by),
    isHome: () => Promise.resolve(look.isHome ?? false),
    wasHome: () => {
      if (look.later !== undefined) state = landedAs([...start, look.later])
      return Promise.resolve(left[0]?.isHome === true)
    },
    notLanded: (_, commits, { landed }) => Promise.resolve(commits.filter((commit) => commit !== landed)),
    base: (_, { landed }) => Promise.resolve({ commit: landed ?? own }),
  }
  const told: QueueBody[] = []
  const bases = basesOf({
    ports: { landing, pulse: () => Promise.resolve() } as unknown as QueuePorts,
    now: () => state,
    tell: (body) => told.push(body),
    note: (body) => told.push(body),
  })
  const base = await bases.now('a', new AbortController().signal)
  return { commit: base?.commit, told }
}

function landedAs(commits: readonly string[]): QueueState {
  const bodies = commits.flatMap((commit): QueueBody[] => [
    { type: 'entry.added', change: commit, after: [], target: 'main' },
    { type: 'landing.began', change: commit, commit },
    { type: 'landed', change: commit, commit },
  ])
  return withBodies({ ...emptyQueue, target: 'main' }, bodies)
}

test('Q1: what an agent moved and its loop has put back between the two looks halts no queue', async () => {
  expect(await baseAfter([{ landed: evil }, {}])).toEqual({ commit: own, told: [] })
})

test('Q1: what an agent makes of it behind the look is not what the next one begins from', async () => {
  expect(await baseAfter([{}, { landed: evil, by: 'b' }])).toEqual({ commit: own, told: [] })
})

test('Q1: what was moved again between the two looks is looked at anew', async () => {
  const { told } = await baseAfter([{ landed: evil }, { landed: good }, { landed: good, by: 'b' }])
  expect(told).toMatchObject([{ type: 'entry.waiting', why: expect.stringContaining('the loop of b') }])
})

test('I1: what nobody has put back, and no loop knows of, does', async () => {
  const { commit, told } = await baseAfter([{ landed: evil }])
  expect([commit, told.map(({ type }) => type)]).toEqual([undefined, ['queue.halted']])
})

test('I4: what lands behind the look is not missed: not as a ref that is gone, not as a change that was taken back', async () => {
  expect(await baseAfter([{ behind: good }])).toEqual({ commit: own, told: [] })
  const second = await baseAfter([{ landed: evil, isHome: false, later: good }], [evil])
  expect(second).toEqual({ commit: evil, told: [] })
})

test('I4: a branch that is carried along behind the look was not set back', async () => {
  const looks = [
    { landed: good, isHome: false },
    { landed: good, isHome: true },
  ]
  const { commit, told } = await baseAfter(looks, [good])
  expect([commit, told.map(({ type }) => type)]).toEqual([good, ['target.followed']])
})
