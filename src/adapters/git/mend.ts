// Makes a repository usable again that an agent has broken, and git obey the user alone: permissions, HEAD, settings, hooks, info/.
import { join } from 'node:path'
import { readIfThere, writeDurably } from '../files/whole.ts'
import { bytesOf } from './bytes.ts'
import { insistOnConversions } from './conversions.ts'
import { putBackGuarded } from './guarded.ts'
import { openRepository } from './open.ts'
import type { Store } from './store.ts'
import type { Snapshot } from './snapshot.ts'

/** Before any git command after attempt `n`. Says what it did; of settings, hooks and info/ that is told when the attempt is settled. */
export async function mendRepository(store: Store, snapshot: Snapshot, n: number): Promise<string[]> {
  openRepository(store.git)
  const mended = [...(await mendHead(store, snapshot)), ...(await putBackGuarded(store, snapshot, n))]
  return [...mended, ...(await insistOnConversions(store, snapshot))]
}

async function mendHead({ git }: Store, { head }: Snapshot): Promise<string[]> {
  const file = join(git.gitDir, 'HEAD')
  const text = (await readIfThere(file))?.toString('latin1') ?? ''
  if (/^(ref: refs\/\S+|[0-9a-f]{40,64})\s*$/.test(text)) return []
  await writeDurably(file, bytesOf(head.ref === '' ? `${head.commit}\n` : `ref: ${head.ref}\n`))
  return ['the agent broke HEAD; it is back']
}
