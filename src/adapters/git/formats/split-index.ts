// An index that is split leans on a second file, which git removes when it likes: whatever copy ralph keeps is made whole.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { Git } from '../git.ts'

/** `core.splitIndex`, `git update-index --split-index`. Hardly anybody has one, and the look for the second file, in this folder, is a short one. */
export function isSplit(index: string, folder: string): boolean {
  const isBeside = readdirSync(folder).some((name) => name.startsWith('sharedindex.'))
  return isBeside && existsSync(index) && readFileSync(index).includes('link')
}

export async function makeWhole(git: Git, copy: string): Promise<void> {
  await git.run(['update-index', '--no-split-index', '--force-write-index'], { index: copy })
}
