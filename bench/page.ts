// docs/performance.md, from the results.
import type { Spread } from './measure.ts'
import { goalIn, rows, type Result, type Row } from './rows.ts'

export interface Results {
  readonly machine: {
    readonly cores: number
    readonly memory_gb: number
    readonly platform: string
    readonly node: string
    readonly git: string
    /** Of one written page to the disk that the repositories were on. */
    readonly sync_ms: number
    /** Of all cores, what was busy with something else meanwhile. */
    readonly others_percent: number
  }
  readonly rows: readonly Result[]
}

export function inWords(spread: Spread | undefined, unit: Row['unit']): string {
  if (spread === undefined) return '–'
  const show = (value: number): string =>
    value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString('en')
  const { median, low, high, samples } = spread
  return `${show(median)} ${unit}${samples > 1 ? ` (${show(low)} to ${show(high)})` : ''}`
}

/** A shell's memory is no measure for a program's. */
export function ratioIn({ unit }: Row, { floor, ralph }: Result): string {
  return floor === undefined || unit === 'MB' ? '' : `, ${(ralph.median / floor.median).toFixed(2)}x`
}

export function page({ machine, rows: results }: Results): string {
  const line = (row: Row): string => {
    const result = results.find(({ name }) => name === row.name)
    if (result === undefined) return `| ${row.title} | – | – | not measured yet | ${goalIn(row)} | – |`
    const floor = result.floor === undefined ? '–' : `${inWords(result.floor, row.unit)}, ${row.floor}`
    const ours = `${inWords(result.ralph, row.unit)}${ratioIn(row, result)}`
    const cells = [
      row.title,
      floor,
      inWords(result.ralph_tui, row.unit),
      ours,
      goalIn(row),
      result.is_met ? 'yes' : '**no**',
    ]
    return `| ${cells.join(' | ')} |`
  }
  const dates = [...new Set(results.map(({ date }) => date))].sort()
  const busy =
    machine.others_percent > 25
      ? '\n**Too busy to judge milliseconds: the sizes hold, the ratios roughly.**'
      : ''
  const missed = rows.filter((row) => results.some(({ name, is_met }) => name === row.name && !is_met))
  return `# Performance

<!-- Written by \`npm run bench -- --peers\` from bench/results.json: change bench/page.ts and bench/rows.ts instead. -->

The built program, compared with the least that does the work at all (the floor) and with ralph-tui 0.11, all measured in one run.
Compare figures within a row, not with those of another machine.

Measured on ${dates.join(', ')}: ${machine.platform}, ${machine.cores} cores, ${machine.memory_gb} GB, Node ${machine.node}, git ${machine.git}; ${machine.sync_ms.toFixed(1)} ms for
one small write to reach the disk; other programs used ${Math.round(machine.others_percent)} % of the cores meanwhile.${busy}

| | floor | ralph-tui 0.11 | ralph, and its ratio to the floor | goal | met |
|---|---|---|---|---|---|
${rows.map(line).join('\n')}

${missed.length === 0 ? 'Every goal is met.' : `## Goals not met, and why\n\n${missed.map(({ title, missing }) => `- *${title}*: ${missing}`).join('\n')}`}

## How it is measured

\`\`\`sh
npm run bench                     # all rows; exit code 1 when one misses its goal
npm run bench -- --peers          # with ralph-tui, installed into .cache/peers (400 MB)
npm run bench -- between status   # only these rows
npm run bench -- --quick          # a short try: printed only, not compared with the goals
\`\`\`

- Shown are medians, with the quartiles in brackets, of the half of the samples in which other programs used the machine least. The programs
  of a row run in random order, each in a fresh copy of the same repository: 100 files, 20 stories, on a disk; the copies are
  removed when all is measured.
- The agent is a bash script that prints Claude's stream-json and records when it began and ended. It reads its prompt, adds a line to
  a file, and takes about five milliseconds. \`openspec\` is on the PATH, as the project's own dependency.
- The floor of a story is a shell loop: \`git rev-parse HEAD\`, the agent, \`git add -A\`, \`git commit\`. It syncs nothing, so a power cut may
  lose its last commits. ralph syncs its commits before it reports them, and its figures include that.
- The 200 MB are 6,000 turns: text and tool input in deltas, the same again as messages, and tool results.
- Memory is the peak of the program's own process, without git and the agent. Growth of \`.git\` is measured with \`du\`.
- The screens run on a pseudo terminal of 120x40, with a key every one and a half seconds; pictures are counted in seconds without one.
- With 100,000 files, every attempt changes ten files, adds five and removes one; every second attempt fails.
- ralph-tui runs headless with its commits on and its pause between stories off.
`
}
