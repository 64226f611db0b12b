// The two pictures of the HTML report, on one time axis: attempts by story and verdict, tokens over time.
import { tookMs } from '../../core/report.ts'
import type { AttemptReport, RunReport } from '../../core/report.ts'
import { verdictName } from '../vocabulary.ts'
import { attemptName, inOrder, verdictKind, verdictKinds } from './report-words.ts'
import { clip, duration, excerpt, oneLine, plural, tokens, tokenWord, tokenWords } from './text.ts'

const width = 960
const left = 210
const right = 72
const plotWidth = width - left - right
const laneHeight = 34
const barHeight = 22
/** A bar that is over in a second must still be seen. */
const minBarWidth = 5
/** Of a time in which nothing ran, with room for its words. */
const breakWidth = 44

export function timelineSvg(report: RunReport): string {
  const lanes = report.stories.filter((story) => story.attempts.length > 0)
  const x = timeScale(report)
  const bottom = 8 + lanes.length * laneHeight
  const rows = lanes.map((story, index) => {
    const y = 8 + index * laneHeight
    const label = clip(oneLine(`${story.story_id} ${story.title}`), 26)
    return `<g>
<line class="lane" x1="${left}" y1="${y + laneHeight / 2}" x2="${width - right}" y2="${y + laneHeight / 2}"/>
<text class="label" x="${left - 12}" y="${y + laneHeight / 2 + 4.5}" text-anchor="end">${escapeXml(label)}</text>
${story.attempts.map((attempt) => bar(attempt, x, y + (laneHeight - barHeight) / 2)).join('\n')}
</g>`
  })
  const title = `Timeline of ${plural(report.totals.iterations, 'attempt')} in ${plural(lanes.length, 'story', 'stories')}`
  return svg('timeline', title, bottom + 28, `${rows.join('\n')}\n${timeAxis(report, x, bottom)}`)
}

export function tokensSvg(report: RunReport): string {
  const [top, height] = [16, 180]
  const x = timeScale(report)
  const most = Math.max(1, report.totals.tokens)
  const y = (value: number): string => fixed(top + height - (value / most) * height)
  const attempts = inOrder(report).map(([, attempt]) => attempt)
  const all = cumulative(attempts, () => true, report.wall_ms)
  const lost = cumulative(attempts, (attempt) => !attempt.kept, report.wall_ms)
  const line = (points: readonly Point[]): string =>
    points.map(([ms, sum]) => `${fixed(x(ms))},${y(sum)}`).join(' ')
  const area = (points: readonly Point[]): string =>
    `${fixed(x(0))},${y(0)} ${line(points)} ${fixed(x(report.wall_ms))},${y(0)}`
  const grid = ticks(most, 4).map(
    (value) => `<line class="lane" x1="${left}" y1="${y(value)}" x2="${width - right}" y2="${y(value)}"/>
<text class="tick" x="${left - 12}" y="${Number(y(value)) + 4}" text-anchor="end">${tokens(value).replace(/\.0+(?=[kM])/, '')}</text>`,
  )
  const end = (sum: number): string =>
    `<text class="end" x="${width - right + 6}" y="${Number(y(sum)) + 4}">${tokens(sum)}</text>`
  const lostTotal = report.not_kept.tokens
  // Two labels need a line's height between them.
  const isLostApart = lostTotal > 0 && Number(y(lostTotal)) - Number(y(most)) > 16
  const body = `${grid.join('\n')}
<polygon class="area" points="${area(all)}"/>
<polyline class="line" points="${line(all)}"/>
${lostTotal > 0 ? `<polygon class="area lost" points="${area(lost)}"/><polyline class="line lost" points="${line(lost)}"/>` : ''}
${end(report.totals.tokens)}${isLostApart ? end(lostTotal) : ''}
${timeAxis(report, x, top + height)}`
  const title = `Tokens over time: ${tokenWord(report.totals)} in all, ${tokenWord(report.not_kept)} in attempts that were undone`
  return svg('tokens', title, top + height + 28, body)
}

type Point = readonly [ms: number, sum: number]

/** An iteration's tokens come in evenly while it runs: nothing finer is on record. */
function cumulative(
  attempts: readonly AttemptReport[],
  counts: (attempt: AttemptReport) => boolean,
  wallMs: number,
): readonly Point[] {
  let sum = 0
  const points: Point[] = [[0, 0]]
  for (const attempt of attempts.filter(counts)) {
    points.push([attempt.from_ms, sum])
    sum += attempt.tokens
    points.push([attempt.to_ms, sum])
  }
  return [...points, [wallMs, sum]]
}

function bar(attempt: AttemptReport, x: (ms: number) => number, y: number): string {
  const kind = verdictKind(attempt.verdict)
  const from = x(attempt.from_ms)
  const wide = Math.max(minBarWidth, x(attempt.to_ms) - from - 1)
  const sign = verdictKinds[kind].sign
  const words = wide >= 40 ? `${sign} ${String(attempt.n)}` : wide >= 14 ? sign : ''
  const reason = excerpt(attempt.reason, 160)
  const title = `${attemptName(attempt)}, try ${String(attempt.attempt)}: ${verdictName(attempt.verdict)}, ${tokenWords(attempt)}, ${duration(tookMs(attempt))}${reason === '' ? '' : `. ${reason}`}`
  return `<g class="bar ${kind}"><title>${escapeXml(title)}</title><rect x="${fixed(from)}" y="${y}" width="${fixed(wide)}" height="${barHeight}" rx="3"/>${
    words === ''
      ? ''
      : `<text x="${fixed(from + wide / 2)}" y="${y + barHeight / 2 + 4.5}" text-anchor="middle">${words}</text>`
  }</g>`
}

interface Break {
  readonly from: number
  readonly to: number
}

/** As long as half of all the work: drawn to scale, a night between a stop and a resume would hide the work. */
function breaksOf(report: RunReport): readonly Break[] {
  const attempts = inOrder(report).map(([, attempt]) => attempt)
  const busy = attempts.reduce((sum, { from_ms: from, to_ms: to }) => sum + to - from, 0)
  const breaks: Break[] = []
  let end = 0
  for (const { from_ms: from, to_ms: to } of attempts) {
    if (from - end > Math.max(minute, busy / 2)) breaks.push({ from: end, to: from })
    end = Math.max(end, to)
  }
  return breaks
}

function timeScale(report: RunReport): (ms: number) => number {
  const breaks = breaksOf(report)
  const cut = (ms: number): number =>
    breaks.reduce((sum, { from, to }) => sum + Math.max(0, Math.min(ms, to) - from), 0)
  const wall = Math.max(1, report.wall_ms - cut(report.wall_ms))
  const room = plotWidth - breaks.length * breakWidth
  return (ms) =>
    left +
    ((ms - cut(ms)) / wall) * room +
    breaks.reduce((sum, { from, to }) => sum + breakWidth * share(ms, from, to), 0)
}

/** How much of it is over, from 0 to 1. */
function share(ms: number, from: number, to: number): number {
  return Math.min(1, Math.max(0, (ms - from) / (to - from)))
}

function timeAxis(report: RunReport, x: (ms: number) => number, y: number): string {
  const breaks = breaksOf(report)
  const tick = (at: number, words: string): string =>
    `<text class="tick" x="${fixed(at)}" y="${y + 20}" text-anchor="middle">${words}</text>`
  const pauses = breaks.map(({ from, to }) => {
    const wide = x(to) - x(from)
    return `<rect class="pause" x="${fixed(x(from))}" y="8" width="${fixed(wide)}" height="${y - 8}"/>${tick(x(from) + wide / 2, `‖ ${shortDuration(to - from)}`)}`
  })
  // A tick counts the work alone; where a break has its own words there is none.
  const worked = report.wall_ms - breaks.reduce((sum, { from, to }) => sum + to - from, 0)
  const marks = timeTicks(worked).flatMap((ms) => {
    const real = breaks.reduce((sum, { from, to }) => (sum > from ? sum + to - from : sum), ms)
    const at = x(real)
    const isTaken = breaks.some(({ from, to }) => at > x(from) - breakWidth && at < x(to) + breakWidth)
    return isTaken
      ? []
      : [
          `<line class="axis" x1="${fixed(at)}" y1="${y}" x2="${fixed(at)}" y2="${y + 5}"/>\n${tick(at, ms === 0 ? 'start' : shortDuration(ms))}`,
        ]
  })
  return `<g><line class="axis" x1="${left}" y1="${y}" x2="${width - right}" y2="${y}"/>${[...pauses, ...marks].join('\n')}</g>`
}

const minute = 60_000
const hour = 60 * minute
const timeSteps = [
  1000,
  5000,
  10_000,
  30_000,
  minute,
  2 * minute,
  5 * minute,
  10 * minute,
  15 * minute,
  30 * minute,
]
  .concat([hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour])
  .concat([24 * hour, 48 * hour, 168 * hour])

function timeTicks(wallMs: number): readonly number[] {
  const step = timeSteps.find((candidate) => wallMs / candidate <= 8) ?? Math.ceil(wallMs / 8)
  return Array.from({ length: Math.floor(wallMs / step) + 1 }, (_, index) => index * step)
}

/** Ticks are round: "15m", "1h 30m", without the seconds that are none. */
function shortDuration(ms: number): string {
  return duration(ms).replace(/ 0+[sm]$/, '')
}

/** 0 and up to `count` round values below `most`. */
function ticks(most: number, count: number): readonly number[] {
  const rough = most / count
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = Math.max(1, ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power)
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step)
}

function svg(id: string, title: string, height: number, body: string): string {
  return `<svg id="${id}" role="img" aria-labelledby="${id}-title" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" xmlns="http://www.w3.org/2000/svg">
<title id="${id}-title">${escapeXml(title)}</title>
${body}
</svg>`
}

export function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}

function fixed(value: number): string {
  return value.toFixed(1)
}
