// The failing test's own line, found in what test programs really print.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  failureLine,
  failureSentence,
  findFailure,
  lastLines,
  shortFailure,
  tellingLines,
} from '../../src/core/gate-failure.ts'

const outputOf = (name: string): string =>
  readFileSync(new URL(`../fixtures/gates/${name}.txt`, import.meta.url), 'utf8')

describe('F25: a failed gate says which test failed, and why', () => {
  test.each([
    ['node-tap', 'greets in Hungarian: expected szia, got hello (/home/me/app/test/greet.test.js:5:3)'],
    [
      'node-spec',
      "greets in Hungarian: Expected values to be strictly equal: + actual - expected + 'hello' - 'szia' (test/greet.test.js:5:3)",
    ],
    [
      'vitest',
      "greet.test.ts > greet > greets in Hungarian: expected 'hello' to be 'szia' (greet.test.ts:4:53)",
    ],
    ['jest', 'greet › greets in Hungarian: Expected: "szia" Received: "hello" (test/greet.test.js:6:25)'],
    ['pytest', "test_greet.py::test_hungarian: assert 'hello' == 'szia' (test_greet.py:3)"],
    [
      'cargo',
      'tests::hungarian: assertion `left == right` failed left: "hello" right: "szia" (src/lib.rs:8:22)',
    ],
    ['go', 'TestGreet/hungarian: got "hello", want "szia" (greet_test.go:16)'],
    ['go-verbose', 'TestGreet: got "hello", want "szia" (greet_test.go:16)'],
    ['go-testify', 'TestGreet: Not equal: expected: "szia" actual : "hello" (greet_test.go:12)'],
    [
      'go-panic',
      'TestGreet: panic: runtime error: index out of range [3] with length 2 [recovered] (/home/me/app/greet_test.go:8)',
    ],
    ['go-build', './greet.go:5:9: undefined: missing'],
    [
      'pytest-collect',
      "tests/test_greet.py: ModuleNotFoundError: No module named 'app' (tests/test_greet.py:1)",
    ],
    ['unittest', "AssertionError: 'hello' != 'szia'"],
    [
      'vitest-project',
      "test/greet.test.ts > greets in Hungarian: expected 'hello' to be 'szia' (test/greet.test.ts:14:23)",
    ],
    [
      'nextest',
      'tests::hungarian: assertion `left == right` failed left: "hello" right: "szia" (src/lib.rs:14:9)',
    ],
    ['tape', 'greets in Hungarian: expected szia, got hello (/home/me/app/test.js:7:5)'],
  ])('%s', (name, sentence) => {
    const found = findFailure(outputOf(name))
    expect(found && failureSentence(found)).toBe(sentence)
    expect(shortFailure(outputOf(name))).toBe(sentence)
  })

  test.each([
    [
      "src/a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.\n",
      "src/a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.",
    ],
    [
      'error[E0425]: cannot find value `x` in this scope\n --> src/lib.rs:3:5\n  |\n',
      'error[E0425]: cannot find value `x` in this scope (src/lib.rs:3:5)',
    ],
    ['a.c:3:5: error: expected expression\n1 error generated.\n', 'a.c:3:5: error: expected expression'],
    [
      '\n/repo/a.js\n  3:1  error  Unexpected var  no-var\n\n✖ 1 problem (1 error, 0 warnings)\n',
      '3:1 error Unexpected var no-var',
    ],
    [
      `not ok 1 - greets\n  ---\n  location: '/a/t.js:2:1'\n  error: "'hi' == 'hello'"\n  ...\n`,
      "greets: 'hi' == 'hello' (/a/t.js:2:1)",
    ],
    [
      "# file:///a/src/greet.js:2\n# x\n# ^\n# ReferenceError: x is not defined\n#     at file:///a/src/greet.js:2:1\n# Subtest: /a/t.js\nnot ok 1 - /a/t.js\n  ---\n  location: '/a/t.js:1:1'\n  error: 'test failed'\n  ...\n",
      'ReferenceError: x is not defined (/a/src/greet.js:2)',
    ],
    [
      'FAILED t/test_a.py::test_x[a b] - assert 1 == 2\nERROR something else\n',
      't/test_a.py::test_x[a b]: assert 1 == 2',
    ],
    ['ok 1 - a\nnot ok 2 - later # TODO\nnot ok 3 - login\n', 'login'],
    ['it is all wrong\nnpm error Lifecycle script `test` failed with error:\n', 'it is all wrong'],
    ['Downloading 10%\rDownloading 100%\n', 'Downloading 100%'],
    ['\n\n', ''],
  ])('%j is about %j', (output, line) => {
    expect(shortFailure(output)).toBe(line)
  })

  test.each([
    ['node-tap', 'not ok 1 - greets in Hungarian'],
    ['node-spec', '✖ greets in Hungarian'],
    ['vitest-project', ' FAIL  |unit| test/greet.test.ts > greets in Hungarian'],
    ['jest', '● greet › greets in Hungarian'],
    ['pytest', '_ test_hungarian _'],
    ['cargo', "thread 'tests::hungarian'"],
    ['go', '--- FAIL: TestGreet/hungarian'],
    ['go-build', './greet.go:5:9: undefined: missing'],
    ['unittest', "AssertionError: 'hello' != 'szia'"],
  ])('%s: the line where that stands', (name, part) => {
    const output = outputOf(name)
    const at = failureLine(output) ?? -1
    expect(output.split('\n')[at]).toContain(part)
    // The last of its kind: what lists the results before is not where it is told.
    if (name === 'node-spec') expect(output.split('\n').findLastIndex((line) => line.includes(part))).toBe(at)
  })

  test('no line is longer than a screen can take, whatever a gate prints', () => {
    expect(shortFailure(`Error: ${'x'.repeat(5000)}`).length).toBeLessThanOrEqual(300)
  })

  test('the last lines are without colours, blanks and the package manager', () => {
    const output = 'one\n\u001B[31mtwo\u001B[39m\n\nnpm ERR! code 1\nnpm error path /repo\n'
    expect(lastLines(output, 10)).toEqual(['one', 'two'])
  })

  test('B3: where npm’s own words are all there is, the last three of them are shown', () => {
    const output = [
      'npm error code ENOENT',
      'npm error errno -2',
      'npm error enoent Could not read package.json: Error: ENOENT: no such file',
      'npm error enoent This is related to npm not being able to find a file.',
      'npm error enoent',
      'npm error A complete log of this run can be found in: /x.log',
    ].join('\n')
    expect(lastLines(output, 10)).toEqual([
      'errno -2',
      'enoent Could not read package.json: Error: ENOENT: no such file',
      'enoent This is related to npm not being able to find a file.',
    ])
    expect(shortFailure(output)).toContain('Could not read package.json')
  })
})

describe('a gate in which several tests fail names the others, too', () => {
  const vitest = ` FAIL  test/greet.test.ts > greets by name
AssertionError: expected 'hi' to be 'hello'

 ❯ test/greet.test.ts:9:21

 FAIL  test/greet.test.ts > greets in Hungarian
AssertionError: expected 'hi' to be 'szia'
`
  const pytest = `E       AssertionError: assert 'hi' == 'hello'
FAILED tests/test_greet.py::test_name - AssertionError: assert 'hi' == ...
FAILED tests/test_greet.py::test_hungarian - AssertionError: assert 'hi...
`
  const tap = `# Subtest: greet
    not ok 1 - by name
      ---
      error: "'hi' == 'hello'"
      ...
    not ok 2 - in Hungarian
      ---
      error: "'hi' == 'szia'"
      ...
not ok 1 - greet
  ---
  failureType: 'subtestsFailed'
  error: '2 subtests failed'
  ...
`
  const spec = `✖ failing tests:

test at a.test.js:2:1
✖ by name (1.2ms)
  AssertionError [ERR_ASSERTION]: 'hi' == 'hello'

test at a.test.js:3:1
✖ in Hungarian (0.4ms)
  AssertionError [ERR_ASSERTION]: 'hi' == 'szia'
`
  const jest = `FAIL test/greet.test.js
  ● greet › by name

    Expected: "hello"

  ● greet › in Hungarian

    Expected: "szia"

Summary of all failing tests
  ● greet › by name

    Expected: "hello"
`
  const go = `--- FAIL: TestGreet (0.00s)
    --- FAIL: TestGreet/name (0.00s)
        greet_test.go:16: got "hi"
    --- FAIL: TestGreet/hungarian (0.00s)
        greet_test.go:16: got "hi"
`
  const cargo = `test tests::name ... FAILED
test tests::hungarian ... FAILED

---- tests::name stdout ----
thread 'tests::name' panicked at src/lib.rs:8:22:
left is not right
`
  test.each([
    ['vitest', vitest, 'test/greet.test.ts > greets in Hungarian'],
    ['pytest', pytest, 'tests/test_greet.py::test_hungarian'],
    ['tap', tap, 'in Hungarian'],
    ['node', spec, 'in Hungarian'],
    ['jest', jest, 'greet › in Hungarian'],
    ['go', go, 'TestGreet/hungarian'],
    ['cargo', cargo, 'tests::hungarian'],
  ])('%s', (_, output, other) => {
    expect(findFailure(output)?.also).toEqual({ total: 1, first: [other] })
    expect(shortFailure(output)).toMatch(/; 1 more test fails$/)
    expect(tellingLines({ output_tail: output }, 10).lines.at(-1)).toBe(`1 more test fails: ${other}`)
  })

  test('of many the first are named, and all are counted', () => {
    const output = Array.from({ length: 60 }, (__, n) => `FAILED t.py::test_${n} - assert 0`).join('\n')
    expect(tellingLines({ output_tail: output }, 10).lines.at(-1)).toBe(
      '59 more tests fail: t.py::test_1, t.py::test_2, t.py::test_3 …',
    )
  })
})
