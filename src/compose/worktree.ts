// `--worktree`: the loop's own work tree, and how its site is found again on resume.
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { addWorktree } from '../adapters/git/worktrees.ts'
import type { Config } from '../config/options.ts'
import { openSite } from './site.ts'
import type { KnownRun, Site } from './site.ts'

/** The site the loop runs in: the user's own checkout, unless a work tree is wished for or the run has one already. */
export async function enterWorktree(
  home: Site,
  run: KnownRun,
  config: Config,
  changeFolder: string,
): Promise<{ site: Site; brought: readonly string[] }> {
  const options = { timeoutMs: config.command_timeout * 1000, isTerminal: home.isTerminal }
  const { state } = run
  if (state.home !== '' && state.phase !== 'idle' && !config.fresh) {
    return { site: await openSite(state.worktree, home.env, options), brought: state.brought }
  }
  if (config.worktree === undefined) return { site: home, brought: [] }
  const dir = config.worktree === true ? {} : { dir: config.worktree }
  const inside = relative(home.git.worktree, changeFolder)
  const { repository, brought } = await addWorktree(home.git, {
    ...dir,
    change: run.change,
    ...(!inside.startsWith('..') && { changeFolder: inside }),
  })
  // The same folder of the other tree: OpenSpec may live below the root.
  const cwd = join(repository.worktree, relative(home.git.worktree, home.cwd))
  return { site: await openSite(existsSync(cwd) ? cwd : repository.worktree, home.env, options), brought }
}
