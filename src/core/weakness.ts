// What makes a run's "done" worth less: a gate that it changed, tests that are gone, a gate that ran no test; whoever tells of the run says it.
import type { LoopEvent } from './event.ts'

/** The sentences that stand after this event: a resume keeps them, a new run has none yet. */
export function weakenedBy(known: readonly string[], event: LoopEvent): readonly string[] {
  if (event.type === 'loop.started') return event.resumed ? (event.warnings ?? known) : []
  if (event.type === 'warning' && (event.code === 'gate_changed' || event.code === 'tests_lost'))
    return joined(known, [event.message])
  if (event.type !== 'gate.ended' || event.outcome !== 'passed') return known
  return afterGate(known, event.command, event.ran_no_tests)
}

/** Once it runs tests again, that is forgotten. */
export function afterGate(
  known: readonly string[],
  command: string,
  ranNoTests: boolean | undefined,
): readonly string[] {
  const words = `${idle}${command}`
  if (ranNoTests === true) return joined(known, [words])
  return known.includes(words) ? known.filter((each) => each !== words) : known
}

const idle = 'the gate passed and ran 0 tests: '

/** Said of a gate: the next one that passes says it again, or takes it back. */
export function isOfGate(words: string): boolean {
  return words.startsWith(idle)
}

/** For a headline, where the rest stands below: "#1 changed what npm test runs". */
export function weakWord(words: string): string {
  if (isOfGate(words)) return `${words.slice(idle.length)} ran 0 tests`
  const [what = ''] = words.split(': ')
  const [, gate] = / \(gate `([^`]+)`\)$/.exec(words) ?? []
  return gate === undefined ? what : what.replace(/what a gate runs$/, () => `what ${gate} runs`)
}

export function joined(known: readonly string[], more: readonly string[] = []): readonly string[] {
  return more.every((each) => known.includes(each)) ? known : [...new Set([...known, ...more])]
}
