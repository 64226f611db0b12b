// The work trees of a repository, as git's own files name them: no process is started. Loads next to nothing: a status line needs it.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Repository } from '../git.ts'

/** The main checkout, this one, and every linked one; whether they are still there is not asked. */
export function worktreesOf({ gitCommonDir, worktree }: Omit<Repository, 'gitDir'>): readonly string[] {
  const linked = linkedNames(gitCommonDir).map((name) =>
    linkedTo(join(gitCommonDir, 'worktrees', name, 'gitdir')),
  )
  const main = basename(gitCommonDir) === '.git' ? [dirname(gitCommonDir)] : []
  return [...new Set([worktree, ...main, ...linked.filter((tree) => tree !== undefined)])]
}

/** By its `gitdir` file. */
export function linkedTo(file: string): string | undefined {
  try {
    return dirname(readFileSync(file, 'utf8').trim())
  } catch {
    // Removed at this moment.
    return undefined
  }
}

/** What git calls each of them. */
export function linkedNames(gitCommonDir: string): string[] {
  try {
    const folder = join(gitCommonDir, 'worktrees')
    return existsSync(folder) ? readdirSync(folder) : []
  } catch {
    // None yet.
    return []
  }
}
