// What is said about a gate that did not pass: to the agent all that is known, to people one line.
import { failureSentence, shortFailure } from '../core/gate-failure.ts'
import type { GateResult } from '../ports.ts'

/** For the agent: all that is known of the output, the failing test first where the end of it does not show it. */
export function failureOf(gate: string, { outcome, exitCode, outputTail, failure }: GateResult): string {
  const exit = exitCode === undefined ? '' : ` (exit code ${exitCode})`
  const how =
    outcome === 'could_not_run' ? 'could not be run' : outcome === 'stopped' ? 'was stopped' : `failed${exit}`
  const hidden = failure !== undefined && !outputTail.includes(failure.what) ? [failureSentence(failure)] : []
  const shown = [...hidden, outputTail].filter((part) => part.trim() !== '')
  return `The gate \`${gate}\` ${how}${shown.length === 0 ? '' : `:\n${shown.join('\n\n')}`}`
}

/** For people: one line, the failing test's own where that is known. */
export function reasonOf(gate: string, { outcome, exitCode, outputTail, failure }: GateResult): string {
  if (outcome === 'stopped') return `${gate} was stopped`
  const exit = exitCode === undefined ? '' : ` (exit ${exitCode})`
  const how = outcome === 'could_not_run' ? 'could not be run' : `failed${exit}`
  const line = shortFailure(outputTail, failure)
  return `${gate} ${how}${line === '' ? '' : `: ${line}`}`
}

/** For the agent: what it hid, and the two ways out. */
export function withoutWords(names: string, failure: string): string {
  return `The gates passed, but only with ${names}: ignore rules that you added keep that out of the checkpoint, so that it is missing in every other checkout. Take it out of .gitignore, or make the gates pass without it. Without it:\n\n${failure}`
}
