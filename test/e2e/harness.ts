// A scratch repository with an OpenSpec change, and the built program run in it as a user would.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { onTestFinished } from 'vitest'
import { run } from '../shell.ts'
import type { LoopEvent } from '../../src/core/event.ts'
import type { StateFile } from '../../src/core/state-file.ts'

/** For a stand-in for git: most are started by the small shell of ralph's own. */
export const killRalph =
  'ralph=$PPID; [ "$(cat /proc/$PPID/comm)" = sh ] && read -r _ _ _ ralph _ < /proc/$PPID/stat; kill -KILL $ralph'
/** RALPH_PROGRAM: another build of it, such as the one of a fresh clone. */
export const program = process.env['RALPH_PROGRAM'] ?? resolve(import.meta.dirname, '../../dist/main.js')

export interface Scratch {
  /** Home and everything else of this test; removed at its end. */
  readonly root: string
  readonly repo: string
  readonly env: NodeJS.ProcessEnv
  git(...args: string[]): string
  write(path: string, text: string): void
  read(path: string): string
  /** An executable script in the scratch folder, outside the repository. */
  script(name: string, body: string): string
  state(): StateFile
}

/** `n` stories of two tasks each. */
export function tasksOf(n: number): string {
  return Array.from(
    { length: n },
    (_, index) =>
      `## ${index + 1}. Story ${index + 1}\n\n- [ ] ${index + 1}.1 first\n- [ ] ${index + 1}.2 second\n`,
  ).join('\n')
}

export function scratch(options: { tasks?: string; commit?: boolean } = {}): Scratch {
  const root = mkdtempSync(join(tmpdir(), 'ralph-e2e-'))
  const before = processes()
  onTestFinished(() => leave(root, before))
  const home = join(root, 'home')
  mkdirSync(home)
  const env: NodeJS.ProcessEnv = {
    PATH: withoutOwnBin(process.env['PATH'] ?? ''),
    HOME: home,
    TMPDIR: tmpdir(),
    LANG: 'C.UTF-8',
    GIT_CONFIG_NOSYSTEM: '1',
    OPENSPEC_TELEMETRY: '0',
    NO_COLOR: '1',
  }
  const at = placed(root, env)
  const { repo } = at
  mkdirSync(repo)
  const key = JSON.stringify(options)
  const template = templates.get(key) ?? mkdtempSync(join(tmpdir(), 'ralph-e2e-template-'))
  if (templates.has(key)) {
    cpSync(template, repo, { recursive: true, verbatimSymlinks: true })
    return at
  }
  removedAtExit.add(template)
  at.git('init', '-q', '-b', 'main')
  // Git's own samples: half of the files that each test would copy, and then remove.
  const hooks = join(repo, '.git', 'hooks')
  for (const sample of readdirSync(hooks)) rmSync(join(hooks, sample))
  at.git('config', 'user.name', 'User')
  at.git('config', 'user.email', 'user@example.invalid')
  at.write('README.md', '# scratch\n')
  at.write('openspec/changes/demo/proposal.md', '# Demo change\n\n## Why\nBecause.\n')
  if (options.tasks !== '') at.write('openspec/changes/demo/tasks.md', options.tasks ?? tasksOf(3))
  if (options.commit !== false) {
    at.git('add', '-A')
    at.git('commit', '-qm', 'start')
  }
  cpSync(repo, template, { recursive: true, verbatimSymlinks: true })
  templates.set(key, template)
  return at
}

/** What a test is given of the scratch folder. */
function placed(root: string, env: NodeJS.ProcessEnv): Scratch {
  const repo = join(root, 'repo')
  const at: Scratch = {
    root,
    repo,
    env,
    git: (...args) => run('git', args, { cwd: repo, env }).trimEnd(),
    write(path, text) {
      mkdirSync(dirname(join(repo, path)), { recursive: true })
      writeFileSync(join(repo, path), text)
    },
    read: (path) => readFileSync(join(repo, path), 'utf8'),
    script(name, body) {
      const path = join(root, name)
      writeFileSync(path, body)
      chmodSync(path, 0o755)
      return path
    },
    state: () => JSON.parse(readFileSync(join(repo, '.claude', 'loop-state.json'), 'utf8')) as StateFile,
  }
  return at
}

function leave(root: string, before: readonly string[]): void {
  endAll(`HOME=${join(root, 'home')}`, before)
  rmSync(root, { recursive: true, force: true })
}

/** A scratch folder as it is now, for the other tests of its file: in the same place, which a run knows. */
export function keep<Kept extends Scratch>(at: Kept): () => Kept {
  const kept = mkdtempSync(join(tmpdir(), 'ralph-e2e-kept-'))
  removedAtExit.add(kept)
  const env = { ...at.env }
  const copy = (from: string, to: string): void => void run('cp', ['-a', `${from}/.`, to], { cwd: '/', env })
  copy(at.root, kept)
  return () => {
    const before = processes()
    onTestFinished(() => leave(at.root, before))
    mkdirSync(at.root)
    copy(kept, at.root)
    return { ...at, ...placed(at.root, { ...env }) }
  }
}

/** Of the worker, not of this module: vitest loads that anew for each file. */
const worker = globalThis as { scratchTemplates?: Map<string, string>; removedAtExit?: Set<string> }

/** The repositories that tests began with, by their options: to copy one takes a fraction of six git commands. */
const templates = (worker.scratchTemplates ??= new Map<string, string>())

const removedAtExit = (worker.removedAtExit ??= foldersOfWorker())

/** One listener for all of them: Node takes more than ten for a leak, and says so amid the results. */
function foldersOfWorker(): Set<string> {
  const folders = new Set<string>()
  process.once('exit', () => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })
  return folders
}

export interface Finished {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly child: ChildProcess
  readonly pid: number
  readonly ended: Promise<Finished>
  /** Resolves as soon as what was printed so far satisfies the predicate; rejects when the program ends before. */
  seen(predicate: (stdout: string) => boolean): Promise<void>
}

/** Starts the built program; `ended` resolves with what it printed. */
export function start(
  at: Scratch,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Running {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: options.cwd ?? at.repo,
    env: { ...at.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  const watchers = new Set<() => void>()
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString('utf8')
    for (const look of watchers) look()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString('utf8')
  })
  const ended = new Promise<Finished>((done) => {
    child.on('close', (code, signal) => done({ code, signal, stdout, stderr }))
  })
  onTestFinished(() => {
    if (child.exitCode === null) child.kill('SIGKILL')
  })
  return {
    child,
    pid: child.pid ?? 0,
    ended,
    seen: (predicate) =>
      new Promise((done, fail) => {
        const look = (): void => {
          if (!predicate(stdout)) return
          watchers.delete(look)
          done()
        }
        watchers.add(look)
        ended.then(() => fail(new Error(`ended before it was seen\n${stdout}\n${stderr}`)), fail)
        look()
      }),
  }
}

export function ralph(
  at: Scratch,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Finished> {
  return start(at, args, options).ended
}

/** The events of a `--json` run. */
export function eventsOf(finished: Finished): LoopEvent[] {
  return finished.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as LoopEvent)
}

/** Says COMPLETE after writing a file named after its story and iteration. */
export const goodAgent =
  'echo "work of $RALPH_STORY" > "story-$RALPH_STORY.txt"; echo done; echo "<promise>COMPLETE</promise>"'

/**
 * Ages the last sign of life of a killed loop as far as that leaves what changed until now to the loop, and waits out the rest of the two
 * seconds in which nobody can tell: what changes from now on is later.
 */
export function longDead(at: Scratch): void {
  const probe = join(at.root, 'probe')
  const touched = (): number => {
    writeFileSync(probe, '')
    return statSync(probe).ctimeMs
  }
  const sign = join(at.repo, '.git/ralph/changes/demo/alive')
  const diedMs = Math.min(statSync(sign).mtimeMs, touched() - 690)
  utimesSync(sign, diedMs / 1000, diedMs / 1000)
  while (touched() <= diedMs + 2000) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
}

/** As a user has it: no tools of this project, so no openspec either. */
function withoutOwnBin(path: string): string {
  return path
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(delimiter)
}

function processes(): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
}

/** Whatever a test that failed half-way left running in its own home: not those that were there before it. */
function endAll(mark: string, before: readonly string[]): void {
  const others = new Set(before)
  for (const pid of processes().filter((each) => !others.has(each))) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'utf8').includes(mark)) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // Gone meanwhile, or not ours to look at.
      continue
    }
  }
}
