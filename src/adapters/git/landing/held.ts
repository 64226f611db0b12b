// Who stands on a branch that is to move: it is checked out, rebased or bisected in some work tree.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ifThereNow } from '../../files/whole.ts'
import type { Git } from '../git.ts'

/** `git worktree list` does not know of one that is being rebased or bisected. Empty: nobody. */
export async function heldWhere(git: Git, target: string): Promise<string> {
  const { gitCommonDir } = git
  const trees = join(gitCommonDir, 'worktrees')
  const names = ifThereNow(() => readdirSync(trees)) ?? []
  for (const dir of [gitCommonDir, ...names.map((name) => join(trees, name))]) {
    const read = (file: string): string =>
      ifThereNow(() => readFileSync(join(dir, file), 'utf8'))?.trim() ?? ''
    const ref = `refs/heads/${target}`
    const word =
      read('HEAD') === `ref: ${ref}`
        ? 'checked out'
        : ['rebase-merge/head-name', 'rebase-apply/head-name'].some((file) => read(file) === ref) ||
            read('rebase-merge/update-refs').split('\n').includes(ref)
          ? 'being rebased'
          : read('BISECT_START') === target
            ? 'being bisected'
            : ''
    // In a bare one nobody stands: its HEAD is for those who clone it.
    if (word === 'checked out' && dir === gitCommonDir && (await isBare(git))) continue
    if (word !== '') return `${word} in ${dirname(dir === gitCommonDir ? dir : read('gitdir'))}`
  }
  return ''
}

/** Of the repository, whatever its work trees say of themselves. */
async function isBare(git: Git): Promise<boolean> {
  const [, kind] = await git.list(['worktree', 'list', '--porcelain', '-z'])
  return kind === 'bare'
}
