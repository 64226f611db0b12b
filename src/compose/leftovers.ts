// What processes of ralph's that are gone have left behind, and what is missing of its own: `doctor` names it, `doctor --fix` puts it in order.
// Only what is ralph's, and what nobody can need any more. Everything else (a dead loop's work tree, its agent, a damaged journal) is the user's to decide.
import { existsSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileLock, inspectLock } from '../adapters/files/lock.ts'
import { changesDir, stateFile, worktreeLock } from '../adapters/files/paths.ts'
import { excludeFromGit, missingExcludes } from '../adapters/git/repository.ts'
import { checkpointFolder } from '../adapters/git/store.ts'
import { findAlive } from '../adapters/process/reap.ts'
import { removeTemp, tempsOf } from '../adapters/process/temp.ts'
import type { Fix } from '../ui/app.ts'
import { hiddenPaths } from './checkpoints.ts'
import { isDead, isKnown, isRunning, isSettled, knownRun, needsRepair } from './site.ts'
import type { KnownRun, Site } from './site.ts'

interface Leftover extends Omit<Fix, 'failed'> {
  readonly mend: () => Promise<void>
}

/** `known`: those that were read already. */
export async function leftoversIn(site: Site, known: readonly KnownRun[] = []): Promise<readonly Leftover[]> {
  const names = namesIn(changesDir(site.git.gitCommonDir))
  const runs = await Promise.all(
    names.map(async (name) => known.find(({ change }) => change === name) ?? knownRun(site, name)),
  )
  const found = [
    deadLocks(site, runs),
    treeLocks(site, runs),
    strayFiles(site, runs),
    await tempFolders(site, runs),
    await shownStateFile(site, runs),
    goneTrees(site, runs),
  ]
  return found.flat()
}

/** Each is named before it is touched; one that cannot be put in order keeps no other from it. */
export async function fixLeftovers(site: Site): Promise<readonly Fix[]> {
  const fixes = await recordedDeaths(site)
  for (const { mend, ...what } of await leftoversIn(site)) {
    try {
      await mend()
      fixes.push(what)
    } catch (error) {
      fixes.push({ ...what, failed: error instanceof Error ? error.message : String(error) })
    }
  }
  return fixes
}

async function recordedDeaths(site: Site): Promise<Fix[]> {
  const { recordDeaths } = await import('./recovery.ts')
  const names = namesIn(changesDir(site.git.gitCommonDir))
  const dead = (await Promise.all(names.map((name) => knownRun(site, name)))).filter(isDead)
  if (dead.length > 0) await recordDeaths(site)
  return Promise.all(
    dead.map(async ({ change }) => {
      const isStill = isDead(await knownRun(site, change))
      return {
        name: `loop ${change}`,
        before: 'it was killed, and that is not recorded',
        after: 'recorded as stopped; its work tree and its agent are not touched',
        ...(isStill && { failed: 'it cannot be recorded now' }),
      }
    }),
  )
}

/** Of a run that has to be repaired the lock still tells whose its processes are. */
function isOver(run: KnownRun): boolean {
  return !isRunning(run) && !needsRepair(run) && run.damage === undefined
}

function deadLocks(site: Site, runs: readonly KnownRun[]): Leftover[] {
  return runs.flatMap((run) => {
    if (run.lock.held !== 'dead' || !isOver(run)) return []
    return {
      name: `lock of ${run.change}`,
      before: `left by a process that is gone${run.lock.owner === undefined ? '' : ` (pid ${run.lock.owner.pid})`}`,
      after: 'removed',
      mend: async () => (await import('./recovery.ts')).sweepLocks(site, run),
    }
  })
}

function treeLocks(site: Site, runs: readonly KnownRun[]): Leftover[] {
  return gitDirs(site).flatMap((gitDir) => {
    const path = worktreeLock(gitDir)
    const lock = inspectLock(path, site.identity)
    if (lock.held !== 'dead') return []
    const run = runs.find(({ change }) => change === lock.owner?.change)
    // That of its change goes with it.
    if (run !== undefined && (run.lock.held === 'dead' || !isOver(run))) return []
    const { owner } = lock
    return {
      name: `lock of the work tree ${owner?.worktree ?? gitDir}`,
      before: `left by a process that is gone${owner === undefined ? '' : ` (pid ${owner.pid})`}`,
      after: 'removed',
      mend: async () => {
        const what = {
          change: owner?.change ?? '',
          worktree: owner?.worktree ?? '',
          since: site.clock.stamp(),
        }
        const held = await fileLock(path, { ...what, purpose: 'record' }, site.identity).acquire()
        await held.release()
      },
    }
  })
}

/** Of processes of another machine on the same disk nobody can tell whether they live: they write for seconds, not for an hour. */
const oldMs = 3_600_000

/** Only in folders where nothing but ralph's own files are: no copies of the user's. */
function strayFiles(site: Site, runs: readonly KnownRun[]): Leftover[] {
  const common = site.git.gitCommonDir
  const folders = [
    join(common, 'ralph'),
    ...gitDirs(site).map((gitDir) => dirname(worktreeLock(gitDir))),
    ...runs.flatMap(({ change, paths }) => [paths.root, paths.notes, checkpointFolder(common, change)]),
  ]
  const own = [...new Set(folders)].flatMap((folder) => namesIn(folder).map((name) => join(folder, name)))
  const tree = dirname(stateFile(site.git.worktree))
  const states = namesIn(tree)
    .filter((name) => name.startsWith(`${basename(stateFile(''))}.`))
    .map((name) => join(tree, name))
  const stray = [...own, ...states].filter(isStray)
  if (stray.length === 0) return []
  return [
    {
      name: 'temporary files',
      before: `${stray.length} half-written by processes that are gone: ${stray.slice(0, 3).join(', ')}${stray.length > 3 ? ' …' : ''}`,
      after: 'deleted',
      mend: async () => {
        for (const file of stray) rmSync(file, { force: true })
      },
    },
  ]
}

function isStray(file: string): boolean {
  const pid = Number(/\.(\d+)(?:\.\d+)?\.tmp$|\.draft-(\d+)-[\w-]+$/.exec(file)?.slice(1).find(Boolean) ?? 0)
  const stats = pid === 0 ? undefined : statSync(file, { throwIfNoEntry: false })
  return stats?.isFile() === true && Date.now() - stats.mtimeMs > oldMs && !isThere(pid)
}

async function tempFolders(site: Site, runs: readonly KnownRun[]): Promise<Leftover[]> {
  const found = await Promise.all(
    runs.map(async (run) => {
      const { runId } = run.state
      if (runId === undefined || !isOver(run)) return []
      const folders = await tempsOf(runId, site.env)
      // Whoever still works in it has it.
      const isQuiet = folders.length > 0 && findAlive({ marker: { RALPH_RUN_ID: runId } }).length === 0
      return isQuiet ? folders : []
    }),
  )
  const folders = found.flat()
  if (folders.length === 0) return []
  return [
    {
      name: 'temporary folders',
      before: `${folders.length} of loops that have ended: ${folders.slice(0, 3).join(', ')}${folders.length > 3 ? ' …' : ''}`,
      after: 'deleted',
      mend: async () => {
        const gone = await Promise.all(folders.map(removeTemp))
        const left = folders.find((_, index) => gone[index] === false)
        if (left !== undefined) throw new Error(`${left} cannot be deleted`)
      },
    },
  ]
}

async function shownStateFile({ git }: Site, runs: readonly KnownRun[]): Promise<Leftover[]> {
  const patterns = hiddenPaths.map((path) => `/${path}`)
  if (!runs.some(isKnown) || (await missingExcludes(git.gitCommonDir, patterns)).length === 0) return []
  return [
    {
      name: 'info/exclude',
      before: 'it does not hide .claude/loop-state.json from git any more',
      after: 'the lines are there again',
      mend: () => excludeFromGit(git.gitCommonDir, patterns),
    },
  ]
}

/** Only of runs that are done and cleaned up: any other tree may have been moved, and git needs its entry to find it again. */
function goneTrees({ git }: Site, runs: readonly KnownRun[]): Leftover[] {
  const folder = join(git.gitCommonDir, 'worktrees')
  return runs.filter(isSettled).flatMap(({ change, state: { worktree } }) => {
    const entry = namesIn(folder).find(
      (name) =>
        existsSync(join(folder, name, `ralph-made-for-${change}`)) && treeOf(join(folder, name)) === worktree,
    )
    if (entry === undefined || worktree === undefined || existsSync(worktree)) return []
    return {
      name: `work tree of ${change}`,
      before: `${worktree} was removed, and git still lists it`,
      after: 'no longer listed',
      mend: async () => void (await git.run(['worktree', 'remove', worktree])),
    }
  })
}

function treeOf(gitDir: string): string {
  const link = join(gitDir, 'gitdir')
  return existsSync(link) ? dirname(readFileSync(link, 'utf8').trim()) : ''
}

/** Of every work tree. */
function gitDirs({ git }: Site): readonly string[] {
  const folder = join(git.gitCommonDir, 'worktrees')
  return [git.gitCommonDir, ...namesIn(folder).map((name) => join(folder, name))]
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    // Not there, or not to be read: nothing of it is put in order.
    return []
  }
}
