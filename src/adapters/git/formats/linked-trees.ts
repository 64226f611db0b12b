// The work trees of a repository, as git's own files name them: no process is started. Loads next to nothing: a status line needs it.
import { readFileSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Repository } from '../git.ts'

/** The main checkout, this one, and every linked one; whether they are still there is not asked. */
export function worktreesOf({ gitCommonDir, worktree }: Omit<Repository, 'gitDir'>): readonly string[] {
  const folder = join(gitCommonDir, 'worktrees')
  const linked = namesIn(folder).map((name) => linkedTo(join(folder, name, 'gitdir')))
  const main = basename(gitCommonDir) === '.git' ? [dirname(gitCommonDir)] : []
  return [...new Set([worktree, ...main, ...linked.filter((tree) => tree !== undefined)])]
}

function linkedTo(file: string): string | undefined {
  try {
    return dirname(readFileSync(file, 'utf8').trim())
  } catch {
    // Removed at this moment.
    return undefined
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    // None yet.
    return []
  }
}
