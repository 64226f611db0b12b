// One turn of an agent as it unfolds: gathers the facts, and decides at the end how it went.
import type { AgentEnded, AgentEnding } from '../../core/event.ts'
import { promiseScanner } from '../../core/promise.ts'
import type { UsageFigures } from '../../core/usage.ts'
import type { AgentSignal } from '../../ports.ts'
import type { GroupEnd } from '../process/group.ts'
import { isUnpaid } from './failure.ts'
import type { AgentFact, AgentKind } from './kind.ts'
import { resetTime, withoutStamp } from './reset-time.ts'
import { talk, textTail } from './talk.ts'

export interface Turn {
  /** Nothing after ralph's own decision to end it can change the verdict (R18). */
  hear(fact: AgentFact): void
  /** Whether its protocol has said that it is over, well or not. */
  readonly isOver: boolean
  /** Whether whatever is said next decides about a promise. */
  readonly isPromising: boolean
  end(end: GroupEnd, stderr: string, nowMs: number): AgentEnded
}

export function startTurn(
  kind: AgentKind,
  tell: (signal: AgentSignal) => void,
  wasEnded: () => boolean,
): Turn {
  const scanner = promiseScanner()
  const words = talk((text) => tell({ type: 'message', text }))
  const lastWords = textTail(lastWordsLimit)
  let isMidMessage = false
  let hasWorked = false
  let isOver = false
  let mayFail = false
  let sessionId: string | undefined
  let model: string | undefined
  let usage: UsageFigures | undefined
  let resetsAtMs: number | undefined
  let retrying: Extract<AgentFact, { type: 'retry' }> | undefined
  let halted: AgentEnding | undefined
  let failed: Extract<AgentFact, { type: 'failed' }> | undefined

  const endMessage = (): void => {
    if (!isMidMessage) return
    scanner.endMessage()
    words.flush()
    isMidMessage = false
  }

  const hearText = (text: string, isPartial: boolean, missed: number): void => {
    if (!isPartial) endMessage()
    if (!isMidMessage) lastWords.clear()
    lastWords.add(text)
    scanner.feed(text)
    if (isPartial) words.add(text, missed)
    else {
      scanner.endMessage()
      words.say(text)
    }
    isMidMessage = isPartial
  }

  const conclude = (end: GroupEnd, stderr: string): { ending: AgentEnding; hasVerdict: boolean } => {
    // An error without a name, or an end without a word, of one that its provider had just refused is the provider's.
    if (failed !== undefined && failed.ending !== 'crash') return { ending: failed.ending, hasVerdict: false }
    if (failed !== undefined) return { ending: retrying?.ending ?? 'crash', hasVerdict: false }
    if (isOver) return { ending: 'finished', hasVerdict: true }
    if (end.cause !== undefined)
      return { ending: endingOfCause(end.cause, retrying?.ending), hasVerdict: false }
    if (kind.speaks === 'lines') {
      // Without the word of its protocol a turn has not ended well, whatever the exit code.
      const fallback = end.exitCode === 0 && !hasWorked ? 'no_turn' : 'crash'
      const diagnosis = kind.diagnose?.(end.exitCode, stderr, lastWords.text())
      return { ending: diagnosis ?? retrying?.ending ?? fallback, hasVerdict: false }
    }
    return { ending: end.exitCode === 0 ? 'finished' : 'crash', hasVerdict: end.exitCode !== undefined }
  }

  /** A promise counts whatever the exit code, and so whatever else was complained about. */
  const judge = (end: GroupEnd, stderr: string): Pick<AgentEnded, 'ending' | 'promise'> => {
    const { ending, hasVerdict } = conclude(end, stderr)
    const promise = hasVerdict ? scanner.end() : ({ kind: 'none' } as const)
    if (promise.kind !== 'none') return { ending, promise }
    if (ending === 'finished') return { ending: halted ?? ending, promise }
    const diagnosis = hasVerdict ? kind.diagnose?.(end.exitCode, stderr, lastWords.text()) : undefined
    return { ending: diagnosis ?? ending, promise }
  }

  return {
    get isOver() {
      return isOver
    },
    get isPromising() {
      return scanner.isHanging
    },
    hear(fact) {
      if (fact.type === 'session') {
        sessionId = fact.id
        tell({ type: 'session', sessionId })
      }
      if (fact.type === 'usage' && fact.isRough === true) {
        tell({ type: 'usage', ...fact.figures, source: 'stream' })
      } else if (fact.type === 'usage') {
        usage = fact.isStep === true ? added(usage, fact.figures) : fact.figures
        tell({ type: 'usage', ...usage })
      }
      if (fact.type === 'model') model = fact.model
      if (fact.type === 'warning') tell({ type: 'warning', message: fact.message })
      const isLateError = isOver && mayFail && fact.type === 'failed'
      if ((isOver && !isLateError) || wasEnded()) return
      if (fact.type === 'text') hearText(fact.text, fact.isPartial === true, fact.missed ?? 0)
      if (fact.type === 'promised') {
        endMessage()
        scanner.told(fact.promise)
      }
      if (fact.type === 'tool') {
        endMessage()
        words.flush()
        tell({ type: 'tool', name: fact.name, input: fact.input })
      }
      if (fact.type === 'text' || fact.type === 'tool') {
        hasWorked = true
        retrying = undefined
        halted = undefined
      }
      if (fact.type === 'resets') resetsAtMs = fact.atMs
      if (fact.type === 'retry') retrying = fact
      if (fact.type === 'halted') halted = fact.ending
      if (fact.type === 'failed') failed = fact
      if (fact.type === 'turn_over') mayFail = fact.mayFail === true
      if (fact.type === 'failed' || fact.type === 'turn_over') isOver = true
    },
    end(end, stderr, nowMs) {
      endMessage()
      words.flush()
      const { ending, promise } = judge(end, stderr)
      if (promise.kind === 'complete' && scanner.contradiction !== '')
        tell({
          type: 'warning',
          message: `The agent said COMPLETE, and after it <promise>${scanner.contradiction.slice(0, 200)}</promise>, which is no promise as it stands: COMPLETE counts. Look at its work before you use it.`,
        })
      const isWaiting = ending === 'limit' || ending === 'overloaded' || ending === 'offline'
      const isCutOff = kind.speaks === 'lines' && ending === 'crash'
      const complaint = stderr.trim() || (isCutOff ? 'it ended in the middle of its turn' : '')
      const unpaid = ending === 'auth' && isUnpaid(failed?.message ?? stderr)
      const refusal = retrying?.ending === ending && failed?.ending !== ending ? retrying.message : undefined
      const told = refusal ?? failed?.message ?? wordsOf(ending, lastWords.text(), complaint)
      if (ending === 'limit') resetsAtMs ??= resetTime(told, nowMs)
      return {
        ending,
        promise,
        ...(end.exitCode !== undefined && { exit_code: end.exitCode }),
        ...(end.signal !== undefined && { signal: end.signal }),
        ...(sessionId !== undefined && { session_id: sessionId }),
        last_words: withoutStamp(told),
        ...(isWaiting && resetsAtMs !== undefined && { resets_at_ms: resetsAtMs }),
        ...(usage !== undefined && { usage }),
        ...(model !== undefined && { model }),
        ...(unpaid && { unpaid: true as const }),
        survivors: end.survivors,
        ...(end.reached !== undefined && { reached: [...end.reached] }),
      }
    },
  }
}

const lastWordsLimit = 2000

const ofProvider: ReadonlySet<AgentEnding> = new Set(['limit', 'overloaded', 'offline', 'auth', 'model'])

/** What a crash said about itself is on stderr; what the assistant said before is in its log. */
function wordsOf(ending: AgentEnding, said: string, complained: string): string {
  const complaint = complained.slice(-lastWordsLimit)
  if (ofProvider.has(ending)) return complaint || said.trim()
  if (ending !== 'crash') return said.trim() || complaint
  // Without one the last line is the nearest to what went wrong.
  return complaint || (said.trim().split('\n').at(-1) ?? '')
}

/** Time that ran out while the agent waited for its provider is not the story's fault. */
function endingOfCause(
  cause: NonNullable<GroupEnd['cause']>,
  retrying: AgentEnding | undefined,
): AgentEnding {
  if (cause === 'timeout' || cause === 'idle') return retrying ?? cause
  return cause === 'budget' ? 'budget' : cause === 'stopped' ? 'stopped' : 'crash'
}

function added(sum: UsageFigures | undefined, step: UsageFigures): UsageFigures {
  if (sum === undefined) return step
  const cost =
    sum.cost_usd === undefined && step.cost_usd === undefined
      ? undefined
      : (sum.cost_usd ?? 0) + (step.cost_usd ?? 0)
  return {
    input_tokens: sum.input_tokens + step.input_tokens,
    output_tokens: sum.output_tokens + step.output_tokens,
    cache_read_tokens: sum.cache_read_tokens + step.cache_read_tokens,
    cache_creation_tokens: sum.cache_creation_tokens + step.cache_creation_tokens,
    ...(cost !== undefined && { cost_usd: cost }),
  }
}
