// "Did you mean".
import { expect, test } from 'vitest'
import { nearest } from '../../src/core/nearest.ts'

test.each([
  ['add-exprot', 'add-export'],
  ['ADD-EXPORT', 'add-export'],
  ['add-exp', 'add-export'],
  ['lop', 'loop'],
  ['xyzzy', undefined],
  ['', undefined],
  ['pop', undefined],
])('for %j it names %j', (word, expected) => {
  expect(nearest(word, ['fix-login', 'add-export', 'loop'])).toBe(expected)
})
