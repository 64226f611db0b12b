// Which parts of the git directory a caged agent may write, and which only read: it commits, but sets nothing that git would obey later.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { onDisk } from '../tree/files.ts'
import type { Repository } from '../git.ts'
import { ofRepository } from './guarded-files.ts'
import { checkpointFolder } from '../store.ts'

/** The work tree is not among the read-only ones; what is not there is left out by whoever mounts it. */
export function cagedGit({ worktree, gitDir, gitCommonDir: common }: Repository): {
  readonly writable: readonly string[]
  readonly readOnly: readonly string[]
} {
  const own = relative(common, gitDir)
  const trees = existsSync(join(common, 'worktrees')) ? readdirSync(join(common, 'worktrees')) : []
  const others = trees.map((name) => `worktrees/${name}`).filter((name) => name !== own)
  return {
    // Each by its own name: what is mounted cannot be moved away to make another.
    writable: [worktree, common, gitDir],
    readOnly: [
      ...ofRepository(common, '').map((name) => onDisk(common, name).toString()),
      ...['ralph', ...others].map((name) => join(common, name)),
      ...['config.worktree', 'info', 'ralph', 'commondir', 'gitdir'].map((name) => join(gitDir, name)),
      // In a work tree of its own the user's checkout is somebody else's: where it stands, and what is staged there.
      ...(own === '' ? [] : ['HEAD', 'index', 'logs/HEAD'].map((name) => join(common, name))),
      ...(own === '' ? [] : [join(worktree, '.git')]),
    ],
  }
}

/** Files of ralph's own by which a caged git tells what it does. */
export function reportsOf(gitCommonDir: string, change: string): readonly string[] {
  const watches = join(checkpointFolder(gitCommonDir, change), 'watch')
  const names = existsSync(watches) ? readdirSync(watches) : []
  return names.flatMap((name) => ['ledger', 'trace'].map((file) => join(watches, name, file)))
}

/** Objects that lie elsewhere have to be seen. Whoever wrote that file: a folder that holds none is not shown. */
export function borrowedFrom({ gitCommonDir: common }: Repository): readonly string[] {
  const file = join(common, 'objects', 'info', 'alternates')
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => resolve(common, 'objects', line))
    .filter((folder) => existsSync(join(folder, 'pack')))
}
