// The loop's own work tree is written down before git makes it: a start that was killed is known by the next one, and cleared away.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, type Dirent } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import * as z from 'zod'
import { readRecord, writeDurably } from '../../files/whole.ts'
import { RalphError } from '../../../core/error.ts'
import { reapByMarker } from '../../process/reap.ts'
import { bootId, isAlive, processIdentity } from '../../process/table.ts'
import { shown, type Git } from '../git.ts'
import { refuseMountsIn } from '../revert/mounted.ts'
import { moveAway, removePath } from '../tree/remove.ts'
import { checkpointFolder } from '../store.ts'
import { scanTree } from '../tree/scan.ts'

const startSchema = z.object({
  dir: z.string(),
  commit: z.string(),
  /** Folders that are copied along, relative to either tree. */
  brought: z.array(z.string()),
  /** Git's own names of the work trees that were there before. */
  known: z.array(z.string()),
  pid: z.number(),
  pid_started: z.string(),
  boot_id: z.string(),
  /** Where the contents of earlier trees went, until a journal has said so: the start that moved them may be killed, too. */
  left: z.array(z.string()).default([]),
})
type Start = z.infer<typeof startSchema>

export async function noteStart(
  git: Git,
  change: string,
  what: Pick<Start, 'dir' | 'commit' | 'brought'>,
): Promise<void> {
  const owner = { pid: process.pid, pid_started: processIdentity(process.pid), boot_id: bootId() }
  const left = (await readRecord(recordOf(git, change), startSchema))?.left ?? []
  await writeStart(git, change, { ...what, known: adminNames(git), ...owner, left })
}

async function writeStart(git: Git, change: string, start: Start): Promise<void> {
  await writeDurably(recordOf(git, change), JSON.stringify(start))
}

/** From the first line of the journal on the run itself says where its tree is, and what was found. */
export async function forgetStart(git: Git, change: string): Promise<void> {
  await rm(recordOf(git, change), { force: true })
}

/** For a tree that could not be made: no empty folder stays, either. */
export async function dropStart(git: Git, change: string): Promise<void> {
  const start = await readRecord(recordOf(git, change), startSchema)
  if (start !== undefined && start.left.length > 0) return
  const record = relative(git.gitCommonDir, recordOf(git, change))
  await removePath(git.gitCommonDir, Buffer.from(record).toString('latin1'))
}

/**
 * What a killed start left is taken away, whole or half made; files that git did not put there are moved to ralph's own folder,
 * and that is said. `begunIn` is the tree of the run that the journal knows: it is no leftover.
 */
export async function clearStart(git: Git, change: string, begunIn: string | undefined): Promise<string> {
  const start = await readRecord(recordOf(git, change), startSchema)
  if (start === undefined) return ''
  refuseLive(start, change)
  // It would write into the next tree.
  await reapByMarker(setUpMark(start.dir))
  const note = start.dir === begunIn ? '' : await clear(git, change, start)
  const earlier = start.left
    .filter((folder) => existsSync(folder))
    .map((folder) => leftWords(change, start, folder))
  // Else it stays until the journal has what is said here.
  if (note === '' && earlier.length === 0) await forgetStart(git, change)
  return [...earlier, note].filter((line) => line !== '').join('; ')
}

/** By this what the set-up of a new work tree starts is known, also after a crash. */
export function setUpMark(dir: string): string {
  return `set-up-${createHash('sha256').update(dir).digest('hex').slice(0, 16)}`
}

function leftWords(change: string, { dir }: Start, folder: string): string {
  return `a start of ${change} was killed and had left ${dir}; what was in it is now in ${folder}`
}

function refuseLive({ pid, pid_started: started, boot_id: boot }: Start, change: string): void {
  if (pid === process.pid || boot !== bootId() || !isAlive(pid, started)) return
  throw new RalphError('locked', `Another ralph (pid ${pid}) is just making the work tree of ${change}.`, {
    hint: `Nothing was touched. See: ralph status ${change}`,
  })
}

async function clear(git: Git, change: string, start: Start): Promise<string> {
  const admins = adminNames(git)
    .filter((name) => !start.known.includes(name) && isAdminOf(git, name, start.dir))
    .map((name) => join(git.gitCommonDir, 'worktrees', name))
  // On a branch or another commit: somebody has gone on with it.
  if (!admins.every((admin) => isUnused(admin, start.commit))) return ''
  const isOurs = admins.length > 0 || pointsNowhere(start.dir)
  if (!existsSync(start.dir) || !isOurs) return await removeAll(admins, '')
  refuseMountsIn(start.dir)
  const name = Buffer.from(basename(start.dir)).toString('latin1')
  if (await holdsMore(git, change, start)) {
    const aside = join(checkpointFolder(git.gitCommonDir, change), 'left', `${Date.now()}`)
    await writeStart(git, change, { ...start, left: [...start.left, aside] })
    await moveAway(dirname(start.dir), name, aside)
    return await removeAll(admins, leftWords(change, start, aside))
  }
  await removePath(dirname(start.dir), name)
  return await removeAll(
    admins,
    `a start of ${change} was killed and had left ${start.dir}; it held nothing of yours and was removed`,
  )
}

async function removeAll(folders: readonly string[], note: string): Promise<string> {
  for (const folder of folders) await rm(folder, { recursive: true, force: true })
  return note
}

/** Git writes a folder for itself first, and only then into it which tree it is for. */
function isAdminOf(git: Git, name: string, dir: string): boolean {
  const points = readNow(join(git.gitCommonDir, 'worktrees', name, 'gitdir'))
  const plain = (text: string): string => text.replace(/[^a-z0-9]/gi, '')
  return points === '' ? plain(name).startsWith(plain(basename(dir))) : points === join(dir, '.git')
}

function isUnused(admin: string, commit: string): boolean {
  const head = readNow(join(admin, 'HEAD'))
  return head === '' || head === commit || /^0+$/.test(head)
}

/** Its folder in the git directory was pruned meanwhile. */
function pointsNowhere(dir: string): boolean {
  const admin = /^gitdir: (.+)$/.exec(readNow(join(dir, '.git')))?.[1]
  return admin !== undefined && !existsSync(admin)
}

/** Anything but files as the commit has them and copies of what the user's checkout has. */
async function holdsMore(git: Git, change: string, start: Start): Promise<boolean> {
  const index = join(checkpointFolder(git.gitCommonDir, change), 'left-index')
  const there = git.at({ ...git, worktree: start.dir })
  await there.run(['read-tree', start.commit], { index })
  const { changed, untracked, ignored } = await scanTree(there, { index, ignored: true })
  await rm(index, { force: true })
  const isBrought = (path: string): boolean =>
    start.brought.some((folder) => path.startsWith(`${folder}/`) || `${folder}/`.startsWith(path))
  return [...changed, ...untracked, ...ignored]
    .map(shown)
    .some((path) => !isBrought(path) || !isCopy(join(git.worktree, path), join(start.dir, path)))
}

/** Whether everything in `copy` is in `source` too, byte for byte. */
function isCopy(source: string, copy: string): boolean {
  const entries = entriesOf(copy)
  if (entries === undefined) return existsSync(source) && readFileSync(source).equals(readFileSync(copy))
  return entries.every(({ name }) => isCopy(join(source, name), join(copy, name)))
}

function entriesOf(folder: string): Dirent[] | undefined {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined
    throw error
  }
}

function adminNames(git: Git): string[] {
  const folder = join(git.gitCommonDir, 'worktrees')
  return existsSync(folder) ? readdirSync(folder) : []
}

function readNow(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
}

/** Not in the run's own folder: that is archived whole. */
function recordOf(git: Git, change: string): string {
  return join(checkpointFolder(git.gitCommonDir, change), 'started-tree.json')
}
