import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/clock.ts'

describe('clock', () => {
  test('stamps are local ISO 8601 with a numeric offset and whole seconds, and mean the same moment', () => {
    const stamp = systemClock.stamp(1_770_642_202_345)
    expect(stamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$/)
    expect(Date.parse(stamp)).toBe(1_770_642_202_000)
  })

  test.each([1e17, 1e300, -1e17, -5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    'R8: a stamp of %d is a stamp all the same, never an exception',
    (ms) => expect(systemClock.stamp(ms)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$/),
  )

  test('until resolves at once for the past and when the signal aborts', async () => {
    await systemClock.until(0, new AbortController().signal)
    const stop = new AbortController()
    const waiting = systemClock.until(Date.now() + 3_600_000, stop.signal)
    stop.abort()
    await waiting
    await systemClock.until(Date.now() + 30, new AbortController().signal)
  })
})
