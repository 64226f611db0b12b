// What gets a run further that has ended: one answer, for the error, for its last lines, for status and why.
import { isRed } from './baseline.ts'
import type { IterationRecord, Settings } from './event.ts'
import { isOvertime } from './gate-failure.ts'
import type { StartedState, StopReason } from './state.ts'
import { totalCostUsd } from './state.ts'
import { hasMerge } from './story.ts'

export interface Onward {
  readonly label: 'continue' | 'try again'
  readonly command: string
  readonly why: string
}

interface Ended {
  readonly change: string
  readonly stopReason: string
  /** Why it ended. */
  readonly reason: string
  readonly settings: Settings | undefined
  /** The last attempt. */
  readonly last: Pick<IterationRecord, 'verdict' | 'reason'> | undefined
  /** Asked for by the merge queue, which alone knows whether an agent may try again. */
  readonly isMerge: boolean
  /** The gate that failed it fails without its work, too. */
  readonly isGateRed: boolean
  /** Of the whole run. */
  readonly attempts: number
  readonly isUnpriced: boolean
}

/** A resume without an option would end at once for the same reason. */
export const needsOption: ReadonlySet<string> = new Set(['iterations', 'budget', 'model'])

/** The command that really gets further: a bare resume would stop at the same limit again. */
export function onward(ended: Ended): Onward {
  const { stopReason, last, settings, attempts, isGateRed } = ended
  const resume = `ralph resume ${ended.change}`
  const goOn = (flag: string, why: string): Onward => ({
    label: 'continue',
    command: flag === '' ? resume : `${resume} ${flag}`,
    why,
  })
  const again = (flag: string, why: string): Onward => ({ ...goOn(flag, why), label: 'try again' })
  if (ended.isMerge)
    return { ...goOn('', 'see how both sides come together'), command: `ralph status ${ended.change}` }
  switch (stopReason) {
    case 'iterations':
      return goOn(`--max-iterations ${attempts * 2}`, 'with more attempts, counted from the first')
    case 'budget':
      return goOn(budgetFlags(ended), 'with a larger budget')
    case 'model':
      return goOn('--model NAME', 'with a model that the agent knows')
    case 'human':
      return goOn('', 'after you have done your part')
    case 'auth':
      return goOn('', 'after you have logged in or paid')
    case 'missing':
      return goOn('', 'once the agent is installed; or with --agent NAME')
    case 'limit':
      return goOn('', 'once the limit is over')
    case 'gate':
      return again('', 'when the gate can run')
    case 'hand':
      return again('', 'when it is fixed, or its box unticked')
    case 'retries':
    case 'stall': {
      // Words help an agent that works, not a program that cannot run, nor one that ran out of time.
      if (last?.verdict === 'crash' || isGateRed) return again('', 'when that is fixed')
      const limit = last === undefined || settings === undefined ? undefined : timeLimit(last, settings)
      return limit === undefined
        ? again('--feedback "…"', 'and tell it more')
        : again(`${limit[0]} ${timeFlag(limit[1] * 2)}`, 'with more time')
    }
    default:
      return goOn('', 'where it stopped')
  }
}

/** Of a run as it ends, or has ended. */
export function onwardFrom(state: StartedState, stopReason: StopReason, reason: string): Onward {
  const last = state.iterations.at(-1)
  return onward({
    change: state.changeId,
    stopReason,
    reason,
    settings: state.settings,
    last,
    isMerge: hasMerge(state.stories),
    isGateRed: last?.verdict === 'gate_failed' && isRed(state.baselines[state.failure?.gate?.gate ?? '']),
    attempts: state.iterations.length,
    isUnpriced: totalCostUsd(state) === undefined,
  })
}

/** After what was said: "To try again, with more time: ralph resume x --idle-timeout 6s". */
export function onwardHint({ label, command, why }: Onward): string {
  return `To ${label}, ${why}: ${command}`
}

function timeLimit(
  { verdict, reason }: NonNullable<Ended['last']>,
  { iteration_timeout_min: whole, idle_timeout_min: idle }: Settings,
): readonly [flag: string, minutes: number] | undefined {
  if (verdict === 'idle') return ['--idle-timeout', idle]
  return verdict === 'timeout' || (verdict === 'gate_failed' && isOvertime(reason))
    ? ['--iteration-timeout', whole]
    : undefined
}

/** As a person would type it: 8s, 90m, 2h. */
function timeFlag(minutes: number): string {
  const seconds = Math.ceil(minutes * 60)
  if (seconds % 3600 === 0) return `${seconds / 3600}h`
  return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`
}

/** The one that was used up first; naming one replaces both, so the other that is set is named too. */
function budgetFlags({ reason, settings, isUnpriced }: Ended): string {
  const flags = [
    ...(settings?.max_tokens === undefined && !isUnpriced ? [] : ['--max-tokens N']),
    // A cost that nobody knows would end the next run, too.
    ...(settings?.max_cost_usd === undefined || isUnpriced ? [] : ['--max-cost USD']),
  ]
  return (reason.includes('--max-cost') ? flags.toReversed() : flags).join(' ')
}
