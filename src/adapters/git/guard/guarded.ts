// Settings, hooks and info/ of the git directory: remembered before an attempt, and put back after it, before git obeys them.
import { dirname, join, resolve } from 'node:path'
import { mkdir, readdir, rm } from '../../files/now.ts'
import { readIfThere, syncFolder, writeDurably } from '../../files/whole.ts'
import { settleGitSettings, type GitSetting, type SettingChange } from '../../../core/ownership.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { isRalphsOwn, setAside } from './refused-settings.ts'
import { alternatesFile, putBackBorrowed, shallowFile } from '../formats/borrowed-objects.ts'
import { listSettings, withValues } from '../formats/config-file.ts'
import { onDisk } from '../tree/files.ts'
import {
  contentAt,
  dropDeadLocks,
  findGuarded,
  findObeyed,
  guardedAt,
  hashOf,
  isSameFile,
  isSettingsFile,
  linkAt,
  lockSettings,
  writeGuarded,
  type Guarded,
  type GuardedFile,
} from './guarded-files.ts'
import { named, type Git } from '../git.ts'
import { statsOf } from '../tree/owner-access.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'

/** Durable when it resolves; each content is stored once, under its hash. */
export async function rememberGuarded(store: Store, hooksPath: string | undefined): Promise<Guarded> {
  const found = findGuarded(store.git, hooksPath)
  await mkdir(storeOf(store), { recursive: true, mode: 0o700 })
  const stored = new Set(await readdir(storeOf(store)))
  const fresh = new Map(
    Object.entries(found)
      .filter(([, { sha }]) => sha !== '' && !stored.has(sha))
      .map(([name, { sha }]) => [sha, contentAt(onDisk(store.git.gitCommonDir, name))]),
  )
  await Promise.all(
    [...fresh].map(async ([sha, content]) => {
      const how = { rights: { mode: 0o600 }, isCache: true } as const
      if (content !== undefined) await writeDurably(join(storeOf(store), sha), content, how)
    }),
  )
  // One for all of their names.
  if (fresh.size > 0) await syncFolder(storeOf(store))
  return found
}

/** Once the snapshot that named them has been replaced. */
export async function forgetOthers(store: Store, guarded: Guarded): Promise<void> {
  const used = new Set(Object.values(guarded).map(({ sha }) => sha))
  for (const name of await readdir(storeOf(store)))
    if (!used.has(name)) await rm(join(storeOf(store), name), { force: true })
}

/**
 * Before any git command after attempt `n`. What the attempt left is kept aside first, then each file goes back by one rename: after a kill
 * in between, the next call completes it. Settings that run nothing stay: the user may have made them beside the loop.
 */
export async function putBackGuarded(store: Store, snapshot: Snapshot, n: number): Promise<string[]> {
  const { guarded: before } = snapshot
  if (before === undefined) return []
  const lost: string[] = []
  await dropDeadLocks(store.git, Object.keys(before).filter(isSettingsFile))
  const now = findGuarded(store.git, snapshot.hooks_path)
  // What was not there goes first: a link in the place of a folder must not lead a write elsewhere.
  const names = [...Object.keys(now).filter((name) => before[name] === undefined), ...Object.keys(before)]
  for (const name of names) {
    if (isSameFile(before[name], now[name]) || isNewModules(before, name, now[name])) continue
    const { sha = '' } = before[name] ?? {}
    if (sha !== '' && (await storedContent(store, sha)) === undefined)
      lost.push(
        `.git/${named(name)} was changed while the attempt ran; it cannot be put back, for what ralph had kept of it is gone`,
      )
    else if (name === shallowFile || name === alternatesFile)
      lost.push(...(await putBackBorrowed(store.git, name, n, await storedContent(store, sha))))
    else if (isSettingsFile(name)) lost.push(...(await putBackSettings(store, snapshot, name, n)))
    else await putBackFile(store, snapshot, name, n)
  }
  return lost
}

/** A submodule that the attempt added is its work, with what git itself puts into one; settings that run something, and hooks, are not. */
function isNewModules(before: Guarded, name: string, now: GuardedFile | undefined): boolean {
  const [, module, hook, info] =
    /^(modules\/.*?)\/(?:config(?:\.worktree)?|hooks\/(.*)|(info)\/.*)$/.exec(name) ?? []
  if (module === undefined || before[`${module}/config`] !== undefined) return false
  const isTemplates = hook?.endsWith('.sample') === true || before[`hooks/${hook ?? ''}`]?.sha === now?.sha
  return info !== undefined || (hook !== undefined && isTemplates)
}

/** What `git clone` writes into every repository. */
const ofClone =
  /^(core\.(bare|filemode|logallrefupdates|ignorecase|precomposeunicode|symlinks)|extensions\.(objectformat|refstorage))$/

/** After a checkpoint or a revert: hooks and included settings outside of the git directory, ignored ones too, that are not what they were. */
export async function tellObeyed(store: Store, snapshot: Snapshot, n: number): Promise<void> {
  const { obeyed: before, hooks_path: hooksPath, included } = snapshot
  const now = findObeyed(store.git, hooksPath, included)
  const changed = Object.keys({ ...before, ...now }).filter((path) => before[path] !== now[path])
  if (changed.length === 0) return
  const message = `#${n} changed what git runs: ${changed.slice(0, 5).map(named).join(', ')}${changed.length > 5 ? ` and ${changed.length - 5} more` : ''}`
  await store.note({ type: 'warning', code: 'hooks_changed', message })
}

async function putBackFile(store: Store, snapshot: Snapshot, name: string, n: number): Promise<void> {
  const before = snapshot.guarded?.[name]
  const place = onDisk(store.git.gitCommonDir, name)
  const content = before === undefined ? undefined : await storedContent(store, before.sha)
  const now = statsOf(place) === undefined ? undefined : guardedAt(place, name)
  if (await isRalphsOwn(store, name, { before, now })) return
  await setAside(store, snapshot, n, { file: name, before })
  if (before === undefined) await rm(place, { recursive: true, force: true })
  else await writeGuarded(store, place, before, content)
}

/** Says whose name the next commits will have, where that is another: it stays, for the user may have set it. */
async function putBackSettings(store: Store, snapshot: Snapshot, name: string, n: number): Promise<string[]> {
  const before = snapshot.guarded?.[name]
  const place = onDisk(store.git.gitCommonDir, name)
  const unlock = await lockSettings(store, place)
  try {
    const old = (await storedContent(store, before?.sha ?? '')) ?? Buffer.alloc(0)
    const bytes = contentAt(place)
    const settings = bytes === undefined ? undefined : await listSettings(store, bytes)
    const isNew = before === undefined && name.startsWith('modules/')
    const earlier = isNew ? settings?.filter(({ key }) => ofClone.test(key)) : await listSettings(store, old)
    const isUsable = bytes !== undefined && settings !== undefined && before?.link === linkAt(place)
    if (!isUsable || earlier === undefined) {
      await putBackFile(store, snapshot, name, n)
      return []
    }
    const settledKeys = settleGitSettings(earlier, settings)
    const own = await Promise.all(
      settledKeys.undone.map(
        async (change) => followsModule(store.git, name, change) || (await isRalphsOwn(store, name, change)),
      ),
    )
    const undone = settledKeys.undone.filter((_, at) => own[at] === false)
    const stays = isNew || settledKeys.stays || own.includes(true)
    if (undone.length > 0) await setAside(store, snapshot, n, { settings: name, changes: undone })
    const back = undone.map(({ key, before: values }) => ({ key, values }))
    const settled = undone.length === 0 ? bytes : stays ? await withValues(store, bytes, back) : old
    if (settled === undefined) await putBackFile(store, snapshot, name, n)
    else if (before === undefined && settled.length === 0) await rm(place, { force: true })
    else if (!settled.equals(bytes) || (before !== undefined && before.mode !== guardedAt(place, name).mode))
      await writeGuarded(store, place, before ?? guardedAt(place, name), settled)
    return identityTold(name, earlier, settings)
  } finally {
    await unlock()
  }
}

function identityTold(
  name: string,
  earlier: readonly GitSetting[],
  settings: readonly GitSetting[],
): string[] {
  const valueOf = (of: readonly GitSetting[], key: string): string | undefined =>
    of.findLast((one) => one.key === key)?.value ?? undefined
  const keys = [...new Set(settings.map(({ key }) => key))].filter((key) =>
    /^(user|author|committer)\.(name|email)$/.test(key),
  )
  return keys.flatMap((key) => {
    const [old, now = ''] = [valueOf(earlier, key), valueOf(settings, key)]
    if (old === now) return []
    const back = old === undefined ? `--unset-all ${key}` : `${key} ${shellWord(old)}`
    return [
      `${key} = ${now} was set in .git/${named(name)} while the attempt ran, for your commits too; it stays. If it was not you: git config ${back}`,
    ]
  })
}

/** `git mv` of a submodule: its setting goes where the folder went. A revert puts it back with the rest of the submodule. */
function followsModule({ gitCommonDir, worktree }: Git, name: string, { key, now }: SettingChange): boolean {
  const [place] = now
  if (key !== 'core.worktree' || !name.startsWith('modules/') || typeof place !== 'string') return false
  return resolve(gitCommonDir, dirname(name), place).startsWith(`${worktree}/`)
}

/** Only what is what it was: the agent can reach the private files, too. */
async function storedContent(store: Store, sha: string): Promise<Buffer | undefined> {
  const content = sha === '' ? undefined : await readIfThere(join(storeOf(store), sha))
  return content !== undefined && hashOf(content) === sha ? content : undefined
}

function storeOf(store: Store): string {
  return join(store.folder, 'guarded')
}
