// `npm run torture`: rounds side by side, one line each, a table at the end; see docs/torture.md.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { judge } from './oracle.ts'
import { modes, planRound, type Mode } from './plan.ts'
import { playRound, type Fault } from './play.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    from: { type: 'string', default: '0' },
    mode: { type: 'string' },
    workers: { type: 'string', default: '2' },
    plan: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
})
const seed = Number(values.seed)
const mode = modes.find((each) => each === values.mode)
const first = Number(values.only ?? values.from)
const count = values.only === undefined ? Number(values.rounds) : 1
const totals: Record<Fault['kind'], number> = { lost: 0, lie: 0, 'dead end': 0, process: 0, left: 0 }
const byMode = new Map<Mode, { rounds: number; failed: number; ms: number }>()
const failed: string[] = []

if (values.plan) {
  console.log(JSON.stringify(planRound(seed, first, mode), undefined, 2))
  process.exit(0)
}

let next = first
async function worker(): Promise<void> {
  while (next < first + count) {
    const round = next
    next += 1
    await oneRound(round)
  }
}

async function oneRound(round: number): Promise<void> {
  const plan = planRound(seed, round, mode)
  const began = performance.now()
  const played = await playRound(plan)
  const faults = judge(played)
  const ms = performance.now() - began
  for (const { kind } of faults) totals[kind] += 1
  const row = byMode.get(plan.mode) ?? { rounds: 0, failed: 0, ms: 0 }
  byMode.set(plan.mode, {
    rounds: row.rounds + 1,
    failed: row.failed + (faults.length > 0 ? 1 : 0),
    ms: row.ms + ms,
  })
  const events = plan.events.map(({ act }) =>
    act.do === 'kill' ? `kill ${act.whom}` : act.do === 'user' ? act.deed : act.signal,
  )
  console.log(
    `${faults.length === 0 ? 'ok  ' : 'FAIL'} ${round} ${plan.mode}${plan.isDetached && plan.mode !== 'detached' ? ', detached' : ''} ${plan.choice} ${(ms / 1000).toFixed(1)}s ${played.said.length} commands [${events.join(', ')}]`,
  )
  for (const fault of faults) console.log(`     ${fault.kind}: ${fault.text}`)
  if (faults.length > 0) {
    const replay = `npm run torture -- --seed ${seed} --only ${round}${mode === undefined ? '' : ` --mode ${mode}`}`
    failed.push(replay)
    writeFileSync(
      join(played.world.root, 'story.txt'),
      `${replay}\n${played.story.join('\n')}\n${faults.map(({ kind, text }) => `${kind}: ${text}`).join('\n')}\n`,
    )
    console.log(`     ${played.world.root}/story.txt\n     ${replay}`)
  } else if (!values.keep) rmSync(played.world.root, { recursive: true, force: true })
  else writeFileSync(join(played.world.root, 'story.txt'), `${played.story.join('\n')}\n`)
}

await Promise.all(Array.from({ length: Math.min(count, Number(values.workers)) }, () => worker()))

console.log('\nmode       rounds  failed  s/round')
for (const [name, row] of [...byMode].toSorted(([one], [other]) => one.localeCompare(other)))
  console.log(
    `${name.padEnd(10)} ${String(row.rounds).padStart(6)}  ${String(row.failed).padStart(6)}  ${(row.ms / row.rounds / 1000).toFixed(1).padStart(7)}`,
  )
for (const replay of failed) console.log(replay)
console.log(
  `\n${count} rounds, ${totals.lost} lost, ${totals.lie} lies, ${totals['dead end']} dead ends, ${totals.process} left processes, ${totals.left} left files (seed ${seed})`,
)
process.exit(failed.length === 0 ? 0 : 1)
