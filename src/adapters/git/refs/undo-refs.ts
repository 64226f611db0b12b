// Undoes what an agent or a gate did to refs, but for what somebody has moved again meanwhile.
import type { Git } from '../git.ts'
import { madeAgain, moveRefs, readRef, type RefChanges } from './refs.ts'

/** What an agent or a gate did to refs, undone, and which of it that was: one that somebody has moved again since it was seen is theirs, and stays. Only the loop's `own` branch must be as it was seen. */
export async function undoRefs(git: Git, seen: RefChanges, own: string): Promise<RefChanges> {
  // Apart from what comes back: a branch `a` and a branch `a/b` cannot be there together.
  const all: readonly { name: string; from: string; to?: string }[] = [...seen.moved, ...seen.deleted]
  const away = await whereStill(
    git,
    'put away',
    own,
    seen.created,
    async ({ name, to }) => `delete ${name} ${to}`,
  )
  const back = await whereStill(git, 'put back', own, all, async (each) =>
    each.to === undefined ? madeAgain(git, each) : `update ${each.name} ${each.from} ${each.to}`,
  )
  const isBack = ({ name }: { readonly name: string }): boolean => back.some((each) => each.name === name)
  return {
    created: away,
    moved: seen.moved.filter(isBack),
    deleted: seen.deleted.filter(isBack),
  }
}

/** All of those that are as they were seen, or none. */
async function whereStill<Seen extends { readonly name: string; readonly to?: string }>(
  git: Git,
  reason: string,
  own: string,
  seen: readonly Seen[],
  command: (each: Seen) => Promise<string>,
): Promise<readonly Seen[]> {
  try {
    await moveRefs(git, reason, await Promise.all(seen.map(command)))
    return seen
  } catch (error) {
    const now = await Promise.all(seen.map(({ name }) => readRef(git, name)))
    const left = seen.filter(({ to }, at) => now[at] === to)
    const isOwnLost = seen.some((each) => each.name === own && !left.includes(each))
    if (isOwnLost || left.length === seen.length) throw error
    return await whereStill(git, reason, own, left, command)
  }
}
