// A run to report on: three stories, every kind of verdict, a wait, an estimate and an unpriced iteration.
import type { IterationRecord, Verdict } from '../../src/core/event.ts'
import type { RunHistory } from '../../src/core/report.ts'

export function iteration(
  n: number,
  storyId: string,
  attempt: number,
  verdict: Verdict,
  minutes: readonly [from: number, to: number],
  tokens: number,
  rest: Partial<IterationRecord> = {},
): IterationRecord {
  const stamp = (minute: number): string =>
    `2026-02-09T${String(14 + Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}:00+01:00`
  return {
    n,
    started: stamp(minutes[0]),
    ended: stamp(minutes[1]),
    done_check: verdict === 'complete',
    commits: verdict === 'complete' ? ['a'.repeat(40)] : [],
    tokens_used: tokens,
    story_id: storyId,
    attempt,
    verdict,
    reason: '',
    input_tokens: Math.floor(tokens * 0.9),
    output_tokens: tokens - Math.floor(tokens * 0.9),
    cache_read_tokens: tokens * 10,
    cache_creation_tokens: 0,
    agent: 'claude',
    log_file: `${String(n)}.log`,
    duration_ms: (minutes[1] - minutes[0]) * 60_000,
    ...rest,
  }
}

export const history: RunHistory = {
  change_id: 'add-login',
  status: 'stuck',
  reason: 'story 3 used up its 2 attempts',
  stories: [
    { id: '1', title: 'Store sessions in the database', status: 'done', tasks_done: 4, tasks_total: 4 },
    {
      id: '2',
      title: 'Login page with <form> & "remember me" for every user',
      status: 'done',
      tasks_done: 3,
      tasks_total: 3,
    },
    { id: '3', title: 'Throttle', status: 'open', tasks_done: 0, tasks_total: 2 },
    { id: '4', title: 'Docs', status: 'open', tasks_done: 0, tasks_total: 1 },
  ],
  iterations: [
    iteration(1, '1', 1, 'complete', [0, 9], 42_000, { cost_usd: 0.61 }),
    iteration(2, '2', 1, 'gate_failed', [9, 15], 31_000, {
      cost_usd: 0.4,
      reason: 'npm test\n  1 failing: <script>alert(1)</script> | "quotes"\n  expected 200, got 500',
    }),
    iteration(3, '2', 2, 'limit', [15, 16], 0, { reason: 'usage limit reached' }),
    iteration(4, '2', 2, 'none', [40, 44], 12_000, { tokens_estimated: true, reason: 'no promise' }),
    iteration(5, '2', 3, 'complete', [44, 53], 38_000, { cost_usd: 0.55 }),
    iteration(6, '3', 1, 'failed', [53, 58], 20_000, { cost_usd: 0.3, reason: 'The store has no clock' }),
    iteration(7, '3', 2, 'timeout', [58, 103], 57_000, {
      cost_usd: 0.9,
      timed_out: true,
      reason: 'timed out after 45 min',
    }),
    iteration(8, '3', 2, 'interrupted', [103, 104], 500, { cost_usd: 0.004, reason: 'stopped by SIGINT' }),
  ],
}
