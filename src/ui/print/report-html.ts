// The report as one HTML file: no script, nothing to load, readable in light and dark and by a screen reader.
import { tookMs } from '../../core/report.ts'
import type { RunReport } from '../../core/report.ts'
import { reportStyle } from './report-style.ts'
import { escapeXml, timelineSvg, tokensSvg } from './report-svg.ts'
import {
  aboutOf,
  costWord,
  filesOf,
  filesWord,
  inOrder,
  iterationsTable,
  notesOf,
  reasonOf,
  stateOf,
  storiesTable,
  storyLabel,
  verdictKind,
  verdictKinds,
} from './report-words.ts'
import type { Cell, Table, VerdictKind } from './report-words.ts'
import { clean, duration, oneLine, tokenWord } from './text.ts'

export function reportHtml(report: RunReport): string {
  const name = escape(report.change_id)
  const hasRun = report.totals.iterations > 0
  const [state] = stateOf(report)
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
<h1>${name} <span class="status ${state}">${state}</span></h1>
${reasonOf(report) === '' ? '' : `<p class="reason">${escape(reasonOf(report))}</p>`}
${hasRun ? `<p class="when"><time datetime="${escape(report.started)}">${when(report.started)}</time> to <time datetime="${escape(report.ended)}">${when(report.ended)}</time></p>` : ''}
</header>
${about(report)}
${tiles(report)}
${notes(report)}
${hasRun ? pictures(report) : '<p>No attempt ran.</p>'}
<section aria-labelledby="stories"><h2 id="stories">Stories</h2>
${table(storiesTable(report))}
${files(report)}
</section>
${
  hasRun
    ? `<section aria-labelledby="attempts"><h2 id="attempts">Attempts</h2>
${table(iterationsTable(report))}
</section>`
    : ''
}
</main>
</body>
</html>
`
}

function about(report: RunReport): string {
  const facts = aboutOf(report).map(([name, words]) => `<dt>${name}</dt><dd>${escape(words)}</dd>`)
  return facts.length === 0 ? '' : `<dl class="about">${facts.join('')}</dl>`
}

function files(report: RunReport): string {
  const lists = report.stories.flatMap((story) =>
    filesOf(story, report).length === 0
      ? []
      : [
          `<details><summary>${escape(filesWord(story, report).split(':')[0] ?? '')}: ${escape(storyLabel(story))}</summary><ul>${filesOf(
            story,
            report,
          )
            .map((file) => `<li><code>${escape(file)}</code></li>`)
            .join('')}</ul></details>`,
        ],
  )
  return lists.join('\n')
}

function tiles(report: RunReport): string {
  const { totals } = report
  const figures = [
    [`${String(report.stories_done)}/${String(report.stories_total)}`, 'stories done'],
    [String(totals.iterations), totals.iterations === 1 ? 'attempt' : 'attempts'],
    [tokenWord(totals), 'tokens (input + output)'],
    [costWord(totals), 'cost'],
    [duration(tookMs(totals)), `agents and gates, ${duration(report.wall_ms)} in all`],
  ] as const
  const tile = ([value, word]: readonly [string, string]): string =>
    `<div><dt>${escape(word)}</dt><dd>${escape(value)}</dd></div>`
  return `<dl class="tiles">${figures.map(tile).join('')}</dl>`
}

function notes(report: RunReport): string {
  const lines = notesOf(report)
  return lines.length === 0
    ? ''
    : `<ul class="notes">${lines.map(([name, words]) => `<li>${name}: ${escape(words)}</li>`).join('')}</ul>`
}

function pictures(report: RunReport): string {
  const used = new Set(inOrder(report).map(([, attempt]) => verdictKind(attempt.verdict)))
  const keys = [...used].map((kind) => `<li>${keyHtml(kind)} ${verdictKinds[kind].meaning}</li>`)
  return `<section aria-labelledby="when"><h2 id="when">Attempts by story</h2>
<div class="wide">${timelineSvg(report)}</div>
<ul class="legend">${keys.join('')}</ul>
</section>${report.totals.tokens > 0 ? spending(report) : ''}`
}

function spending(report: RunReport): string {
  return `
<section aria-labelledby="spent"><h2 id="spent">Tokens over time</h2>
<div class="wide">${tokensSvg(report)}</div>
${report.not_kept.tokens > 0 ? `<ul class="legend"><li><span class="swatch" aria-hidden="true"></span> all</li><li><span class="swatch lost" aria-hidden="true"></span> of it in attempts that were undone</li></ul>` : ''}
</section>`
}

function table({ heads, rows }: Table): string {
  const open = (tag: string, isNumber: boolean | undefined): string =>
    isNumber === true ? `<${tag} class="n"` : `<${tag}`
  const titles = heads.map(
    (title, column) => `${open('th', rows[0]?.[column]?.isNumber)} scope="col">${title}</th>`,
  )
  const body = rows.map(
    (cells) =>
      `<tr>${cells.map((cell) => `${open('td', cell.isNumber)}>${cellHtml(cell)}</td>`).join('')}</tr>`,
  )
  return `<div class="wide"><table><thead><tr>${titles.join('')}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>`
}

function cellHtml({ text, kind, isLong }: Cell): string {
  if (kind !== undefined) return `${keyHtml(kind)} ${escape(text)}`
  const [first = '', ...more] = isLong === true ? clean(text).trim().split('\n') : [text]
  if (more.length === 0) return escape(first)
  return `<details><summary>${escape(first)}</summary><pre>${escapeXml(clean(text).trim())}</pre></details>`
}

function keyHtml(kind: VerdictKind): string {
  return `<span class="key ${kind}" aria-hidden="true">${verdictKinds[kind].sign}</span>`
}

/** Everything that comes from a plan or an agent goes through here: it may hold markup and control characters. */
function escape(text: string): string {
  return escapeXml(oneLine(text))
}

function when(stamp: string): string {
  return escape(stamp.slice(0, 16).replace('T', ' '))
}
