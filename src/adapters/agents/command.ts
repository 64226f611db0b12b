// Any program as agent: run by `sh -c`, prompt on stdin, its stdout is what the assistant says.
import { constants } from 'node:os'
import type { GroupEnd } from '../process/group.ts'
import { endingOfError } from './failure.ts'
import { providerKeys } from './keys.ts'
import type { AgentKind } from './kind.ts'
import { endingOfLastWords } from './last-words.ts'

export const command: AgentKind = {
  speaks: 'text',
  keys: providerKeys,
  launch: ({ prompt, command: program, passThrough }) => ({
    ...shell(program ?? '', passThrough),
    env: {},
    input: prompt,
  }),
  listen: () => ({ hear: () => [] }),
  diagnose(exitCode, stderr, said) {
    if (exitCode === tryLater) {
      const ending = endingOfError(stderr)
      return ending === 'overloaded' || ending === 'offline' ? ending : 'limit'
    }
    // What a shell answers when there is no such program; a script whose last command is missing says the same.
    const isMissing =
      (exitCode === 127 && /not found|no such file/i.test(stderr)) ||
      (exitCode === 126 && /permission denied/i.test(stderr))
    return isMissing && said === '' ? 'missing' : endingOfLastWords(stderr, said)
  },
}

/** EX_TEMPFAIL of sysexits.h: how a script says itself that it is its provider's fault. */
const tryLater = 75

/** Pass-through arguments come as words of their own, whatever is in them. */
export function shell(
  program: string,
  passThrough: readonly string[],
): { file: string; args: readonly string[] } {
  return passThrough.length === 0
    ? { file: 'sh', args: ['-c', program] }
    : { file: 'sh', args: ['-c', `${program} "$@"`, 'sh', ...passThrough] }
}

/**
 * A shell reports a child's death by a signal as 128 + its number: that is how the agent died, not a code it chose. But a
 * pipe that lost its reader ends nobody's work: its signal is an exit code, which never takes a promise back.
 */
export function throughShell(end: GroupEnd): GroupEnd {
  const { exitCode, signal: own, ...rest } = end
  const name = Object.entries(constants.signals).find(([, number]) => exitCode === 128 + number)?.[0]
  const signal = own ?? (isSignal(name) ? name : undefined)
  if (signal === undefined) return end
  return signal === 'SIGPIPE' ? { ...rest, exitCode: brokenPipe } : { ...rest, signal }
}

const brokenPipe = 128 + constants.signals.SIGPIPE

function isSignal(name: string | undefined): name is NodeJS.Signals {
  return name !== undefined
}
