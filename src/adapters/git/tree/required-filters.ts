// Filters that have to work, on files that an attempt puts under them: one that fails would stop every git command after it.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import { convertedPaths } from './conversions.ts'
import { lstatNow } from './files.ts'
import type { Git } from '../git.ts'
import type { Store } from '../store.ts'
import { joined } from './tree.ts'

/** Why an attempt with this index cannot be saved: `unfit` is what git has said already. Empty where it can. */
export async function whyUnfit(
  store: Store,
  index: string,
  { paths, unfit }: { readonly paths: readonly string[]; readonly unfit: string },
): Promise<string> {
  const failing = unfit || (await failingFilter(store, index, paths))
  return failing === '' ? '' : `${failing}: what .gitattributes says does not fit the files`
}

/** What git says of the first that fails, on files as they are in the attempt's index; empty where none does. */
async function failingFilter(store: Store, index: string, changed: readonly string[]): Promise<string> {
  const { git } = store
  if (!changed.some((path) => /(^|\/)\.gitattributes$/.test(path))) return ''
  const required = await requiredFilters(git)
  if (required.size === 0) return ''
  const tracked = await git.list(['ls-files', '-z'], { index })
  const converted = await convertedPaths(git, [], tracked)
  const paths = fewBytes(
    git,
    [...converted].filter(([, how]) => required.has(how.split(' ')[0] ?? '')).map(([path]) => path),
  )
  if (paths.length === 0) return ''
  const input = Buffer.from(paths.map((path) => `./${path}\n`).join(''), 'latin1')
  const failed = await git.forgiving(async (unfit) => {
    await git.run(['hash-object', '--stdin-paths'], { input })
    return unfit()
  })
  return failed || (await failsOnWayOut(store, index, paths))
}

async function requiredFilters(git: Git): Promise<ReadonlySet<string>> {
  const asked = ['config', '-z', '--type=bool', '--get-regexp', '^filter\\..*\\.required$']
  const settings = (await git.run(asked, { accept: [1] })).out.split('\0')
  return new Set(settings.flatMap((each) => /^filter\.(.*)\.required\ntrue$/s.exec(each)?.[1] ?? []))
}

/** Nobody asks a filter for gigabytes to prove that it works. */
function fewBytes(git: Git, paths: readonly string[]): string[] {
  const sized = paths.flatMap((path) => {
    const stats = lstatNow(git.worktree, path)
    return stats?.isFile() === true && !path.includes('\n') ? [{ path, size: stats.size }] : []
  })
  let left = 20e6
  return sized
    .toSorted((one, other) => one.size - other.size)
    .filter(({ size }) => (left -= size) > 0)
    .map(({ path }) => path)
}

async function failsOnWayOut(store: Store, index: string, paths: readonly string[]): Promise<string> {
  const folder = join(store.folder, 'tried')
  const args = ['checkout-index', '--force', '--quiet', `--prefix=${folder}/`, '-z', '--stdin']
  try {
    await store.git.run(args, { index, input: joined(paths), accept: [1] })
    return ''
  } catch (error) {
    const text = error instanceof RalphError ? error.message : ''
    const words = /^fatal: (.*smudge filter .* failed)$/m.exec(text)?.[1]
    if (words === undefined) throw error
    return words
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
