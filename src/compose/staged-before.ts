// What was staged when a loop began and is in no file of its first commit: a cleanup gives it back, a keep says where it is.
import { named, type Git } from '../adapters/git/git.ts'
import { shellName } from '../adapters/git/attempt/lost-files.ts'
import { refsUnder } from '../adapters/git/refs/refs.ts'
import { allTreeChanges, orEmpty } from '../adapters/git/tree/tree.ts'
import { firstNames } from '../core/first-names.ts'
import type { GitMemory } from '../core/git-memory.ts'

/** Empty where there is nothing of the kind. `refs`: those of the change. */
export async function stagedBefore(
  git: Git,
  refs: string,
  { origin, initial }: Pick<GitMemory, 'origin' | 'initial'>,
): Promise<string> {
  if (origin === undefined || initial === undefined) return ''
  const held = Object.keys(await refsUnder(git, [`${refs}/index`]))
  // One with a hash in its name was told when it was made.
  const ref = held
    .filter((each) => !each.includes('-', `${refs}/index/`.length))
    .sort()
    .at(-1)
  if (ref === undefined) return ''
  const began = await orEmpty(git, origin.commit)
  const [had = [], inNoFile = []] = await allTreeChanges(git, [
    { from: began, to: ref },
    { from: initial, to: ref },
  ])
  const isInNoFile = new Set(inNoFile.map(({ path }) => path))
  const paths = had.flatMap(({ path, to }) =>
    to === undefined || to === '160000' || !isInNoFile.has(path) ? [] : [path],
  )
  if (paths.length === 0) return ''
  const look = paths.slice(0, 3).map((path) => `git show ${shellName(`${ref}:${path}`)}`)
  return `what you had staged when the loop began is in no file: ${firstNames(paths.map(named))}; it is kept: ${look.join(', ')}`
}
