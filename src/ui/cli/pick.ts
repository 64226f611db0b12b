// Several changes and none named: whoever sits at a terminal picks one, a script is told to name it.
import { RalphError } from '../../core/error.ts'
import { isTerminal } from '../io.ts'
import type { Context } from './context.ts'

/** Asks for a name only where `work` could not tell which change is meant. */
export async function withPicked<Answer>(
  { io, app, readerGone }: Context,
  change: string | undefined,
  work: (change: string | undefined) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await work(change)
  } catch (error) {
    const isAttended = isTerminal(io.stdin) && isTerminal(io.stdout)
    if (!isAttended || !(error instanceof RalphError) || error.code !== 'change_ambiguous') throw error
    const [{ pickChange }, { observe }] = await Promise.all([import('../print/picker.ts'), app()])
    const picked = await pickChange(io, await observe.list(), readerGone)
    if (picked === undefined) throw error
    return work(picked)
  }
}
