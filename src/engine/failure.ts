// What a loop says when ralph itself cannot go on.
import { diskError } from '../core/disk.ts'
import { inRun, RalphError } from '../core/error.ts'
import type { EventBody } from '../core/event.ts'
import type { LoopState } from '../core/state.ts'

/** `isRecorded`: the journal has at least a line of this run, so that a resume finds it. */
export function errorBody(error: unknown, state: LoopState, isRecorded: boolean): EventBody {
  const known = diskError(error, hintFor(state, isRecorded)) ?? error
  if (known instanceof RalphError) {
    const { code, message, exitCode } = known
    const hint = inRun(known.hint, `ralph ${isRecorded ? 'resume' : 'loop'} ${state.changeId}`)
    return { type: 'error', code, message, hint, exit_code: exitCode }
  }
  const message = known instanceof Error ? known.message : String(known)
  return {
    type: 'error',
    code: 'internal',
    message: `ralph failed: ${message}`,
    hint: isRecorded
      ? `Nothing is lost: the attempts and the checkpoint are in git. Continue with: ralph resume ${state.changeId}`
      : `Nothing was started. Start again with: ralph loop ${state.changeId}`,
    exit_code: 1,
  }
}

export function journalError(error: unknown, state: LoopState, isRecorded: boolean): RalphError {
  const hint = hintFor(state, isRecorded)
  if (error instanceof RalphError) return error
  const message = error instanceof Error ? error.message : String(error)
  return (
    diskError(error, hint) ??
    new RalphError('disk', `The journal cannot be written (${message}).`, {
      hint: hint('Fix that'),
      cause: error,
    })
  )
}

/** Whether it is an error that somebody can mend, and so none of ralph's. */
export function isKnown(error: unknown): boolean {
  return error instanceof RalphError || diskError(error, () => '') !== undefined
}

function hintFor({ changeId, worktree }: LoopState, isRecorded: boolean): (mend: string) => string {
  return (mend) =>
    isRecorded
      ? `Nothing is lost: checkpoints and attempts are in git, the files in ${worktree} stay as they are. ${mend}, then type: ralph resume ${changeId}`
      : `Nothing was started. ${mend}, then type: ralph loop ${changeId}`
}
