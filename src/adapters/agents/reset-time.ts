// When a limit ends, from the words of a provider's error: "try again at 9:54 PM", "resets 10pm (UTC)", "try again in 3 hours".

/** Epoch ms of the next such moment after `nowMs`, or none if the text names no time. Without a zone it is the machine's own. */
export function resetTime(text: string, nowMs: number): number | undefined {
  return inSpan(text, nowMs) ?? onDate(text) ?? atClock(text, nowMs)
}

function inSpan(text: string, nowMs: number): number | undefined {
  const span =
    /(?:try again|retry|resets?|available)(?: again)? (?:in|after) ((?:\d+(?:\.\d+)?\s*(?:days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b[\s,]*(?:and )?)+)/i.exec(
      text,
    )?.[1]
  if (span === undefined) return undefined
  const unitMs: Record<string, number> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 }
  let ms = 0
  for (const [, count, unit] of span.matchAll(/(\d+(?:\.\d+)?)\s*([a-z])/gi))
    ms += Number(count) * (unitMs[(unit ?? '').toLowerCase()] ?? 0)
  return nowMs + ms
}

/** "Nov 20th, 2026 9:54 PM". */
function onDate(text: string): number | undefined {
  const match =
    /\b((?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? \d{1,2})(?:st|nd|rd|th)?,? (\d{4}),?(?: at)? (\d{1,2}:\d{2} ?[AP]M)/i.exec(
      text,
    )
  if (match === null) return undefined
  const ms = Date.parse(`${match[1]}, ${match[2]} ${match[3]}`)
  return Number.isNaN(ms) ? undefined : ms + minuteMs
}

function atClock(text: string, nowMs: number): number | undefined {
  const match = /(?:at|resets|until) (\d{1,2})(?::(\d{2}))? ?([ap])\.?m\b\.?(?: \(([\w/+-]+)\))?/i.exec(text)
  if (match === null) return undefined
  const hour = (Number(match[1]) % 12) + (match[3]?.toLowerCase() === 'p' ? 12 : 0)
  const minute = Number(match[2] ?? 0)
  // Yesterday's to tomorrow's, because the zone's date may differ from ours; the next one counts. A time that has only just
  // passed was rounded down by the provider, and does not mean tomorrow.
  const days = [-1, 0, 1, 2].map((day) => clockIn(match[4], nowMs + day * dayMs, hour, minute))
  const next = days.find((ms) => ms > nowMs - roundingMs)
  return next === undefined ? undefined : Math.max(next, nowMs) + minuteMs
}

const dayMs = 86_400_000
/** The text leaves the seconds out: asking within that minute would hit the same limit again, and again. */
const minuteMs = 60_000
const roundingMs = 10 * 60_000

/** That hour and minute on the zone's calendar day of `onMs`. */
function clockIn(zone: string | undefined, onMs: number, hour: number, minute: number): number {
  const day = wallClock(zone, onMs)
  const wall = Date.UTC(day.year, day.month - 1, day.day, hour, minute)
  // The offset holds at the result, not at `onMs`: a second look settles it across a change of daylight saving.
  const guess = wall - (asUtc(wallClock(zone, onMs)) - onMs)
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
