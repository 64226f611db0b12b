// Changes side by side: as many as three by `ralph up --jobs 3`, beside the same one after the other. The agent sleeps, as one that waits for its model.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { writePlan } from './bed.ts'
import type { Bed, Samples } from './bed.ts'
import { commitRepository, run, shuffled, watch, type Sample } from './measure.ts'
import { program } from './peer-programs.ts'

const changes = ['a', 'b', 'c', 'd', 'e', 'f']

export async function jobs(bed: Bed): Promise<Samples> {
  const taken = { 1: [] as Sample[], 3: [] as Sample[] }
  for (let round = 0; round < Math.ceil(bed.size.rounds / 4); round += 1) {
    for (const count of shuffled([1, 3] as const)) {
      // Work trees stand beside the repository.
      const around = mkdtempSync(join(bed.root, 'jobs-'))
      const cwd = join(around, 'repository')
      try {
        for (const change of changes) writePlan(cwd, change, 1)
        commitRepository(cwd)
        const env = { ...bed.env, STAND_IN: 'sleeps', NAP: String(bed.size.napSeconds) }
        const command = [process.execPath, program, 'up', '--jobs', String(count), '--agent', 'claude']
        const { ms, code, others, said } = await watch(command, { cwd, env })
        const target = run(cwd, 'git', 'branch', '--show-current').trim()
        const landed = run(cwd, 'git', 'rev-list', '--count', `${target}..refs/ralph-landed/${target}`)
        if (code !== 0 || Number(landed) !== changes.length)
          throw new Error(`${landed.trim()} changes landed, exit code ${code}: ${said}`)
        taken[count].push({ value: ms, others })
      } finally {
        rmSync(around, { recursive: true, force: true })
      }
    }
  }
  bed.turns()
  return { jobs: { floor: taken[1], ralph: taken[3] } }
}
