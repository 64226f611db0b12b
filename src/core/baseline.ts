// Whether a gate that has failed an attempt fails without the agent's work, too: found out once in a loop, before the retry is paid.
import type { Baseline } from './event.ts'
import { gatesOf } from './limits.ts'
import type { IterationState, LoopState, StartedState } from './state.ts'

/** The gate to run before the agent, and how it has failed; none where it is known what it says. */
export function dueBaseline({
  failure,
  current,
  baselines,
  settings,
}: IterationState): { readonly gate: string; readonly reason: string } | undefined {
  const { gate, storyId } = failure ?? {}
  if (gate === undefined || storyId !== current.storyId || baselines[gate.gate] !== undefined)
    return undefined
  // A resume may have named others.
  return gatesOf(settings, storyId).includes(gate.gate) ? gate : undefined
}

/** Times differ from run to run. */
export function isSameFailure(one: string, other: string): boolean {
  return timeless(one) === timeless(other)
}

function timeless(text: string): string {
  return text.replaceAll(/\d+(?:[.,]\d+)?\s?(?:ms|s|seconds?|m|min)\b/g, 'some time')
}

/** What a checkpoint holds has passed its gates. */
export function withPassed(
  { baselines, settings }: StartedState,
  storyId: string,
): StartedState['baselines'] {
  const passed = gatesOf(settings, storyId).map((gate) => [gate, 'passed'] as const)
  return passed.length === 0 ? baselines : { ...baselines, ...Object.fromEntries(passed) }
}

/** It fails on its own: no agent is to blame. */
export function isRed(baseline: Baseline | undefined): boolean {
  return baseline === 'same' || baseline === 'other'
}

/** What the next prompt of the story is told of the attempt before it. */
export function toldFailure({ failure, baselines }: LoopState, storyId: string): string | undefined {
  if (failure?.storyId !== storyId) return undefined
  const words = failure.gate === undefined ? '' : forAgent[baselines[failure.gate.gate] ?? 'unknown']
  return words === '' ? failure.reason : `${failure.reason}\n\n${words}`
}

const forAgent: Record<Baseline, string> = {
  same: 'ralph has run this gate without your changes, too: it fails there in the same way, so that its cause is older than your work. It has to pass all the same: fix the cause if that is in reach, or report FAILED with what has to be done.',
  other:
    'ralph has run this gate without your changes, too: it fails there as well, in another way. It has to pass all the same.',
  passed: 'Without your changes this gate passes: they have broken it.',
  unknown: '',
}

/** For people, after the gate's name. */
export const baselineWords: Record<Exclude<Baseline, 'unknown'>, string> = {
  same: "fails in the same way without the agent's work",
  other: "fails without the agent's work, too",
  passed: "passes without the agent's work",
}
