// What a power cut left of objects that nobody had synced: git could not read them, nor would it write them again, for they are there.
import { mkdir, rename } from '../../files/now.ts'
import { readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { inflateSync } from 'node:zlib'
import type { Git } from '../git.ts'
import { moveRefs, readRefs, shortRef } from '../refs/refs.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import type { Store } from '../store.ts'
import { looseSince } from './sync.ts'

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
  const message = `the loop ended before what its agent gave to git was on the disk: ${broken.length} objects cannot be read and are put aside in ${relative(git.worktree, aside)}${refs.length === 0 ? '' : `; back where they were: ${refs.join(', ')}`}`
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
