// The entries of a git configuration file, read and rewritten by git itself: nobody else knows its syntax to the letter.
import { join } from 'node:path'
import { readFile, rm } from '../../files/now.ts'
import { writeDurably } from '../../files/whole.ts'
import { RalphError } from '../../../core/error.ts'
import { settleGitSettings, type GitSetting } from '../../../core/ownership.ts'
import { shown } from '../git.ts'
import type { Store } from '../store.ts'

type ConfigRoom = Pick<Store, 'git' | 'folder'>

/** Undefined where git cannot read it. */
export async function listSettings(store: ConfigRoom, bytes: Uint8Array): Promise<GitSetting[] | undefined> {
  return await withCopy(store, bytes, (copy) => listFile(store, copy))
}

/** `bytes` with these values in the place of those that the keys have there. */
export async function withValues(
  store: ConfigRoom,
  bytes: Uint8Array,
  wanted: readonly { readonly key: string; readonly values: readonly (string | null)[] }[],
): Promise<Buffer | undefined> {
  return await withCopy(store, bytes, async (copy) => {
    const before = await listFile(store, copy)
    if (before === undefined) return undefined
    const edit = (how: string, key: string, ...value: string[]): Promise<unknown> =>
      // 5: there was nothing to unset.
      store.git.run(['config', '--file', copy, how, key, ...value], { inside: '/', accept: [5] })
    for (const { key, values } of wanted) {
      const [first, ...more] = values.map((value) => value ?? 'true')
      // Where it stands already: a file that people read keeps its order.
      await (first === undefined ? edit('--unset-all', key) : edit('--replace-all', key, first))
      for (const value of more) await edit('--add', key, value)
    }
    const touched = new Set(wanted.map(({ key }) => key))
    const rest = before.filter(({ key }) => !touched.has(key))
    const settings = wanted.flatMap(({ key, values }) => values.map((value) => ({ key, value })))
    const now = (await listFile(store, copy)) ?? []
    const isExact = isSameSettings([...rest, ...settings], now)
    return isExact ? await readFile(copy) : undefined
  })
}

/** Of values that are no UTF-8 nothing can be said on a command line: they come out otherwise, and are seen here. */
function isSameSettings(wanted: readonly GitSetting[], now: readonly GitSetting[]): boolean {
  const { undone, stays } = settleGitSettings(wanted, now)
  return undone.length === 0 && !stays
}

/** Undefined where git cannot read it. */
export async function listFile({ git }: Pick<Store, 'git'>, file: string): Promise<GitSetting[] | undefined> {
  try {
    // Outside every repository: one whose settings are broken must not keep git from reading a file.
    const entries = await git.list(['config', '--file', file, '--no-includes', '--null', '--list'], {
      inside: '/',
    })
    const settings = entries.map((entry) => {
      const [key = '', ...value] = shown(entry).split('\n')
      return { key, value: entry.includes('\n') ? value.join('\n') : null }
    })
    // Git lists a line above the first section, but can neither set nor unset it, and complains of it ever after.
    return settings.every(({ key }) => key.includes('.')) ? settings : undefined
  } catch (error) {
    if (error instanceof RalphError && error.code === 'git_failed') return undefined
    throw error
  }
}

/** One at a time, under one name: a kill leaves at most one, and the next call takes its place. */
async function withCopy<T>(
  { folder }: ConfigRoom,
  bytes: Uint8Array,
  work: (copy: string) => Promise<T>,
): Promise<T> {
  const copy = join(folder, 'settings-copy')
  await writeDurably(copy, bytes, { rights: { mode: 0o600 } })
  try {
    return await work(copy)
  } finally {
    await rm(copy, { force: true })
  }
}
