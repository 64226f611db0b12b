// Objects that a power cut has damaged: git cannot read them, nor does it write them again, for they are there. What is saved is made sure of.
import { createHash } from 'node:crypto'
import { createReadStream, readlinkSync, statSync, readFileSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createInflate, inflateSync } from 'node:zlib'
import { RalphError } from '../../../core/error.ts'
import { rm, mkdir, rename } from '../../files/now.ts'
import { lstatNow, onDisk } from '../tree/files.ts'
import { named, type Git } from '../git.ts'
import { looseFile } from './objects.ts'
import { join, relative } from 'node:path'
import { moveRefs, readRefs, shortRef } from '../refs/refs.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import type { Store } from '../store.ts'
import { looseSince } from './sync.ts'

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

/** After a death: they are put aside, and refs that need them go back to where they were at the last checkpoint. */
export async function putBrokenAside(store: Store, snapshot: Snapshot | undefined): Promise<void> {
  const { git, folder } = store
  // Those of a checkpoint are synced before it is recorded.
  const sinceMs = (statSync(join(folder, 'snapshot.json'), { throwIfNoEntry: false })?.mtimeMs ?? 2000) - 2000
  const broken = looseSince(git, sinceMs, mostBytes).filter(({ file }) => isBroken(file))
  if (broken.length === 0) return
  const aside = join(folder, 'broken-objects')
  await mkdir(aside, { recursive: true })
  for (const { file, hash } of broken) await rename(file, join(aside, hash))
  const before = snapshot?.refs ?? {}
  const { all } = await readRefs(git, true)
  const back: string[] = []
  for (const [name, hash] of Object.entries(all)) {
    // The list of stashes is its log: that is not for a ref to say.
    if (hash === before[name] || name === 'refs/stash' || (await isWhole(git, hash))) continue
    back.push(before[name] === undefined ? `delete ${name}` : `update ${name} ${before[name]}`)
  }
  await moveRefs(git, 'repair', back)
  const refs = back.map((command) => shortRef(command.split(' ')[1] ?? ''))
  const message = `the loop ended before what its agent gave to git was on the disk: ${broken.length} objects cannot be read and are moved to ${relative(git.worktree, aside)}${refs.length === 0 ? '' : `; back where they were: ${refs.join(', ')}`}`
  await store.note({ type: 'warning', code: 'broken_objects', message })
}

/** One that may not be read is not. */
function isBroken(file: string): boolean {
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch {
    return false
  }
  try {
    inflateSync(bytes)
    return false
  } catch {
    return true
  }
}

async function isWhole(git: Git, hash: string): Promise<boolean> {
  const asked = ['rev-list', '--objects', '--quiet', hash, '--not', '--glob=refs/ralph']
  return (await git.run(asked, { accept: [1, 128] })).code === 0
}

/** Of a file as it lies there. */
const mostBytes = 64e6
