// The gate that failed the attempt before, run once without its work. Whoever calls it goes back to the checkpoint after it.
import { isSameFailure } from '../core/baseline.ts'
import type { Baseline } from '../core/event.ts'
import type { Command } from '../core/loop.ts'
import type { Context } from './context.ts'
import { tellJudged } from './gate-check.ts'
import { reasonOf } from './gate-words.ts'

type RunAgent = Extract<Command, { do: 'run_agent' }>

/** `watched`: the environment that watches the agent's own git, too. */
export async function compareGate(
  { n, storyId }: Pick<RunAgent, 'n' | 'storyId'>,
  { gate, reason }: NonNullable<RunAgent['compares']>,
  context: Context,
  watched: Readonly<Record<string, string>>,
): Promise<void> {
  const { ports, tell } = context
  const { changeId, runId } = context.state()
  await tell({ type: 'baseline.started', n, command: gate })
  const held = await ports.spec.watch()
  const env = { ...watched, RALPH_CHANGE: changeId, RALPH_STORY: storyId, RALPH_RUN_ID: runId }
  const result = await ports.gates.check(gate, env, context.stopping)
  await tellJudged(await held(gate), context)
  const said = result.outcome === 'passed' ? '' : reasonOf(gate, result)
  const outcomes: Record<typeof result.outcome, Baseline> = {
    passed: 'passed',
    failed: isSameFailure(said, reason) ? 'same' : 'other',
    could_not_run: 'unknown',
    stopped: 'unknown',
  }
  await tell({
    type: 'baseline.ended',
    n,
    command: gate,
    outcome: outcomes[result.outcome],
    ...(result.exitCode !== undefined && { exit_code: result.exitCode }),
    duration_ms: Math.round(result.durationMs),
    reason: said,
  })
}
