// Gates that cannot fail, told by their words.
import { describe, expect, it } from 'vitest'
import { blindGates, whyBlind } from '../../src/core/blind-gate.ts'

describe('a gate that cannot fail', () => {
  it.each([
    ['#npm test', 'nothing but a comment'],
    ['# first\n  # second', 'nothing but a comment'],
    ['npm test &', 'ends with &'],
    ['npm run lint && npm test > log 2>&1 &', 'ends with &'],
    ['npm test | tee log', '`tee` is content with everything'],
    ['npm run lint; npm test 2>&1 | tail -20', '`tail` is content'],
    ['npm test |& tee log', '`tee` is content'],
    ['npm test | tee "a (1).log" # for later', '`tee` is content'],
    ['npm test || true', 'ends with `true`'],
    ['npm test; exit 0', 'ends with `exit 0`'],
  ])('F15: %s', (gate, why) => {
    expect(whyBlind(gate)).toContain(why)
    expect(blindGates(['npm test', gate])).toEqual([
      expect.stringContaining(`the gate \`${gate}\` cannot fail`),
    ])
  })
})

describe('a gate that can', () => {
  it.each([
    ['npm test'],
    ['true'],
    ['npm test 2>&1'],
    ['npm test && echo fine'],
    ['npm test | grep -q "0 failed"'],
    ["bash -c 'set -o pipefail; npm test | tee log'"],
    ['set -o pipefail; npm test | tee log'],
    ['(npm test; echo $? > code) | tee log; exit $(cat code)'],
    ['grep -q "a | tee" src/a.ts'],
    ['test "$(grep -c x a | tail -1)" = 3'],
    ['npm test | tee log && grep -q passed log'],
    ['node check.js # | tee log'],
    ['npm test -- --grep=#1 && true'],
    ['sleep 1 & npm test'],
  ])('F15: %s', (gate) => {
    expect(blindGates([gate])).toEqual([])
  })
})
