// In a repair: of what differs from the checkpoint, what the user has changed since the loop died, and what may be theirs.
import { firstNames } from '../../../core/first-names.ts'
import { join, relative } from 'node:path'
import { ownerOfPath, type Absence } from '../../../core/ownership.ts'
import { quoted } from '../../../core/shell-word.ts'
import { lstatNow, parentOf } from '../tree/files.ts'
import { named } from '../git.ts'
import { filesWithin, hiddenByAgent } from '../tree/hidden-by-agent.ts'
import { keptOut } from '../tree/kept-out.ts'
import { scanOpened } from '../tree/unreadable.ts'
import { mendRepository } from '../guard/mend.ts'
import { restoreCommand, shellName } from '../attempt/lost-files.ts'
import { moveRefs } from '../refs/refs.ts'
import { outermost } from '../submodules/submodule.ts'
import type { Store } from '../store.ts'
import { exempt } from '../tree/scan.ts'
import { besideRef } from '../refs/users-own.ts'
import { bareNames, folderNames, treeFolders, type Snapshot } from './snapshot.ts'

export interface EditsSinceDeath {
  /** The user's, so it stays as it is. */
  readonly theirs: readonly string[]
  /** Of these: files of the checkpoint, so that the attempt may have written to them as well. */
  readonly shared: readonly string[]
  /** May be the user's, but cannot be told from the agent's. */
  readonly doubtful: readonly { readonly path: string; readonly evidence: string; readonly isSlight?: true }[]
  /** Gone, perhaps by the user's hand. */
  readonly deleted: readonly string[]
  /** Nothing but what was most likely the agent's last moment. */
  readonly isSlight: boolean
}

const none: EditsSinceDeath = { theirs: [], shared: [], doubtful: [], deleted: [], isSlight: true }

/** None outside of a repair. */
export async function findEdits(store: Store, snapshot: Snapshot): Promise<EditsSinceDeath> {
  const absence = store.absence?.()
  if (absence === undefined) return none
  const { git } = store
  const { attempt = 0 } = store.memory()
  for (const message of await mendRepository(store, snapshot, attempt))
    await outermost(store).note({ type: 'warning', code: 'agent_git', message })
  const isExempt = exempt(store.protectedPaths, snapshot.ignored)
  const isOut = keptOut(store, snapshot)
  const [scan, folders] = await Promise.all([
    scanOpened(git, { index: join(store.folder, snapshot.index) }),
    treeFolders(git, snapshot.tree),
  ])
  const hidden = await hiddenByAgent(store, snapshot, scan.ignored)
  const { files } = await filesWithin(git, hidden, isExempt)
  const known = new Set(['', ...folderNames(folders, snapshot.empty)])
  const present = [...[...scan.changed, ...scan.untracked].filter((path) => !isOut(path)), ...files]
  const claims = present.map((path) => ({
    path,
    ...claimOf(store, absence, path, newFolder(store, known, path)),
  }))
  const gone = scan.deleted
    .filter((path) => !isOut(path))
    .map((path) => ({ path, ...claimOf(store, absence, path, lastFolder(store, path)) }))
    .filter(({ owner }) => owner === 'unknown')
  const theirs = claims.filter(({ owner }) => owner === 'user').map(({ path }) => path)
  const doubtful = claims.filter(({ owner }) => owner === 'unknown')
  const changed = new Set(scan.changed)
  return {
    theirs,
    shared: theirs.filter((path) => changed.has(path)),
    doubtful,
    deleted: gone.map(({ path }) => path),
    isSlight: theirs.length === 0 && [...doubtful, ...gone].every(({ isSlight }) => isSlight === true),
  }
}

/** A path that is the user's, or that cannot come back without taking one of theirs away. */
export function staying(store: Store, { theirs }: EditsSinceDeath): (path: string) => boolean {
  const absence = store.absence?.()
  if (absence === undefined) return () => false
  const own = new Set(bareNames(theirs))
  const above = new Set(theirs.flatMap((path) => foldersAbove(path)))
  return (path) => {
    const bare = path.replace(/\/$/, '')
    if (own.has(bare) || above.has(bare) || foldersAbove(bare).some((folder) => own.has(folder))) return true
    return claimOf(store, absence, bare, undefined).owner === 'user'
  }
}

/** What a repair says before it undoes anything; `holder` is the ref that has all of it. */
export async function tellEdits(
  store: Store,
  snapshot: Snapshot,
  claims: EditsSinceDeath,
  holder: string,
): Promise<void> {
  const { theirs, shared, doubtful, deleted } = claims
  const top = outermost(store)
  const inside = store === top ? '' : relative(top.git.worktree, store.git.worktree)
  const warn = (message: string, code = 'after_death'): Promise<void> =>
    top.note({ type: 'warning', code, message })
  const names = (paths: readonly string[]): string =>
    firstNames(
      paths.map((path) => join(inside, named(path))),
      mostNames,
    )
  const git = `${top.git.typed}${inside === '' ? '' : ` -C ${quoted(inside)}`}`
  const where = top.home === undefined ? '' : ` in ${top.git.worktree}`
  const stays =
    theirs.length === 0
      ? ''
      : `changed after the loop had died, so yours; it stays as it is${where}: ${names(theirs)}`
  const mixed =
    shared.length === 0
      ? ''
      : `if the attempt had written to the same files, or set them back, that is still in them: ${commandFor(`${git} diff `, short(snapshot), shared)}; as they were before it: ${git} show ${shared
          .slice(0, mostNames)
          .map((path) => shellName(`${short(snapshot)}:${path}`))
          .join(' ')}`
  // Two warnings about the same files read as two troubles.
  if (stays !== '' && shared.length === theirs.length) await warn(`${stays}; ${mixed}`)
  else for (const message of [stays, mixed].filter((each) => each !== '')) await warn(message)
  // By its hash: a fresh start gives the name to another.
  const asked = ['rev-parse', '--verify', '--quiet', `${holder}^{commit}`]
  const held = doubtful.length === 0 ? '' : await store.git.line(asked, { accept: [1] })
  const commit = held.slice(0, 12)
  // What may be theirs outlives a cleaning of the attempts.
  const { attempt = 0 } = store.memory()
  if (held !== '') await moveRefs(store.git, 'repair', [`update ${besideRef(store, attempt, held)} ${held}`])
  const likely = doubtful.filter(({ isSlight }) => isSlight === true)
  // An agent in full swing may have written hundreds: one note, and one command for all of them.
  const slight = likely.length > 1 ? likely.map(({ path }) => path) : []
  if (slight.length > 0)
    await warn(
      `changed in the last moment of the loop or just after it, so perhaps yours: ${names(slight)}; undone here but kept; to bring them back: ${commandFor(`${git} restore --source=`, commit || holder, slight)}`,
      'undone_after_death',
    )
  const others = doubtful.filter(({ path: each }) => !slight.includes(each))
  for (const [evidence, paths] of byEvidence(others)) {
    const isOne = paths.length === 1
    const why = isOne ? evidence : evidence.replace(/^it /, 'they ').replace(/^its folder/, 'their folders')
    const kept = isOne
      ? 'It is undone here but kept; to bring it back'
      : 'They are undone here but kept; to bring them back'
    await warn(
      `${names(paths)} may be yours: ${why}. ${kept}: ${commandFor(`${git} restore --source=`, commit || holder, paths)}`,
      'undone_after_death',
    )
  }
  if (deleted.length > 0)
    await warn(`deleted by you or by the agent, which cannot be told; it is back: ${names(deleted)}`)
}

/** One warning for all that it is true of, as long as each can be named. */
function byEvidence(
  doubtful: EditsSinceDeath['doubtful'],
): readonly (readonly [evidence: string, paths: readonly string[]])[] {
  const groups: [string, string[]][] = []
  for (const { path, evidence } of doubtful) {
    const open = groups.findLast(([each]) => each === evidence)
    if (open === undefined || open[1].length === mostNames) groups.push([evidence, [path]])
    else open[1].push(path)
  }
  return groups
}

/** A commit that the user has made since keeps all that is in it; some of that may be the attempt's. */
export async function tellCommitted(
  store: Store,
  snapshot: Snapshot,
  paths: readonly string[],
): Promise<void> {
  const absence = store.absence?.()
  if (absence === undefined) return
  const mixed = paths.filter((path) => {
    const owner = lstatNow(store.git.worktree, path) && claimOf(store, absence, path, undefined).owner
    return owner !== undefined && owner !== 'user'
  })
  const message = `your commit stays, and what the attempt had changed is in it too: ${firstNames(mixed.map(named), mostNames)} (${commandFor(`${store.git.typed} diff `, short(snapshot), mixed)})`
  if (mixed.length > 0) await outermost(store).note({ type: 'warning', code: 'after_death', message })
}

function short({ commit }: Snapshot): string {
  return commit.slice(0, 12)
}

/** One command for all of them; works as typed, from any folder of the work tree. */
function commandFor(command: string, commit: string, paths: readonly string[]): string {
  const start = restoreCommand(commit, '', 'git').indexOf(' -- ') + ' -- '.length
  const words = paths.slice(0, mostNames).map((path) => restoreCommand(commit, path, 'git').slice(start))
  return `${command}${commit} -- ${words.join(' ')}`
}

function claimOf(
  store: Store,
  absence: Absence,
  path: string,
  folderMs: number | undefined,
): ReturnType<typeof ownerOfPath> {
  const stat = lstatNow(store.git.worktree, path.replace(/\/$/, ''))
  return ownerOfPath(
    {
      ...(stat !== undefined && { changedMs: stat.ctimeMs }),
      ...(folderMs !== undefined && { folderMs }),
    },
    absence,
  )
}

/** When the folders changed that the checkpoint does not have. */
function newFolder(store: Store, known: ReadonlySet<string>, path: string): number | undefined {
  const fresh = foldersAbove(path.replace(/\/$/, '')).filter((folder) => !known.has(folder))
  const times = fresh.flatMap((folder) => lstatNow(store.git.worktree, folder)?.ctimeMs ?? [])
  return times.length === 0 ? undefined : Math.max(...times)
}

/** When the folder changed that it is gone from, or the nearest that is still there. */
function lastFolder(store: Store, path: string): number | undefined {
  for (const folder of [...foldersAbove(path), '.']) {
    const stat = lstatNow(store.git.worktree, folder)
    if (stat !== undefined) return stat.ctimeMs
  }
  return undefined
}

function foldersAbove(path: string): string[] {
  const folders: string[] = []
  for (let parent = parentOf(path); parent !== ''; parent = parentOf(parent)) folders.push(parent)
  return folders
}

const mostNames = 50
