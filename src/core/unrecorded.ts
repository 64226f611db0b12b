// An open iteration whose record could not be made: its number is used and its tokens are spent all the same.
import type { IterationRecord } from './event.ts'
import type { Current } from './state.ts'

const nothing = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_creation_tokens: 0 }

export function unrecorded(current: Current, time: string, why: string): IterationRecord {
  const used = current.ended?.usage ?? current.usage ?? nothing
  return {
    n: current.n,
    started: current.started,
    ended: time < current.started ? current.started : time,
    done_check: false,
    commits: [...(current.kept?.commits ?? [])],
    tokens_used: used.input_tokens + used.output_tokens,
    story_id: current.storyId,
    attempt: current.attempt,
    verdict: 'error',
    reason: why,
    ...(current.kept !== undefined && { attempt_ref: current.kept.ref }),
    ...used,
    agent: current.agent,
    log_file: current.logFile,
    duration_ms: current.ended?.duration_ms ?? 0,
  }
}
