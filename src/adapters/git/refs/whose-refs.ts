// Refs after an attempt, sorted by whose change it is: the agent's and the gates' go back, everybody else's stay as they are.
import { firstNames } from '../../../core/first-names.ts'
import { once } from '../../../core/once.ts'
import { deletedBeside, leftBeside, ownerOfRef, wasMadeAgain, type Ledger } from '../../../core/ownership.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { aliasWords, planAliases, withoutAliases, type AliasChange, type AliasPlan } from './aliases.ts'
import { lstatNow } from '../tree/files.ts'
import { named, type Git } from '../git.ts'
import { brokenRef, headRef } from '../formats/ref-files.ts'
import { compareRefs, shortRef, type RefChanges, type Refs } from './refs.ts'
import { checkoutsBeside } from './branch-in-use.ts'
import { namesMade } from './made-trees.ts'
import type { Store } from '../store.ts'
import { restoreCommand } from '../attempt/lost-files.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { isAncestor } from '../tree/tree.ts'
import { besideRef, unheld } from './users-own.ts'

export interface RefPlan {
  /** The agent's, a gate's, and the loop's own branch whoever moved it; `from` is where each goes back to. */
  readonly own: RefChanges
  /** Of people and programs beside the loop; without those of other loops, which are nobody's business here. */
  readonly others: RefChanges
  /** Deleted by somebody else meanwhile, and there again as it was by the agent or a gate. */
  readonly again: readonly string[]
  readonly aliases: AliasPlan
}

export function planRefs(
  store: Store,
  snapshot: Snapshot,
  now: Refs['all'],
  aliases: Refs['all'],
  ledger: Ledger,
): RefPlan {
  const changes = compareRefs(snapshot.refs, now)
  const branch = `refs/heads/ralph/${store.change}`
  const beside = once(() => checkoutsBeside(store.git, namesMade(store.git, snapshot, ledger)))
  const known = once(() => new Set(Object.values(snapshot.refs)))
  // An agent can write what its git reports: what another checkout has on record, which it cannot write in a cage, counts more.
  const isDisproved = (name: string, value: string | undefined, found: string | undefined): boolean => {
    const holder = beside().find(({ ref }) => ref === name)
    if (holder !== undefined) return holder.tip === value || holder.tip !== found
    return value !== undefined && !known().has(value) && beside().some(({ tip }) => tip === value)
  }
  const claimed = (name: string): { isOwn: boolean; isOthers: boolean; found: string | undefined } => {
    const before = snapshot.refs[name]
    const { owner, found } = ownerOfRef(store.change, { name, before, now: now[name] }, ledger)
    const isReported = owner === 'agent' || owner === 'gate'
    const isOwn = name === branch || (isReported && !isDisproved(name, now[name], found))
    // Of the branch that the loop stands on a revert has to say more.
    const isOthers = !isOwn && owner !== 'other_loop' && name !== snapshot.head.ref
    // What an agent's git found there was another branch's.
    const isAlias = snapshot.aliases?.[name] !== undefined
    return { isOwn, isOthers, found: name === branch ? before : isAlias ? undefined : found }
  }
  const { ref } = snapshot.head
  const written = [...new Set(ledger.writes.map(({ ref: name }) => name))].filter((name) => name !== branch)
  // Where somebody else had moved it meanwhile, and the agent or a gate moved it to what it was at first: no difference shows that.
  const back = written.flatMap((name) => {
    const [from, to] = [snapshot.refs[name], now[name]]
    // The one that the loop stands on stays where the tree is: what others left on it is named.
    const isUnderFoot = name === ref
    return to !== undefined && from === to && !isUnderFoot && claimed(name).found !== to
      ? [{ name, from, to }]
      : []
  })
  const deleted = written.flatMap((name) =>
    goingTo({ name }, deletedBeside({ name, before: snapshot.refs[name], now: now[name] }, ledger)),
  )
  return {
    own: {
      // One that somebody else made meanwhile goes back to where they left it, like one that was there.
      moved: [...changes.moved, ...changes.created, ...back]
        .filter(({ name }) => claimed(name).isOwn)
        .flatMap((each) => goingTo(each, claimed(each.name).found)),
      deleted: [
        ...changes.deleted
          .filter(({ name }) => claimed(name).isOwn)
          .flatMap((each) => goingTo(each, claimed(each.name).found)),
        ...deleted,
      ],
      created: changes.created.filter(({ name }) => claimed(name).isOwn && claimed(name).found === undefined),
    },
    others: {
      moved: changes.moved.filter(({ name }) => claimed(name).isOthers),
      deleted: changes.deleted.filter(({ name }) => claimed(name).isOthers),
      created: changes.created.filter(({ name }) => claimed(name).isOthers),
    },
    again: written.filter((name) =>
      wasMadeAgain({ name, before: snapshot.refs[name], now: now[name] }, ledger),
    ),
    aliases: planAliases(snapshot, { aliases, refs: now }, ledger, (name) => !claimed(name).isOwn),
  }
}

/** Commits that others left where the loop stands: on its branch, or on a HEAD that is on none. */
export async function leftWhereItStands(
  git: Git,
  { head: { ref, commit }, refs }: Pick<Snapshot, 'head' | 'refs'>,
  now: Refs,
  ledger: Ledger,
): Promise<string[]> {
  const onBranch =
    ref === undefined ? [] : leftBeside({ name: ref, before: refs[ref], now: now.all[ref] }, ledger)
  if (now.head.ref !== undefined) return onBranch
  const left = leftBeside({ name: 'HEAD', before: commit, now: now.head.commit }, ledger)
  // Where somebody has only gone to, another ref leads as well.
  const alone = await Promise.all(left.map(async (hash) => (await unheld(git, hash)).length > 0))
  return [...onBranch, ...left.filter((hash, at) => alone[at] === true && !onBranch.includes(hash))]
}

function goingTo<T>(change: T, from: string | undefined): (T & { readonly from: string })[] {
  return from === undefined ? [] : [{ ...change, from }]
}

/** What nothing else holds once others have moved or deleted their refs. */
export async function earlierValues(
  git: Git,
  { moved, deleted }: RefChanges,
): Promise<{ name: string; from: string }[]> {
  const left = await Promise.all(
    moved.map(async (each) => ((await isAncestor(git, each.from, each.to)) ? [] : [each])),
  )
  return [...left.flat(), ...deleted]
}

/** One line for all of them, without blame. */
export function othersTold(
  git: Git,
  changes: RefChanges,
  aliases: readonly AliasChange[],
  before: string,
  isPinned: boolean,
): string[] {
  const { moved, deleted, created } = withoutAliases(changes, aliases)
  const led = aliases.map((each) => aliasWords(each))
  const words = [
    ...moved.map(({ name }) => `${shortRef(name)} moved`),
    ...deleted.map(
      ({ name }) =>
        `${shortRef(name)} was ${brokenRef(git, name) === undefined ? 'deleted' : 'overwritten with what is no commit'}`,
    ),
    ...created.map(({ name }) => `${shortRef(name)} is new`),
    ...led.map((each) => each.words),
  ]
  if (words.length === 0) return []
  const where = isPinned ? `; what they were is under ${before}` : ''
  const again = [
    ...(isPinned ? deleted : []).map(({ name }) => {
      const broken = brokenRef(git, name)
      const first = broken === undefined ? '' : `rm ${shellWord(broken)} && `
      return `${first}${againCommand(name, `${before}/${name.replace(/^refs\//, '')}`)}`
    }),
    ...led.flatMap((each) => each.again),
  ]
  const them = words.length === 1 ? 'it' : 'them'
  const back = again.length === 0 ? '' : `; to get ${them} back: ${again.slice(0, most).join('; ')}`
  return [
    `changed while the loop ran, not by the agent as far as ralph can tell: ${few(words)}; ${words.length === 1 ? 'it is left as it is' : 'they are left as they are'}${where}${back}`,
  ]
}

/** Makes a branch, a tag or another ref where another one leads. */
function againCommand(name: string, from: string): string {
  const [, kind = '', ...rest] = name.split('/')
  const verb = kind === 'heads' ? 'branch' : kind === 'tags' ? 'tag' : 'update-ref'
  const own = verb === 'update-ref' ? name : rest.join('/')
  return ['git', verb, own, from].map(shellWord).join(' ')
}

export function againTold(who: string, again: readonly string[]): string[] {
  return again.map(
    (name) =>
      `${shortRef(name)} was deleted while the loop ran, and ${who} made it again; it stays: ${['git', 'update-ref', '-d', name].map(shellWord).join(' ')} deletes it`,
  )
}

/** Of those that were to be undone, the ones that somebody has moved again since they were looked at. */
export function movedAgain(
  who: string,
  seen: RefChanges,
  undone: RefChanges,
  aside: (name: string) => string,
): string[] {
  const isLeft = ({ name }: { readonly name: string }): boolean =>
    ![...undone.moved, ...undone.deleted, ...undone.created].some((each) => each.name === name)
  return [
    ...[...seen.moved, ...seen.created]
      .filter(isLeft)
      .map(
        ({ name }) =>
          `${shortRef(name)} was moved by ${who} and then by somebody else; it stays as it is now, and the version of ${who} is ${aside(name)}`,
      ),
    ...seen.deleted
      .filter(isLeft)
      .map(({ name }) => `${shortRef(name)} was deleted by ${who} and made again by somebody else; it stays`),
  ]
}

/** With the command that brings each back. */
export function madeTold(
  who: string,
  created: RefChanges['created'],
  aside: (name: string) => string,
): string[] {
  if (created.length > most) {
    const names = few(created.map(({ name }) => shortRef(name)))
    return [`${who} made ${names}; they are moved to ${aside('')}`]
  }
  return created.map(
    ({ name }) =>
      `${who} made ${shortRef(name)}; it is removed; to get it back: ${againCommand(name, aside(name))}`,
  )
}

const most = 5

function few(words: readonly string[]): string {
  const more = words.length > most ? `, and ${words.length - most} more` : ''
  return `${words.slice(0, most).join(', ')}${more}`
}

/** On a revert, and on a checkpoint that has not got them: each commit by name, with what holds it. */
export async function besideTold(
  store: Store,
  beside: readonly { readonly hash: string; readonly n: number }[],
  checkpoint: string,
): Promise<string[]> {
  const lines = await Promise.all(
    beside.map(async ({ hash, n }) => {
      const { git } = store
      const isThere = (await isAncestor(git, hash, checkpoint)) || (await isAncestor(git, hash, 'HEAD'))
      const subject = named(await git.line(['log', '-1', '--format=%s', hash]))
      const short = hash.slice(0, 12)
      const kept = `it is kept as ${besideRef(store, n, hash)}`
      const { paths, missing, reversed } = await comparedToTree(git, hash)
      const begin = `your commit ${short} (${subject})`
      const restoring = (some: readonly string[]): string[] =>
        some.slice(0, 5).map((path) => restoreCommand(short, path, git.typed))
      // Its editor was open while an attempt was undone.
      if (isThere && reversed.length > 0)
        return [
          `${begin} is on the branch, but the work tree has ${firstNames(reversed.map(named))} as before it; to bring that back: ${restoring(reversed).join('; ')}`,
        ]
      if (isThere) return []
      const off = headRef(git) === undefined ? 'is no longer what HEAD is at' : 'is not on the branch'
      if (missing.length === paths.length) {
        const when = store.absence?.() === undefined ? ', made while the agent ran,' : ''
        return [`${begin}${when} ${off}; ${kept}: ${git.typed} cherry-pick ${short} brings it back`]
      }
      const rest = restoring(missing)
      const but = rest.length === 0 ? '' : `, but for ${missing.length} of its files (${rest.join('; ')})`
      const back = await backCommand(git, hash)
      return [
        `${begin} ${off}; what is in it is in the work tree, uncommitted${but}, and ${kept}${back === '' ? '' : `: ${back} brings it back`}`,
      ]
    }),
  )
  return lines.flat()
}

/** For a commit whose files stand in the work tree. Empty where another one has taken its place. */
async function backCommand(git: Git, hash: string): Promise<string> {
  const short = hash.slice(0, 12)
  const [parent, head] = (await git.line(['rev-parse', `${hash}^@`, 'HEAD'])).split('\n')
  if (parent === head) return `${git.typed} reset --soft ${short}`
  if (parent === undefined || head === undefined || (await isAncestor(git, parent, head))) return ''
  // What it stood on was the agent's, and is gone.
  return `${git.typed} diff-tree -r -z --no-commit-id --name-only ${short} | ${git.typed} add --pathspec-from-file=- --pathspec-file-nul && ${git.typed} commit -C ${short}`
}

/** In a repair what the user had committed after the death stays. */
async function comparedToTree(
  git: Git,
  hash: string,
): Promise<Record<'paths' | 'missing' | 'reversed', readonly string[]>> {
  const args = ['diff-tree', '-r', '-z', '--root', '--no-renames', '--no-commit-id', '--raw', hash]
  const changed = await git.list(args)
  const paths = changed.filter((_, at) => at % 2 === 1)
  const there = paths.filter(
    (path) => lstatNow(git.worktree, path)?.isFile() === true && !path.includes('\n'),
  )
  const input = Buffer.from(there.map((path) => `./${path}\n`).join(''), 'latin1')
  const ids =
    there.length === 0 ? [] : (await git.line(['hash-object', '--stdin-paths'], { input })).split('\n')
  const isSame = (path: string, blob: string): boolean =>
    /^0+$/.test(blob) ? lstatNow(git.worktree, path) === undefined : ids[there.indexOf(path)] === blob
  const blobsOf = (at: number): string[] => (changed[at * 2] ?? '').split(' ').slice(2, 4)
  const missing = paths.filter((path, at) => !isSame(path, blobsOf(at)[1] ?? ''))
  const reversed = missing.filter((path) => isSame(path, blobsOf(paths.indexOf(path))[0] ?? ''))
  return { paths, missing, reversed }
}
