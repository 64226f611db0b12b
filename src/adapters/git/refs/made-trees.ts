// Work trees that an agent made with `git worktree add`: removed where that loses nothing, named where it would.
import { join } from 'node:path'
import { readIfThere } from '../../files/whole.ts'
import type { Ledger } from '../../../core/ownership.ts'
import { shellWord } from '../../process/shell-word.ts'
import { textOf } from '../formats/bytes.ts'
import type { Git } from '../git.ts'

export interface MadeTree {
  /** In `.git/worktrees`. */
  readonly name: string
  readonly folder: string
  /** The branch that it stands on; empty when detached. */
  readonly branch: string
  readonly head: string
}

/** Those that are still there and have a commit. */
export async function madeTrees(git: Git, { trees }: Ledger): Promise<MadeTree[]> {
  const found = await Promise.all(trees.map((name) => madeTree(git, name)))
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

/** Returns those that stay: git itself refuses to remove one with changes or new files. */
export async function removeTrees(git: Git, trees: readonly MadeTree[]): Promise<MadeTree[]> {
  const standing: MadeTree[] = []
  for (const tree of trees) {
    const { code } = await git.run(['worktree', 'remove', tree.folder], { accept: [1, 128] })
    if (code !== 0) standing.push(tree)
  }
  return standing
}

export function treeTold({ folder, branch }: MadeTree, stays: boolean): string {
  if (!stays)
    return `the agent made the work tree ${folder}; nothing in it was uncommitted, and it was removed`
  const name = branch.replace('refs/heads/', '')
  const and = name === '' ? '' : ` && git branch -D ${shellWord(name)}`
  return `the agent made the work tree ${folder}${name === '' ? '' : ` with the branch ${name}`}; it has changes that no commit holds, so it stays. This removes it: git worktree remove --force ${shellWord(folder)}${and}`
}
