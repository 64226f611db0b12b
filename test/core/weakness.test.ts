// What makes a "done" worth less, as a headline says it and as it is taken back.
import { expect, test } from 'vitest'
import { afterGate, isOfGate, weakWord } from '../../src/core/weakness.ts'

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
