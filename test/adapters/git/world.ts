// A real repository in a temp folder, its journal, and a picture of everything in it that a loop could lose.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { branchCheckpoints } from '../../../src/adapters/git/branch.ts'
import { gitIn, type Git } from '../../../src/adapters/git/git.ts'
import { stashCheckpoints } from '../../../src/adapters/git/stash/stash.ts'
import type { CheckpointDeps } from '../../../src/adapters/git/store.ts'
import { withShell } from '../../../src/adapters/process/launcher.ts'
import { run } from '../../shell.ts'
import { blankMemory, remember } from '../../../src/core/git-memory.ts'
import type { EventBody, LoopEvent } from '../../../src/core/event.ts'
import type { Checkpoints } from '../../../src/ports.ts'

export type Strategy = 'branch' | 'stash'

export interface World {
  readonly root: string
  /** The work tree. */
  readonly dir: string
  readonly env: NodeJS.ProcessEnv
  readonly journal: LoopEvent[]
  readonly gitPort: Git
  /** Plain git: as the agent while an attempt is open (after `ensure`, until `keep`), else as the user. */
  git(...args: string[]): string
  /** As the user beside it, whatever is open. */
  user(...args: string[]): string
  /** What the git of an open attempt has in its environment, see `Checkpoints.watch`. */
  watched(): Readonly<Record<string, string>>
  write(path: string, content: string | Buffer, mode?: number): void
  read(path: string): string
  note(body: EventBody): Promise<void>
  checkpoints(strategy?: Strategy, more?: Partial<CheckpointDeps>): Checkpoints
  end(): void
}

/** A world that is gone when the test is over. */
export function worldOfTest(options?: Parameters<typeof makeWorld>[0]): World {
  const made = makeWorld(options)
  onTestFinished(() => made.end())
  return made
}

/** `copyOf` is the work tree of another world: faster than making the same again. */
export function makeWorld(
  options: { readonly commit?: boolean; readonly name?: string; readonly copyOf?: string } = {},
): World {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'ralph-git-')))
  const dir = join(root, options.name ?? 'repo')
  mkdirSync(dir)
  mkdirSync(join(root, 'home'))
  writeFileSync(
    join(root, 'home', '.gitconfig'),
    '[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n',
  )
  const env: NodeJS.ProcessEnv = {
    PATH: process.env['PATH'],
    HOME: join(root, 'home'),
    GIT_CONFIG_GLOBAL: join(root, 'home', '.gitconfig'),
    GIT_CONFIG_NOSYSTEM: '1',
  }
  const journal: LoopEvent[] = []
  const gitDir = join(dir, '.git')
  const gitPort = gitIn({ worktree: dir, gitDir, gitCommonDir: gitDir }, { timeoutMs: 30_000, env })
  let ticks = 0
  let attempt = 1
  let watched: Readonly<Record<string, string>> = {}
  const git = (args: string[], more: Readonly<Record<string, string>>): string =>
    run('git', args, { cwd: dir, env: { ...env, ...more } })
  /** The engine's part: an agent is watched once its checkpoint is sure. */
  const watching = (checkpoints: Checkpoints): Checkpoints => ({
    ...checkpoints,
    ensure: async (storyId) => {
      const sure = await checkpoints.ensure(storyId)
      watched = await checkpoints.watch('agent', attempt)
      return sure
    },
    keep: async (n, mayBeSaved) => {
      expect(n).toBeLessThanOrEqual(attempt)
      watched = {}
      attempt = n + 1
      return await checkpoints.keep(n, mayBeSaved)
    },
  })
  // As in a loop. And to fork a worker for each git command takes longer than most of them.
  let closeShell = (): void => undefined
  void withShell(() => new Promise<void>((resolve) => (closeShell = resolve)))
  const world: World = {
    root,
    dir,
    env,
    journal,
    gitPort,
    git: (...args) => git(args, watched),
    user: (...args) => git(args, {}),
    watched: () => watched,
    write: (path, content, mode) => {
      mkdirSync(dirname(join(dir, path)), { recursive: true })
      writeFileSync(join(dir, path), content, mode === undefined ? {} : { mode })
    },
    read: (path) => readFileSync(join(dir, path), 'utf8'),
    note: (body) => {
      const stamp = {
        v: 1 as const,
        seq: journal.length + 1,
        time: '2026-01-01T00:00:00+00:00',
        change_id: 'demo',
      }
      journal.push({ ...stamp, ...body })
      return Promise.resolve()
    },
    checkpoints: (strategy = 'branch', more = {}) =>
      watching(
        (strategy === 'branch' ? branchCheckpoints : stashCheckpoints)({
          git: gitPort,
          change: 'demo',
          writeAhead: (body) => world.note(body),
          memory: () => journal.reduce(remember, blankMemory),
          protectedPaths: ['.claude/loop-state.json*'],
          clock: { now: () => Date.UTC(2026, 0, 1) + (ticks += 1) * 1000 },
          env,
          ...more,
        }),
      ),
    end: () => {
      closeShell()
      // What a test has locked keeps only a plain user out.
      if (process.getuid?.() !== 0) execFileSync('chmod', ['-R', 'u+rwX', root])
      rmSync(root, { recursive: true, force: true })
    },
  }
  const copyOf = options.copyOf ?? (options.commit === undefined ? firstCommit() : undefined)
  if (copyOf !== undefined) {
    // As if it had been made here: with times of its own, without which git would not see an edit in the same second; and git
    // takes a file with another inode than its index knows for edited, until it looks again.
    run('cp', [options.copyOf === undefined ? '-RP' : '-a', `${copyOf}/.`, dir], { cwd: '/', env })
    if (options.copyOf === undefined) world.git('update-index', '-q', '--refresh')
    return world
  }
  world.git('init', '-q', '-b', 'main', '--template=')
  mkdirSync(join(gitDir, 'info'))
  if (options.commit !== false) {
    world.write('a.txt', 'one\n')
    world.write('src/b.txt', 'two\n')
    world.write('run.sh', '#!/bin/sh\n', 0o755)
    world.write('.gitignore', '*.log\n.env\nbuild/\n')
    world.git('add', '-A')
    world.git('commit', '-q', '-m', 'first')
  }
  return world
}

/** Of the worker, not of this module: vitest loads that anew for each file. */
const worker = globalThis as { firstWorld?: World }

/** The work tree that most tests begin with, made once per worker. */
function firstCommit(): string {
  if (worker.firstWorld === undefined) {
    const made = makeWorld({ commit: true })
    process.once('exit', () => made.end())
    worker.firstWorld = made
  }
  return worker.firstWorld.dir
}

const templates = new Map<(world: World) => void, World>()

/** A world as `setUp` makes it, made once per test file. */
export function copyWorld(setUp: (world: World) => void): World {
  let template = templates.get(setUp)
  if (template === undefined) {
    template = makeWorld()
    setUp(template)
    templates.set(setUp, template)
  }
  return makeWorld({ copyOf: template.dir })
}

export function endTemplates(): void {
  for (const template of templates.values()) template.end()
  templates.clear()
}

/** Every file outside .git with mode and content, empty folders too; ignored files are told apart by nobody. */
export function filesOf(dir: string, skip: readonly string[] = ['.git']): Record<string, string> {
  const found: Record<string, string> = {}
  const walk = (folder: string): void => {
    const entries = readdirSync(join(dir, folder), { encoding: 'latin1' })
    if (entries.length === 0 && folder !== '') found[`${folder}/`] = 'empty folder'
    for (const raw of entries) {
      const name = Buffer.from(raw, 'latin1').toString('utf8')
      const path = folder === '' ? name : `${folder}/${name}`
      if (skip.includes(path)) continue
      const full = join(dir, path)
      const stat = lstatSync(full)
      if (stat.isDirectory()) walk(path)
      else if (stat.isSymbolicLink()) found[path] = `link ${readlinkSync(full)}`
      else
        found[path] =
          `${(stat.mode & 0o100) === 0 ? 'file' : 'program'} ${createHash('sha1').update(readFileSync(full)).digest('hex')}`
    }
  }
  walk('')
  return found
}

export interface Picture {
  readonly files: Record<string, string>
  readonly head: string
  readonly refs: string
  readonly index: string
  readonly stashes: string
  readonly status: string
  readonly halfDone: readonly string[]
}

/**
 * What each of the commands prints, or `failed`. One shell starts them all: a fork of a worker takes longer than most git commands, one
 * of a shell does not.
 */
export function gits(
  dir: string,
  env: NodeJS.ProcessEnv,
  commands: readonly (readonly string[])[],
): string[] {
  const end = '\0\0end\0\0'
  const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`
  const script = commands.map(
    (args) => `git ${args.map(quoted).join(' ')} || printf failed; printf '\\0\\0end\\0\\0'`,
  )
  const printed = run('sh', ['-c', script.join('\n')], { cwd: dir, env })
  return printed.split(end).slice(0, -1)
}

/** As `git stash list`, which starts another git for them, and one to find that there are none. */
export function stashLooks(gitDir: string, format = '%H %gs'): string[][] {
  return existsSync(join(gitDir, 'logs', 'refs', 'stash'))
    ? [['log', '-g', `--format=${format}`, 'refs/stash', '--']]
    : []
}

/** Refs without ralph's own. */
export function picture(world: World, dir = world.dir): Picture {
  const [refs = '', index = '', status = '', stashes = ''] = gits(dir, world.env, [
    ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads', 'refs/tags', 'refs/notes'],
    ['ls-files', '-s', '-v', '-z'],
    ['status', '--porcelain', '-z', '-uall'],
    ...stashLooks(join(world.dir, '.git')),
  ])
  const names = readdirSync(join(world.dir, '.git'))
  return {
    files: filesOf(dir),
    head: readFileSync(join(world.dir, '.git', 'HEAD'), 'utf8'),
    refs,
    index,
    stashes,
    status,
    halfDone: names.filter((name) => /^(MERGE_|rebase|CHERRY|REVERT|BISECT|sequencer)/.test(name)),
  }
}
