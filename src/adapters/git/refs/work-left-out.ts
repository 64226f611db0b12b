// Work that an agent put on a branch, under a tag or into a stash, and that the tree which would be saved has not got.
import type { Ledger } from '../../../core/ownership.ts'
import { contentsOf } from '../tree/exact-bytes.ts'
import { named, type Git } from '../git.ts'
import { shortRef, type RefChanges } from './refs.ts'
import { workedFrom } from '../attempt/reunite.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import type { StashEntry } from '../stash/stash-list.ts'
import { emptyTree, isAncestor, orEmpty } from '../tree/tree.ts'

/** A place with work in it: the commits that were there before, each with what came on top of it. */
interface Place {
  readonly what: string
  readonly pairs: readonly (readonly [before: string, after: string])[]
  /** As a command of the agent may name it. */
  readonly names: readonly string[]
  readonly bring: string
}

export interface Attempted {
  /** The tree that would be saved, and the commit that HEAD is at. */
  readonly tree: string
  readonly head: string | undefined
  readonly refs: RefChanges
  readonly stashes: readonly StashEntry[]
  readonly ledger: Ledger
}

/** Why COMPLETE does not count, with the place, the files and the command that brings them; empty when nothing is left out. */
export async function leftOut(git: Git, snapshot: Snapshot, attempted: Attempted): Promise<string> {
  for (const place of [
    ...(await placesOfRefs(git, snapshot, attempted)),
    ...(await placesOfStashes(git, attempted.stashes)),
  ]) {
    const isBrought = wasBrought(git, place, attempted.ledger)
    const lists = place.pairs.map(([before, after]) =>
      lackedPaths(git, { before, after, start: snapshot.tree, tree: attempted.tree, isBrought }),
    )
    const paths = (await Promise.all(lists)).flat()
    if (paths.length === 0) continue
    const more = paths.length > 5 ? ` and ${paths.length - 5} more` : ''
    const files = `${paths.slice(0, 5).map(named).join(', ')}${more}`
    return `the work is ${place.what} (${files}), and not in the work tree of the loop (${git.worktree}), where it has to be: ${place.bring} brings it there; what is not wanted must not be left behind`
  }
  return ''
}

async function placesOfRefs(
  git: Git,
  snapshot: Snapshot,
  { head, refs, ledger }: Attempted,
): Promise<Place[]> {
  // What was pushed is on a remote branch as well, and is the agent's all the same.
  const isPushed = ledger.commands.some(({ argv }) => argv[0] === 'push')
  const places: Place[] = []
  for (const { name, to } of [...refs.created, ...refs.moved]) {
    if (!/^refs\/(heads|tags)\//.test(name)) continue
    const tip = await git.line(['rev-parse', '--verify', '--quiet', `${to}^{commit}`], { accept: [1, 128] })
    const isIn = async (commit: string | undefined): Promise<boolean> =>
      commit !== undefined && (await isAncestor(git, tip, commit))
    if (tip === '' || (await isIn(head)) || (await isIn(snapshot.commit))) continue
    const before = await workedFrom(git, snapshot, tip, !isPushed)
    if (before === tip) continue
    const own = name.replace(/^refs\/(heads|tags)\//, '')
    const range = before === undefined ? tip.slice(0, 12) : `${before.slice(0, 12)}..${tip.slice(0, 12)}`
    places.push({
      what: name.startsWith('refs/tags/') ? `under the tag ${own}` : `on the branch ${shortRef(name)}`,
      pairs: [[await orEmpty(git, before), tip]],
      names: [own, tip.slice(0, 7)],
      bring: `git cherry-pick ${range}`,
    })
  }
  return places
}

async function placesOfStashes(git: Git, stashes: readonly StashEntry[]): Promise<Place[]> {
  return await Promise.all(
    stashes.map(async ({ hash, message }): Promise<Place> => {
      const asked = ['rev-parse', '--verify', '--quiet', `${hash}^3`]
      const untracked = await git.line(asked, { accept: [1] })
      return {
        what: `in a stash (${message})`,
        pairs: [
          [`${hash}^1`, hash],
          ...(untracked === '' ? [] : [[await emptyTree(git), untracked] as const]),
        ],
        names: ['apply', 'pop', 'branch'],
        bring: `git stash apply ${hash.slice(0, 12)}`,
      }
    }),
  )
}

/** It was in the tree: what the agent made of it since is its own affair. */
function wasBrought(git: Git, { names }: Place, { commands }: Ledger): boolean {
  const isNamed = (word: string): boolean => {
    const bare = word.replace(/^--source=/, '')
    return names.some(
      (name) => bare === name || (bare.startsWith(name) && /^[~^.@{0-9a-f]/.test(bare.slice(name.length))),
    )
  }
  return commands.some(({ by, worktree, argv: [verb = '', ...words] }) => {
    if (by !== 'agent' || worktree !== git.worktree) return false
    // With a path after it; else it is a switch to the branch.
    if (verb === 'checkout')
      return words.slice(0, -1).some(isNamed) && !words.some((word) => /^-[qft]*[bB]$/.test(word))
    return (
      /^(apply|am)$/.test(verb) || (/^(merge|cherry-pick|restore|stash)$/.test(verb) && words.some(isNamed))
    )
  })
}

interface Compared {
  readonly before: string
  readonly after: string
  readonly start: string
  readonly tree: string
  readonly isBrought: boolean
}

/** Changed there, and in the tree as if that had never been; or, where the agent did not bring it, without lines of it. */
async function lackedPaths(git: Git, { before, after, start, tree, isBrought }: Compared): Promise<string[]> {
  const [made, atStart, saved] = await Promise.all(
    [before, start, tree].map((other) => otherSides(git, other, after)),
  )
  const apart = [...(made ?? [])].flatMap(([path, { other, own }]) => {
    const [first, now] = [atStart?.get(path), saved?.get(path)]
    // Ticks in the plan alone are no work.
    if (first === undefined || now === undefined || /(^|\/)tasks\.md$/.test(path)) return []
    return [
      { path, own, now: now.other, isUntouched: [other, first.other].includes(now.other), before: other },
    ]
  })
  if (apart.length === 0) return []
  const isElsewhere = await blobsOf(git, tree)
  const open = apart.filter(({ own }) => !isElsewhere.has(own))
  const texts = await contentsOf(
    git,
    isBrought ? [] : open.flatMap((each) => [each.own, each.now, each.before]),
  )
  const linesOf = (id: string): string[] =>
    (texts.get(id)?.toString('latin1') ?? '').split('\n').map((line) => line.trim())
  return open
    .filter(({ own, now, before: old, isUntouched }) => {
      const known = new Set([...linesOf(now), ...linesOf(old), ''])
      return isUntouched || linesOf(own).some((line) => !known.has(line))
    })
    .map(({ path }) => path)
}

/** By path, where two trees differ: the objects of both sides, zeros where there is none. */
async function otherSides(
  git: Git,
  other: string,
  own: string,
): Promise<Map<string, { other: string; own: string }>> {
  const fields = await git.list(['diff-tree', '-r', '-z', '--no-renames', '--raw', other, own])
  const pairs = fields.flatMap((entry, at) => {
    const [, , first = '', second = ''] = entry.split(' ')
    return at % 2 === 1 ? [] : [[fields[at + 1] ?? '', { other: first, own: second }] as const]
  })
  return new Map(pairs)
}

/** A file that was moved is there. */
async function blobsOf(git: Git, tree: string): Promise<Set<string>> {
  const entries = await git.list(['ls-tree', '-r', '-z', tree])
  return new Set(entries.map((entry) => entry.slice(0, entry.indexOf('\t')).split(' ')[2] ?? ''))
}
