// The report as text, Markdown and HTML: the figures are there, and nothing of an agent's words becomes markup.
import { describe, expect, test } from 'vitest'
import type { RunHistory } from '../../src/core/report.ts'
import { runReport } from '../../src/core/report.ts'
import { paintFor } from '../../src/ui/io.ts'
import { historyText } from '../../src/ui/print/history.ts'
import { reportHtml } from '../../src/ui/print/report-html.ts'
import { reportMarkdown } from '../../src/ui/print/report-md.ts'
import { reportText } from '../../src/ui/print/report-text.ts'
import { countsOf } from '../../src/ui/print/report-words.ts'
import { widthOf } from '../../src/ui/print/text.ts'
import { history, iteration } from './report-history.ts'

const report = runReport(history)
const plainPaint = paintFor(process.stdout, { NO_COLOR: '1' })
const lost = '6 of 8 attempts, ~120.5k tokens (60%), $1.60, 1h 02m'

describe('text', () => {
  test('an estimate of nothing is none, though other attempts have figures', () => {
    const unknown = {
      ...history,
      iterations: history.iterations.map((each) =>
        each.tokens_estimated ? { ...each, tokens_used: 0 } : each,
      ),
    }
    const text = reportText(runReport(unknown), 100, plainPaint)
    expect(text).toContain('  tokens  unknown for 1 attempt (the agent did not report them)\n')
    expect(text).not.toContain('estimated from the size')
  })

  test('names what was lost, what is estimated and what has no price', () => {
    const text = reportText(report, 100, plainPaint)
    expect(text).toMatch(
      /^add-login {3}✕ stuck\n {2}2 of 4 stories, 7 of 10 tasks, 8 attempts, ~200.5k tokens, \$2\.76, 1h 20m\n {2}story 3 used up its 2 attempts\n/,
    )
    expect(text).toMatch(/^ {2}when +2026-02-09 14:00 to 15:44, 1h 44m in all$/m)
    expect(text).toContain(`  undone  ${lost}`)
    expect(text).toContain('  tokens  ~ estimated from the size of session files for 1 attempt\n')
    expect(text).toContain('  cost    unknown for 1 attempt, and not in the sum\n')
    expect(text).toMatch(/^ {4}✕ #4 did not report +4m 00s +~12\.0k tokens +unpriced\n {6}no promise$/m)
    expect(text).toMatch(/^✓ 1 Store sessions in the database {3}#1 +9m 00s +42\.0k tokens +\$0\.61$/m)
    expect(text).toMatch(/^○ 4 Docs \(open\)$/m)
  })

  test('the time of an attempt is that of its agent and its gates; a reason that comes again is named, not said again', () => {
    const iterations = [1, 2, 3].map((n) =>
      iteration(n, '1', n, 'gate_failed', [n, n + 1], 0, { reason: 'npm test failed (exit 1)' }),
    )
    const gated = runReport({ ...history, iterations, gates_ms: new Map([[1, 30_000]]) })
    expect(gated.totals).toMatchObject({ duration_ms: 180_000, gates_ms: 30_000 })
    const text = reportText(gated, 80, plainPaint)
    expect(text).toMatch(
      /^ {4}✕ #1 gate failed +1m 30s\n {6}npm test failed \(exit 1\)\n {4}✕ #2 gate failed +1m 00s\n {6}the same as #1\n {4}✕ #3 gate failed +1m 00s\n {6}the same as #1$/m,
    )
    const page = { paint: plainPaint, columns: 80 }
    const rows = historyText(
      { ...gated, stories: [], iterations, gates_ms: new Map([[1, 30_000]]), earlier_runs: [] },
      page,
    )
    expect(rows).toMatch(/^#1 .* 1m 30s /m)
    expect(rows).toContain('\n3 attempts, 3m 30s, ')
  })

  test.each([40, 80, 120])('no line is wider than a terminal of %d columns', (columns) => {
    for (const line of reportText(report, columns, plainPaint).split('\n'))
      expect(widthOf(line)).toBeLessThanOrEqual(columns)
  })
})

describe('R8: an iteration that only hit a limit', () => {
  test('had to wait, as the history says', () => {
    const page = { paint: plainPaint, columns: Infinity }
    const rows = historyText({ ...history, earlier_runs: [] }, page).split('\n')
    expect(rows.find((row) => /‖ had to wait/.test(row))).toBeDefined()
  })

  test('has its number like any other: the stories of a report add up to its attempts', () => {
    expect(reportMarkdown(report)).toMatch(/^\| 2 Login.*\| 3\/3 \| 4 \|/m)
    expect(reportHtml(report)).toMatch(/2 Login[^\n]*?3\/3<\/td>\s*<td[^>]*>4<\/td>/)
    const counted = [...reportMarkdown(report).matchAll(/^\| .* \| \d+\/\d+ \| (\d+) \|/gm)]
    const all = counted.reduce((sum, [, count]) => sum + Number(count), 0)
    expect(countsOf(report)).toContain(` ${String(all)} attempts`)
  })
})

describe('markdown', () => {
  const markdown = reportMarkdown(report)

  test('has a row for each story and each iteration', () => {
    expect(markdown).toContain(
      '| 1 Store sessions in the database | done | 4/4 | 1 | 42.0k | $0.61 | - | 9m 00s |',
    )
    expect(markdown.match(/^\| \d+ \| \d \|/gm)).toHaveLength(8)
    expect(markdown).toContain(`- undone: ${lost}`)
  })

  test('a reason is there whole, or with its beginning and its end: the cause is seldom in its first line', () => {
    const rowOf = (reason: string): string =>
      reportMarkdown(
        runReport({ ...history, iterations: [iteration(1, '1', 1, 'gate_failed', [0, 1], 1, { reason })] }),
      )
        .split('\n')
        .find((line) => line.startsWith('| 1 | 1 | ✕ ')) ?? ''
    const long = `the login page needs ${'a '.repeat(80)}cookie`
    expect(rowOf(long)).toContain(`| ${long} |`)
    const lines = Array.from({ length: 40 }, (_, index) => `line ${String(index + 1)}`)
    expect(rowOf(['make check failed', ...lines, 'cannot find main.c'].join('\n'))).toContain(
      '| make check failed<br>line 1<br>line 2<br>… 34 lines …<br>line 37<br>line 38<br>line 39<br>line 40<br>cannot find main.c |',
    )
  })

  test('words of a plan or an agent cannot break out of their cell', () => {
    const evil = '| [x](javascript:1) <img src=x> `code` **bold**\n| second row |'
    const rows = reportMarkdown(
      runReport({ ...history, iterations: [iteration(1, '1', 1, 'failed', [0, 1], 1, { reason: evil })] }),
    )
    const row = rows.split('\n').find((line) => line.startsWith('| 1 | 1 | ✕ '))
    expect(row).toContain('\\| \\[x\\](javascript:1) \\<img src=x> \\`code\\` \\*\\*bold\\*\\*')
    expect(rows).not.toContain('\n| second row |')
  })
})

describe('html', () => {
  const html = reportHtml(report)

  test('stands alone: no script, nothing to load', () => {
    expect(html).not.toMatch(/<script|<link|<img|@import|url\(/i)
    expect(html.replaceAll('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:/)
    expect(html).toContain("default-src 'none'")
    expect(html).toContain('prefers-color-scheme: dark')
  })

  test('F7: a night between a stop and a resume is cut short, so that the work is seen', () => {
    const iterations = [0, 1, 602].map((at, index) =>
      iteration(index + 1, '1', index + 1, 'complete', [at, at + 1], 0, {}),
    )
    const timeline = picture(reportHtml(runReport({ ...history, iterations })), 'timeline')
    expect(timeline).toContain('>‖ 10h</text>')
    const bars = [...timeline.matchAll(/<g class="bar .*?<rect x="([\d.]+)" .*?width="([\d.]+)"/gs)]
    expect(bars.map(([, , wide]) => Number(wide) > 150)).toEqual([true, true, true])
    const [, last] = bars.map(([, x, wide]) => Number(x) + Number(wide)).slice(1)
    expect(Math.round(last ?? 0)).toBe(887)
    expect(timeline).not.toContain('>10h')
    expect(timeline).toContain('>start</text>')
  })

  test('has the timeline with one bar for each iteration, told by sign and words as well as colour', () => {
    const timeline = picture(html, 'timeline')
    expect(timeline).toContain('<title id="timeline-title">Timeline of 8 attempts in 3 stories</title>')
    expect(timeline.match(/<g class="bar /g)).toHaveLength(8)
    expect(timeline).toContain('#7, try 2: timed out, 57.0k tokens, 45m 00s. timed out after 45 min')
    expect(timeline).toContain('>✓ 1</text>')
  })

  test('has tokens over time, with what was not kept as a part of it', () => {
    const tokens = picture(html, 'tokens')
    expect(tokens).toContain('Tokens over time: ~200.5k in all, ~120.5k in attempts that were undone')
    expect(tokens).toContain('class="line lost"')
    expect(tokens).toContain('>200.5k</text>')
  })

  test('has the figures and both tables', () => {
    for (const figure of ['2/4', '~200.5k', '$2.76', '1h 20m', lost]) expect(html).toContain(figure)
    expect(html.match(/<tr>/g)).toHaveLength(2 + 4 + 8)
  })

  test('words of a plan or an agent are never markup', () => {
    expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
    expect(html).toContain('Login page with &lt;form&gt; &amp; &quot;remember me&quot;')
    expect(html).not.toContain('<form')
  })

  test.each<[name: string, run: RunHistory]>([
    ['no iteration', { ...history, iterations: [] }],
    [
      'one iteration of no time and no tokens',
      { ...history, iterations: [iteration(1, '1', 1, 'crash', [0, 0], 0)] },
    ],
    [
      '200 iterations',
      {
        ...history,
        iterations: Array.from({ length: 200 }, (_, i) =>
          iteration(i + 1, '1', i + 1, 'failed', [i, i + 1], 1_234_567),
        ),
      },
    ],
    [
      'stamps of another kind',
      { ...history, iterations: [iteration(1, '1', 1, 'complete', [0, 1], 5, { started: 'x', ended: 'y' })] },
    ],
  ])('%s: every number is a number, every tag is closed', (_, run) => {
    const page = reportHtml(runReport(run))
    expect(page).not.toMatch(/NaN|Infinity|undefined|null/)
    for (const tag of ['g', 'svg', 'table', 'tr', 'td', 'section', 'ul', 'li', 'text', 'title']) {
      expect(page.match(new RegExp(`<${tag}[ >]`, 'g'))?.length).toBe(
        page.match(new RegExp(`</${tag}>`, 'g'))?.length,
      )
    }
  })
})

function picture(html: string, id: string): string {
  const from = html.indexOf(`<svg id="${id}"`)
  expect(from).toBeGreaterThan(0)
  return html.slice(from, html.indexOf('</svg>', from))
}

test('W5: the page has a minute once, and the date of a day in front alone', () => {
  const spanOf = (started: string, ended: string): string =>
    /<p class="when">(.*)<\/p>/
      .exec(reportHtml({ ...report, started, ended }))?.[1]
      ?.replaceAll(/<[^>]*>/g, '') ?? ''
  const at = (time: string): string => `2026-02-${time}:00+01:00`
  expect(spanOf(at('09T22:32'), at('09T22:32'))).toBe('2026-02-09 22:32')
  expect(spanOf(at('09T22:32'), at('09T22:40'))).toBe('2026-02-09 22:32 to 22:40')
  expect(spanOf(at('09T22:32'), at('10T01:00'))).toBe('2026-02-09 22:32 to 2026-02-10 01:00')
})
