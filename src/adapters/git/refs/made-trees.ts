// Work trees that an agent made with `git worktree add`: removed where that loses nothing, named where it would.
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isWithin } from '../../../core/cage.ts'
import { sandboxedMark } from '../../files/paths.ts'
import { readIfThere } from '../../files/whole.ts'
import type { Ledger } from '../../../core/ownership.ts'
import { mountsBelow } from '../../files/mounts.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { textOf } from '../formats/bytes.ts'
import { linkedTo } from '../formats/linked-trees.ts'
import type { Git } from '../git.ts'
import type { Snapshot } from '../revert/snapshot.ts'

export interface MadeTree {
  /** In `.git/worktrees`. */
  readonly name: string
  readonly folder: string
  /** The branch that it stands on; empty when detached. */
  readonly branch: string
  readonly head: string
}

/**
 * What an agent's git reports an agent can write: one that was there before the attempt was made by nobody in it. Nor was, where agents are caged, one
 * that lies elsewhere than their work: what they make in a folder of their own is gone with it.
 */
export function namesMade(
  git: Pick<Git, 'worktree' | 'gitCommonDir'>,
  { worktrees = [] }: Pick<Snapshot, 'worktrees'>,
  { trees }: Ledger,
): string[] {
  const isCaged = existsSync(sandboxedMark(git.gitCommonDir))
  const isReached = (name: string): boolean => {
    const folder = linkedTo(join(git.gitCommonDir, 'worktrees', name, 'gitdir'))
    return folder === undefined || !existsSync(folder) || isWithin(realpathSync(folder), git.worktree)
  }
  return trees.filter(
    (name) => !worktrees.includes(name) && !name.includes('/') && (!isCaged || isReached(name)),
  )
}

/** Those that are still there and have a commit. */
export async function madeTrees(git: Git, snapshot: Snapshot, ledger: Ledger): Promise<MadeTree[]> {
  const found = await Promise.all(namesMade(git, snapshot, ledger).map((name) => madeTree(git, name)))
  return found.filter((tree) => tree !== undefined)
}

async function madeTree(git: Git, name: string): Promise<MadeTree | undefined> {
  const gitDir = join(git.gitCommonDir, 'worktrees', name)
  const [dotGit, head] = await Promise.all(['gitdir', 'HEAD'].map((file) => readIfThere(join(gitDir, file))))
  if (dotGit === undefined || head === undefined) return undefined
  const { out, code } = await git.run([`--git-dir=${gitDir}`, 'rev-parse', '--verify', '--quiet', 'HEAD'], {
    accept: [1, 128],
  })
  if (code !== 0) return undefined
  return {
    name,
    folder: dotGit.toString('utf8').replace(/\/\.git\n?$/, ''),
    branch: /^ref: (.*)$/m.exec(textOf(head.toString('latin1')))?.[1] ?? '',
    head: out.trim(),
  }
}

/** Returns those that stay: git itself refuses to remove one with changes or new files, but not one with ignored files. */
export async function removeTrees(git: Git, trees: readonly MadeTree[]): Promise<MadeTree[]> {
  const standing: MadeTree[] = []
  for (const tree of trees) {
    const { out } = await inside(git, tree).run(['status', '--porcelain', '--ignored'], { accept: [128] })
    const { code } =
      out === '' && mountsBelow(tree.folder).length === 0
        ? await git.run(['worktree', 'remove', tree.folder], { accept: [1, 128] })
        : { code: 1 }
    if (code !== 0) standing.push(tree)
  }
  return standing
}

export function inside(git: Git, { name, folder }: MadeTree): Git {
  const gitDir = join(git.gitCommonDir, 'worktrees', name)
  return git.at({ worktree: folder, gitDir, gitCommonDir: git.gitCommonDir })
}

export function treeTold({ folder, branch }: MadeTree, stays: boolean): string {
  if (!stays)
    return `the agent made the work tree ${folder}; nothing in it was uncommitted or ignored, and it was removed`
  const name = branch.replace('refs/heads/', '')
  const and = name === '' ? '' : ` && git branch -D ${shellWord(name)}`
  return `the agent made the work tree ${folder}${name === '' ? '' : ` with the branch ${name}`}; it has files that no commit holds, so it stays. This removes it: git worktree remove --force ${shellWord(folder)}${and}`
}
