// From the settings of a run to its cage: asked for and impossible is refused before anything is touched.
import { existsSync, realpathSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { borrowedFrom, cagedGit, copiesOf, reportsOf } from '../adapters/git/guard/cage-rights.ts'
import { allSettings } from '../adapters/git/formats/settings.ts'
import type { Git, Repository } from '../adapters/git/git.ts'
import { globalFiles } from '../adapters/git/tree/conversions.ts'
import { openCage, type Cage } from '../adapters/process/cage.ts'
import { probeCage } from '../adapters/process/cage-probe.ts'
import { ownEnv } from '../adapters/process/on-path.ts'
import { runPaths, sandboxedMark } from '../adapters/files/paths.ts'
import type { Config } from '../config/options.ts'
import { isWithin } from '../core/cage.ts'
import { hostOf, isLoopbackName } from '../core/cage-hosts.ts'
import { RalphError } from '../core/error.ts'
import type { Settings } from '../core/event.ts'
import type { Site } from './site.ts'

type CageWish = Pick<Config, 'sandbox' | 'sandbox_allow' | 'sandbox_hosts' | 'sandbox_gates'> &
  Partial<Pick<Config, 'worktree' | 'max_memory'>>

/** The cages of one loop; both undefined where none was asked for. */
interface Cages {
  readonly agent: Cage | undefined
  readonly gates: Cage | undefined
}

/** For any work tree of the repository. */
export type Caging = (repository: Repository, change: string) => Cages

/** Said once in a repository: who has read it knows. The demo's agent is ralph's own. */
export function firstUncaged(
  gitCommonDir: string,
  { sandbox, agents }: Pick<Settings, 'sandbox' | 'agents'>,
): { uncaged?: true } {
  const mark = sandboxedMark(gitCommonDir)
  if (sandbox !== undefined && !existsSync(mark)) writeFileSync(mark, '')
  const told = join(gitCommonDir, 'ralph', 'told-no-sandbox')
  if (sandbox !== undefined || agents.every((agent) => agent === 'demo') || existsSync(told)) return {}
  writeFileSync(told, '')
  return { uncaged: true }
}

/** Programs in the work tree, such as an `openspec` in node_modules, are not run outside of a cage where an agent was ever in one. */
export function agentsTree({ git }: Pick<Site, 'git'>, sandbox?: Config['sandbox']): string | undefined {
  const isCaged = sandbox !== undefined && sandbox !== 'off'
  return isCaged || existsSync(sandboxedMark(git.gitCommonDir)) ? git.worktree : undefined
}

/** Throws where it is not possible: to be asked before anything is touched. */
export async function cagingOf(wish: CageWish, env: NodeJS.ProcessEnv, git: Git): Promise<Caging> {
  const mode = wish.sandbox
  if (mode === 'off') return () => ({ agent: undefined, gates: undefined })
  const from = git.worktree
  const home = env['HOME'] || homedir()
  if (wish.worktree === undefined && existsSync(home) && isWithin(realpathSync(home), from))
    throw new RalphError(
      'config',
      `--sandbox ${mode} would keep nothing in: your home lies in the work tree ${from}.`,
      {
        hint: 'Nothing was touched. The agent may write its work tree, so your shell and git would obey what it writes there. Run it with --worktree, or with --sandbox off.',
      },
    )
  const [probe, settings] = await Promise.all([
    probeCage(ownEnv(env, from), { isStrict: mode === 'strict', isLimited: wish.max_memory !== undefined }),
    allSettings(git),
  ])
  const obeyed =
    wish.worktree === undefined
      ? obeyedIn(from, [
          ...ofTheHome.map((name) => join(home, name)),
          ...settings.flatMap(({ scope, file }) => (scope === 'global' ? [file] : [])),
        ])
      : undefined
  if (obeyed !== undefined)
    throw new RalphError(
      'config',
      `--sandbox ${mode} would keep nothing in: ${obeyed} lies in the work tree ${from}, and programs outside obey it.`,
      { hint: 'Nothing was touched. Run it with --worktree, or with --sandbox off.' },
    )
  if (!('program' in probe))
    throw new RalphError('config', `--sandbox ${mode} is not possible here: ${probe.why}.`, {
      hint: `Nothing was touched. ${probe.fix}`,
    })
  const allowed = wish.sandbox_allow.map((path) => atHome(path, env, from))
  const missing = allowed.find((path) => !existsSync(path))
  if (missing !== undefined)
    throw new RalphError('config', `sandbox_allow names ${missing}, which does not exist.`, {
      hint: 'Nothing was touched. Create it first, or remove it there.',
    })
  const hosts = wish.sandbox_hosts.map((text) => {
    const host = hostOf(text)
    if (host !== undefined && !(isLoopbackName(host.name) && host.port === undefined)) return host
    throw new RalphError('config', `sandbox_hosts names ${text}, which is not a host that can be allowed.`, {
      hint: 'Nothing was touched. Write example.org, *.example.org, example.org:8443 or localhost:8080.',
    })
  })
  return (repository, change) => {
    const { learnings } = runPaths(repository.gitCommonDir, change)
    const cage = openCage({
      mode,
      program: probe.program,
      env,
      hosts,
      git: {
        file: globalFiles(env).find((path) => existsSync(path)),
        settings: settings.filter(({ scope }) => scope === 'global'),
      },
      writable: [...cagedGit(repository).writable, ...allowed],
      readOnly: () => cagedGit(repository).readOnly,
      hidden: () => copiesOf(repository),
      shown: () => borrowedFrom(repository),
      reports() {
        // The prompt names it, and the agent cannot make it.
        if (!existsSync(learnings)) writeFileSync(learnings, '', { mode: 0o600 })
        return [learnings, ...reportsOf(repository.gitCommonDir, change)]
      },
    })
    return { agent: cage, gates: wish.sandbox_gates ? cage : undefined }
  }
}

/** Shells, git and the session read these wherever they lie: dotfiles that are kept in a repository are linked to from the home. */
const ofTheHome = [
  '.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .inputrc .tmux.conf .vimrc',
  '.gitconfig .npmrc .ssh .ssh/config .config .config/git .config/fish .config/autostart .config/systemd .config/environment.d .local .local/bin bin',
].flatMap((names) => names.split(' '))

function obeyedIn(tree: string, paths: readonly string[]): string | undefined {
  return paths.find((path) => existsSync(path) && isWithin(realpathSync(path), tree))
}

function atHome(path: string, env: NodeJS.ProcessEnv, from: string): string {
  const home = env['HOME'] || homedir()
  return path === '~' || path.startsWith('~/') ? join(home, path.slice(1)) : resolve(from, path)
}
