// Asks before something is deleted for good; where nobody can be asked, the flag that says yes is named.
import { RalphError } from '../../core/error.ts'
import type { Io } from '../io.ts'
import { isTerminal } from '../io.ts'
import { ask } from './ask.ts'

export function confirmAt(io: Io, stop: AbortSignal): (question: string) => Promise<boolean> {
  return async (question) => {
    if (!isTerminal(io.stdin) || !isTerminal(io.stdout)) {
      throw new RalphError('usage', `${question} Nobody is there to ask.`, {
        hint: 'Nothing was deleted. To delete without a question, add: --yes',
      })
    }
    const answer = await ask(
      io,
      {
        lines: [],
        prompt: `${question} [y/N] `,
        interpret: (word) =>
          word === 'y' || word === 'yes' ? 'yes' : /^(?:|n|no)$/.test(word) ? 'no' : undefined,
        again: 'please type y or n: ',
      },
      stop,
    )
    return answer === 'yes'
  }
}
