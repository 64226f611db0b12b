// Refs that a gate has moved to the commit that it was to check, by a git that does not know that refs are closed: they go back.
import type { Git } from '../git.ts'
import { compareRefs, moveRefs, readRef, refsUnder, shortName } from '../refs/refs.ts'
import type { RefMap } from '../refs/ref-picture.ts'
import { isAncestor } from '../tree/tree.ts'

export async function landingRefs(git: Git, isThorough = false): Promise<RefMap> {
  return await refsUnder(git, ['refs/heads', 'refs/tags', 'refs/ralph-landed'], isThorough)
}

/** Until it lands, only ralph and its gates know of a candidate: what has it now was moved there by a gate, or made. What became of them, in words. */
export async function putBackOnto(git: Git, candidate: string, before: RefMap): Promise<string> {
  if (Object.values(before).includes(candidate)) return ''
  const { moved, created } = compareRefs(before, await landingRefs(git, true))
  const names: string[] = []
  const left: string[] = []
  for (const { name, from, to } of [...moved, ...created.map((ref) => ({ ...ref, from: undefined }))]) {
    if (to !== candidate && !(await isAncestor(git, candidate, to))) continue
    const command = from === undefined ? `delete ${name} ${to}` : `update ${name} ${from} ${to}`
    await moveRefs(git, 'a gate moved it', [command]).catch(() => undefined)
    names.push(shortName(name))
    if ((await readRef(git, name)) !== from)
      left.push(`${shortName(name)}, which was ${from === undefined ? 'not there' : `at ${from}`}`)
  }
  if (names.length === 0) return ''
  const back = `${names.length === 1 ? 'that is' : 'they are'} back`
  const but = left.length === 0 ? '' : `, but for ${left.join(', and ')}`
  return `it moved ${names.toSorted().join(', ')} to what it was to check; ${back}${but}`
}
