// The gates' part of an attempt: what passed is what is saved, so what changes meanwhile has to pass again, or nothing is saved.
import type { LoopEvent } from './event.ts'
import { outcome } from './outcome.ts'
import type { KeptTurn, StartedState } from './state.ts'
import { enter, failAttempt, interruptedAttempt } from './transitions.ts'

type KeptState = Extract<StartedState, { readonly current: KeptTurn }>

type Of<T extends LoopEvent['type']> = Extract<LoopEvent, { type: T }>

/** Gates that change files, a formatter say, run again on what they left, but not for ever. */
export const maxRounds = 3

export function gatesChecked(state: KeptState, event: Of<'gates.checked'>): StartedState {
  const isStirred = (event.stirred ?? []).length > 0
  const current = stirred({ ...state.current, rounds: state.current.rounds + 1 }, event)
  const failure = event.failed
  const reason = event.reason ?? failure
  const isOver = failure === '' && (!isStirred || current.rounds >= maxRounds)
  if (state.stop !== undefined && !isOver) return interruptedAttempt(state, current)
  if (event.lost) return failAttempt(state, current, event.lost)
  if (failure === '') return enter(state, { phase: isOver ? 'settling' : 'gating', current })
  if (event.could_not_run === true) {
    const hint = `The attempt is kept: ralph attempts ${state.changeId}. Fix the gate, then continue with: ralph resume ${state.changeId}`
    const end = outcome('gate', reason, hint)
    // The tree goes back to the checkpoint, so that what the user mends there is the user's.
    return enter(
      { ...state, outcome: end },
      { phase: 'reverting', current: { ...current, verdict: 'error', reason, tellsNext: false } },
    )
  }
  return enter(state, {
    phase: 'reverting',
    current: { ...current, verdict: 'gate_failed', reason, tellsNext: true, tells: failure },
  })
}

/** What passed is not what is there: it has to pass, or nothing is saved. */
export function checkpointRefused(state: KeptState, event: Of<'checkpoint.refused'>): StartedState {
  const current = stirred(state.current, event)
  if (event.lost) return failAttempt(state, current, event.lost)
  if (state.stop !== undefined) return interruptedAttempt(state, current)
  if (current.rounds < maxRounds) return enter(state, { phase: 'gating', current })
  const paths = event.stirred ?? []
  return failAttempt(
    state,
    current,
    `something else writes to the work tree, so that what the gates have passed cannot be saved: ${paths.slice(0, 5).join(', ')}`,
  )
}

function stirred(
  current: KeptTurn,
  { tree, stirred = [], lost = '' }: Of<'gates.checked' | 'checkpoint.refused'>,
): KeptTurn {
  const isStirred = current.isStirred || stirred.length > 0 || lost !== ''
  return { ...current, isStirred, ...(tree !== undefined && { tree }) }
}
