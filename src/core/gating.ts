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
  const { stirred: paths = [] } = event
  const failure = event.failed || undefined
  const ownFiles = stirredAgain(state, event)
  const current = stirred({ ...state.current, rounds: state.current.rounds + 1, ownFiles }, event)
  const reason = event.reason ?? failure ?? ''
  const isLast = current.rounds >= maxRounds
  const isOver = failure === undefined && (paths.length === 0 || (isLast && isOwn(paths, ownFiles)))
  if (state.stop !== undefined && !isOver) return interruptedAttempt(state, current)
  if (event.lost) return failAttempt(state, current, event.lost)
  if (isOver) {
    const gateFiles = [...new Set([...state.gateFiles, ...paths])]
    return enter({ ...state, gateFiles }, { phase: 'settling', current })
  }
  if (failure === undefined)
    return isLast
      ? failAttempt(state, current, neverStill(paths))
      : enter(state, { phase: 'gating', current })
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
    current: {
      ...current,
      verdict: 'gate_failed',
      reason,
      tellsNext: true,
      tells: failure,
      ...(event.gate !== undefined && { failedGate: { gate: event.gate, reason } }),
    },
  })
}

/**
 * What the gates write anew each time they run never stands still. It may be saved as they left it only if it is surely no work of the
 * agent or the user: it was not there before the gates ran for the first time, and each of their runs since has written it again.
 */
export function isOwn(paths: readonly string[], ownFiles: readonly string[]): boolean {
  return paths.every((path) => ownFiles.includes(path))
}

function stirredAgain(
  { current, gateFiles }: Pick<KeptState, 'current' | 'gateFiles'>,
  { stirred: paths = [], made = [] }: Pick<Of<'gates.checked'>, 'stirred' | 'made'>,
): readonly string[] {
  // For a claim the gates may have run before, too.
  const first = [...made, ...gateFiles, ...(current.madeByClaims ?? [])]
  const before = current.rounds === 0 ? first : (current.ownFiles ?? [])
  return paths.filter((path) => before.includes(path))
}

function neverStill(paths: readonly string[]): string {
  return `files changed during each of ${maxRounds} runs of the gates, so that no run has passed on what would be saved: ${listed(paths)}. A gate must leave the files as they are when it runs again; what it writes each time belongs in .gitignore`
}

export function listed(paths: readonly string[]): string {
  return `${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ' …' : ''}`
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
    `something else writes to the work tree, so that what the gates have passed cannot be saved: ${listed(paths)}`,
  )
}

function stirred(
  current: KeptTurn,
  { tree, stirred = [], lost }: Of<'gates.checked' | 'checkpoint.refused'>,
): KeptTurn {
  const isStirred = current.isStirred || stirred.length > 0 || Boolean(lost)
  return { ...current, isStirred, ...(tree !== undefined && { tree }) }
}
