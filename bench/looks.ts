// Commands that only look, in a repository in the middle of a plan, beside an empty node.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writePlan, type Bed, type Samples } from './bed.ts'
import { commitRepository, shuffled, watch, type Sample } from './measure.ts'
import { program } from './peer-programs.ts'

export const looked = {
  version: ['--version'],
  help: ['--help'],
  status: ['status'],
  list: ['list'],
  show: ['show', 'demo'],
  prompt: ['prompt', 'demo'],
  config: ['config'],
  doctor: ['doctor'],
  statusline: ['statusline'],
} satisfies Record<string, readonly string[]>

export async function looks(bed: Bed): Promise<Samples> {
  const folder = join(bed.root, 'looked-at')
  mkdirSync(folder)
  writePlan(folder, 'demo', 5)
  commitRepository(folder)
  const how = { cwd: folder, env: { ...bed.env, STAND_IN: 'works' } }
  const loop = ['loop', 'demo', '--agent', 'claude', '--max-iterations', '3']
  const { code } = await watch([process.execPath, program, ...loop], how)
  if (code !== 3) throw new Error(`the loop to look at ended with ${code}`)
  bed.turns()
  const empty = join(bed.root, 'empty.cjs')
  writeFileSync(empty, '')
  const floor: Sample[] = []
  const samples = Object.fromEntries(Object.keys(looked).map((name) => [name, [] as Sample[]]))
  const timed = async (args: readonly string[]): Promise<Sample> => {
    const { ms, code, others } = await watch([process.execPath, ...args], how)
    // 1 and above 2: it could not look. 2 is what doctor finds wrong.
    if (code !== 0 && !(code === 2 && args.includes('doctor')))
      throw new Error(`${args.join(' ')} ended with ${code}`)
    return { value: ms, others }
  }
  for (let round = 0; round < bed.size.looks; round += 1) {
    for (const [name, args] of shuffled<[string, readonly string[]]>([['', []], ...Object.entries(looked)])) {
      if (name === '') floor.push(await timed([empty]))
      else samples[name]?.push(await timed([program, ...args]))
    }
  }
  return Object.fromEntries(Object.entries(samples).map(([name, ralph]) => [name, { floor, ralph }]))
}
