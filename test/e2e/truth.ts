// What must hold however a loop ended: the last event, the state file, the tree, the processes.
import { expect } from 'vitest'
import { findAlive } from '../../src/adapters/process/reap.ts'
import type { LoopEvent } from '../../src/core/event.ts'
import { stateFileSchema } from '../../src/core/state-file.ts'
import { eventsOf, type Finished, type Scratch } from './harness.ts'

export function expectTruth(at: Scratch, end: Finished): void {
  const events = eventsOf(end)
  const state = at.state()
  expect(stateFileSchema.safeParse(state).error).toBeUndefined()
  expect(events.at(-1)).toMatchObject({ type: 'complete', exit_code: end.code, status: state.status })
  expect(at.git('status', '--porcelain')).toBe('')
  const runId = events.find(
    (event): event is Extract<LoopEvent, { type: 'loop.started' }> => event.type === 'loop.started',
  )?.run_id
  expect(runId).toBeTruthy()
  expect(findAlive({ marker: { RALPH_RUN_ID: runId ?? '' } })).toEqual([])
}
