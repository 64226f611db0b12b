// Half-done git operations: merges, rebases, picks and bisects that stand between two commands.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { mkdir, readdir, rename, rm } from '../../files/now.ts'
import { readIfThere } from '../../files/whole.ts'
import { RalphError } from '../../../core/error.ts'
import type { Git } from '../git.ts'
import { timeName, type Store } from '../store.ts'

/** Names of what is in progress, for a person. */
export function operationsInProgress(gitDir: string): string[] {
  return [...new Set(operationTimes(gitDir).map(({ name }) => name))]
}

/** With the time of each: epoch ms. */
export function operationTimes(gitDir: string): { readonly name: string; readonly changedMs: number }[] {
  return markers.flatMap(([file, name]) => {
    const stat = statSync(join(gitDir, file), { throwIfNoEntry: false })
    return stat === undefined ? [] : [{ name, changedMs: stat.ctimeMs }]
  })
}

/** A merge of the user's, or conflicts that they have not resolved, go through no checkpoint and no cleanup: they have to end them. */
export async function refuseHalfDone(
  git: Git,
  code: 'repository_state' | 'finish_conflict',
  then: string,
): Promise<void> {
  const [begun] = operationsInProgress(git.gitDir)
  const unmerged = await git.list(['ls-files', '--unmerged', '-z'])
  if (begun === undefined && unmerged.length === 0) return
  const [what, how] =
    begun === undefined
      ? [
          `There are conflicts to resolve in ${git.worktree}.`,
          `Resolve them (${git.typed} status names them)`,
        ]
      : [`You are in the middle of a ${begun} in ${git.worktree}.`, `End it (${howToEnd(git.typed, begun)})`]
  throw new RalphError(code, what, {
    hint: `Nothing was touched. ${how}, then ${then}.`,
    exitCode: code === 'repository_state' ? 2 : 1,
  })
}

/** `name`: as `operationsInProgress` calls it. */
export function howToEnd(typed: string, name: string): string {
  const verb = name.split(' ')[0] ?? name
  return verb === 'bisect' ? `${typed} bisect reset` : `${typed} ${verb} --continue or --abort`
}

/**
 * Forgets them, as `--quit` does: HEAD, index and files are put right by the revert. What git had noted of them (the list of a rebase, a
 * message, the steps of a bisect) is moved to `aside`: it may be a person's.
 */
export async function endOperations(gitDir: string, aside?: string): Promise<void> {
  const there = await readdir(gitDir)
  const left = stateFiles.filter((file) => there.includes(file))
  if (left.length > 0 && aside !== undefined) await mkdir(aside, { recursive: true })
  for (const file of left)
    await (aside === undefined
      ? rm(join(gitDir, file), { recursive: true, force: true })
      : rename(join(gitDir, file), join(aside, file)))
}

/** Where what git had noted of one that was ended is kept: each time another. */
export function halfDoneFolder(store: Store): string {
  return join(store.folder, 'half-done', timeName(store))
}

/** Work that a rebase or merge put aside, and that would be lost with its state files. */
export async function autostashes(gitDir: string): Promise<string[]> {
  const files = ['rebase-merge/autostash', 'rebase-apply/autostash', 'MERGE_AUTOSTASH']
  const contents = await Promise.all(files.map((file) => readIfThere(join(gitDir, file))))
  return contents.flatMap(
    (content) =>
      content
        ?.toString('utf8')
        .match(/^[0-9a-f]{40,64}/)
        ?.slice(0, 1) ?? [],
  )
}

const markers: readonly (readonly [string, string])[] = [
  ['MERGE_HEAD', 'merge'],
  ['rebase-merge', 'rebase'],
  ['rebase-apply', 'rebase or am'],
  ['CHERRY_PICK_HEAD', 'cherry-pick'],
  ['REVERT_HEAD', 'revert'],
  ['sequencer', 'cherry-pick or revert sequence'],
  ['BISECT_LOG', 'bisect'],
]

const stateFiles = [
  ...markers.map(([file]) => file),
  'MERGE_MODE',
  'MERGE_MSG',
  'MERGE_RR',
  'MERGE_AUTOSTASH',
  'AUTO_MERGE',
  'SQUASH_MSG',
  'REBASE_HEAD',
  'BISECT_START',
  'BISECT_NAMES',
  'BISECT_TERMS',
  'BISECT_EXPECTED_REV',
  'BISECT_ANCESTORS_OK',
  'BISECT_FIRST_PARENT',
  'BISECT_RUN',
]
