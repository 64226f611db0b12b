import { describe, expect, test } from 'vitest'
import type { EventBody, GoneFile, LoopEvent } from '../../src/core/event.ts'
import { replay } from '../../src/core/loop.ts'
import { initialState } from '../../src/core/state.ts'
import type { LoopState } from '../../src/core/state.ts'
import { good, play, settings } from './world.ts'

const error: EventBody = { type: 'error', code: 'disk', message: 'full', hint: '', exit_code: 1 }

/** A run of one story up to the first event of a type, and then what follows. */
function upTo(
  last: LoopEvent['type'],
  then: readonly EventBody[],
  gates: string[] = [],
  gone: GoneFile[] = [],
): LoopState {
  const { events } = play({ settings: { ...settings, gates }, tasks: [1], deeds: [good] })
  const head = events
    .slice(0, events.findIndex((event) => event.type === last) + 1)
    .map((event) => (event.type === 'attempt.kept' ? { ...event, gone } : event))
  const tail = then.map((body): LoopEvent => ({
    v: 1,
    seq: 99,
    time: '2026-01-01T00:00:09+00:00',
    change_id: 'demo',
    ...body,
  }))
  return replay(initialState('demo'), [...head, ...tail])
}

describe('an error in the wake of an error', () => {
  test('U3: the open iteration keeps its number and its tokens', () => {
    const usage = {
      input_tokens: 7,
      output_tokens: 5,
      cache_read_tokens: 0,
      cache_creation_tokens: 0,
      cost_usd: 0.5,
    }
    const state = upTo('iteration.started', [{ type: 'agent.usage', n: 1, ...usage }, error, error])
    expect(state).toMatchObject({
      phase: 'completing',
      iterations: [{ n: 1, verdict: 'error', tokens_used: 12, cost_usd: 0.5 }],
      outcome: { stopReason: 'error', exitCode: 1 },
    })
  })

  test('U3: a gate that could not be run, and then an error: the iteration is recorded before the end', () => {
    const gate: EventBody = { type: 'gates.checked', n: 1, failed: 'no sh', could_not_run: true }
    const state = upTo('attempt.kept', [gate, error], ['x'])
    expect(state).toMatchObject({ phase: 'recording', current: { n: 1 }, unsettled: { n: 1 } })
  })

  test('U1: an error after the last story is complete takes the 0 back', () => {
    const state = upTo('iteration.ended', [error])
    expect(state).toMatchObject({ phase: 'completing', outcome: { stopReason: 'error', exitCode: 1 } })
  })

  test('U3: a revert or a checkpoint that was under way and came to its end leaves nothing to settle', () => {
    const reverted: EventBody = { type: 'checkpoint.reverted', n: 1, commit: 'c' }
    const saved: EventBody = { type: 'checkpoint.saved', n: 1, message: '', commit: 'c', changed: true }
    const gate: EventBody = { type: 'gates.checked', n: 1, failed: 'no' }
    expect(upTo('attempt.kept', [gate, error, reverted], ['x']).unsettled).toBeUndefined()
    expect(upTo('boxes.settled', [error, saved]).unsettled).toBeUndefined()
    expect(upTo('boxes.settled', [error]).unsettled).toMatchObject({ n: 1 })
  })

  test('U3: a checkpoint that failed and is saved by a later command counts: its iteration is complete, and what it deleted of the user is told', () => {
    const gone = [{ path: 'mine.txt', restore: 'git restore --source=c -- mine.txt' }]
    const { events } = play({ settings, tasks: [1], deeds: [good] })
    const ended = events.find((event) => event.type === 'iteration.ended')
    if (ended === undefined) throw new Error('no iteration has ended')
    const iteration = { ...ended.iteration, verdict: 'error' as const, reason: 'full', commits: [] }
    const complete = events.find((event) => event.type === 'complete')
    if (complete === undefined) throw new Error('no end')
    const saved: EventBody = { type: 'checkpoint.saved', n: 1, message: '', commit: 'c', changed: true }
    const state = upTo(
      'boxes.settled',
      [error, { ...ended, iteration }, { ...complete, status: 'stopped' }, saved],
      [],
      gone,
    )
    expect(state).toMatchObject({
      phase: 'ended',
      iterations: [{ n: 1, verdict: 'complete', reason: '', commits: ['c'] }],
      gone,
    })
    expect(state.unsettled).toBeUndefined()
  })
})
