import { expect, test } from 'vitest'
import { planRead as evolvePlan } from '../../src/core/beginning.ts'
import type { LoopEvent } from '../../src/core/event.ts'
import { initialState, type StartedState } from '../../src/core/state.ts'
import { parseTasks } from '../../src/core/tasks.ts'
import { planRead } from '../../src/engine/record.ts'

/** The state after the plan was read, and the bytes that this costs in the journal. */
function read(
  before: StartedState,
  stories: readonly string[],
): { readonly state: StartedState; readonly bytes: number } {
  const text = stories.map((box, at) => `## ${at + 1}. Story ${at + 1}\n- [${box}] it\n`).join('\n')
  const body = planRead(parseTasks([{ file: 'tasks.md', text }]), before)
  const event = { v: 1, seq: 1, time: '', change_id: 'demo', ...body } as Extract<
    LoopEvent,
    { type: 'plan.read' }
  >
  return { state: evolvePlan(before, event), bytes: JSON.stringify(event).length }
}

test('a plan that was read before is told by what has changed in it, whatever its length', () => {
  // As in the middle of an iteration: the reducer decides nothing by it.
  const start = {
    ...initialState('demo'),
    phase: 'recording',
    maxIterations: 1,
    settings: { done_criteria: 'tasks' },
  } as unknown as StartedState
  const open = Array.from({ length: 300 }, () => ' ')
  const first = read(start, open)
  expect(first.bytes).toBeGreaterThan(10_000)
  const second = read(first.state, open.with(7, 'x'))
  expect(second.bytes).toBeLessThan(300)
  expect(second.state.stories).toEqual(read(start, open.with(7, 'x')).state.stories)
  expect(read(second.state, open.with(7, 'x')).state.stories).toBe(second.state.stories)
  // Another story: all of them are told.
  const longer = read(second.state, [...open.with(7, 'x'), ' '])
  expect(longer.state.stories).toEqual(read(start, [...open.with(7, 'x'), ' ']).state.stories)
})
