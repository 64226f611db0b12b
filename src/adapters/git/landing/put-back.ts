// Refs that a gate has moved to the commit that it was to check, by a git that does not know that refs are closed: they go back. What else
// went while it ran may be the user's doing: it stays gone, and is kept.
import { shown, type Git } from '../git.ts'
import { compareRefs, moveRefs, readRef, refsUnder, shortName } from '../refs/refs.ts'
import type { RefMap } from '../refs/ref-picture.ts'
import { besideRef, unheld } from '../refs/users-own.ts'
import { readStashLog, stashEntries } from '../stash/stash-list.ts'
import { isAncestor } from '../tree/tree.ts'

export interface Before {
  readonly refs: RefMap
  readonly stashLog: string
}

export async function beforeGate(git: Git): Promise<Before> {
  const [refs, stashLog] = await Promise.all([landingRefs(git), readStashLog(git)])
  return { refs, stashLog }
}

/** What no ref leads to any more gets one; a sentence for each. Where a loop's own branch goes its own run knows. */
export async function holdGone(git: Git, change: string, before: Before): Promise<readonly string[]> {
  const now = { refs: await landingRefs(git, true), stashLog: await readStashLog(git) }
  const { moved, deleted } = compareRefs(before.refs, now.refs)
  const left = new Set(stashEntries(now.stashLog).map(({ hash }) => hash))
  const gone = [
    ...[...moved, ...deleted].flatMap(({ name, from }) =>
      name.startsWith('refs/heads/ralph/')
        ? []
        : [{ hash: from, what: `${shortName(name)} was ${name in now.refs ? 'moved' : 'deleted'}` }],
    ),
    ...stashEntries(before.stashLog).flatMap(({ hash, message }) =>
      left.has(hash) ? [] : [{ hash, what: `the stash entry “${shown(message)}” was dropped` }],
    ),
  ]
  const told: string[] = []
  for (const { hash, what } of gone) {
    if ((await unheld(git, hash)).length === 0) continue
    const ref = besideRef({ refs: `refs/ralph/${change}` }, 0, hash)
    await moveRefs(git, 'hold', [`update ${ref} ${hash}`])
    told.push(`${what} while a gate ran, and git does not say by whom; what it was is kept as ${ref}`)
  }
  return told
}

async function landingRefs(git: Git, isThorough = false): Promise<RefMap> {
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
