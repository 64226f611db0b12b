// Git allows a branch in one work tree only: refuses where another one stands on it, and says how to give it free.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { RalphError, type ErrorCode } from '../../../core/error.ts'
import { shellWord } from '../../process/shell-word.ts'
import { bytesOf } from '../formats/bytes.ts'
import type { Git } from '../git.ts'
import { headText } from '../formats/ref-files.ts'
import { shortName } from './refs.ts'

/** `next`: what to do once it is free. */
export function refuseTaken(
  git: Git,
  ref: string,
  { code, safe, next }: { code: ErrorCode; safe: string; next: string },
): void {
  const folder = holderOf(git, ref)
  if (folder === undefined) return
  throw new RalphError(code, `${shortName(ref)} is checked out in another work tree: ${folder}`, {
    hint: `${safe} Free the branch there (\`git -C ${shellWord(folder)} switch --detach\`), then ${next}.`,
  })
}

/** Not one whose folder is gone: nobody stands there any more. */
function holderOf(git: Git, ref: string): string | undefined {
  const head = bytesOf(`ref: ${ref}`).toString('latin1')
  const linked = join(git.gitCommonDir, 'worktrees')
  const names = existsSync(linked) ? readdirSync(linked) : []
  return [git.gitCommonDir, ...names.map((name) => join(linked, name))]
    .filter((gitDir) => gitDir !== git.gitDir && headText(gitDir) === head)
    .map((gitDir) => (gitDir === git.gitCommonDir ? mainFolder(gitDir) : linkedFolder(gitDir)))
    .find((folder) => folder !== undefined && existsSync(folder))
}

/** As `git worktree list` finds it. */
export function mainFolder(gitDir: string): string {
  return basename(gitDir) === '.git' ? dirname(gitDir) : gitDir
}

function linkedFolder(gitDir: string): string | undefined {
  const file = join(gitDir, 'gitdir')
  return existsSync(file) ? dirname(resolve(gitDir, readFileSync(file, 'utf8').trimEnd())) : undefined
}
