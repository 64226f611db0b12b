// When a limit ends, from the words of real providers (R8).
import { afterEach, describe, expect, it } from 'vitest'
import { endingOfError, endingOfStatus } from '../../../src/adapters/agents/failure.ts'
import { resetTime } from '../../../src/adapters/agents/reset-time.ts'

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
