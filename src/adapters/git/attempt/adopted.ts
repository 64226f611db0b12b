// What somebody did between two attempts, in words: it becomes part of the checkpoint, and is named.
import { firstNames } from '../../../core/first-names.ts'
import { textOf } from '../formats/bytes.ts'
import { named, type Git } from '../git.ts'
import { changedPaths } from '../tree/tree.ts'

/** `byHand`: a person says that this story is done; else it is the one that an agent is given next. */
export interface Hand {
  readonly storyId: string
  readonly byHand: boolean
}

/** From one checkpoint to the next; `heads`: where HEAD was then and is now. */
export async function adoptedWords(
  git: Git,
  checkpoints: { readonly from: string; readonly to: string },
  heads: { readonly from: string | undefined; readonly to: string | undefined },
  { storyId, byHand }: Hand,
): Promise<string> {
  const [paths, commits, replaced] = await Promise.all([
    changedPaths(git, checkpoints.from, checkpoints.to),
    commitsBetween(git, heads),
    commitsBetween(git, { from: heads.to, to: heads.from }),
  ])
  const what = [
    ...(commits.length === 0 ? [] : [`commits were made (${commits.join(', ')})`]),
    // An amend, a rebase or a reset.
    ...(replaced.length === 0 ? [] : [`commits were taken off the branch (${replaced.join(', ')})`]),
    ...(paths.length === 0 ? [] : [`files were changed (${firstNames(paths.map(named), 10)})`]),
  ]
  const done = what.join(' and ') || 'the work tree was changed'
  return byHand
    ? `${storyId.includes(', ') ? `stories ${storyId} were` : `story ${storyId} was`} ticked by hand, and ${done}: that is saved, and the gates judge it`
    : `before story ${storyId} ${done}, not by the loop: that is saved with this story`
}

export function adoptedSubject({ storyId, byHand }: Hand): string {
  return byHand ? `checkpoint: ${storyId}\n\nticked by hand` : `changes before ${storyId}`
}

/** Hash and subject of each, the newest first. */
export async function commitsBetween(
  git: Git,
  { from, to }: { readonly from: string | undefined; readonly to: string | undefined },
): Promise<string[]> {
  if (from === to || from === undefined || to === undefined) return []
  const list = await git.line(['log', '--format=%h %s', `${from}..${to}`])
  return textOf(list)
    .split('\n')
    .filter((line) => line !== '')
}
