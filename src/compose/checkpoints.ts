// Chooses the checkpoint strategy and gives it what it needs.
import { statSync } from 'node:fs'
import { takeOver } from '../adapters/git/guard/refused-settings.ts'
import { branchCheckpoints } from '../adapters/git/branch.ts'
import type { Repository } from '../adapters/git/git.ts'
import { through } from '../adapters/git/tree/permissions.ts'
import { checkpointFolder } from '../adapters/git/store.ts'
import { stashCheckpoints } from '../adapters/git/stash/stash.ts'
import { RalphError } from '../core/error.ts'
import type { LoopState } from '../core/state.ts'
import { firstNames } from '../core/first-names.ts'
import type { Checkpoints, WriteAhead } from '../ports.ts'
import { folderWatch } from '../adapters/files/identity.ts'
import { watchConfig } from './config-watch.ts'
import { tellingFiles } from './saved-files.ts'
import { inTree } from './open-run.ts'
import type { Site } from './site.ts'

/** Never part of a checkpoint, never cleaned, never rolled back. */
export const hiddenPaths = ['.claude/loop-state.json', '.claude/loop-state.json.*']

export interface CheckpointWish {
  readonly change: string
  readonly strategy: 'branch' | 'stash'
  /** The run's own: what it knows, and where each step is written ahead. */
  readonly stream: { readonly state: Pick<LoopState, 'git' | 'absence' | 'runId'>; readonly tell: WriteAhead }
  /** The user's own checkout, when the loop runs in a work tree of its own. */
  readonly home?: Repository
  readonly brought?: readonly string[]
  readonly gates: readonly string[]
}

export function checkpointsFor(site: Site, wish: CheckpointWish): Checkpoints {
  const make = wish.strategy === 'stash' ? stashCheckpoints : branchCheckpoints
  const plain = make({
    git: site.git,
    change: wish.change,
    writeAhead: (body) => wish.stream.tell(body),
    memory: () => wish.stream.state.git,
    absence: () => wish.stream.state.absence,
    protectedPaths: hiddenPaths,
    clock: site.clock,
    env: site.env,
    marker: () => ({ RALPH_RUN_ID: wish.stream.state.runId ?? '' }),
    ...(wish.home !== undefined && { home: wish.home }),
    ...(wish.brought !== undefined && { brought: wish.brought }),
  })
  const watched = watchConfig(site, plain, {
    change: wish.change,
    gates: wish.gates,
    home: (wish.home ?? site.git).worktree,
    tell: (body) => wish.stream.tell(body),
  })
  const isReplaced = folderWatch(site.git.worktree)
  const plainly = through(tellingFiles(site, watched, wish), async (name, work) => {
    if (needsTree.has(name)) refuseGone(site, wish, isReplaced)
    return await work()
  })
  const found = tellingUngated(plainly, wish.gates)
  return wish.home === undefined
    ? namingStaged(site, found, wish)
    : bringingHome(site, found, wish, wish.home)
}

/** What the gates have passed may not be what is there now. */
function tellingUngated(checkpoints: Checkpoints, gates: readonly string[]): Checkpoints {
  if (gates.length === 0) return checkpoints
  return {
    ...checkpoints,
    finish: async (choice, message) => {
      const report = await checkpoints.finish(choice, message)
      const { leftOut = [], moved } = report
      const told = [
        report.message,
        ...(leftOut.length === 0
          ? []
          : [`the commit was not run through your gates without your own files: ${firstNames(leftOut, 3)}`]),
        ...(moved === undefined
          ? []
          : [`your gates have not run on it with what came to ${moved} since: ${gates.join(' && ')}`]),
      ]
      return { ...report, message: told.join('; ') }
    },
  }
}

/** Who keeps the branch is given no index back. */
function namingStaged(
  { git }: Site,
  checkpoints: Checkpoints,
  { change, strategy, stream }: CheckpointWish,
): Checkpoints {
  return {
    ...checkpoints,
    finish: async (choice, message) => {
      const report = await checkpoints.finish(choice, message)
      if (strategy === 'stash' || (choice !== 'keep' && choice !== 'rename')) return report
      const { stagedBefore } = await import('./staged-before.ts')
      const staged = await stagedBefore(git, `refs/ralph/${change}`, stream.state.git)
      return staged === '' ? report : { ...report, message: `${report.message}; ${staged}` }
    },
  }
}

/** What is brought to the user's checkout comes beside no loop of another change there. */
function bringingHome(
  site: Site,
  checkpoints: Checkpoints,
  { change, stream }: CheckpointWish,
  home: Repository,
): Checkpoints {
  const there = async <T>(isBrought: boolean, choice: string, work: () => Promise<T>): Promise<T> =>
    isBrought
      ? await inTree(site, home, { change, again: `ralph finish ${change} --${choice}` }, work)
      : await work()
  return {
    ...checkpoints,
    finish: (choice, message) =>
      there(choice === 'cleanup' || choice === 'squash', choice, () => checkpoints.finish(choice, message)),
    recover: () =>
      there(stream.state.git.pending?.operation.op === 'finish', 'cleanup', () => checkpoints.recover()),
  }
}

const needsTree: ReadonlySet<string> = new Set(['ensure', 'keep', 'look', 'save', 'restore'])

/** By the user's word: what complete attempts had changed of git's settings, hooks and info/ takes effect now. */
export async function acceptGitSettings({ git }: Site, change: string): Promise<string[]> {
  const folder = checkpointFolder(git.gitCommonDir, change)
  const taken = await takeOver({ git, change, folder })
  return taken.length === 0 ? [] : [`taken over: ${taken.join(', ')}`]
}

/** A work tree that was deleted under the loop is not made again, not even its private folder; and what stands in its place is not the loop's. */
function refuseGone({ git }: Site, { change, home }: CheckpointWish, isReplaced: () => boolean): void {
  const gone = [git.worktree, git.gitDir].find(isGone)
  const isOther = gone === undefined && isReplaced()
  if (gone === undefined && !isOther) return
  const what = isOther
    ? `${git.worktree} is another folder now: the loop's own was deleted or moved while it ran.`
    : `${gone} is gone: it was deleted or moved while the loop ran.`
  const next =
    home === undefined
      ? 'Bring it back, then type: ralph resume'
      : `How to bring it back, or do without it, says: ralph resume ${change}`
  throw new RalphError('disk', what, { hint: `Nothing was written there. ${next}` })
}

/** One that an agent locked is still there. */
function isGone(folder: string): boolean {
  try {
    return statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EACCES'
  }
}
