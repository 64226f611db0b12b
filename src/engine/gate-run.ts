// Runs gates one after the other, and tells of each; for the verdict and for a claim alike.
import type { EventBody } from '../core/event.ts'
import type { GateFailure } from '../core/gate-failure.ts'
import type { GateResult } from '../ports.ts'
import type { Context } from './context.ts'

interface GateRun {
  readonly n: number
  readonly env: Readonly<Record<string, string>>
  readonly stop: AbortSignal
  /** The claim that they run for. */
  readonly claim?: number
  /** They judge what a person has ticked since that iteration. */
  readonly byHand?: boolean
  /** Called when one has ended, whatever came of it. */
  readonly after: (gate: string) => Promise<void>
}

/** The first that did not pass; undefined when all have. */
export async function runGates(
  commands: readonly string[],
  { ports, tell }: Context,
  { n, env, stop, claim, byHand, after }: GateRun,
): Promise<{ readonly gate: string; readonly result: GateResult } | undefined> {
  const about = { n, ...(claim !== undefined && { claim }) }
  for (const gate of commands) {
    await tell({ type: 'gate.started', ...about, command: gate })
    const result = await ports.gates.check(gate, env, stop, ports.gateLog(n, byHand))
    await tell({
      type: 'gate.ended',
      ...about,
      command: gate,
      outcome: result.outcome,
      ...(result.exitCode !== undefined && { exit_code: result.exitCode }),
      duration_ms: Math.round(result.durationMs),
      output_tail: result.outputTail,
      ...(result.failure !== undefined && { failure: recordOf(result.failure) }),
      ...(result.outputLines !== undefined && { output_lines: result.outputLines }),
      ...(result.ranNoTests && { ran_no_tests: true as const }),
    })
    if (result.warning !== undefined)
      await tell({ type: 'warning', code: 'gate_log', message: result.warning })
    await after(gate)
    if (result.outcome !== 'passed') return { gate, result }
  }
  return undefined
}

function recordOf({
  what,
  message,
  where,
  also,
}: GateFailure): Extract<EventBody, { type: 'gate.ended' }>['failure'] {
  return {
    what,
    message: [...message],
    where,
    ...(also !== undefined && { also: { total: also.total, first: [...also.first] } }),
  }
}
