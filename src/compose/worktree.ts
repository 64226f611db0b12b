// `--worktree`: the loop's own work tree, made or brought up to date for a new run, and found again on resume.
import { existsSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { copyAll } from '../adapters/files/copy.ts'
import { checkOut } from '../adapters/git/tree/check-out.ts'
import type { Repository } from '../adapters/git/git.ts'
import { refuseMountsIn } from '../adapters/git/revert/mounted.ts'
import { clearStart, forgetStart, setUpMark } from '../adapters/git/start/started-tree.ts'
import { addWorktree } from '../adapters/git/start/worktrees.ts'
import type { Cage } from '../adapters/process/cage.ts'
import type { Config } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import type { SetUpDone } from '../core/event.ts'
import { limitsOf } from '../core/resource-limits.ts'
import type { LoopRequest } from '../ui/app.ts'
import { setUp } from './set-up.ts'
import { openSite } from './site.ts'
import type { Caging } from './cage.ts'
import type { KnownRun, Site } from './site.ts'
import { homeOf, siteOf } from './open-run.ts'

export interface Entered {
  readonly site: Site
  /** The user's own checkout; the same as `site` where the loop has no tree of its own. */
  readonly home: Site
  readonly brought: readonly string[]
  readonly setUp?: SetUpDone
  /** What there is to say of it. */
  readonly notes: readonly string[]
  /** Once the journal knows the tree. */
  readonly settled: () => Promise<void>
  /** For a start that is refused after all: takes away what was made here just now, and nothing else. */
  readonly leave: () => Promise<void>
}

/** The site the loop runs in: the user's own checkout, unless a work tree is wished for or the run has one already. */
export async function enterWorktree(
  home: Site,
  run: KnownRun,
  config: Config,
  changeFolder: string,
  mode: 'start' | 'fresh' | 'resume',
  caging: Caging,
  onSettingUp: LoopRequest['onSettingUp'],
): Promise<Entered> {
  const options = {
    timeoutMs: config.command_timeout * 1000,
    isTerminal: home.isTerminal,
    warn: home.warn,
    asked: home.asked,
  }
  const stay = (): Promise<void> => Promise.resolve()
  const settled = (): Promise<void> => forgetStart(home.git, run.change)
  const left = await clearStart(home.git, run.change, run.state.worktree)
  const common = { notes: [left], settled: left === '' ? stay : settled, leave: stay }
  const { state } = run
  if (mode === 'resume' && state.phase !== 'idle') {
    const rest = { ...common, brought: state.brought }
    if (state.home === undefined) return { site: home, home, ...rest }
    const there = await siteOf(home, run)
    if (there.git.gitDir !== home.git.gitDir)
      return { site: await openSite(there.cwd, home.env, options), home, ...rest }
    // Typed inside the loop's own tree: the checkout that the work goes back to is elsewhere.
    return { site: home, home: await homeOf(home, state.home, options), ...rest }
  }
  if (config.worktree === undefined) return { site: home, home, brought: [], ...common }
  if (config.checkpoint === 'stash') {
    throw new RalphError('usage', '--checkpoint stash cannot be used with --worktree.', {
      hint: 'Leave out --checkpoint stash or --worktree.',
    })
  }
  if (typeof config.worktree === 'string' && resolve(home.cwd, config.worktree) === home.git.worktree)
    throw new RalphError('usage', `${home.git.worktree} is your own checkout, and no work tree for a loop.`, {
      hint: 'Name another folder (--worktree DIR), or none: then ralph makes one beside it.',
    })
  const dir = config.worktree === true ? {} : { dir: config.worktree }
  const inside = relative(home.git.worktree, changeFolder)
  const isOwnTask = config.from !== undefined && config.task !== undefined
  const { repository, brought, isNew, base, note } = await addWorktree(home.git, {
    ...dir,
    change: run.change,
    // What is done so far stands in the plan at that commit, not in the user's checkout.
    ...(!inside.startsWith('..') && !isOwnTask && { changeFolder: inside }),
    ...(config.from !== undefined && { from: config.from }),
  })
  if (!isNew) await bringUpToDate(home, run.change, repository, brought, base)
  // The same folder of the other tree: OpenSpec may live below the root.
  const cwd = join(repository.worktree, relative(home.git.worktree, home.cwd))
  const leave = async (): Promise<void> => {
    if (!isNew) return
    refuseMountsIn(repository.worktree)
    await home.git.run(['worktree', 'remove', '--force', repository.worktree])
    await settled()
  }
  const place = existsSync(cwd) ? cwd : repository.worktree
  try {
    const done = isNew
      ? await setUpLoop(home, repository, config, caging(repository, run.change).gates, onSettingUp)
      : undefined
    const site = await openSite(place, home.env, options)
    return {
      site,
      home,
      brought,
      notes: [left, note],
      settled,
      leave,
      ...(done !== undefined && { setUp: done }),
    }
  } catch (error) {
    await leave()
    throw error
  }
}

async function setUpLoop(
  home: Site,
  repository: Repository,
  config: Config,
  cage: Cage | undefined,
  onSettingUp: LoopRequest['onSettingUp'] = () => () => undefined,
): Promise<SetUpDone | undefined> {
  const limits = limitsOf(config)
  const stop = new AbortController()
  const { done, failed } = await setUp(home.git, home.git.at(repository), config, async (command) => {
    const { shellGates } = await import('../adapters/process/gates.ts')
    const gates = shellGates({
      cwd: repository.worktree,
      env: home.env,
      timeoutMs: config.iteration_timeout * 60_000,
      hasOwnTemp: true,
      ...(cage !== undefined && { cage }),
      ...(limits !== undefined && { limits }),
    })
    const over = onSettingUp(() => stop.abort())
    try {
      return await gates.check(command, { RALPH_RUN_ID: setUpMark(repository.worktree) }, stop.signal)
    } finally {
      over()
    }
  })
  if (failed === undefined) return done
  if (failed.outcome === 'stopped')
    throw new RalphError('config', 'Stopped while the new work tree was set up.', {
      hint: 'Nothing was touched: the new work tree is removed again.',
    })
  throw new RalphError(
    'config',
    `The set-up \`${config.setup ?? ''}\` failed: ${failed.outputTail.trim().split('\n').at(-1) ?? ''}`,
    {
      hint: 'Nothing was touched: the new work tree is removed again. Try the command in a fresh clone.',
    },
  )
}

/** A tree that an earlier run left: a new run begins where the user stands now, not where that one ended. */
async function bringUpToDate(
  home: Site,
  change: string,
  repository: Repository,
  brought: readonly string[],
  base: string,
): Promise<void> {
  const there = home.git.at(repository)
  const { out } = await there.run(['status', '--porcelain', '-z'])
  if (out !== '') {
    throw new RalphError(
      'repository_state',
      `The work tree ${repository.worktree} holds uncommitted changes.`,
      { hint: 'Commit or remove them there, or name another folder (--worktree DIR).' },
    )
  }
  const what = `The commit ${base.slice(0, 12)}, where the run begins,`
  const left = await checkOut(there, ['--detach', base], what, change)
  if (left !== '') home.warn(left)
  for (const folder of brought)
    await copyAll(join(home.git.worktree, folder), join(repository.worktree, folder))
}
