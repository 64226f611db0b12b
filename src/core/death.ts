// What a death and its repair do to the state: the iteration is recorded at once, its tree waits for a command that may repair.
import type { LoopEvent } from './event.ts'
import type { Absence } from './ownership.ts'
import { interruptedOutcome } from './policy.ts'
import type { Current, StartedState } from './state.ts'
import { earnedBy, enter } from './transitions.ts'

type Of<T extends LoopEvent['type']> = Extract<LoopEvent, { type: T }>

/**
 * A dead loop: its open iteration is recorded and it has ended, without a look at the work tree. What its attempt left there waits
 * as `unsettled` for a command that may repair.
 */
export function died(state: StartedState, event: Of<'loop.died'>): StartedState {
  const killed: StartedState = { ...state, stop: 'killed' }
  const dead: StartedState = {
    ...killed,
    absence: state.absence ?? absenceOf(event),
    outcome: state.outcome ?? interruptedOutcome(killed),
    // A choice that was not carried out is still open.
    choice: state.phase === 'completing' ? (state.choice ?? 'later') : 'later',
  }
  if (state.current === undefined) return enter(dead, { phase: 'completing' })
  if (state.phase === 'recording') return enter(dead, { phase: 'recording', current: state.current })
  const { n, storyId } = state.current
  const isEarned = state.phase === 'saving'
  const unsettled = { n, storyId, ...(isEarned && earnedBy(state, state.current)) }
  const current: Current =
    state.phase === 'reverting'
      ? state.current
      : {
          ...state.current,
          verdict: 'interrupted',
          reason: isEarned ? 'ralph was killed before its checkpoint was saved' : 'ralph was killed',
          tellsNext: false,
        }
  return enter({ ...dead, unsettled }, { phase: 'recording', current })
}

function absenceOf({ at_ms: diedMs, now_ms: now, orphans }: Of<'loop.died'>): Absence {
  return { diedMs, repairs: [], ...(orphans.length > 0 ? { orphanUntilMs: now } : { quietFromMs: now }) }
}

export function prolonged(
  absence: Absence | undefined,
  event: Of<'orphans.ended'> | Of<'repair.began'> | Of<'repair.ended'>,
): Absence | undefined {
  if (event.type === 'repair.ended') return undefined
  if (event.type === 'orphans.ended')
    return absence && { ...absence, orphanUntilMs: event.now_ms, quietFromMs: event.now_ms }
  // Not a death: an error cut the iteration off, or a command that finishes an ended loop.
  const earlier = absence ?? { diedMs: event.last_sign_ms, repairs: [] }
  // A repair that is still open died at its last sign.
  const closed = earlier.repairs.map(({ fromMs, untilMs }) => ({
    fromMs,
    untilMs: Math.min(untilMs, Math.max(fromMs, event.last_sign_ms)),
  }))
  return { ...earlier, repairs: [...closed, { fromMs: event.now_ms, untilMs: Number.POSITIVE_INFINITY }] }
}

/** The record of an attempt that was kept only after its loop had died. */
export function keptLate(state: StartedState, { n, ref, commits }: Of<'attempt.kept'>): StartedState {
  if (n !== state.unsettled?.n) return state
  const iterations = state.iterations.map((record) =>
    record.n === n && record.attempt_ref === undefined ? { ...record, attempt_ref: ref, commits } : record,
  )
  return { ...state, iterations }
}

/** What is saved counts: nobody is told that it was put aside. */
export function savedLate(
  state: StartedState,
  { n, commit, gone: late = [] }: Of<'checkpoint.saved'>,
): StartedState {
  const { verdict = 'complete' as const, gone = [] } = state.unsettled ?? {}
  const isOwn = state.settings.checkpoint !== 'stash'
  const iterations = state.iterations.map((record) => {
    if (record.n !== n) return record
    const commits = isOwn && !record.commits.includes(commit) ? [...record.commits, commit] : record.commits
    return { ...record, verdict, reason: '', commits }
  })
  const more = late.filter(({ path }) => !gone.some((each) => each.path === path))
  return { ...state, unsettled: undefined, iterations, gone: [...state.gone, ...gone, ...more] }
}
