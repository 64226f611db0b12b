// What an ending is called: the reason that users read.
import { expect, test } from 'vitest'
import { judge } from '../../src/core/verdict.ts'
import type { AgentEnded } from '../../src/core/event.ts'

test("a provider's limit is told in its words, without the exit code that its program happened to have; a crash keeps it", () => {
  const ended: AgentEnded = {
    ending: 'limit',
    exit_code: 1,
    promise: { kind: 'none' },
    last_words: "You've hit your limit",
    survivors: [],
  }
  const reasonOf = (more: Partial<AgentEnded>): string =>
    judge({ ...ended, ...more }, undefined, { iteration_timeout_min: 45, idle_timeout_min: 10 }).reason
  expect(reasonOf({})).toBe("usage limit reached: You've hit your limit")
  expect(reasonOf({ last_words: '' })).toBe('usage limit reached (exit code 1)')
  expect(reasonOf({ unpaid: true })).toContain(' (exit code 1): ')
  expect(reasonOf({ ending: 'crash' })).toContain('the agent crashed (exit code 1)')
})
