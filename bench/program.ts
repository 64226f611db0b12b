// The built program as a whole, row by row: `npm run bench [row …] [--peers] [--quick]`; exit code 1 when a goal is missed.
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { cpus, totalmem, type } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { makeBed, type Samples, type Size } from './bed.ts'
import { median, run } from './measure.ts'
import { inWords, page, ratioIn, type Results } from './page.ts'
import { goalIn, resultOf, rows, type Row } from './rows.ts'

const whole: Size = {
  rounds: 5,
  stories: 20,
  megabytes: 200,
  longStories: 300,
  longestStories: 1000,
  refs: 20_000,
  files: 100_000,
  looks: 11,
  napSeconds: 20,
}
const quick: Size = {
  rounds: 2,
  stories: 4,
  megabytes: 10,
  longStories: 15,
  longestStories: 20,
  refs: 500,
  files: 2000,
  looks: 2,
  napSeconds: 5,
}

const root = resolve(import.meta.dirname, '..')
const [resultsFile, pageFile] = [join(root, 'bench/results.json'), join(root, 'docs/performance.md')]
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { peers: { type: 'boolean' }, quick: { type: 'boolean' }, page: { type: 'boolean' } },
})
if (values.page === true) {
  writePage()
} else {
  const isOf = (wanted: string, { name }: Row): boolean => name === wanted || name.startsWith(`${wanted}-`)
  const unknown = positionals.find((wanted) => !rows.some((row) => isOf(wanted, row)))
  if (unknown !== undefined)
    throw new Error(`no row ${unknown}; there are: ${rows.map(({ name }) => name).join(', ')}`)
  const chosen = rows.filter(
    (row) => positionals.length === 0 || positionals.some((wanted) => isOf(wanted, row)),
  )
  const results = await measured(chosen)
  if (values.quick !== true) {
    const earlier = existsSync(resultsFile)
      ? (JSON.parse(readFileSync(resultsFile, 'utf8')) as Results).rows
      : []
    const all = rows.flatMap(
      ({ name }) => [...results.rows, ...earlier].find((result) => result.name === name) ?? [],
    )
    const rounded = (_: string, value: unknown): unknown =>
      typeof value === 'number' ? Math.round(value * 100) / 100 : value
    writeFileSync(resultsFile, `${JSON.stringify({ ...results, rows: all }, rounded, 2)}\n`)
    writePage()
  }
  // The goals are for the whole sizes.
  process.exitCode = values.quick === true || results.rows.every(({ is_met }) => is_met) ? 0 : 1
}

/** From the file, so that it can be written again from there. */
function writePage(): void {
  writeFileSync(pageFile, page(JSON.parse(readFileSync(resultsFile, 'utf8')) as Results))
}

async function measured(chosen: readonly Row[]): Promise<Results> {
  const bed = makeBed(values.quick === true ? quick : whole, values.peers === true)
  const syncMs = oneSync(join(bed.root, 'synced'))
  const results = []
  const others: number[] = []
  try {
    for (const by of new Set(chosen.map((row) => row.by))) {
      const samples: Samples = await by(bed)
      others.push(...Object.values(samples).flatMap((of) => (of.ralph ?? []).map((each) => each.others)))
      for (const row of chosen.filter((each) => each.by === by)) {
        const result = { ...resultOf(row, samples), date: new Date().toISOString().slice(0, 10) }
        results.push(result)
        const { floor, ralph, ralph_tui: peer, is_met: isMet } = result
        console.log(
          `${isMet ? 'ok    ' : 'MISSED'} ${row.name.padEnd(13)} floor ${inWords(floor, row.unit)}; ralph ${inWords(ralph, row.unit)}${ratioIn(row, result)}; ${peer === undefined ? '' : `ralph-tui ${inWords(peer, row.unit)}; `}goal ${goalIn(row)}`,
        )
      }
    }
  } finally {
    rmSync(bed.root, { recursive: true, force: true })
  }
  return {
    machine: {
      cores: cpus().length,
      memory_gb: Math.round(totalmem() / 2 ** 30),
      platform: type(),
      node: process.versions.node,
      git: run(root, 'git', '--version').replace('git version ', '').trim(),
      sync_ms: syncMs,
      others_percent: median(others) * 100,
    },
    rows: results,
  }
}

function oneSync(path: string): number {
  const file = openSync(path, 'w')
  const times = Array.from({ length: 20 }, () => {
    const from = performance.now()
    writeSync(file, 'a line of a journal\n')
    fsyncSync(file)
    return performance.now() - from
  })
  closeSync(file)
  return median(times)
}
