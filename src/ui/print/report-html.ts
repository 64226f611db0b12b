// The report as one HTML file: no script, nothing to load, readable in light and dark and by a screen reader.
import { countAttempts } from '../../core/report.ts'
import type { AttemptReport, RunReport, StoryReport } from '../../core/report.ts'
import { inOrder } from './report-md.ts'
import { reportStyle } from './report-style.ts'
import { escapeXml, timelineSvg, tokensSvg } from './report-svg.ts'
import {
  caveats,
  costWord,
  notKeptWords,
  timeWord,
  tokenWord,
  verdictKind,
  verdictKinds,
  verdictWord,
} from './report-words.ts'
import { clean, duration, oneLine, plural, tokens } from './text.ts'

export function reportHtml(report: RunReport): string {
  const name = escape(report.change_id)
  const hasRun = report.totals.iterations > 0
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>ralph: ${name}</title>
<style>${reportStyle}</style>
</head>
<body>
<main>
<header>
<h1>${name} <span class="status ${report.status}">${report.status}</span></h1>
${report.reason === '' ? '' : `<p class="reason">${escape(report.reason)}</p>`}
${hasRun ? `<p class="when"><time datetime="${escape(report.started)}">${when(report.started)}</time> to <time datetime="${escape(report.ended)}">${when(report.ended)}</time></p>` : ''}
</header>
${tiles(report)}
${notes(report)}
${hasRun ? pictures(report) : '<p>No iteration ran.</p>'}
<section aria-labelledby="stories"><h2 id="stories">Stories</h2>
${table(['Story', 'State', 'Tasks', 'Attempts', 'Tokens', 'Cost', 'Not kept', 'Time'], report.stories.map(storyRow))}
</section>
${
  hasRun
    ? `<section aria-labelledby="iterations"><h2 id="iterations">Iterations</h2>
${table(
  ['#', 'Story', 'Attempt', 'Verdict', 'Tokens', 'Cost', 'Time', 'Commits', 'Reason'],
  inOrder(report).map(([story, attempt]) => attemptRow(story, attempt)),
)}
</section>`
    : ''
}
</main>
</body>
</html>
`
}

function tiles(report: RunReport): string {
  const { totals } = report
  const figures = [
    [`${String(report.stories_done)}/${String(report.stories_total)}`, 'stories done'],
    [String(totals.iterations), totals.iterations === 1 ? 'iteration' : 'iterations'],
    [tokens(totals.tokens), 'tokens (input + output)'],
    [costWord(totals), 'cost'],
    [duration(totals.duration_ms), `agent time, ${duration(report.wall_ms)} in all`],
  ] as const
  const tile = ([value, word]: readonly [string, string]): string =>
    `<div><dt>${escape(word)}</dt><dd>${escape(value)}</dd></div>`
  return `<dl class="tiles">${figures.map(tile).join('')}</dl>`
}

function notes(report: RunReport): string {
  const lines = [notKeptWords(report.totals, report.not_kept), ...caveats(report)].filter(
    (line) => line !== '',
  )
  return lines.length === 0
    ? ''
    : `<ul class="notes">${lines.map((line) => `<li>${escape(line)}</li>`).join('')}</ul>`
}

function pictures(report: RunReport): string {
  const used = new Set(inOrder(report).map(([, attempt]) => verdictKind(attempt.verdict)))
  const keys = [...used].map(
    (kind) =>
      `<li><span class="key ${kind}" aria-hidden="true">${verdictKinds[kind].sign}</span> ${verdictKinds[kind].meaning}</li>`,
  )
  return `<section aria-labelledby="when"><h2 id="when">Iterations by story</h2>
<div class="wide">${timelineSvg(report)}</div>
<ul class="legend">${keys.join('')}</ul>
</section>
<section aria-labelledby="spent"><h2 id="spent">Tokens over time</h2>
<div class="wide">${tokensSvg(report)}</div>
${report.not_kept.tokens > 0 ? `<ul class="legend"><li><span class="swatch" aria-hidden="true"></span> all</li><li><span class="swatch lost" aria-hidden="true"></span> of it in attempts that were not kept</li></ul>` : ''}
</section>`
}

type Cell = { readonly html: string; readonly isNumber?: boolean }
const words = (text: string): Cell => ({ html: escape(text) })
const number = (text: string): Cell => ({ html: escape(text), isNumber: true })

function storyRow(story: StoryReport): readonly Cell[] {
  return [
    words(`${story.story_id} ${story.title}`),
    words(story.status || 'no longer planned'),
    number(`${String(story.tasks_done)}/${String(story.tasks_total)}`),
    number(String(countAttempts(story.attempts))),
    number(tokens(story.tokens)),
    number(costWord(story)),
    number(
      story.not_kept.iterations === 0
        ? '-'
        : `${[tokens(story.not_kept.tokens), costWord(story.not_kept)].filter((word) => word !== '-').join(', ')} (${plural(story.not_kept.iterations, 'iteration')})`,
    ),
    number(timeWord(story)),
  ]
}

function attemptRow(story: StoryReport, attempt: AttemptReport): readonly Cell[] {
  const kind = verdictKind(attempt.verdict)
  const reason = clean(attempt.reason).trim()
  const [first = '', ...more] = reason.split('\n')
  return [
    number(String(attempt.n)),
    words(story.story_id),
    number(String(attempt.attempt)),
    {
      html: `<span class="key ${kind}" aria-hidden="true">${verdictKinds[kind].sign}</span> ${escape(verdictWord(attempt.verdict))}`,
    },
    number(tokenWord(attempt)),
    number(costWord(attempt)),
    number(duration(attempt.duration_ms)),
    number(String(attempt.commits)),
    more.length === 0
      ? words(first)
      : { html: `<details><summary>${escape(first)}</summary><pre>${escapeXml(reason)}</pre></details>` },
  ]
}

function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const numbers = rows[0]?.map((cell) => cell.isNumber === true) ?? []
  const open = (tag: string, isNumber: boolean | undefined): string =>
    isNumber === true ? `<${tag} class="n"` : `<${tag}`
  const titles = head.map((title, index) => `${open('th', numbers[index])} scope="col">${title}</th>`)
  const body = rows.map(
    (cells) => `<tr>${cells.map((cell) => `${open('td', cell.isNumber)}>${cell.html}</td>`).join('')}</tr>`,
  )
  return `<div class="wide"><table><thead><tr>${titles.join('')}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>`
}

/** Everything that comes from a plan or an agent goes through here: it may hold markup and control characters. */
function escape(text: string): string {
  return escapeXml(oneLine(text))
}

function when(stamp: string): string {
  return escape(stamp.slice(0, 16).replace('T', ' '))
}
