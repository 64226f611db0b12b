// What gets a run further that has ended: the option that was used up, with a value that is enough.
import { expect, it } from 'vitest'
import { overtimeWords } from '../../src/core/gate-failure.ts'
import { onward, onwardHint } from '../../src/core/onward.ts'
import { started } from '../ui/events.ts'

const { settings } = started
const ended = {
  change: 'demo',
  reason: '',
  settings: { ...settings, done_criteria: 'tasks', checkpoint: 'branch', on_complete: 'keep' },
  isMerge: false,
  isGateRed: false,
  attempts: 3,
  isUnpriced: false,
} as const

it.each([
  ['iterations', 'complete', '', '--max-iterations 6', 'continue'],
  ['retries', 'failed', 'no', '--feedback "…"', 'try again'],
  ['stall', 'none', '', '--feedback "…"', 'try again'],
  ['retries', 'crash', '', '', 'try again'],
  ['retries', 'idle', '', '--idle-timeout 20m', 'try again'],
  ['stall', 'timeout', '', '--iteration-timeout 90m', 'try again'],
  ['retries', 'gate_failed', `make failed: ${overtimeWords(3000)}`, '--iteration-timeout 90m', 'try again'],
  ['retries', 'gate_failed', 'make failed (exit 1)', '--feedback "…"', 'try again'],
  ['hand', 'complete', '', '', 'try again'],
  ['signal', 'interrupted', '', '', 'continue'],
] as const)(
  'B6: ended by %s after an attempt that came to %s (%s): resume %s',
  (stopReason, verdict, reason, flag, label) => {
    const found = onward({ ...ended, stopReason, last: { verdict, reason } })
    expect([found.label, found.command]).toEqual([label, `ralph resume demo ${flag}`.trim()])
    expect(onwardHint(found)).toBe(`To ${label}, ${found.why}: ${found.command}`)
  },
)

it('B6: the time that a gate had is said in seconds where it was short', () => {
  expect(overtimeWords(3000)).toBe('ended by ralph after 3 s (--iteration-timeout)')
  expect(overtimeWords(90_000)).toBe('ended by ralph after 1.5 minutes (--iteration-timeout)')
})
