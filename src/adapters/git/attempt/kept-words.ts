// What the user is told of an attempt that was kept: what its agent did beside its work, and what others did meanwhile.
import type { KeptAttempt } from '../../../ports.ts'
import { named } from '../git.ts'
import type { Ledger, Owner } from '../../../core/ownership.ts'

import { staleWords, type MovedLock } from '../guard/stale-locks.ts'
import { aliasesTold, withoutAliases } from '../refs/aliases.ts'
import { treeTold, type MadeTree } from '../refs/made-trees.ts'
import { shortRef, type RefChanges } from '../refs/refs.ts'
import { againTold, madeTold, movedAgain, othersTold, type RefPlan } from '../refs/whose-refs.ts'
import { lostRepositories, sweptHome } from '../refs/work-elsewhere.ts'
import type { MovedFile } from '../revert/moved-files.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { droppedWords } from '../stash/dropped.ts'
import type { StashPlan } from '../stash/stash-list.ts'
import type { Store } from '../store.ts'
import { deepWarnings } from '../tree/unseen.ts'

/** What a keep has found and done. */
/** Operations of git's that were ended. */
interface HalfDone {
  readonly names: readonly string[]
  readonly by: Owner
  readonly aside: string
}

interface Found {
  readonly ref: string
  /** Where the agent's versions of refs are kept. */
  readonly moved: string
  readonly mayBeSaved: boolean
  readonly plan: RefPlan
  /** What the agent did to refs; and what of it was undone: the rest somebody has moved again meanwhile. */
  readonly changes: RefChanges
  readonly undone: RefChanges
  /** Objects that are no longer in the repository. */
  readonly gone: ReadonlySet<string>
  readonly were: readonly { readonly from: string }[]
  readonly stashes: StashPlan
  readonly besideBack: number
  readonly halfDone: HalfDone
  readonly trees: readonly MadeTree[]
  readonly standing: readonly MadeTree[]
  readonly inside: readonly string[]
  readonly returned: readonly string[]
  readonly late: readonly string[]
  readonly mended: readonly string[]
  readonly leaked: readonly string[]
  readonly locks: readonly MovedLock[]
  readonly nested: readonly string[]
  readonly special: readonly string[]
  readonly bytes: readonly string[]
  readonly elsewhere: readonly MovedFile[]
  readonly ledger: Ledger
  readonly left: readonly string[]
}

export async function keptWords(
  store: Store,
  snapshot: Snapshot,
  found: Found,
): Promise<Pick<KeptAttempt, 'warnings' | 'notes'>> {
  const { git } = store
  const { moved, plan, changes, undone, gone, stashes, trees, standing } = found
  const { others, again, aliases } = plan
  const isThere = ({ from }: { readonly from: string }): boolean => !gone.has(from)
  const aside = (name: string): string => `${moved}/${name.replace(/^refs\//, '')}`
  const warnings = [
    ...told(store, withoutAliases(undone, aliases.own), stashes, found.halfDone, aside),
    ...(await aliasesTold(git, 'the agent', aliases.own, aside)),
    ...trees.map((tree) => treeTold(tree, standing.includes(tree))),
    ...found.inside,
    ...found.returned,
    ...found.late,
    ...found.mended,
    ...lost(found),
    ...found.locks.map((lock) => staleWords(lock)),
    ...found.nested.map(nestedWarning),
    ...found.special.map(specialWarning),
    ...found.bytes,
    ...deepWarnings(store, snapshot),
    ...lostRepositories(store, snapshot, found.elsewhere, found.mayBeSaved),
    ...sweptHome(store, found.ledger),
    ...found.left.map(
      (path) =>
        `${named(path)} is hidden by the agent's own ignore rules and too large, or closed to ralph, or holds a repository, so it is not kept with the attempt; a revert does not delete it, but moves it into ralph's folder`,
    ),
  ]
  const notes = [
    ...othersTold(git, others, aliases.others, `${moved}/before`, found.were.some(isThere)),
    ...againTold('the agent', again),
    ...movedAgain('the agent', changes, undone, aside),
    ...stashes.gone.filter((hash) => !gone.has(hash)).map(droppedWords),
  ]
  return { warnings, notes }
}

function lost({ ref, plan, gone, stashes, besideBack, leaked }: Found): string[] {
  const dropped = besideBack > 0 || stashes.dropped.some((hash) => !gone.has(hash))
  return [
    ...(leaked.length > 0
      ? [
          `the agent committed what git was told to ignore (${leaked.slice(0, 5).map(named).join(', ')}); its commits are not in the history of the branch, they are kept as ${ref}`,
        ]
      : []),
    ...(dropped ? ['the agent dropped stash entries; they are back'] : []),
    ...[...plan.own.moved, ...plan.own.deleted].filter(({ from }) => gone.has(from)).map(lostRef),
    ...stashes.dropped
      .filter((hash) => gone.has(hash))
      .map((hash) => lostRef({ name: 'a stash entry', from: hash })),
  ]
}

function told(
  store: Store,
  changes: RefChanges,
  stashes: StashPlan,
  halfDone: HalfDone,
  aside: (name: string) => string,
): string[] {
  const branch = `refs/heads/ralph/${store.change}`
  const foreign = changes.moved.filter(({ name }) => name !== branch)
  return [
    ...foreign.map(
      ({ name }) => `the agent moved ${shortRef(name)}; it is back, the agent's version is ${aside(name)}`,
    ),
    // Whoever moves the loop's own branch, it goes back: nobody has looked whose deed that was.
    ...changes.deleted.map(({ name }) =>
      name === branch
        ? `${shortRef(name)} was deleted or renamed while the agent worked, by whom ralph cannot tell; it is back`
        : `the agent deleted ${shortRef(name)}; it is back`,
    ),
    ...madeTold('the agent', changes.created, aside),
    ...stashes.made.map(
      ({ hash, message }) =>
        `the agent stashed work (${message}); it is kept: ${store.git.typed} stash apply ${hash}`,
    ),
    ...halfDone.names.map((name) =>
      halfDone.by === 'user'
        ? `a ${name} was begun while the agent worked, not by the agent as far as ralph can tell, and was half done; it was ended. What git had noted of it is in ${halfDone.aside}`
        : `the ${halfDone.by} left a ${name} half done; it was ended`,
    ),
  ]
}

function lostRef({ name, from }: { name: string; from: string }): string {
  return `the agent destroyed ${shortRef(name)}: the object ${from} is no longer in the repository, so it could not be put back`
}

function nestedWarning(folder: string): string {
  return `${named(folder)} is a repository of its own; its files were saved as plain files`
}

function specialWarning(path: string): string {
  return `${named(path)} was a file and is a pipe, a socket or a device now; git can only record that the file is gone`
}
