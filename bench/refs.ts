// Stories in a repository with 20,000 branches and tags, packed into one file and each in its own, beside the same without them.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bed, Samples } from './bed.ts'
import { run, shuffled, type Sample } from './measure.ts'

const kinds = ['none', 'packed', 'loose'] as const

export async function refs(bed: Bed): Promise<Samples> {
  const { rounds, stories, refs: count } = bed.size
  const taken = { none: [] as Sample[], packed: [] as Sample[], loose: [] as Sample[] }
  for (let round = 0; round < Math.ceil(rounds / 2); round += 1) {
    for (const kind of shuffled(kinds)) {
      await bed.plan(
        'ralph',
        stories,
        'works',
        ({ ms, others }) => void taken[kind].push({ value: ms / stories, others }),
        { before: (folder) => kind !== 'none' && addRefs(folder, count, kind === 'packed') },
      )
    }
  }
  return {
    'refs-packed': { floor: taken.none, ralph: taken.packed },
    'refs-loose': { floor: taken.none, ralph: taken.loose },
  }
}

/** Half of them branches, half tags, all at the same commit, in folders of a hundred. */
function addRefs(folder: string, count: number, isPacked: boolean): void {
  const commit = run(folder, 'git', 'rev-parse', 'HEAD').trim()
  for (let n = 0; n < count; n += 1) {
    const place = join(folder, '.git/refs', n % 2 === 0 ? 'heads' : 'tags', `group-${Math.floor(n / 200)}`)
    if (n % 200 < 2) mkdirSync(place, { recursive: true })
    writeFileSync(join(place, `name-${n}`), `${commit}\n`)
  }
  if (isPacked) run(folder, 'git', 'pack-refs', '--all')
}
