// A checkpoint, a revert and a failed attempt in a large repository, beside plain git in another one like it.
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writePlan, type Bed, type Samples, type Turn } from './bed.ts'
import { run, shuffled, watch, type Sample } from './measure.ts'
import { program } from './peer-programs.ts'

/** In each run of ralph; each of them fails once. */
const stories = 2
const roundsOf = (bed: Bed): number => Math.ceil(bed.size.rounds / 2)

export async function large(bed: Bed): Promise<Samples> {
  const samples = {
    large: { floor: [] as Sample[], ralph: [] as Sample[] },
    'large-failed': { floor: [] as Sample[], ralph: [] as Sample[] },
  }
  const [plain, own] = [makeRepository(bed, 'plain'), makeRepository(bed, 'own')]
  const runs = {
    async floor(): Promise<void> {
      for (let story = 0; story < stories; story += 1) {
        const taken = await plainly(bed, plain, 'git add -A && git commit -qm checkpoint')
        const undone = await plainly(bed, plain, 'git reset -q --hard && git clean -fdq')
        const others = Math.max(taken.others, undone.others)
        samples.large.floor.push({ value: taken.value + undone.value, others })
        samples['large-failed'].floor.push({ value: taken.value + undone.value, others })
      }
    },
    async ralph(round: number): Promise<void> {
      const { turns, told, others } = await loop(bed, own, `change-${round}`)
      run(own, 'git', 'switch', '-q', 'main')
      for (let story = 0; story < stories; story += 1) {
        const [failed, good] = [turns[2 * story], turns[2 * story + 1]]
        const [reverted, saved] = [told.reverted[story], told.saved[story]]
        if (failed === undefined || good === undefined || reverted === undefined || saved === undefined)
          throw new Error(
            `ralph told of ${told.saved.length} checkpoints and ${told.reverted.length} reverts`,
          )
        samples.large.ralph.push({ value: saved - good.endedMs + reverted - failed.endedMs, others })
        samples['large-failed'].ralph.push({ value: good.beganMs - failed.endedMs, others })
      }
    },
  }
  for (let round = 0; round < roundsOf(bed); round += 1) {
    for (const who of shuffled(['floor', 'ralph'] as const)) await runs[who](round)
  }
  for (const folder of [plain, own]) rmSync(folder, { recursive: true })
  return samples
}

/** How long it takes after an attempt. */
async function plainly(bed: Bed, cwd: string, command: string): Promise<Sample> {
  const env = { ...bed.env, STAND_IN: 'large', RALPH_ITERATION: '2' }
  execFileSync('claude', ['-p'], { cwd, env, input: '' })
  bed.turns()
  const { ms, code, others } = await watch(['sh', '-c', command], { cwd, env })
  if (code !== 0) throw new Error(`${command} ended with ${code}`)
  return { value: ms, others }
}

/** One run of ralph, and when it told what it had done. */
async function loop(
  bed: Bed,
  cwd: string,
  change: string,
): Promise<{ turns: readonly Turn[]; told: Record<'saved' | 'reverted', number[]>; others: number }> {
  const told = { saved: [] as number[], reverted: [] as number[] }
  let rest = ''
  const { code, said, others } = await watch(
    [process.execPath, program, 'loop', change, '--agent', 'claude', '--json'],
    {
      cwd,
      env: { ...bed.env, STAND_IN: 'large' },
      hear(chunk, atMs) {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) {
          const { type, n } = JSON.parse(line) as { type: string; n?: number }
          // The first one is of the start.
          if (type === 'checkpoint.saved' && n !== undefined) told.saved.push(atMs)
          if (type === 'checkpoint.reverted') told.reverted.push(atMs)
        }
      },
    },
  )
  if (code !== 0) throw new Error(`ralph ended with ${code} in the large repository: ${said}`)
  return { turns: bed.turns(), told, others }
}

function makeRepository(bed: Bed, name: string): string {
  const folder = join(bed.root, name)
  const { files } = bed.size
  const folders = Math.ceil(files / 100)
  for (let n = 0; n < files; n += 1) {
    if (n < folders) mkdirSync(join(folder, `d${n}`), { recursive: true })
    writeFileSync(join(folder, `d${n % folders}`, `f${n}.txt`), `file ${n}\n`)
  }
  for (let round = 0; round < roundsOf(bed); round += 1) writePlan(folder, `change-${round}`, stories)
  run(folder, 'git', 'init', '-q', '-b', 'main')
  run(folder, 'git', 'config', 'user.email', 'bench@example.invalid')
  run(folder, 'git', 'config', 'user.name', 'bench')
  // It would begin in the middle of a sample.
  run(folder, 'git', 'config', 'gc.auto', '0')
  run(folder, 'git', 'add', '-A')
  run(folder, 'git', 'commit', '-qm', 'start')
  return folder
}
