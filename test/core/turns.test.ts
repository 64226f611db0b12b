// Whose tokens are whose: by session and by the millisecond, where stamps of whole seconds cannot tell (R13).
import { describe, expect, test } from 'vitest'
import type { LoopEvent } from '../../src/core/event.ts'
import { storyFinder, turnsOf } from '../../src/core/turns.ts'

const second = '2026-02-09T09:00:00+00:00'
const second0 = Date.parse(second)
/** Three turns of 300 ms, all within one second. */
const iterations = [1, 2, 3].map((n) => ({ n, story_id: String(n), started: second, ended: second }))
const ends = (sessions: boolean): LoopEvent[] =>
  [1, 2, 3].map(
    (n) =>
      ({
        type: 'agent.ended',
        n,
        now_ms: second0 + n * 300,
        duration_ms: 299,
        ...(sessions && { session_id: `s${n}` }),
      }) as LoopEvent,
  )
const at = (ms: number, sessionId = '', parentSessionId = '') => ({
  timeMs: second0 + ms,
  sessionId,
  parentSessionId,
})

describe('turns shorter than a second', () => {
  test('R13: tokens go to the story whose turn ran at that moment', () => {
    const storyOf = storyFinder(turnsOf(iterations, ends(false)))
    expect([10, 350, 650].map((ms) => storyOf(at(ms)))).toEqual(['1', '2', '3'])
  })

  test('R13: the session decides, also for a sub-agent and an answer noted a moment late', () => {
    const storyOf = storyFinder(turnsOf(iterations, ends(true)))
    expect(storyOf(at(310, 's1'))).toBe('1')
    expect(storyOf(at(650, 'x', 's2'))).toBe('2')
    expect(storyOf(at(1200, 's3'))).toBe('3')
  })

  test('a session that is known only by its own event counts too', () => {
    const named = { type: 'agent.session', n: 2, session_id: 'mine' } as LoopEvent
    expect(storyFinder(turnsOf(iterations, [named]))(at(10, 'mine'))).toBe('2')
  })

  test('what the user did with that session later is of no story', () => {
    const storyOf = storyFinder(turnsOf(iterations, ends(true)))
    expect(storyOf(at(60_000, 's1'))).toBe('')
    expect(storyOf(at(-5000, 's1'))).toBe('')
  })

  test('without an end in the journal the stamps have to do', () => {
    const [first] = iterations
    expect(storyFinder(turnsOf(first === undefined ? [] : [first], []))(at(999))).toBe('1')
  })
})
