// Runs git for ralph: the same answer whatever the user's hooks, aliases, locale, pager or environment say.
import { existsSync, statfsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { diskCode, diskError } from '../../core/disk.ts'
import { again, RalphError } from '../../core/error.ts'
import { sandboxedMark } from '../files/paths.ts'
import type { ExecResult } from '../process/exec.ts'
import { startHint } from '../process/fault.ts'
import { launch } from '../process/launcher.ts'
import { ownEnv } from '../process/on-path.ts'
import { shellWord } from '../../core/shell-word.ts'

export interface Repository {
  /** Top level of the work tree, absolute. */
  readonly worktree: string
  /** Of this work tree: HEAD, index, half-done operations. */
  readonly gitDir: string
  /** Shared by all work trees: objects, refs, info/exclude. */
  readonly gitCommonDir: string
}

interface GitOptions {
  /** An index file other than the repository's own. */
  readonly index?: string
  readonly input?: string | Uint8Array
  /** Exit codes that are answers, not failures; 0 always is. */
  readonly accept?: readonly number[]
  /** Run in this folder's own repository (a nested one) instead. */
  readonly inside?: string
  /** Further variables. */
  readonly env?: NodeJS.ProcessEnv
}

interface GitAnswer {
  /** One char per byte (latin1), so that no file name is ever damaged by decoding. */
  readonly out: string
  readonly code: number
  /** What it warned of. */
  readonly said: string
}

export interface Git extends Repository {
  /** How the user calls it for this work tree: with `-C` where they stand in another one. */
  readonly typed: string
  /** What its commands run with. */
  env(): NodeJS.ProcessEnv
  run(args: readonly string[], options?: GitOptions): Promise<GitAnswer>
  /** Output without the final newline. */
  line(args: readonly string[], options?: GitOptions): Promise<string>
  /** Output of a `-z` command, as a list. */
  list(args: readonly string[], options?: GitOptions): Promise<string[]>
  /** The same git in another work tree. */
  at(other: Repository): Git
  /** The same git in another repository: nothing has been insisted on there. */
  into(other: Repository): Git
  /** From now on these count, here and in every other work tree, whatever the files of settings say. */
  insist(settings: readonly (readonly [key: string, value: string])[]): void
  /** Meanwhile a file that a required filter fails on is taken as it is on disk; `unfit`: what git said of the first, or empty. */
  forgiving<T>(work: (unfit: () => string) => Promise<T>): Promise<T>
}

export interface GitSettings {
  readonly timeoutMs: number
  readonly env?: NodeJS.ProcessEnv
  /** The work tree that the user types in. */
  readonly asked?: string
}

export function gitIn(repository: Repository, settings: GitSettings): Git {
  return gitWith(repository, settings, { env: {} })
}

function gitWith(repository: Repository, settings: GitSettings, insisted: { env: NodeJS.ProcessEnv }): Git {
  const own = gitEnvironment(settings.env ?? process.env)
  // Named outright: a `core.worktree` or `core.bare` that an agent sets has no say.
  const place = [`--git-dir=${repository.gitDir}`, `--work-tree=${repository.worktree}`]
  let outside: NodeJS.ProcessEnv | undefined
  const uninsisted = (): NodeJS.ProcessEnv =>
    existsSync(sandboxedMark(repository.gitCommonDir)) ? (outside ??= ownEnv(own, repository.worktree)) : own
  const environment = (): NodeJS.ProcessEnv => ({ ...uninsisted(), ...insisted.env })
  /** Undefined: nothing is forgiven. */
  let unfit: string | undefined
  const run = async (args: readonly string[], options: GitOptions = {}): Promise<GitAnswer> => {
    const { input, index, inside } = options
    const env = { ...environment(), ...options.env }
    const argv = [...(inside === undefined ? place : []), ...quietConfig, ...args]
    const started = (): Promise<ExecResult> =>
      launch('git', argv, {
        cwd: inside ?? repository.worktree,
        env: index === undefined ? env : { ...env, GIT_INDEX_FILE: index },
        timeoutMs: settings.timeoutMs,
        ...(input !== undefined && { input }),
      })
    let result = await started()
    for (const waitMs of lockWaitsMs) {
      if (!isLocked(result)) break
      await pause(waitMs)
      result = await started()
    }
    if (
      result.exitCode === 0 ||
      (result.exitCode !== undefined && options.accept?.includes(result.exitCode))
    ) {
      return { out: result.stdout.toString('latin1'), code: result.exitCode, said: result.stderr }
    }
    const error = gitError(args, result, { timeoutMs: settings.timeoutMs, gitDir: repository.gitDir })
    const [, words = '', filter = '='] = /^fatal: (.*clean filter '(.*)' failed)$/m.exec(result.stderr) ?? []
    const isRequired = `filter.${filter}.required=false`
    // `-c` cannot name a key with a `=` in it.
    if (unfit === undefined || filter.includes('=') || args.includes(isRequired)) throw error
    unfit ||= words
    const without = [isRequired, `filter.${filter}.clean=`, `filter.${filter}.process=`]
    const answer = await run([...without.flatMap((setting) => ['-c', setting]), ...args], options)
    // On a file's way out: that would be other bytes.
    if (/external filter .* failed/.test(answer.said)) throw error
    return answer
  }
  return {
    ...repository,
    typed: [undefined, repository.worktree].includes(settings.asked)
      ? 'git'
      : `git -C ${shellWord(repository.worktree)}`,
    env: environment,
    at: (other) => gitWith(other, settings, insisted),
    into: (other) => gitIn(other, { ...settings, env: uninsisted() }),
    insist: (pairs) => {
      // Not as `-c`, which cannot name a key with a `=` in it.
      const named = pairs.flatMap(([key, value], at) => [
        [`GIT_CONFIG_KEY_${at}`, key],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ])
      insisted.env = { ...Object.fromEntries(named), GIT_CONFIG_COUNT: `${pairs.length}` }
    },
    forgiving: async (work) => {
      const before = unfit
      unfit = ''
      try {
        return await work(() => unfit ?? '')
      } finally {
        unfit = before
      }
    },
    run,
    line: async (args, options) => (await run(args, options)).out.replace(/\n$/, ''),
    list: async (args, options) => (await run(args, options)).out.split('\0').filter((item) => item !== ''),
  }
}

/** A path as git gave it, decoded. */
export function shown(path: string): string {
  return Buffer.from(path, 'latin1').toString('utf8')
}

/** For messages: on one line, and without power over a terminal. */
export function named(path: string): string {
  const escaped = (char: string): string =>
    char === '\n' ? '\\n' : `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`
  return shown(path).replace(/\p{Cc}/gu, escaped)
}

export function gitEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = Object.entries(env).filter(([name]) => !name.startsWith('GIT_') || keptVariables.has(name))
  const scrubbed = Object.fromEntries(own)
  // Adds 50 ms to every Node that a filter starts.
  delete scrubbed['NODE_EXTRA_CA_CERTS']
  return {
    ...scrubbed,
    LC_ALL: 'C',
    LANGUAGE: '',
    GIT_TERMINAL_PROMPT: '0',
    GIT_EDITOR: 'true',
    GIT_PAGER: 'cat',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_AUTHOR_NAME: 'ralph',
    GIT_AUTHOR_EMAIL: ownEmail,
    GIT_COMMITTER_NAME: 'ralph',
    GIT_COMMITTER_EMAIL: ownEmail,
  }
}

/** Of every commit that ralph makes itself. */
export const ownEmail = 'ralph@localhost'

/** Where the user's configuration lies is the user's business; everything else of GIT_* could redirect a command. */
const keptVariables = new Set([
  'GIT_CONFIG_GLOBAL',
  'GIT_CONFIG_SYSTEM',
  'GIT_CONFIG_NOSYSTEM',
  'GIT_EXEC_PATH',
])

const quietConfig = [
  'core.hooksPath=/dev/null',
  'commit.gpgSign=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'core.fsmonitor=false',
  'core.splitIndex=false',
  'core.ignoreStat=false',
  // An edit may keep size and time.
  'core.trustctime=true',
  'core.checkStat=default',
  'core.preferSymlinkRefs=false',
  'core.safecrlf=false',
  'core.quotePath=false',
  'submodule.recurse=false',
  'advice.detachedHead=false',
  // By default git 2.39 syncs neither: after a power cut the journal would say "saved" of a commit that is gone.
  'core.fsync=committed,reference',
  'core.fsyncMethod=batch',
].flatMap((setting) => ['-c', setting])

/** About 6 s in all: an editor's background `git status` is long gone by then. */
const lockWaitsMs = [50, 100, 200, 400, 800, 1500, 3000]

function isLocked(result: ExecResult): boolean {
  return result.exitCode !== 0 && /Unable to create '.*\.lock': File exists/.test(result.stderr)
}

/** Of a ref's lock git only says that it could not be written. */
function isOutOfRoom(words: string, gitDir: string): boolean {
  if (!words.includes("couldn't write")) return false
  const { bavail, bsize } = statfsSync(gitDir)
  return bavail * bsize < 64 * 1024
}

function gitError(
  args: readonly string[],
  result: ExecResult,
  { timeoutMs, gitDir }: { timeoutMs: number; gitDir: string },
): RalphError {
  const own = args.slice(args.findIndex((arg, at) => arg !== '-c' && args[at - 1] !== '-c'))
  const command = `git ${own.slice(0, 3).join(' ')}`
  const lines = result.stderr.trim().split('\n')
  // Its advice after the line that names the file is longer than the rest.
  const named = lines.filter((line) => /\.lock': File exists/.test(line))
  const words = (named.length > 0 ? named : lines.slice(-5)).join('\n')
  if (result.spawnError !== undefined) {
    return new RalphError('git_failed', `${command} could not be started: ${result.spawnError.message}`, {
      hint: startHint(
        result.spawnError,
        'Install git 2.38 or newer, or put it on PATH; `ralph doctor` checks it.',
      ),
      cause: result.spawnError,
    })
  }
  if (result.timedOut) {
    return new RalphError('git_failed', `${command} did not end within ${timeoutMs / 1000} s and was ended`, {
      hint: `Nothing was lost. Raise --command-timeout, then ${again}.`,
    })
  }
  const code = diskCode(words) ?? (isOutOfRoom(words, gitDir) ? 'ENOSPC' : undefined)
  const said = Object.assign(new Error(`${command}: ${words}`), { code })
  const disk = diskError(said, (mend) => `${mend}, then ${again}.`)
  if (disk !== undefined) return disk
  return new RalphError('git_failed', `${command} failed (${result.exitCode ?? result.signal}): ${words}`, {
    hint:
      named.length > 0
        ? `Another program holds the lock, or left it. If none is at work with git, remove the file that is named, then ${again}.`
        : `Fix what git says, then ${again}.`,
  })
}
