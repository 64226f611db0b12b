// The report as one HTML file: no script, nothing to load, readable in light and dark and by a screen reader.
import { tookMs, type RunReport } from '../../core/report.ts'
import { escapeXml, timelineSvg, tokensSvg } from './report-svg.ts'
import {
  aboutOf,
  costWord,
  filesCount,
  filesOf,
  inOrder,
  iterationsTable,
  notesOf,
  reasonOf,
  stateOf,
  storiesTable,
  storyLabel,
  verdictKind,
  verdictKinds,
  type Cell,
  type Table,
  type VerdictKind,
} from './report-words.ts'
import { clean, duration, oneLine, tokenWord } from './text.ts'

export function reportHtml(report: RunReport): string {
  const name = escape(report.change_id)
  const hasRun = report.totals.iterations > 0
  const [state, meaning] = stateOf(report)
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
<h1>${name} <span class="status ${meaning}">${state}</span></h1>
${reasonOf(report) === '' ? '' : `<p class="reason">${escape(reasonOf(report))}</p>`}
${hasRun ? `<p class="when">${span(report)}</p>` : ''}
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
    filesOf(story, report).map((group) => {
      const names = group.files.map((file) => `<li><code>${escape(file)}</code></li>`)
      return `<details><summary>${escape(`${filesCount(group)}: ${storyLabel(story)}`)}</summary><ul>${names.join('')}</ul></details>`
    }),
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

/** From and to, each once: a minute is one time, a day has its date in front alone. */
function span({ started, ended }: RunReport): string {
  const [from, to] = [started, ended].map((stamp) => stamp.slice(0, 16).replace('T', ' '))
  const until = to?.slice(0, 10) === from?.slice(0, 10) ? to?.slice(11) : to
  const time = (stamp: string, words = ''): string =>
    `<time datetime="${escape(stamp)}">${escape(words)}</time>`
  return from === to ? time(started, from) : `${time(started, from)} to ${time(ended, until)}`
}

const reportStyle = `
:root { color-scheme: light dark; --bg: #fff; --fg: #1c2024; --dim: #5b636d; --line: #dfe3e8; --card: #f5f7f9;
  --kept: #00704f; --failed: #b94700; --broken: #93417a; --limit: #0b6ea8; --stopped: #5f6670; --on: #fff; --area: #0b6ea8; --warn: #b94700 }
@media (prefers-color-scheme: dark) {
  :root { --bg: #14171a; --fg: #e6e9ec; --dim: #9aa4ae; --line: #30363d; --card: #1d2126;
    --kept: #2fc296; --failed: #ff8b4d; --broken: #e29bc9; --limit: #6cc0f2; --stopped: #a5adb6; --on: #14171a; --area: #6cc0f2; --warn: #ff8b4d }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 1040px; margin: 0 auto; padding: 32px 24px 64px }
h1 { margin: 0; font-size: 26px; line-height: 1.25; overflow-wrap: anywhere }
h2 { margin: 40px 0 12px; font-size: 18px }
.status { display: inline-block; margin-left: 6px; padding: 2px 10px; border-radius: 99px; background: var(--stopped); color: var(--on);
  font-size: 14px; font-weight: 600; vertical-align: 4px }
.status.done { background: var(--kept) }
.status.failed { background: var(--failed) }
.status.working { background: var(--limit) }
.reason { margin: 8px 0 0; font-size: 17px }
.when { margin: 4px 0 0; color: var(--dim) }
dl.about { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 12px 0 0 }
.about dt { color: var(--dim) }
.about dd { margin: 0; overflow-wrap: anywhere }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 24px 0 0 }
.tiles div { display: flex; flex-direction: column-reverse; justify-content: flex-end; padding: 12px 16px; border-radius: 10px; background: var(--card) }
.tiles dd { margin: 0; font-size: 24px; font-weight: 650; font-variant-numeric: tabular-nums }
.tiles dt { color: var(--dim); font-size: 13px }
.notes { margin: 20px 0 0; padding: 12px 16px 12px 32px; border-left: 4px solid var(--warn); border-radius: 4px; background: var(--card) }
.wide { overflow-x: auto }
svg { display: block; width: 100%; min-width: 720px; height: auto }
svg text { font: 13px system-ui, sans-serif; fill: var(--fg) }
svg .tick { font-size: 12px; fill: var(--dim) }
svg .end { font-weight: 600 }
.lane { stroke: var(--line) }
.pause { fill: var(--line); opacity: .35 }
.axis { stroke: var(--dim) }
.bar text { fill: var(--on); font-size: 12px; font-weight: 600; pointer-events: none }
.bar.kept rect { fill: var(--kept) } .bar.failed rect { fill: var(--failed) } .bar.broken rect { fill: var(--broken) }
.bar.stopped rect { fill: var(--stopped) }
.line { fill: none; stroke: var(--area); stroke-width: 2; stroke-linejoin: round }
.area { fill: var(--area); opacity: .15 }
.line.lost { stroke: var(--warn); stroke-dasharray: 5 3 }
.area.lost { fill: var(--warn) }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 8px 0 0; padding: 0; list-style: none; color: var(--dim); font-size: 13px }
.key { display: inline-block; min-width: 20px; padding: 0 4px; border-radius: 4px; color: var(--on); font-size: 12px; font-weight: 700; text-align: center }
.key.kept { background: var(--kept) } .key.failed { background: var(--failed) } .key.broken { background: var(--broken) }
.key.stopped { background: var(--stopped) }
.swatch { display: inline-block; width: 22px; border-top: 3px solid var(--area); vertical-align: 4px }
.swatch.lost { border-top: 3px dashed var(--warn) }
table { width: 100%; min-width: 720px; border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: 7px 10px; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
th { color: var(--dim); font-size: 13px; font-weight: 600 }
td { overflow-wrap: anywhere }
th.n, td.n { text-align: right; white-space: nowrap }
td:has(> .key) { white-space: nowrap }
summary { cursor: pointer }
pre { margin: 6px 0 0; padding: 8px; border-radius: 6px; background: var(--card); font-size: 12.5px; white-space: pre-wrap }
@media print { main { max-width: none; padding: 0 } section { break-inside: avoid } }
`
