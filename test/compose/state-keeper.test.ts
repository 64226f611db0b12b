import { beforeEach, describe, expect, test } from 'vitest'
import { keepStateFile } from '../../src/compose/state-keeper.ts'
import { initialState, type LoopState } from '../../src/core/state.ts'
import type { StateFile } from '../../src/core/state-file.ts'
import type { LoopEvent } from '../../src/core/event.ts'
import type { Clock } from '../../src/ports.ts'

const event = (type: 'warning' | 'agent.message'): LoopEvent =>
  type === 'warning'
    ? { v: 1, seq: 1, time: '', change_id: 'demo', type, code: '', message: '' }
    : { v: 1, seq: 1, time: '', change_id: 'demo', type, n: 1, text: '' }

/** Time that only the test moves. */
function manualClock(): Pick<Clock, 'stamp' | 'after'> & { readonly pass: (ms: number) => Promise<void> } {
  let nowMs = 0
  const due = new Set<{ readonly atMs: number; readonly call: () => void }>()
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  return {
    stamp: () => 'now',
    after(ms, call) {
      const entry = { atMs: nowMs + ms, call }
      due.add(entry)
      return () => due.delete(entry)
    },
    async pass(ms) {
      const endMs = nowMs + ms
      await settled()
      for (;;) {
        const [next] = [...due].filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)
        if (next === undefined) break
        due.delete(next)
        nowMs = next.atMs
        next.call()
        await settled()
      }
      nowMs = endMs
    },
  }
}

describe('state keeper', () => {
  let clock = manualClock()
  beforeEach(() => {
    clock = manualClock()
  })

  test('the file is written again while nothing happens, at least every 60 s', async () => {
    const written: StateFile[] = []
    const keeper = keepStateFile(
      { write: (state) => Promise.resolve(void written.push(state)), writeNow: () => undefined },
      clock,
      () => undefined,
    )
    keeper.read(event('warning'), initialState('demo'))
    await keeper.settle()
    expect(written).toHaveLength(1)
    await clock.pass(60_000)
    expect(written.length).toBeGreaterThanOrEqual(2)
    keeper.stop()
    const before = written.length
    await clock.pass(600_000)
    expect(written).toHaveLength(before)
  })

  test("the agent's talk is written together, not word by word", async () => {
    const written: StateFile[] = []
    const keeper = keepStateFile(
      { write: (state) => Promise.resolve(void written.push(state)), writeNow: () => undefined },
      clock,
      () => undefined,
    )
    for (let n = 0; n < 1_000; n += 1) keeper.read(event('agent.message'), initialState('demo'))
    await clock.pass(5_000)
    expect(written).toHaveLength(1)
    keeper.stop()
  })

  test('the end of a story is written with the beginning of the next, or soon where there is none', async () => {
    const written: StateFile[] = []
    const keeper = keepStateFile(
      { write: (state) => Promise.resolve(void written.push(state)), writeNow: () => undefined },
      clock,
      () => undefined,
    )
    const tell = (type: string): void =>
      keeper.read({ ...event('warning'), type } as LoopEvent, initialState(type))
    tell('warning')
    tell('iteration.ended')
    await clock.pass(50)
    tell('iteration.started')
    await clock.pass(1_000)
    expect(written.map(({ change_id }) => change_id)).toEqual(['iteration.started'])
    tell('warning')
    tell('iteration.ended')
    await clock.pass(1_000)
    expect(written.map(({ change_id }) => change_id)).toEqual(['iteration.started', 'iteration.ended'])
    keeper.stop()
  })

  test('a long run is not written whole at each event: what is written in a second does not grow with it', async () => {
    const iteration = { n: 1, started: '', ended: '', done_check: false, commits: [], tokens_used: 0 }
    const bytesIn = async (length: number): Promise<number> => {
      let bytes = 0
      const write = (state: StateFile): Promise<void> => {
        bytes += JSON.stringify(state.iterations).length
        return Promise.resolve()
      }
      const keeper = keepStateFile({ write, writeNow: () => undefined }, clock, () => undefined)
      const iterations = Array.from({ length }, () => iteration)
      // Ten stories in a second, twenty events each, two of them news.
      for (let n = 0; n < 200; n += 1) {
        const type = n % 10 === 9 ? 'complete' : n % 2 === 0 ? 'warning' : 'agent.message'
        keeper.read(
          { ...event('warning'), type } as LoopEvent,
          { ...initialState('demo'), iterations } as unknown as LoopState,
        )
        await clock.pass(5)
      }
      const before = bytes
      await keeper.settle()
      expect(bytes).toBeGreaterThan(before)
      keeper.stop()
      return before
    }
    expect(await bytesIn(1_000)).toBeLessThan(2 * (await bytesIn(100)))
  })

  test('R14: a file that cannot be written is told once, and the last state is tried again', async () => {
    const faults: unknown[] = []
    const written: StateFile[] = []
    let isFull = true
    const keeper = keepStateFile(
      {
        write: (state) =>
          isFull ? Promise.reject(new Error('ENOSPC')) : Promise.resolve(void written.push(state)),
        writeNow: () => undefined,
      },
      clock,
      (error) => faults.push(error),
    )
    keeper.read(event('warning'), initialState('demo'))
    await keeper.settle()
    keeper.read(event('warning'), initialState('last'))
    await keeper.settle()
    expect([faults.length, written.length]).toEqual([1, 0])
    // Nothing more is told: it is the keeper who comes back to it.
    isFull = false
    await clock.pass(60_000)
    expect(written[0]?.change_id).toBe('last')
    keeper.stop()
  })

  test('R14: what its owner throws at a fault comes out of settle, and of nothing else', async () => {
    const keeper = keepStateFile(
      { write: () => Promise.reject(new Error('ENOSPC')), writeNow: () => undefined },
      clock,
      (error) => {
        throw error
      },
    )
    keeper.read(event('warning'), initialState('demo'))
    await clock.pass(1)
    await expect(keeper.settle()).rejects.toThrow('ENOSPC')
    keeper.stop()
  })
})
