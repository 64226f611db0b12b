// Which tests a story has taken away: deleted or emptied is, moved, renamed, replaced or asked for is not.
import { describe, expect, test } from 'vitest'
import { ranNoTests } from '../../src/core/gate-failure.ts'
import { lostTests, withoutNamed } from '../../src/core/lost-tests.ts'

const real = "test('greets', () => { assert.equal(greet('Ann'), 'hello Ann'); assert.ok(greet('')) })\n"
const gone = (path: string, before = real) => ({ path, before, now: undefined })
const made = (path: string, now = real) => ({ path, before: undefined, now })

describe('lost tests', () => {
  test('one that was deleted, and one that was emptied', () => {
    expect(lostTests([gone('test/a.test.js')])).toEqual(['test/a.test.js'])
    expect(lostTests([{ path: 'test/a.test.js', before: real, now: '\n' }])).toEqual(['test/a.test.js'])
    expect(lostTests([gone('test/a.test.sh', 'grep -q hello out\n')])).toEqual(['test/a.test.sh'])
  })

  test('a test for show in its place does not make up for it', () => {
    const three = real.repeat(3)
    expect(lostTests([gone('test/a.test.js', three), made('test/b.test.js', "test('b', () => {})")])).toEqual(
      ['test/a.test.js'],
    )
  })

  test('moved, renamed, replaced, or put into another test: nothing is lost', () => {
    expect(lostTests([gone('test/a.test.js'), made('spec/a.spec.ts')])).toEqual([])
    expect(lostTests([gone('test/a.test.js'), made('test/b.test.js', real.replace('Ann', 'Bob'))])).toEqual(
      [],
    )
    const both = { path: 'test/b.test.js', before: real, now: real.repeat(2) }
    expect(lostTests([gone('test/a.test.js'), both])).toEqual([])
  })

  test('a helper, a sample, a snapshot and a document check nothing', () => {
    expect(
      lostTests([
        gone('test/data.json', '{}'),
        gone('spec/api.md', 'It should test and check.'),
        gone('test/a.test.js.snap', 'exports[`a`] = `b`'),
      ]),
    ).toEqual([])
  })

  test('what the plan names as to be removed was to go', () => {
    const paths = ['test/old.test.js', 'test/a.test.js']
    expect(withoutNamed(paths, ['Clean up', 'Remove `test/old.test.js`'])).toEqual(['test/a.test.js'])
    expect(withoutNamed(paths, ['Make test/a.test.js pass'])).toEqual(paths)
  })
})

test.each([
  ['node:test', '# tests 0\n# suites 0\n# pass 0\n# fail 0\n', true],
  ['node:test', 'ℹ tests 2\nℹ pass 2\nℹ fail 0\n', false],
  ['TAP', 'TAP version 13\n1..0\n', true],
  ['vitest', 'No test files found, exiting with code 0\n', true],
  ['vitest', ' Test Files  1 skipped (1)\n      Tests  2 skipped (2)\n', true],
  ['vitest', ' Test Files  1 passed (1)\n      Tests  2 passed (2)\n', false],
  ['jest', 'No tests found, exiting with code 0\n', true],
  ['jest', 'Tests:       1 skipped, 3 passed, 4 total\n', false],
  ['pytest', '============ no tests ran in 0.01s ============\n', true],
  ['pytest', '====== 3 passed, 1 skipped in 0.12s ======\n', false],
  ['unittest', 'Ran 0 tests in 0.000s\n\nOK\n', true],
  ['cargo', 'running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n', true],
  ['cargo', 'test result: ok. 4 passed; 0 failed\ntest result: ok. 0 passed; 0 failed\n', false],
  ['go', '?   \texample.com/a\t[no test files]\n', true],
  ['go', 'ok  \texample.com/a\t0.010s [no tests to run]\n', true],
  ['go', 'ok  \texample.com/a\t(cached)\n?   \texample.com/b\t[no test files]\n', false],
  ['go', 'ok  \texample.com/a\t0.003s\n', false],
  ['another program', 'all good\n', false],
])('%s: whether it says that it ran no test (%j)', (_program, output, none) => {
  expect(ranNoTests(output)).toBe(none)
})
