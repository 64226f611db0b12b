// When a limit ends, from the words of real providers (R8).
import { afterEach, describe, expect, it } from 'vitest'
import { endingOfError, endingOfStatus, isUnpaid } from '../../../src/adapters/agents/failure.ts'
import { resetStamp, resetTime } from '../../../src/adapters/agents/reset-time.ts'

const zone = process.env['TZ']
afterEach(() => {
  if (zone === undefined) delete process.env['TZ']
  else process.env['TZ'] = zone
})

describe('R8: reset times', () => {
  const rows: [string, string, string, string, string | undefined][] = [
    [
      'Codex, the same day',
      'Europe/Berlin',
      '2026-11-15T20:00:00+01:00',
      'You’ve hit your usage limit. … or try again at 9:54 PM.',
      '2026-11-15T21:55:00+01:00',
    ],
    [
      'Codex, across midnight',
      'Europe/Berlin',
      '2026-11-15T23:50:00+01:00',
      'try again at 12:10 AM.',
      '2026-11-16T00:11:00+01:00',
    ],
    [
      'Codex, with a date',
      'America/New_York',
      '2026-11-15T12:00:00-05:00',
      'try again at Nov 20th, 2026 9:54 PM.',
      '2026-11-20T21:55:00-05:00',
    ],
    [
      'Claude, an hour in UTC',
      'Asia/Tokyo',
      '2026-11-15T18:30:00Z',
      "You've hit your limit · resets 10pm (UTC)",
      '2026-11-15T22:01:00Z',
    ],
    [
      'Claude, another zone, across midnight',
      'UTC',
      '2026-11-15T23:30:00Z',
      'resets 1am (Europe/Berlin)',
      '2026-11-16T00:01:00Z',
    ],
    [
      'Claude, a zone far ahead',
      'UTC',
      '2026-11-15T12:00:00Z',
      'resets 2:15am (Pacific/Auckland)',
      '2026-11-15T13:16:00Z',
    ],
    [
      'across the end of daylight saving',
      'UTC',
      '2026-10-24T22:30:00Z',
      'resets 4am (Europe/Berlin)',
      '2026-10-25T03:01:00Z',
    ],
    ['noon and midnight', 'UTC', '2026-11-15T10:00:00Z', 'resets 12pm (UTC)', '2026-11-15T12:01:00Z'],
    [
      'a time that has just passed is nearly now',
      'UTC',
      '2026-11-15T22:03:00Z',
      'resets 10pm (UTC)',
      '2026-11-15T22:04:00Z',
    ],
    [
      'a span',
      'UTC',
      '2026-11-15T10:00:00Z',
      'Please try again in 2 hours 5 minutes',
      '2026-11-15T12:05:00Z',
    ],
    [
      'a span in seconds',
      'UTC',
      '2026-11-15T10:00:00Z',
      'Please retry in 31.5s.',
      '2026-11-15T10:00:31.500Z',
    ],
    [
      'an unknown zone is ours',
      'UTC',
      '2026-11-15T10:00:00Z',
      'resets 1pm (Mars/Olympus)',
      '2026-11-15T13:01:00Z',
    ],
    [
      'Claude, a date in another zone',
      'UTC',
      '2026-11-15T10:00:00Z',
      "You've hit your weekly limit · resets Nov 18, 3pm (Europe/Berlin)",
      '2026-11-18T14:01:00Z',
    ],
    [
      'Claude, a date with minutes, in our zone',
      'America/New_York',
      '2026-11-15T10:00:00-05:00',
      'resets Nov 18 at 3:30pm',
      '2026-11-18T15:31:00-05:00',
    ],
    [
      'a date whose hour comes sooner today',
      'UTC',
      '2026-11-15T10:00:00Z',
      'Your limit will reset at Nov 17, 11am (UTC)',
      '2026-11-17T11:01:00Z',
    ],
    [
      'a date of the next year',
      'UTC',
      '2026-12-30T10:00:00Z',
      'resets Jan 2, 9am (UTC)',
      '2027-01-02T09:01:00Z',
    ],
    [
      'a date of the next year that has begun in the zone',
      'UTC',
      '2026-12-31T12:00:00Z',
      'resets Jan 1, 3am (Pacific/Auckland)',
      '2026-12-31T14:01:00Z',
    ],
    [
      'a date of the year that has just ended is nearly now',
      'UTC',
      '2027-01-01T00:02:00Z',
      'resets Dec 31, 11:59pm (UTC)',
      '2027-01-01T00:03:00Z',
    ],
    [
      'a date after the end of daylight saving',
      'UTC',
      '2026-10-23T10:00:00Z',
      'resets Oct 26, 9am (Europe/Berlin)',
      '2026-10-26T08:01:00Z',
    ],
    [
      'a date with its year and a zone',
      'UTC',
      '2026-11-15T10:00:00Z',
      'try again at November 20, 2026, 9:54 PM (America/New_York)',
      '2026-11-21T02:55:00Z',
    ],
    [
      'Claude 2.1.325, with a year',
      'Asia/Tokyo',
      '2099-12-20T10:00:00Z',
      "You've hit your 5-hour limit · resets Jan 1, 2100, 12am (UTC)",
      '2100-01-01T00:01:00Z',
    ],
    [
      'the day before the month, 24 hours',
      'UTC',
      '2026-11-15T10:00:00Z',
      'resets 18 Nov 15:00 (Europe/Berlin)',
      '2026-11-18T14:01:00Z',
    ],
    ['24 hours', 'UTC', '2026-11-15T10:00:00Z', 'resets 22:30 (UTC)', '2026-11-15T22:31:00Z'],
    [
      'will reset',
      'UTC',
      '2026-11-15T01:00:00Z',
      'Your limit will reset at 7pm (Asia/Tokyo).',
      '2026-11-15T10:01:00Z',
    ],
    [
      'Gemini, a span without spaces',
      'UTC',
      '2026-11-15T10:00:00Z',
      'Your quota will reset after 15h57m40s.',
      '2026-11-16T01:57:40Z',
    ],
    ['an hour alone', 'UTC', '2026-11-15T10:00:00Z', 'resets at 25', undefined],
    ['no such hour', 'UTC', '2026-11-15T10:00:00Z', 'resets at 25:00', undefined],
    ['no time', 'UTC', '2026-11-15T10:00:00Z', 'Request rejected (429)', undefined],
  ]
  it.each(rows)('%s', (_name, timeZone, now, text, until) => {
    process.env['TZ'] = timeZone
    const found = resetTime(text, Date.parse(now))
    expect(found === undefined ? undefined : new Date(found).toISOString()).toBe(
      until === undefined ? undefined : new Date(until).toISOString(),
    )
  })
})

describe('R16: no credit is neither a limit to wait for nor a login that is gone', () => {
  it.each([
    'Your credit balance is too low to access the Anthropic API.',
    'Credit balance is too low',
    'unexpected status 429 Too Many Requests: {"error":{"code":"insufficient_quota"}}',
    'Quota exceeded. Check your plan and billing details.',
    'You exceeded your current quota, please check your plan and billing details.',
    'unexpected status 429: Billing hard limit has been reached',
    'Your account is not active, please check your billing details on our website.',
    'status 402 Payment Required',
    'billing_error (HTTP 402)',
    'This request requires more credits: insufficient credits',
  ])('%s', (message) => {
    expect(isUnpaid(message)).toBe(true)
    expect(endingOfError(message)).toBe('auth')
  })

  it.each([
    [
      'You exceeded your current quota, please check your plan and billing details. Please retry in 31.5s.',
      'limit',
    ],
    ['You’ve hit your usage limit. … to purchase more credits or try again at 9:54 PM.', 'limit'],
    ['unexpected status 429 Too Many Requests', 'limit'],
    ['unexpected status 401 Unauthorized: Incorrect API key', 'auth'],
    ['insufficient permissions', 'auth'],
  ])('but not: %s', (message, ending) => {
    expect(isUnpaid(message)).toBe(false)
    expect(endingOfError(message)).toBe(ending)
  })
})

describe('R8: reset times that no provider can mean', () => {
  const nowMs = Date.parse('2026-11-15T12:00:00Z')

  it('seconds and milliseconds are told apart', () => {
    expect(resetStamp(nowMs / 1000 + 60, nowMs)).toBe(nowMs + 60_000)
    expect(resetStamp(nowMs + 60_000, nowMs)).toBe(nowMs + 60_000)
  })

  it.each([
    ['wild', 99_999_999_999_999],
    ['beyond every date', 1e300],
    ['not a number', Number.NaN],
    ['infinite', Number.POSITIVE_INFINITY],
    ['negative', -5],
    ['none', 0],
    ['past', nowMs / 1000 - 100],
    ['in 33 days', nowMs / 1000 + 33 * 86_400],
  ])('a stamp that is %s says nothing', (_name, stamp) => expect(resetStamp(stamp, nowMs)).toBeUndefined())

  it.each([
    'try again in 99999999999 days',
    `try again in ${'9'.repeat(400)} hours`,
    'try again at Nov 20th, 9999 9:54 PM.',
    'try again at Nov 10th, 1970 9:54 PM.',
  ])('%s', (text) => {
    const said = resetTime(text, nowMs) ?? nowMs + 1
    expect(said).toBeGreaterThan(nowMs)
    expect(said).toBeLessThan(nowMs + 33 * 86_400_000)
  })
})

describe('failures', () => {
  it.each([
    [401, 'auth'],
    [403, 'auth'],
    [402, 'auth'],
    [404, 'model'],
    [429, 'limit'],
    [500, 'overloaded'],
    [529, 'overloaded'],
    [400, 'crash'],
  ])('HTTP %i is %s', (status, ending) => expect(endingOfStatus(status)).toBe(ending))

  it.each([
    ['You’ve hit your usage limit.', 'limit'],
    ['unexpected status 401 Unauthorized: Incorrect API key', 'auth'],
    ['unexpected status 404 Not Found', 'model'],
    ['The model `x` does not exist or you do not have access to it.', 'model'],
    ['unexpected status 503 Service Unavailable', 'overloaded'],
    ['Selected model is at capacity. Please try a different model.', 'overloaded'],
    ['Reconnecting... waiting for network (Connection failed: error sending request)', 'offline'],
    ['getaddrinfo ENOTFOUND api.example.com', 'offline'],
    ['Quota exceeded for quota metric', 'limit'],
    ['Your credit balance is too low', 'auth'],
    ['segmentation fault', 'crash'],
  ])('%s is %s', (message, ending) => expect(endingOfError(message)).toBe(ending))
})
