// What attempts changed of settings, hooks and info/: kept aside in the git directory, told when the attempt is settled, taken over only by the user's word.
import { firstNames } from '../../../core/first-names.ts'
import { readdir, rm } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import * as z from 'zod'
import { readRecord, writeDurably } from '../../files/whole.ts'
import { shownSetting, type SettingChange } from '../../../core/ownership.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { listSettings, withValues } from '../formats/config-file.ts'
import { onDisk } from '../tree/files.ts'
import { named } from '../git.ts'
import {
  contentAt,
  guardedAt,
  guardedFileSchema,
  hashOf,
  isSameFile,
  linkAt,
  lockSettings,
  writeGuarded,
  type GuardedFile,
} from './guarded-files.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'

const values = z.array(z.string().nullable())
const asideSchema = z.object({
  n: z.number(),
  settings: z.array(z.object({ name: z.string(), key: z.string(), before: values, now: values })),
  /** `now` absent: it was removed. */
  files: z.array(
    z.object({ name: z.string(), before: guardedFileSchema.optional(), now: guardedFileSchema.optional() }),
  ),
  /** What became of the attempt; absent until it is settled and told. */
  outcome: z.enum(['saved', 'reverted', 'taken over']).optional(),
})
type Aside = z.infer<typeof asideSchema>

interface Kept {
  readonly folder: string
  readonly aside: Aside
}

type Changed =
  | { readonly settings: string; readonly changes: readonly SettingChange[] }
  | { readonly file: string; readonly before: GuardedFile | undefined }

/** Durable when it resolves. A second call for the same attempt adds to what is there. */
export async function setAside(store: Store, snapshot: Snapshot, n: number, changed: Changed): Promise<void> {
  const { folder, aside } = await openAside(store, snapshot, n)
  if ('settings' in changed) {
    const { settings: name, changes } = changed
    const fresh = changes.map(({ key, before, now }) => ({ name, key, before: [...before], now: [...now] }))
    const isFresh = (one: { name: string; key: string }): boolean =>
      fresh.some(({ key }) => one.name === name && one.key === key)
    const settings = [...aside.settings.filter((one) => !isFresh(one)), ...fresh]
    return await writeAside(folder, { ...aside, settings })
  }
  const { file: name, before } = changed
  const place = onDisk(store.git.gitCommonDir, name)
  const content = linkAt(place) === undefined ? contentAt(place) : undefined
  const now = existsOrLink(place) ? guardedAt(place, name) : undefined
  if (content !== undefined) await writeDurably(onDisk(folder, name), content, { rights: { mode: 0o600 } })
  const files = [...aside.files.filter((one) => one.name !== name), { name, before, now }]
  await writeAside(folder, { ...aside, files })
}

/**
 * Whether ralph itself made this change beside the attempt: another loop that put its own agent's version back, or the user's word that took one over.
 * It is no work of the attempt, and must not be undone.
 */
export async function isRalphsOwn(
  store: Store,
  name: string,
  change: SettingChange | FileChange,
): Promise<boolean> {
  const changes = await readdir(join(asideFolder(store), '..')).catch(() => [])
  const known = (await Promise.all(changes.map((other) => asides({ ...store, change: other })))).flat()
  const same = (one: unknown, other: unknown): boolean =>
    JSON.stringify(one ?? null) === JSON.stringify(other ?? null)
  return known.some(({ aside: { settings, files, outcome } }) => {
    const earlier =
      'key' in change
        ? settings.find((one) => one.name === name && one.key === change.key)
        : files.find((one) => one.name === name)
    if (earlier === undefined) return false
    return outcome === 'taken over'
      ? same(earlier.now, change.now)
      : same(earlier.now, change.before) && same(earlier.before, change.now)
  })
}

interface FileChange {
  readonly before: GuardedFile | undefined
  readonly now: GuardedFile | undefined
}

/** Once for each attempt: shortly where it was reverted, or where the same was told before; else what it was and how to take it over. */
export async function tellAside(store: Store, outcome: 'saved' | 'reverted'): Promise<void> {
  const all = await asides(store)
  for (const { folder, aside } of all.filter(({ aside: { outcome: settled } }) => settled === undefined)) {
    const told = all.filter(({ aside: { outcome: settled } }) => settled !== undefined)
    const again = told.findLast((one) => changesOf(one.aside) === changesOf(aside))
    const isOffer = outcome === 'saved' && again?.aside.outcome !== 'saved'
    const message =
      again !== undefined && !isOffer
        ? `${ran(aside)}, as while #${again.aside.n} ran, and restored: ${briefly(aside)}`
        : `${ran(aside)}${store.absence?.() === undefined ? '' : ', or after the loop had died'}, and put back: ${isOffer ? fully(aside) : briefly(aside)}. As it was then: ${relative(store.git.worktree, folder)}. ${
            isOffer ? `To take it over: ralph finish ${store.change} --accept-config` : ifYours(aside)
          }`
    await store.note({ type: 'warning', code: isOffer ? 'git_settings' : 'git_settings_reverted', message })
    await writeAside(folder, { ...aside, outcome })
  }
}

/** Whether there is something that the user may take over. */
export async function isOffered(store: AsideRoom): Promise<boolean> {
  return (await asides(store)).some(({ aside }) => aside.outcome === 'saved')
}

/** What complete attempts had changed takes effect now; what was changed again since stays. One sentence each. */
export async function takeOver(store: AsideRoom): Promise<string[]> {
  const done: string[] = []
  for (const { folder, aside } of await asides(store)) {
    if (aside.outcome !== 'saved') continue
    for (const name of new Set(aside.settings.map((one) => one.name)))
      done.push(
        ...(await takeSettings(
          store,
          name,
          aside.settings.filter((one) => one.name === name),
        )),
      )
    for (const file of aside.files) done.push(await takeFile(store, folder, file))
    await writeAside(folder, { ...aside, outcome: 'taken over' })
  }
  return [...new Set(done)]
}

async function takeSettings(
  store: AsideRoom,
  name: string,
  changes: readonly SettingChange[],
): Promise<string[]> {
  const place = onDisk(store.git.gitCommonDir, name)
  const unlock = await lockSettings(store, place)
  try {
    const bytes = contentAt(place) ?? Buffer.alloc(0)
    const settings = (await listSettings(store, bytes)) ?? []
    const current = (key: string): string =>
      JSON.stringify(settings.filter((one) => one.key === key).map(({ value }) => value))
    const due = changes.filter(({ key, before }) => current(key) === JSON.stringify(before))
    const wanted = due.map(({ key, now }) => ({ key, values: now }))
    const fresh = await withValues(store, bytes, wanted)
    if (fresh !== undefined) await writeGuarded(store, place, guardedAt(place, name), fresh)
    return changes.map((change) => {
      const what = `${inGit(name)}: ${shownSetting(change.key, change.now)}`
      if (current(change.key) === JSON.stringify(change.now)) return `${what} (as it was already)`
      return due.includes(change) && fresh !== undefined
        ? what
        : `${inGit(name)}: ${change.key} was left as it is now: it has been changed since`
    })
  } finally {
    await unlock()
  }
}

async function takeFile(store: AsideRoom, folder: string, file: Aside['files'][number]): Promise<string> {
  const { name, before, now } = file
  const place = onDisk(store.git.gitCommonDir, name)
  const current = existsOrLink(place) ? guardedAt(place, name) : undefined
  if (isSameFile(current, now)) return `${inGit(name)} (as it was already)`
  if (!isSameFile(current, before)) return `${inGit(name)} was left as it is now: it has been changed since`
  if (now === undefined) await rm(place, { force: true })
  else await writeGuarded(store, place, now, contentAt(onDisk(folder, name)))
  return `${inGit(name)} (${now === undefined ? 'removed' : before === undefined ? 'new' : 'changed'})`
}

type AsideRoom = Pick<Store, 'git' | 'change' | 'folder'>

async function openAside(store: Store, { commit }: Snapshot, n: number): Promise<Kept> {
  const name = `${n}-${commit.slice(0, 12)}`
  for (let more = 1; ; more += 1) {
    const folder = join(asideFolder(store), more === 1 ? name : `${name}-${more}`)
    const aside = await readAside(folder)
    if (aside === undefined) return { folder, aside: { n, settings: [], files: [] } }
    // One that was told is of an earlier run.
    if (aside.outcome === undefined) return { folder, aside }
  }
}

/** The earliest first. */
async function asides(store: AsideRoom): Promise<Kept[]> {
  if (!existsSync(asideFolder(store))) return []
  const found: Kept[] = []
  for (const name of await readdir(asideFolder(store))) {
    const folder = join(asideFolder(store), name)
    const aside = await readAside(folder)
    if (aside !== undefined) found.push({ folder, aside })
  }
  return found.sort((one, other) => one.aside.n - other.aside.n)
}

async function readAside(folder: string): Promise<Aside | undefined> {
  return readRecord(join(folder, 'record.json'), asideSchema)
}

async function writeAside(folder: string, aside: Aside): Promise<void> {
  await writeDurably(join(folder, 'record.json'), JSON.stringify(aside), { rights: { mode: 0o600 } })
}

/** Apart from the checkpoints of a run: it stays until the user has looked. */
function asideFolder({ git, change }: AsideRoom): string {
  return join(git.gitCommonDir, 'ralph', 'aside', change)
}

function changesOf({ settings, files }: Aside): string {
  return hashOf(
    Buffer.from(JSON.stringify([settings, files.map(({ name, now }) => [name, now?.sha, now?.link])])),
  )
}

function ran({ n }: Aside): string {
  return `changed while #${n} ran`
}

function briefly({ settings, files }: Aside): string {
  const keys = settings.map(({ name, key, now }) => `${inGit(name)} (${shownSetting(key, now)})`)
  return firstNames([...keys, ...files.map(({ name }) => inGit(name))], 3)
}

/** Nobody can tell whose line in a file it is. */
function ifYours({ settings, files }: Aside): string {
  const typed = settings
    .filter(({ name, now }) => name === 'config' && now.length === 1)
    .map(({ key, now: [value] }) => `git config ${shellWord(key)} ${shellWord(value ?? 'true')}`)
  return files.length > 0 || typed.length !== settings.length || typed.length > 3
    ? 'If it was you, do it again.'
    : `If it was you: ${typed.join(' && ')}`
}

function fully({ settings, files }: Aside): string {
  const keys = settings.map(({ name, key, before, now }) => {
    const was =
      before.length === 0 ? 'it was not set' : `it was ${shownSetting(key, before).replace(`${key} = `, '')}`
    return `${inGit(name)}: ${shownSetting(key, now)} (${was})`
  })
  const changed = files.map(
    ({ name, before, now }) =>
      `${inGit(name)} (${now === undefined ? 'removed' : before === undefined ? 'new' : 'changed'})`,
  )
  return firstNames([...keys, ...changed], 12)
}

function inGit(name: string): string {
  return `.git/${named(name)}`
}

function existsOrLink(place: Buffer): boolean {
  return existsSync(place) || linkAt(place) !== undefined
}
