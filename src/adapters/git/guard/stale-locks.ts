// Lock files of git's that a killed git left behind. Whose they are says core/ownership.ts; only the agent's and ralph's own are moved away.
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { again, RalphError } from '../../../core/error.ts'
import { ownerOfLock, type Claim } from '../../../core/ownership.ts'
import { mkdir, rename, rm } from '../../files/now.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { holdersOf } from '../../process/strays.ts'
import { processTable, readProc } from '../../process/table.ts'
import { refLocks } from '../formats/ref-files.ts'
import type { Git, Repository } from '../git.ts'
import { checkpointFolder, type Store } from '../store.ts'

/** A git that was not killed with its ralph may still be at it; it is given this long to end by itself. */
export const patienceMs = 10_000

/**
 * After an attempt and before a recovery: what a killed git (the agent's, or ralph's own) has locked is free again.
 * Of others it is waited for. Returns what was moved, and where to.
 */
export async function outwaitLocks(store: Store, waitMs: number): Promise<MovedLock[]> {
  const { git } = store
  await sweepOwn(git, store.change)
  const since = lastCheckpoint(store)
  const moved: MovedLock[] = []
  const deadline = performance.now() + waitMs
  for (;;) {
    const locks = [...locksOf(git), ...refLocks(git)]
    for (const lock of locks) {
      if (claimOn(git, lock, since).owner !== 'agent') continue
      const folder = join(store.folder, 'stale-locks')
      await mkdir(folder, { recursive: true })
      const to = join(folder, basename(lock))
      await rename(lock, to)
      moved.push({ name: basename(lock), to })
    }
    // Where no process can be seen, waiting would show nothing.
    if (locks.length === 0 || !canSee || performance.now() > deadline) return moved
    await delay(50)
  }
}

export interface MovedLock {
  readonly name: string
  readonly to: string
}

/** Whose git it was, or another program's, the file does not tell. */
export function staleWords({ name, to }: MovedLock): string {
  return `${name} was made during the attempt, and no process has it open any more; it was moved away, to ${to}`
}

/** With the loop's lock in hand nobody else writes to these folders: what is locked or half written there was left by a killed ralph. */
export async function sweepOwn(git: Git, change: string): Promise<void> {
  const folder = checkpointFolder(git.gitCommonDir, change)
  const refs = join(git.gitCommonDir, 'refs', 'ralph', change)
  const deadline = performance.now() + patienceMs
  for (;;) {
    const left = [...filesIn(folder, /\.(lock|tmp)$/), ...filesIn(refs, /\.lock$/)]
    if (left.length === 0) return
    // A git of the dead ralph may outlive it for a moment.
    if (!isOwnGitAtWork(git)) {
      const held = left.find((file) => claimOn(git, file, undefined, true).owner !== 'ralph')
      if (held === undefined) {
        for (const file of left) await rm(file, { force: true })
        return
      }
    }
    if (performance.now() > deadline) {
      const { message, hint } = lockedFile(git, left[0] ?? folder)
      throw new RalphError('checkpoint_failed', message, { hint })
    }
    await delay(50)
  }
}

/** In a work tree that ralph has made: what a git that was killed there left, whoever's it was. Of one that is at work it is waited for. */
export async function sweepTree(git: Git): Promise<void> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const locks = treeLocks(git)
    for (const lock of locks) if (claimOn(git, lock, 0).owner === 'agent') await rm(lock, { force: true })
    if (locks.length === 0 || performance.now() > deadline) return
    await delay(50)
  }
}

/** How long a lock at the start may belong to a git that is about to end: an editor looks at the status now and then. */
const youngMs = 3000

/** Before the first change of all: nothing can be begun while one of these is there, and it is not ralph's to remove. */
export async function refuseLockFiles(git: Git, change: string): Promise<void> {
  const branchLock = join(git.gitCommonDir, 'refs', 'heads', 'ralph', `${change}.lock`)
  for (;;) {
    const lock = [...locksOf(git), branchLock].find((file) => existsSync(file))
    if (lock === undefined) return
    const ageMs = ageOf(lock)
    if (ageMs === undefined) continue
    if (ageMs < 0 || ageMs > youngMs) {
      // Of the loop's own branch, and later than its start: a git that was killed then left it.
      const since = lastCheckpoint({ folder: checkpointFolder(git.gitCommonDir, change) })
      if (lock !== branchLock || claimOn(git, lock, since).owner !== 'agent') throw refusal(git, lock)
      await rm(lock, { force: true })
      continue
    }
    await delay(50)
  }
}

function refusal(git: Git, lock: string): RalphError {
  const { message, hint } = lockedFile(git, lock)
  return new RalphError('repository_state', message, { hint: `Nothing was touched. ${hint}` })
}

/** For messages: who has it, since when, and what to do about it. */
export function lockedFile(git: Git, lock: string): { readonly message: string; readonly hint: string } {
  const { holders } = factsOf(git, lock)
  const who =
    holders === undefined || holders.length === 0
      ? 'a program is at work with git, or was killed'
      : `process ${holders.map((pid) => `${pid} (${readProc(pid, 'comm')?.trim() ?? 'gone'})`).join(', ')} has it open`
  return {
    message: `${lock} is there: ${who}; it is ${inWords(ageOf(lock) ?? 0)} old.`,
    hint: `End that program, or if there is none remove the file (rm ${shellWord(lock)}), then ${again}.`,
  }
}

function claimOn(git: Git, lock: string, since: number | undefined, isInOwnFolder = false): Claim {
  const stats = statSync(lock, { throwIfNoEntry: false })
  const isOfAttempt = since !== undefined && stats !== undefined && stats.ctimeMs >= since
  return ownerOfLock({ ...factsOf(git, lock), isInOwnFolder, isOfAttempt, ageMs: ageOf(lock) ?? 0 })
}

const canSee = process.platform === 'linux'

function factsOf(
  git: Git,
  lock: string,
): { readonly holders: readonly number[] | undefined; readonly isGitAtWork: boolean | undefined } {
  if (!canSee) return { holders: undefined, isGitAtWork: undefined }
  return { holders: holdersOf([lock]).map(({ pid }) => pid), isGitAtWork: isGitAtWork(git) }
}

function ageOf(lock: string): number | undefined {
  const stats = statSync(lock, { throwIfNoEntry: false })
  return stats === undefined ? undefined : Date.now() - stats.ctimeMs
}

/** By the clock of the disk, as the locks' own times are: the last checkpoint, or the start if there was none yet. */
function lastCheckpoint({ folder, outer }: Pick<Store, 'folder' | 'outer'>): number | undefined {
  if (outer !== undefined) return lastCheckpoint(outer)
  const written = ['snapshot.json', 'origin.json'].map(
    (name) => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs,
  )
  return written.find((time) => time !== undefined)
}

/** Of what every loop writes: its work tree's own, and those that all work trees share. */
function locksOf(git: Git): string[] {
  const shared = ['packed-refs.lock', 'config.lock', 'refs/stash.lock']
  const found = shared.map((name) => join(git.gitCommonDir, name)).filter((lock) => existsSync(lock))
  return [...treeLocks(git), ...found]
}

function treeLocks({ gitDir }: Git): string[] {
  return ['index.lock', 'HEAD.lock'].map((name) => join(gitDir, name)).filter((lock) => existsSync(lock))
}

/** Not those that are kept. No `recursive`, which asks for the kind of each file again. */
function filesIn(folder: string, name: RegExp, kept = /^(nested|stale-locks)$/): string[] {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return []
  const entries = readdirSync(folder, { withFileTypes: true })
  const files = entries.filter((entry) => !entry.isDirectory() && name.test(entry.name))
  const inner = entries.filter((entry) => entry.isDirectory() && !kept.test(entry.name))
  return [
    ...files.map((entry) => join(folder, entry.name)),
    ...inner.flatMap((entry) => filesIn(join(folder, entry.name), name, /^$/)),
  ]
}

/** Whoever's: one in any work tree of this repository. */
function isGitAtWork(git: Git): boolean {
  const places = [git.worktree, git.gitCommonDir, ...otherTrees(git)]
  return gitProcesses().some(({ cwd }) =>
    places.some((place) => cwd === place || cwd.startsWith(`${place}/`)),
  )
}

/** Told by what ralph alone says to git; see git.ts. */
function isOwnGitAtWork(git: Git): boolean {
  if (!canSee) return false
  return gitProcesses().some(
    ({ argv }) => argv.includes(`--git-dir=${git.gitDir}`) && argv.includes('core.hooksPath=/dev/null'),
  )
}

function gitProcesses(): { readonly cwd: string; readonly argv: readonly string[] }[] {
  const gits = processTable().filter(({ pid }) => readProc(pid, 'comm')?.startsWith('git') === true)
  return gits.map(({ pid }) => ({ cwd: cwdOf(pid), argv: readProc(pid, 'cmdline')?.split('\0') ?? [] }))
}

function cwdOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    // Gone meanwhile; or another user's, whose work would show in the lock's owner, not in ours.
    return ''
  }
}

function otherTrees({ gitCommonDir }: Repository): string[] {
  const folder = join(gitCommonDir, 'worktrees')
  const links = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name, 'gitdir')) : []
  const trees = links
    .filter((link) => existsSync(link))
    .map((link) => dirname(readFileSync(link, 'utf8').trim()))
  return basename(gitCommonDir) === '.git' ? [dirname(gitCommonDir), ...trees] : trees
}

function inWords(ageMs: number): string {
  const seconds = Math.max(0, Math.round(ageMs / 1000))
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`
}
