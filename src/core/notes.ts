// A person's words for the next prompt: those given with a resume, and those given to a loop that runs.
import type { LoopEvent } from './event.ts'
import type { LoopState, StartedState } from './state.ts'

export function noteAdded(
  state: StartedState,
  { id, text }: Extract<LoopEvent, { type: 'note.added' }>,
): StartedState {
  if (state.notes.some((note) => note.id === id)) return state
  const n = state.current?.n ?? state.iterations.length
  return { ...state, notes: [...state.notes, { id, n, text }] }
}

/** What the prompt of iteration n says of them; what came while it ran is for the next one. */
export function feedbackFor(
  { feedback, notes }: Pick<LoopState, 'feedback' | 'notes'>,
  n = Number.POSITIVE_INFINITY,
): string | undefined {
  const words = [
    ...(feedback === undefined ? [] : [feedback]),
    ...notes.filter((note) => note.n < n).map(({ text }) => text),
  ]
  return words.length === 0 ? undefined : words.join('\n\n')
}
