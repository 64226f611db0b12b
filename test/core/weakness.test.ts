// What makes a "done" worth less, as a headline says it and as it is taken back.
import { describe, expect, test } from 'vitest'
import type { Verdict } from '../../src/core/event.ts'
import { afterGate, doubtIn, doubtsOf, isOfGate, weakWord } from '../../src/core/weakness.ts'
import { iteration } from '../ui/events.ts'

test.each([
  ['#1 changed what a gate runs: package.json: test (gate `npm test`)', '#1 changed what npm test runs'],
  ['#2 changed what a gate runs: a.sh (gate `sh $& a.sh`), b (gate `b`)', '#2 changed what b runs'],
  ['#3 changed what a gate runs: check.sh', '#3 changed what a gate runs'],
  ['#1 deleted or emptied 2 tests: a, b. Look: ralph diff 1 demo', '#1 deleted or emptied 2 tests'],
  ['the gate passed and ran 0 tests: A="b: c" npm test', 'A="b: c" npm test ran 0 tests'],
])('the headline of "%s" is "%s"', (words, headline) => {
  expect(weakWord(words)).toBe(headline)
})

test('a gate that runs tests again takes back what was said of it, and of no other', () => {
  const idle = afterGate(afterGate(['#1 changed'], 'a', true), 'b', true)
  expect(idle.filter(isOfGate)).toHaveLength(2)
  expect(afterGate(idle, 'a', true)).toBe(idle)
  expect(afterGate(idle, 'a', undefined)).toEqual(['#1 changed', 'the gate passed and ran 0 tests: b'])
})

const nothing = "no file was changed: the agent's word only"

describe('a story of which no file tells', () => {
  const plan = (...ids: string[]) =>
    ids.map((id) => ({ id, title: id, status: 'done' as const, tasks_done: 1, tasks_total: 1 }))
  const tried = (id: string, verdict: Verdict, unchanged?: true) =>
    iteration({ story_id: id, verdict, ...(unchanged && { unchanged }) })
  const idle = tried('1', 'complete', true)

  test.each([
    ['is all that there is', plan('1'), [idle], [nothing], nothing],
    [
      'stands beside one that was done before',
      plan('0', '1'),
      [idle],
      ["story 1 changed no file: the agent's word only"],
      undefined,
    ],
    [
      'stands beside one that changed files',
      plan('1', '2'),
      [idle, tried('2', 'complete')],
      ["story 1 changed no file: the agent's word only"],
      undefined,
    ],
    ['had changed some in an earlier attempt', plan('1'), [tried('1', 'partial'), idle], [], undefined],
    [
      "is its user's to judge (B16)",
      plan('manual'),
      [tried('manual', 'complete', true)],
      ['no attempt changed a file'],
      undefined,
    ],
  ])('%s', (_, stories, iterations, told, headline) => {
    const doubts = doubtsOf({ stories, iterations, settings: undefined, weakened: [] })
    expect([doubts, doubtIn(doubts)]).toEqual([told, headline])
  })
})
