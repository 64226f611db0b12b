// A run in hand: its lock first, then its journal. What was read before a lock is never used after it.
// Long because a lock, what is read under it and who is refused belong together: each is wrong without the others.
import { existsSync } from 'node:fs'
import { rmdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { lastSign, startBeating } from '../adapters/files/heartbeat.ts'
import { fileLock, inspectLock, refuseHeld } from '../adapters/files/lock.ts'
import type { LockOwner, Purpose } from '../adapters/files/lock.ts'
import { bringingFile, worktreeLock } from '../adapters/files/paths.ts'
import { sweepOwn } from '../adapters/git/guard/stale-locks.ts'
import { removeScratch } from '../adapters/process/temp.ts'
import { holderOf, mainFolder } from '../adapters/git/refs/branch-in-use.ts'
import { worktreesOf } from '../adapters/git/formats/linked-trees.ts'
import type { Git } from '../adapters/git/git.ts'
import { headRef } from '../adapters/git/formats/ref-files.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import { isAnothers, loopTree } from '../adapters/git/start/worktrees.ts'
import { withShell } from '../adapters/process/launcher.ts'
import { shellWord } from '../core/shell-word.ts'
import { again, RalphError } from '../core/error.ts'
import { isTree, openSite, pathsOf, wholeRun } from './site.ts'
import type { KnownRun, Site, WholeRun } from './site.ts'

export interface OpenRun {
  /** As its journal told it after the lock was taken, or at the last `reread`. */
  readonly run: WholeRun
  reread(): Promise<WholeRun>
  /** Epoch ms of the last sign of life of whoever worked on it before. */
  readonly lastSignMs: number
  /** The lock of a work tree too: one loop per tree, whatever its change. A second tree takes the first one's place. */
  enter(tree: Site): Promise<void>
  /** That of the run's own tree. Throws where it is gone. */
  enterOwn(): Promise<Site>
  /** What was done before the work itself, in a sentence: a refusal after it has touched that much. */
  repaired(detail: string): void
  /** From now on whoever looks sees signs of life. Not before the earlier ones are in the journal: they are gone with this. */
  beat(): void
}

type Release = () => Promise<void>

interface Wish {
  readonly purpose: Purpose
  /** Of the loop that begins; without one the lock goes on naming the loop before. */
  readonly runId?: string
  readonly isHosted?: true | undefined
}

/** The one way to a run that is written to. All of it is given back when the work is done, or has failed. */
export async function openRun<T>(
  site: Site,
  change: string,
  wish: Wish,
  work: (held: OpenRun) => Promise<T>,
): Promise<T> {
  const paths = pathsOf(site, change)
  const before = inspectLock(paths.lock, site.identity)
  const earlier = before.held === 'dead' ? before.owner?.run_id : undefined
  const owner = {
    change,
    purpose: wish.purpose,
    run_id: wish.runId ?? earlier ?? '',
    ...(wish.isHosted && { hosted: true as const }),
  }
  const releaseChange = await take(site, paths.lock, owner)
  let tree: { readonly path: string; readonly release: Release } | undefined
  let stopBeating: (() => void) | undefined
  let repair = ''
  // Not its own: whose it was is of use where the journal tells nothing any more.
  const lock = before.held === 'dead' ? before : ({ held: 'no' } as const)
  const read = async (): Promise<WholeRun> => ({ ...(await wholeRun(site, change)), lock })
  try {
    if (wish.purpose !== 'record' && existsSync(paths.archiving))
      await (await import('./archive.ts')).settleArchiving(site, change)
    let run = await read()
    const enter = async (there: Site): Promise<void> => {
      const path = worktreeLock(there.git.gitDir)
      if (tree?.path === path) return
      await tree?.release()
      tree = undefined
      tree = { path, release: await take(there, path, owner) }
      // Whoever only records a death touches nothing else.
      if (wish.purpose === 'record') return
      await sweepOwn(there.git, change)
      await removeScratch()
      if (existsSync(bringingFile(there.git.gitDir))) await completeBringing(there)
    }
    const held: OpenRun = {
      get run() {
        return run
      },
      reread: async () => (run = await read()),
      lastSignMs: lastSign(paths.sign) || lastSign(paths.journal),
      enter,
      async enterOwn() {
        const there = await siteOf(site, run)
        await enter(there)
        return there
      },
      repaired(detail) {
        repair = detail
      },
      beat() {
        stopBeating ??= startBeating(paths.sign)
      },
    }
    return await withShell(() => work(held))
  } catch (error) {
    throw repair === '' ? error : afterRepair(error, repair)
  } finally {
    stopBeating?.()
    await tree?.release()
    await releaseChange()
    await removeEmpty(paths.root)
  }
}

/** Seldom needed. */
async function completeBringing({ git, warn }: Site): Promise<void> {
  const [{ completeBringBack }, { hiddenPaths }] = await Promise.all([
    import('../adapters/git/attempt/bring-back.ts'),
    import('./checkpoints.ts'),
  ])
  const said = await completeBringBack(git, hiddenPaths)
  if (said !== undefined) warn(said)
}

function afterRepair(error: unknown, repair: string): unknown {
  if (!(error instanceof RalphError)) return error
  const { code, message, hint, exitCode, cause } = error
  const first = `Repaired first: ${repair}. Nothing else was touched`
  return new RalphError(code, message, { hint: hint.replace('Nothing was touched', first), exitCode, cause })
}

/** The site seen from the run's own work tree: a loop in a worktree of its own is controlled from anywhere. */
export async function siteOf(site: Site, run: KnownRun): Promise<Site> {
  const { worktree, home } = run.state
  if (worktree === undefined || worktree === site.git.worktree) return site
  const options = { warn: site.warn, asked: site.asked }
  const there = isTree(worktree)
    ? await openSite(worktree, site.env, options).catch((error: unknown) => {
        const isCutOff =
          error instanceof RalphError && error.code === 'not_a_repository' && home !== undefined
        if (!isCutOff) throw error
        throw new RalphError(
          'repository_state',
          `${worktree}, where ${run.change} runs, has lost its repository: one of them was moved.`,
          {
            hint: `Nothing was touched, and nothing is lost. Connect them again: ${site.git.typed} worktree repair ${shellWord(worktree)}, then ${again}.`,
            cause: error,
          },
        )
      })
    : undefined
  const isWorktree = there?.git.gitCommonDir === site.git.gitCommonDir
  const { cleaned } = run.state.git
  const isTheirs =
    isWorktree && home !== undefined && (await isAnothers(there.git, run.change, cleaned !== undefined))
  if (isWorktree && !isTheirs) return there
  // The repository was moved or copied: the run that its git directory records is this one's.
  if (home === undefined) return site
  const moved = await loopTree(site.git, run.change)
  if (moved !== undefined) return openSite(moved.worktree, site.env, options)
  const own = `ralph/${run.change}`
  const kept = `refs/ralph/${run.change}/${cleaned === undefined ? 'checkpoint' : `archive/${cleaned}`}`
  const isBranch = cleaned === undefined && (await readRef(site.git, `refs/heads/${own}`)) !== undefined
  const branch = isBranch ? own : kept
  const how = cleaned !== undefined ? '--detach ' : isBranch ? '' : `-b ${own} `
  const isTaken = existsSync(worktree)
  const mv = isTheirs ? `${site.git.typed} worktree move` : 'mv'
  const ref = `refs/heads/${own}`
  const holder = headRef(site.git) === ref ? site.git.worktree : holderOf(site.git, ref)
  const free = holder === undefined || !isBranch ? '' : `git -C ${shellWord(holder)} switch --detach && `
  const place = shellWord(worktree)
  const aside = isTaken ? [`${mv} ${place} ${shellWord(`${worktree}.mine`)}`] : []
  // By force over this one record: `worktree prune` would drop those of other trees, too, that are moved away or not mounted just now.
  const add = `${free}git worktree add --force ${how}${place} ${branch}`
  const isListed = worktreesOf(site.git).includes(worktree)
  const clear = [...aside, ...(isListed ? [`git worktree remove --force ${place}`] : [])]
  throw new TreeGone(treeProblem(run.change, worktree), run.change, branch, [...aside, add], clear)
}

/** The work tree of a run is not there; `again` makes it, so that the run can be resumed or finished. */
export class TreeGone extends RalphError {
  readonly again: readonly string[]

  constructor(
    message: string,
    change: string,
    branch: string,
    again: readonly string[],
    /** What has to go first where nothing of it is wanted. */
    clear: readonly string[],
  ) {
    const lines = [
      `Nothing was touched. Its commits are on ${branch}.`,
      again.length > 1 ? 'Move that folder away, and make it again:' : 'If it was removed, make it again:',
      ...again.map((command) => `  ${command}`),
      `Then continue it (ralph resume ${change}) or end it (ralph finish ${change} --cleanup).`,
      'If it was moved by hand: git worktree repair NEW-FOLDER, then type the command again.',
      'To bring its commits here without it:',
      `  git merge --squash ${branch}`,
      `To start over: ${[...clear, `ralph loop ${change} --fresh`].join(' && ')}`,
    ]
    super('repository_state', message, { hint: lines.join('\n') })
    this.again = again
  }
}

/** The user's checkout that the work goes back to: where it was when the run began, or where its repository is now. */
export async function homeOf(
  site: Site,
  home: string,
  options: Parameters<typeof openSite>[2] = { asked: site.asked },
): Promise<Site> {
  const { gitCommonDir } = site.git
  const known = isTree(home) ? await openSite(home, site.env, options) : undefined
  return known?.git.gitCommonDir === gitCommonDir
    ? known
    : openSite(mainFolder(gitCommonDir), site.env, options)
}

function treeProblem(change: string, worktree: string): string {
  return existsSync(worktree)
    ? `The work tree of ${change} is gone, and ${worktree} is another folder now, not ralph's.`
    : `The work tree of ${change} is gone: ${worktree}`
}

/** Before anything is looked at closely: a loop that runs here or on this change is named, and nothing is written. */
export function refuseRunning(site: Site, change: string, inThisTree: boolean): void {
  refuseHeld(pathsOf(site, change).lock, site.identity)
  if (inThisTree) refuseHeld(worktreeLock(site.git.gitDir), site.identity)
}

/**
 * Work that comes into a checkout from elsewhere: a loop that runs there would take it for its agent's. `again`: the command for when that
 * has ended. What brings other work there is waited for.
 */
export async function inTree<T>(
  site: Site,
  tree: Pick<Git, 'gitDir'>,
  { change, again }: { readonly change: string; readonly again: string },
  work: () => Promise<T>,
): Promise<T> {
  const owner = { change, purpose: 'repair', run_id: '' } as const
  const release = await take(site, worktreeLock(tree.gitDir), owner, (by) => by !== 'loop').catch(
    (error: unknown) => {
      if (!(error instanceof RalphError) || error.code !== 'locked') throw error
      throw new RalphError('locked', error.message, {
        hint: `Nothing was touched. When that has ended: ${again}`,
        cause: error,
      })
    },
  )
  try {
    return await work()
  } finally {
    await release()
  }
}

/** To write down a death takes a moment; a whole minute of usage programs and slow disks it does not. */
const patienceMs = 10_000

async function take(
  site: Site,
  path: string,
  owner: Pick<LockOwner, 'change' | 'purpose' | 'run_id' | 'hosted'>,
  isShort = (by: Purpose): boolean => by === 'record',
): Promise<Release> {
  const what = { ...owner, worktree: site.git.worktree, since: site.clock.stamp() }
  const deadline = performance.now() + patienceMs
  for (;;) {
    try {
      const lock = await fileLock(path, what, site.identity).acquire()
      return () => lock.release()
    } catch (error) {
      const mayPass =
        owner.purpose !== 'record' && performance.now() < deadline && isPassing(site, path, isShort)
      if (!mayPass || !(error instanceof RalphError) || error.code !== 'locked') throw error
      await delay(20)
    }
  }
}

function isPassing(site: Site, path: string, isShort: (by: Purpose) => boolean): boolean {
  const state = inspectLock(path, site.identity)
  if (state.held === 'alive') return isShort(state.owner.purpose ?? 'loop')
  return state.held !== 'elsewhere'
}

/** A command that was refused leaves no folder behind that was not there. */
async function removeEmpty(root: string): Promise<void> {
  for (const folder of [root, dirname(root), dirname(dirname(root))]) {
    try {
      await rmdir(folder)
    } catch {
      // Not empty, or gone: either way nothing of ours.
      return
    }
  }
}
