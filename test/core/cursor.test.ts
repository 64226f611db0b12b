import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { advance, beginning, cursorAfter, cursorText, isAfter, parseCursor } from '../../src/core/cursor.ts'
import type { EventBody, LoopEvent } from '../../src/core/event.ts'
import { settings } from './world.ts'

function event(body: EventBody, seq = 1): LoopEvent {
  return { v: 1, seq, time: '2026-01-01T00:00:00+00:00', change_id: 'demo', ...body }
}

const started = (runId: string): LoopEvent =>
  event({
    type: 'loop.started',
    run_id: runId,
    resumed: false,
    settings,
    pid: 1,
    worktree: '/w',
    worktree_name: 'w',
    root: '/w',
    tasks_file: 't',
    original_branch: 'main',
    branch: 'ralph/demo',
  })
const secret = event({ type: 'wait.ended' })
const talk = event({ type: 'agent.message', n: 1, text: 'hello' })

describe('a cursor', () => {
  test('names private events and talk, which share their number with the public one before them', () => {
    const events = [started('a'), secret, secret, talk, talk, secret, talk]
    let cursor = beginning
    const names = events.map((each) => cursorText((cursor = advance(cursor, each))))
    expect(names).toEqual(['a:1.0', 'a:2.0', 'a:3.0', 'a:3.1', 'a:3.2', 'a:4.0', 'a:4.1'])
  })

  test('keeps the name of the run through every loop that goes on with it', () => {
    expect(cursorAfter([started('a'), secret, started('b'), secret])).toEqual({
      run: 'a',
      record: 4,
      talk: 0,
    })
  })

  test('each is after the one before it, and is read back as it was written', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(secret, talk)), fc.string(), (events, run) => {
        let cursor = advance(beginning, started(run))
        for (const each of events) {
          const next = advance(cursor, each)
          expect(isAfter(next, cursor)).toBe(true)
          expect(isAfter(cursor, next)).toBe(false)
          cursor = next
        }
        expect(parseCursor(cursorText(cursor))).toEqual(cursor)
      }),
    )
  })

  test.each(['', 'a', 'a:1', 'a:1.', 'a:-1.0', 'a:1.0 ', '1.0'])('is nothing else: %j', (text) => {
    expect(parseCursor(text)).toBeUndefined()
  })
})
