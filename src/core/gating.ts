// The gates' part of an attempt: what passed is what is saved, so what changes meanwhile has to pass again, or nothing is saved.
import type { LoopEvent } from './event.ts'
import { outcome } from './outcome.ts'
import type { Current, LoopState } from './state.ts'
import { enter, failAttempt, interruptedAttempt } from './transitions.ts'

type Of<T extends LoopEvent['type']> = Extract<LoopEvent, { type: T }>

/** Gates that change files, a formatter say, run again on what they left, but not for ever. */
export const maxRounds = 3

export function gatesChecked(before: LoopState, gated: Current, event: Of<'gates.checked'>): LoopState {
  const isStirred = (event.stirred ?? []).length > 0
  const current = stirred({ ...gated, rounds: gated.rounds + 1 }, event)
  const state = { ...before, current }
  const failure = event.failed
  const isOver = failure === '' && (!isStirred || current.rounds >= maxRounds)
  if (state.stop !== undefined && !isOver) return interruptedAttempt(state, current)
  if (event.lost) return failAttempt(state, current, event.lost)
  if (failure === '') return enter(state, isOver ? 'settling' : 'gating')
  if (event.could_not_run === true) {
    const hint = `The attempt is kept: ralph attempts ${state.changeId}. Mend the gate, then type: ralph resume ${state.changeId}`
    const end = outcome('gate', failure, hint)
    // The tree goes back to the checkpoint, so that what the user mends there is the user's.
    return enter(
      {
        ...state,
        outcome: end,
        current: { ...current, verdict: 'error', reason: failure, tellsNext: false },
      },
      'reverting',
    )
  }
  return enter(
    { ...state, current: { ...current, verdict: 'gate_failed', reason: failure, tellsNext: true } },
    'reverting',
  )
}

/** What passed is not what is there: it has to pass, or nothing is saved. */
export function checkpointRefused(
  state: LoopState,
  saving: Current,
  event: Of<'checkpoint.refused'>,
): LoopState {
  const current = stirred(saving, event)
  if (event.lost) return failAttempt(state, current, event.lost)
  if (state.stop !== undefined) return interruptedAttempt(state, current)
  if (current.rounds < maxRounds) return enter({ ...state, current }, 'gating')
  const paths = event.stirred ?? []
  return failAttempt(
    state,
    current,
    `something else writes to the work tree, so that what the gates have passed cannot be saved: ${paths.slice(0, 5).join(', ')}`,
  )
}

function stirred(
  current: Current,
  { tree, stirred = [], lost = '' }: Of<'gates.checked' | 'checkpoint.refused'>,
): Current {
  const isStirred = current.isStirred || stirred.length > 0 || lost !== ''
  return { ...current, isStirred, ...(tree !== undefined && { tree }) }
}
