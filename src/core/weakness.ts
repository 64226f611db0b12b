// What makes a run's "done" worth less: a gate that it changed, tests that are gone, a gate that ran no test; whoever tells of the run says it.
import type { LoopEvent } from './event.ts'
import { keepsWork, wordOnly } from './report.ts'
import { selectedStories, type LoopState } from './state.ts'
import { manualStory } from './story.ts'

/** All of it, a sentence each, as it stands now. */
export function doubtsOf(
  state: Pick<LoopState, 'iterations' | 'stories' | 'settings' | 'weakened'>,
): readonly string[] {
  return [...idleStories(state), ...state.weakened]
}

/** Done stories of which no file tells. */
function idleStories({ iterations, ...state }: Parameters<typeof doubtsOf>[0]): readonly string[] {
  const ids = wordOnly(iterations)
  if (ids.length === 0) return []
  // There its user says that it is done.
  if (ids[0] === manualStory) return ['no attempt changed a file']
  const isAll =
    selectedStories(state).every(({ id }) => ids.includes(id)) &&
    iterations.every(({ verdict, story_id: id }) => !keepsWork[verdict] || ids.includes(id))
  if (isAll) return [nothing]
  return [
    `${ids.length === 1 ? 'story' : 'stories'} ${ids.join(', ')} changed no file: the agent's word only`,
  ]
}

const nothing = "no file was changed: the agent's word only"
/** A story among others may only have looked. */
const aside = /^(?:stor(?:y|ies) .+ changed no file: |no attempt changed )/

/** For the headline of a run that is done, where the rest stands below. */
export function doubtIn(warnings: readonly string[] = []): string | undefined {
  const words = warnings.find((each) => !aside.test(each))
  return words === undefined || words === nothing ? words : weakWord(words)
}

/** What the events tell of gates and tests: a resume keeps it, a new run has none yet. */
export function weakenedBy(known: readonly string[], event: LoopEvent): readonly string[] {
  if (event.type === 'loop.started') return event.resumed ? known : []
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

/** "#1 changed what npm test runs". */
export function weakWord(words: string): string {
  if (isOfGate(words)) return `${words.slice(idle.length)} ran 0 tests`
  const [what = ''] = words.split(': ')
  const [, gate] = / \(gate `([^`]+)`\)$/.exec(words) ?? []
  return gate === undefined ? what : what.replace(/what a gate runs$/, () => `what ${gate} runs`)
}

export function joined(known: readonly string[], more: readonly string[] = []): readonly string[] {
  return more.every((each) => known.includes(each)) ? known : [...new Set([...known, ...more])]
}

/** Tests that the run has changed: no reason for doubt, and said all the same. */
export function testsAfter(known: readonly string[], event: LoopEvent): readonly string[] {
  if (event.type === 'loop.started') return event.resumed ? known : []
  return event.type === 'checkpoint.saved' ? joined(known, event.tests_changed) : known
}
