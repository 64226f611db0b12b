// Loose objects take a block of the disk each, and slow git down by the thousand: those of a run are packed from time to time.
import { rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from '../../files/whole.ts'
import type { Git } from '../git.ts'
import { looseSince } from './sync.ts'

/** Larger ones are few, and cost time to copy. */
const maxBytes = 1024 * 1024

/** Whether it is time for it, after so many attempts: early once, then seldom enough that there are few packs. */
export function isPackDue(attempts: number): boolean {
  return attempts === 16 || (attempts > 0 && attempts % 32 === 0)
}

/** Of those written since then; older ones are the user's, and so is when to pack them. Says how many. */
export async function packLoose(git: Git, sinceMs: number): Promise<number> {
  const objects = join(git.gitCommonDir, 'objects')
  const found = looseSince(git, sinceMs, maxBytes)
  if (found.length === 0) return 0
  const settings = ['-c', 'core.fsync=pack,pack-metadata', '-c', 'pack.threads=1']
  await git.run([...settings, 'pack-objects', '-q', join(objects, 'pack', 'pack')], {
    input: `${found.map(({ hash }) => hash).join('\n')}\n`,
  })
  // Only then: after a power cut each is in one place at least.
  await syncFolder(join(objects, 'pack'))
  for (const { file } of found) await rm(file, { force: true })
  // Those that are empty now.
  for (const folder of new Set(found.map(({ file }) => dirname(file))))
    await rmdir(folder).catch(() => undefined)
  return found.length
}
