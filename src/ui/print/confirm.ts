// Asks before something is deleted for good; where nobody can be asked, the flag that says yes is named.
import { RalphError } from '../../core/error.ts'
import type { Io } from '../io.ts'
import { isTerminal } from '../io.ts'
import { ask } from './ask.ts'
import { folded } from './layout.ts'

export function confirmAt(io: Io, stop: AbortSignal): (question: string) => Promise<boolean> {
  return async (question) => {
    if (!isTerminal(io.stdin) || !isTerminal(io.stdout)) {
      throw new RalphError('usage', `${question} Nobody is there to ask.`, {
        hint: 'Nothing was deleted. To delete without a question, add: --yes',
      })
    }
    const lines = folded(`${question} [y/N]`, io.stdout.columns).split('\n')
    const answer = await ask(
      io,
      {
        lines: lines.slice(0, -1),
        prompt: `${lines.at(-1) ?? ''} `,
        interpret: (word) =>
          word === 'y' || word === 'yes' ? 'yes' : /^(?:|n|no)$/.test(word) ? 'no' : undefined,
        again: 'please type y or n: ',
      },
      stop,
    )
    return answer === 'yes'
  }
}
