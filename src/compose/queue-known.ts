// Whether a merge queue ever ran in a repository: where none did, nothing of it is loaded.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Git } from '../adapters/git/git.ts'

/** Somebody may have deleted its own folder: git still knows what landed. */
export function hasQueue({ gitCommonDir }: Pick<Git, 'gitCommonDir'>): boolean {
  return ['ralph/queue', 'refs/ralph-landed'].some((each) => existsSync(join(gitCommonDir, each)))
}
