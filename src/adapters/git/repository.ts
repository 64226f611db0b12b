// Finds the repository that a folder belongs to, and hides ralph's own files from it.
import { existsSync, lstatSync, readFileSync, realpathSync, statSync, type Stats } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { mkdir, writeFile } from '../files/now.ts'
import { readIfThere } from '../files/whole.ts'
import { again, RalphError } from '../../core/error.ts'
import { exec, type ExecResult } from '../process/exec.ts'
import { startHint } from '../process/fault.ts'
import { ownEnv } from '../process/on-path.ts'
import { shellWord } from '../../core/shell-word.ts'
import { gitEnvironment, type GitSettings, type Repository } from './git.ts'

export async function findRepository(cwd: string, settings: GitSettings): Promise<Repository> {
  const plain = plainRepository(cwd)
  if (plain !== undefined) return plain
  const ask = (...asked: string[]): Promise<ExecResult> =>
    exec('git', ['rev-parse', '--path-format=absolute', ...asked], {
      cwd,
      env: ownEnv(gitEnvironment(settings.env ?? process.env), cwd),
      timeoutMs: settings.timeoutMs,
    })
  const places = ['--absolute-git-dir', '--git-common-dir', '--show-toplevel']
  const result = await ask(...places)
  if (!existsSync(cwd))
    throw new RalphError('not_a_repository', `There is no folder ${cwd}.`, {
      hint: 'Go to your project, and type the command there.',
    })
  if (result.spawnError !== undefined) {
    throw new RalphError('git_failed', `git could not be started in ${cwd}: ${result.spawnError.message}`, {
      hint: startHint(
        result.spawnError,
        'Install git 2.38 or newer, or put it on PATH; `ralph doctor` checks it.',
      ),
      exitCode: 2,
      cause: result.spawnError,
    })
  }
  if (result.exitCode === undefined) {
    const how = result.timedOut ? 'gave no answer' : `was ended by ${result.signal ?? 'a signal'}`
    throw new RalphError('git_failed', `git ${how} when it was asked about ${cwd}`, {
      hint: 'Type the same command again.',
      exitCode: 2,
    })
  }
  const lines = result.stdout.toString('utf8').replace(/\n$/, '').split('\n')
  // A path with a line break in it: each has to be asked for by itself.
  const [gitDir, gitCommonDir, worktree] =
    lines.length > places.length
      ? await Promise.all(
          places.map(async (place) => (await ask(place)).stdout.toString('utf8').replace(/\n$/, '')),
        )
      : lines
  if (result.exitCode === 0 && gitDir && gitCommonDir && worktree) return { worktree, gitDir, gitCommonDir }
  if (gitDir) {
    throw new RalphError(
      'not_a_repository',
      `${cwd} belongs to a repository without a work tree (${gitDir})`,
      {
        hint: 'ralph needs files to work on: clone the repository, or `git worktree add`, and run it there.',
      },
    )
  }
  refuseUnasked(cwd, result.stderr)
  refuseCutOff(cwd, result.stderr)
  // What git says of any other trouble is kept, without the words that every such line of it begins with.
  const said = result.stderr.trim().replace(/^fatal: /, '')
  const why = said.startsWith('not a git repository') ? '' : `: ${said}`
  refuseGutted(cwd)
  throw new RalphError('not_a_repository', `${cwd} is not in a git repository${why}`, {
    hint: 'Go to your project, or make it a repository with `git init`. To see ralph at work first: ralph demo',
  })
}

/** One with nothing odd about it, found as git finds it. Undefined: git is asked, and has the better words. */
function plainRepository(cwd: string): Repository | undefined {
  try {
    const here = realpathSync(cwd)
    const { dev } = statSync(here)
    for (let worktree = here; ; worktree = dirname(worktree)) {
      const stats = lstatSync(join(worktree, '.git'), { throwIfNoEntry: false })
      const isBare = existsSync(join(worktree, 'HEAD')) && existsSync(join(worktree, 'objects'))
      if (isBare || statSync(worktree).dev !== dev) return undefined
      if (stats !== undefined) return plainAt(worktree, stats)
      if (worktree === dirname(worktree)) return undefined
    }
  } catch {
    return undefined
  }
}

function plainAt(worktree: string, stats: Stats): Repository | undefined {
  const place = join(worktree, '.git')
  const link = stats.isFile() ? /^gitdir: (.+)\n$/.exec(readFileSync(place, 'utf8'))?.[1] : undefined
  if (!stats.isDirectory() && link === undefined) return undefined
  const gitDir = link === undefined ? place : realpathSync(resolve(worktree, link))
  const common = join(gitDir, 'commondir')
  const gitCommonDir = existsSync(common)
    ? realpathSync(resolve(gitDir, readFileSync(common, 'utf8').replace(/\n$/, '')))
    : gitDir
  const config = readFileSync(join(gitCommonDir, 'config'), 'utf8')
  // A place of its own, a format of its own, or settings that stand elsewhere.
  const isOdd = /worktree|include|bare\s*=\s*[^f\s]|formatversion\s*=\s*[^01\s]/i.test(config)
  const isWhole = ['objects', 'refs'].every((name) => statSync(join(gitCommonDir, name)).isDirectory())
  const isOurs = [stats, statSync(worktree), statSync(gitDir)].every(({ uid }) => uid === process.geteuid?.())
  const hasHead = lstatSync(join(gitDir, 'HEAD'), { throwIfNoEntry: false }) !== undefined
  return isWhole && hasHead && isOurs && !isOdd ? { worktree, gitDir, gitCommonDir } : undefined
}

/** There is one, but git itself does not want to work in it: its reason and its remedy. */
function refuseUnasked(cwd: string, said: string): void {
  const why = /^fatal: (detected dubious ownership in repository .*)$/m.exec(said)?.[1]
  if (why === undefined) return
  const exception = /^\s*(git config --global --add safe\.directory .+)$/m.exec(said)?.[1]
  throw new RalphError('repository_state', `git refuses the repository of ${cwd}: ${why}`, {
    hint: `It belongs to another user. Nothing was touched. If you trust it, type: ${exception ?? 'git config --global --add safe.directory DIR'}`,
  })
}

/** A work tree whose repository is not where it was: nothing in it is lost, and `git init` would be no cure. */
function refuseCutOff(cwd: string, said: string): void {
  const gone = /^fatal: not a git repository: (.+\/worktrees\/[^/]+)$/m.exec(said)?.[1]
  if (gone === undefined) return
  throw new RalphError(
    'not_a_repository',
    `${cwd} is in a work tree whose repository is gone from where it was: ${gone}`,
    {
      hint: `Nothing was touched. If the repository was moved, tell git, in its folder now: git worktree repair ${shellWord(topOf(cwd))}; then ${again}.`,
    },
  )
}

/** What an agent, or a hand that slipped, left of a repository. */
function refuseGutted(cwd: string): void {
  const place = join(topOf(cwd), '.git')
  const missing = ['HEAD', 'objects', 'refs'].filter((name) => !existsSync(join(place, name)))
  if (!existsSync(join(place, 'ralph')) || missing.length === 0) return
  throw new RalphError(
    'not_a_repository',
    `git does not accept ${place} as a repository: it has no ${missing.join(', no ')}`,
    {
      hint: `Nothing was touched. \`git init ${shellWord(dirname(place))}\` makes what is missing, and leaves the rest as it is; then ${again}.`,
    },
  )
}

function topOf(folder: string): string {
  return existsSync(join(folder, '.git')) || folder === dirname(folder) ? folder : topOf(dirname(folder))
}

/** Idempotent. `info/exclude` is local to this clone: the user's .gitignore stays the user's. */
export async function excludeFromGit(gitCommonDir: string, patterns: readonly string[]): Promise<void> {
  const missing = await missingExcludes(gitCommonDir, patterns)
  if (missing.length === 0) return
  const file = join(gitCommonDir, 'info', 'exclude')
  const text = (await readIfThere(file))?.toString('utf8') ?? ''
  await mkdir(dirname(file), { recursive: true })
  const more = `${text === '' || text.endsWith('\n') ? '' : '\n'}${missing.join('\n')}\n`
  await writeFile(file, more, { flag: 'a', flush: true })
}

export async function missingExcludes(
  gitCommonDir: string,
  patterns: readonly string[],
): Promise<readonly string[]> {
  const text = (await readIfThere(join(gitCommonDir, 'info', 'exclude')))?.toString('utf8') ?? ''
  const lines = new Set(text.split(/\r?\n/))
  return patterns.filter((pattern) => !lines.has(pattern))
}
