// Git allows a branch in one work tree only: refuses where another one stands on it, and says how to give it free.
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { RalphError, type ErrorCode } from '../../../core/error.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { bytesOf } from '../formats/bytes.ts'
import type { Git } from '../git.ts'
import { linkedNames } from '../formats/linked-trees.ts'
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

/** Of the other work trees, the one that stands on it. Not one whose folder is gone, or is something else now: nobody stands there any more. */
export function holderOf(git: Git, ref: string): string | undefined {
  const head = bytesOf(`ref: ${ref}`).toString('latin1')
  return gitDirsBeside(git)
    .filter((gitDir) => headText(gitDir) === head)
    .map((gitDir) => (gitDir === git.gitCommonDir ? mainFolder(gitDir) : linkedFolder(gitDir)))
    .find((folder) => folder !== undefined)
}

function gitDirsBeside({ gitDir: own, gitCommonDir }: Git): string[] {
  const linked = linkedNames(gitCommonDir).map((name) => join(gitCommonDir, 'worktrees', name))
  return [gitCommonDir, ...linked].filter((gitDir) => gitDir !== own)
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

/** Undefined unless what stands there is of this repository. */
function linkedFolder(gitDir: string): string | undefined {
  try {
    const link = resolve(gitDir, readFileSync(join(gitDir, 'gitdir'), 'utf8').trimEnd())
    const back = /^gitdir: (.*)$/m.exec(readFileSync(link, 'utf8'))?.[1] ?? ''
    return realpathSync(resolve(dirname(link), back)) === realpathSync(gitDir) ? dirname(link) : undefined
  } catch {
    return undefined
  }
}
