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
  return gitDirsBeside(git)
    .filter((gitDir) => headText(gitDir) === head)
    .map((gitDir) => (gitDir === git.gitCommonDir ? mainFolder(gitDir) : linkedFolder(gitDir)))
    .find((folder) => folder !== undefined && existsSync(folder))
}

function gitDirsBeside({ gitDir: own, gitCommonDir }: Git): string[] {
  const linked = join(gitCommonDir, 'worktrees')
  const names = existsSync(linked) ? readdirSync(linked) : []
  return [gitCommonDir, ...names.map((name) => join(linked, name))].filter((gitDir) => gitDir !== own)
}

/** Of the other work trees, but for those that the agent made: which ref each stands on, and where its own record (the reflog of its HEAD) says that this is; undefined without one. */
export function checkoutsBeside(
  git: Git,
  made: readonly string[],
): readonly { readonly ref: string | undefined; readonly tip: string | undefined }[] {
  const others = gitDirsBeside(git).filter(
    (gitDir) => !made.includes(basename(gitDir)) || gitDir === git.gitCommonDir,
  )
  return others.map((gitDir) => {
    const log = join(gitDir, 'logs', 'HEAD')
    const last = existsSync(log) ? readFileSync(log, 'latin1').trimEnd().split('\n').at(-1) : undefined
    return { ref: /^ref: (.*)$/.exec(headText(gitDir))?.[1], tip: last?.split(' ')[1] }
  })
}

/** As `git worktree list` finds it. */
export function mainFolder(gitDir: string): string {
  return basename(gitDir) === '.git' ? dirname(gitDir) : gitDir
}

function linkedFolder(gitDir: string): string | undefined {
  const file = join(gitDir, 'gitdir')
  return existsSync(file) ? dirname(resolve(gitDir, readFileSync(file, 'utf8').trimEnd())) : undefined
}
