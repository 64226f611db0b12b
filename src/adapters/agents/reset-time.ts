// When a limit ends, from the words of a provider's error: "try again at 9:54 PM", "resets 10pm (UTC)", "try again in 3 hours", "|1795013191".
import { longestLimitMs } from '../../core/limits.ts'

/** Epoch ms of the next such moment after `nowMs`, or none if the text names no time. Without a zone it is the machine's own. */
export function resetTime(text: string, nowMs: number): number | undefined {
  const stamp = afterBar.exec(text)?.[1]
  if (stamp !== undefined) return resetStamp(Number(stamp), nowMs)
  return believable(inSpan(text, nowMs) ?? onDate(text, nowMs) ?? atClock(text, nowMs), nowMs)
}

/** As people read it: "Claude AI usage limit reached|1795013191" is meant for programs. */
export function withoutStamp(text: string): string {
  return text.replace(afterBar, '')
}
const afterBar = /\|(\d{10,13})\b/

/** From a field that holds epoch seconds, or milliseconds where somebody took them for those. */
export function resetStamp(stamp: number, nowMs: number): number | undefined {
  return believable(stamp > mostSeconds ? stamp : stamp * 1000, nowMs)
}

/** Ahead of us, and no further than a month: anything else is a mistake, of a clock or of a provider. */
function believable(ms: number | undefined, nowMs: number): number | undefined {
  return ms !== undefined && ms > nowMs && ms <= nowMs + longestLimitMs ? ms : undefined
}
/** The year 5138; as milliseconds 1973. */
const mostSeconds = 100_000_000_000

function inSpan(text: string, nowMs: number): number | undefined {
  const span =
    /(?:try again|retry|resets?|available)(?: again)? (?:in|after) ((?:\d+(?:\.\d+)?\s*(?:days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])[\s,]*(?:and )?)+)/i.exec(
      text,
    )?.[1]
  if (span === undefined) return undefined
  const unitMs: Record<string, number> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 }
  let ms = 0
  for (const [, count, unit] of span.matchAll(/(\d+(?:\.\d+)?)\s*([a-z])/gi))
    ms += Number(count) * (unitMs[(unit ?? '').toLowerCase()] ?? 0)
  return nowMs + ms
}

/** "Nov 20th, 2026 9:54 PM", "Nov 18, 3pm (Europe/Berlin)", "18 November at 15:00": without a year it is the one nearest to now. */
function onDate(text: string, nowMs: number): number | undefined {
  const match = dates.map((date) => date.exec(text)).find((found) => found !== null)?.groups
  if (match === undefined) return undefined
  const month = months.indexOf((match['month'] ?? '').slice(0, 3).toLowerCase())
  const day = Number(match['day'])
  const time = clockOf(match)
  if (time === undefined || day < 1 || day > 31) return undefined
  const thisYear = wallClock(match['zone'], nowMs).year
  const years = match['year'] === undefined ? [thisYear - 1, thisYear, thisYear + 1] : [Number(match['year'])]
  const moments = years.map((year) =>
    momentIn(match['zone'], Date.UTC(year, month, day, time.hour, time.minute)),
  )
  // A reset is never far behind, and never half a year ahead: "Jan 2" in December is next year's, "Dec 31" on New Year's Day is yesterday.
  const nearest = moments.toSorted((a, b) => Math.abs(a - nowMs) - Math.abs(b - nowMs))[0]
  return nearest === undefined ? undefined : Math.max(nearest, nowMs) + minuteMs
}

function atClock(text: string, nowMs: number): number | undefined {
  const match = new RegExp(`\\b(?:at|resets?|until) ${clock}${zone}`, 'i').exec(text)?.groups
  const time = match === undefined ? undefined : clockOf(match)
  if (match === undefined || time === undefined) return undefined
  // Yesterday's to tomorrow's, because the zone's date may differ from ours; the next one counts. A time that has only just
  // passed was rounded down by the provider, and does not mean tomorrow.
  const days = [-1, 0, 1, 2].map((day) => {
    const on = wallClock(match['zone'], nowMs + day * dayMs)
    return momentIn(match['zone'], Date.UTC(on.year, on.month - 1, on.day, time.hour, time.minute))
  })
  const next = days.find((ms) => ms > nowMs - roundingMs)
  return next === undefined ? undefined : Math.max(next, nowMs) + minuteMs
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const month = `(?<month>${months.join('|')})[a-z]*\\.?`
const day = '(?<day>\\d{1,2})(?:st|nd|rd|th)?'
const year = '(?:,? (?<year>\\d{4}))?,?(?: at)?'
/** "3pm", "9:54 PM", "15:00"; an hour alone says too little. */
const clock = '(?<hour>\\d{1,2})(?:(?::(?<minute>\\d{2}))? ?(?<half>[ap])\\.?m\\b\\.?|:(?<minutes>\\d{2})\\b)'
const zone = '(?: \\((?<zone>[\\w/+-]+)\\))?'
const dates = [`${month} ${day}`, `${day} ${month}`].map(
  (date) => new RegExp(`\\b${date}${year} ${clock}${zone}`, 'i'),
)

function clockOf(match: Readonly<Record<string, string>>): { hour: number; minute: number } | undefined {
  const { half } = match
  const [said, minute] = [Number(match['hour']), Number(match['minute'] ?? match['minutes'] ?? 0)]
  const hour = half === undefined ? said : (said % 12) + (half.toLowerCase() === 'p' ? 12 : 0)
  return said > (half === undefined ? 23 : 12) || minute > 59 ? undefined : { hour, minute }
}

const dayMs = 86_400_000
/** The text leaves the seconds out: asking within that minute would hit the same limit again, and again. */
const minuteMs = 60_000
const roundingMs = 10 * 60_000

/** When the clocks of the zone show what `wall` would be in UTC. */
function momentIn(zone: string | undefined, wall: number): number {
  // The offset holds at the result: a second look settles it across a change of daylight saving.
  const guess = wall - (asUtc(wallClock(zone, wall)) - wall)
  return wall - (asUtc(wallClock(zone, guess)) - guess)
}

interface Wall {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly ms: number
}

function asUtc(wall: Wall): number {
  return Date.UTC(wall.year, wall.month - 1, wall.day, wall.hour, wall.minute) + wall.ms
}

function wallClock(zone: string | undefined, ms: number): Wall {
  const parts = new Map(
    formatter(zone)
      .formatToParts(ms)
      .map(({ type, value }) => [type, Number(value)]),
  )
  const part = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0
  return {
    year: part('year'),
    month: part('month'),
    day: part('day'),
    hour: part('hour'),
    minute: part('minute'),
    ms: ms % 60_000,
  }
}

function formatter(zone: string | undefined): Intl.DateTimeFormat {
  const fields = {
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    hourCycle: 'h23',
  } as const
  try {
    return new Intl.DateTimeFormat('en-US', { ...fields, ...(zone !== undefined && { timeZone: zone }) })
  } catch (error) {
    // A zone that this machine does not know: its own is the best guess.
    if (error instanceof RangeError) return new Intl.DateTimeFormat('en-US', fields)
    throw error
  }
}
