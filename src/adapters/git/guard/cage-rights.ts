// Which parts of the git directory a caged agent may write, and which only read: it commits, but sets nothing that git would obey later.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { changesDir, runPaths } from '../../files/paths.ts'
import { onDisk } from '../tree/files.ts'
import { linkedNames } from '../formats/linked-trees.ts'
import type { Repository } from '../git.ts'
import { ofRepository } from './guarded-files.ts'
import { checkpointFolder } from '../store.ts'

/** The work tree is not among the read-only ones; what is not there is left out by whoever mounts it. */
export function cagedGit({ worktree, gitDir, gitCommonDir: common }: Repository): {
  readonly writable: readonly string[]
  readonly readOnly: readonly string[]
} {
  const own = relative(common, gitDir)
  const trees = linkedNames(common).map((name) => `worktrees/${name}`)
  const others = trees.filter((name) => name !== own)
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

/** Of plans, made outside: a link in the plan may have led to anything. Earlier runs have theirs, too. */
export function copiesOf({ gitCommonDir }: Repository): readonly string[] {
  const namesIn = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : [])
  return namesIn(changesDir(gitCommonDir)).flatMap((change) => {
    const { guard, archive } = runPaths(gitCommonDir, change)
    return [guard, ...namesIn(archive).map((name) => join(archive, name, basename(guard)))]
  })
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
