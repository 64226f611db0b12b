// Git takes an object that is there already for written; after a power cut its file may be empty, torn or another's. What is saved is made sure of.
import { createHash } from 'node:crypto'
import { createReadStream, readlinkSync, statSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createInflate } from 'node:zlib'
import { RalphError } from '../../../core/error.ts'
import { rm } from '../../files/now.ts'
import { lstatNow, onDisk } from '../tree/files.ts'
import { named, type Git } from '../git.ts'
import { looseFile } from './objects.ts'

/** Entries as `ls-files -s -v` lists them, of files that stand in the work tree. Objects made since `sinceMs` are git's own of just now. */
export async function mendTorn(git: Git, entries: readonly string[], sinceMs: number): Promise<void> {
  for (const entry of entries) {
    const [, mode = '', hash = ''] = entry.split(/[ \t]/, 3)
    if (mode === '160000' || !(await isTorn(git, hash, sinceMs))) continue
    const path = entry.slice(entry.indexOf('\t') + 1)
    if (!(await storeAnew(git, hash, path))) throw damaged(hash, path)
  }
}

/** Where git itself has met one, and it is what one of these files holds. False: nothing was done. */
export async function mendNamed(git: Git, error: unknown, paths: readonly string[]): Promise<boolean> {
  const said = error instanceof Error ? error.message : ''
  const hash = /loose object '?([0-9a-f]{40,64})/.exec(said)?.[1]
  if (hash === undefined || !(await isTorn(git, hash, Number.POSITIVE_INFINITY))) return false
  for (const path of paths) if (await storeAnew(git, hash, path)) return true
  return false
}

/** False where the file holds something else. */
async function storeAnew(git: Git, hash: string, path: string): Promise<boolean> {
  const stats = lstatNow(git.worktree, path)
  if (stats === undefined || stats.isDirectory()) return false
  const isLink = stats.isSymbolicLink()
  const how = isLink ? '--stdin' : '--stdin-paths'
  const input = isLink
    ? readlinkSync(onDisk(git.worktree, path), { encoding: 'buffer' })
    : Buffer.from(`./${path}\n`, 'latin1')
  const ask = (...write: string[]): Promise<string> => git.line(['hash-object', ...write, how], { input })
  if ((await ask()) !== hash) return false
  await rm(looseFile(git, hash), { force: true })
  await ask('-w')
  return true
}

/** What cannot be read for another reason is git's to name. */
async function isTorn(git: Git, hash: string, sinceMs: number): Promise<boolean> {
  const file = looseFile(git, hash)
  const stats = statSync(file, { throwIfNoEntry: false })
  if (stats === undefined || stats.birthtimeMs > sinceMs) return false
  const mark = `${stats.ino} ${stats.size}`
  if (sound.get(file) === mark) return false
  const sum = createHash(hash.length > 40 ? 'sha256' : 'sha1')
  try {
    await pipeline(createReadStream(file), createInflate(), sum)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code?.startsWith('Z_') === true) return true
    throw error
  }
  if (sum.digest('hex') !== hash) return true
  if (sound.size > 5000) sound.clear()
  sound.set(file, mark)
  return false
}

/** Looked at before, by their files. */
const sound = new Map<string, string>()

function damaged(hash: string, path: string): RalphError {
  return new RalphError(
    'checkpoint_failed',
    `git holds ${named(path)} in an object that is damaged: ${hash}`,
    {
      hint: `Your files are untouched. \`git fsck\` shows what is damaged; \`git add -- ${named(path)}\` after that object's file is gone stores it again.`,
    },
  )
}
