// The last words of `ralph demo --parallel`: only what is there to be seen.
import { expect, test } from 'vitest'
import type { QueueReport } from '../../src/ui/app.ts'
import { landedSteps } from '../../src/ui/cli/demo.ts'

const entry = (change: string, state: 'landed' | 'parked'): QueueReport['entries'][number] => ({
  change,
  target: 'main',
  state,
  why: '',
  after: [],
  stories_done: 1,
  stories_total: 1,
  cost_usd: 0,
  branch: `ralph/${change}`,
  candidate: '',
  landed: '',
  attempt: 0,
  started_at: '',
  worked_ms: 0,
  warnings: [],
})

test('U11: the commits are shown where they landed, and a parked change is named with the command that says why', () => {
  const end = (take: { take?: string }, ...entries: QueueReport['entries']): readonly string[] =>
    landedSteps({ target: 'main', entries, ...take }, 'ralph').map(([command]) => command)
  expect(end({}, entry('a', 'landed'))).toEqual(['git log --stat'])
  expect(end({ take: 'ralph queue pull' }, entry('a', 'landed'), entry('b', 'parked'))).toEqual([
    'git log --stat refs/ralph-landed/main',
    'ralph why b',
  ])
  expect(end({}, entry('b', 'parked'))).toEqual(['ralph why b'])
})
