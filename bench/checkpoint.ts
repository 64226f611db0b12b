// Measures a checkpoint and a revert against the cheapest plain git that does the same: `npx tsx bench/checkpoint.ts [files] [rounds] [submodules]`.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { branchCheckpoints } from '../src/adapters/git/branch.ts'
import { gitIn } from '../src/adapters/git/git.ts'
import { blankMemory, remember } from '../src/core/git-memory.ts'
import type { LoopEvent } from '../src/core/event.ts'

const files = Number(process.argv[2] ?? 10_000)
const rounds = Number(process.argv[3] ?? 11)
const submodules = Number(process.argv[4] ?? 0)
const root = realpathSync(mkdtempSync(join(tmpdir(), 'ralph-bench-')))
const env: NodeJS.ProcessEnv = { PATH: process.env['PATH'], HOME: root, GIT_CONFIG_NOSYSTEM: '1' }

/** The same repository for each competitor; otherwise one would warm the other's caches and refs. */
function makeRepository(name: string): string {
  const dir = join(root, name)
  for (let n = 0; n < files; n += 1) {
    const folder = join(dir, `d${n % Math.ceil(files / 100)}`)
    if (n < Math.ceil(files / 100)) mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `f${n}.txt`), `file ${n}\n`)
  }
  git(dir, 'init', '-q', '-b', 'main')
  git(dir, 'config', 'user.name', 'bench')
  git(dir, 'config', 'user.email', 'bench@localhost')
  git(dir, 'config', 'gc.auto', '0')
  git(dir, 'add', '-A')
  git(dir, 'commit', '-q', '-m', 'first')
  return dir
}

function git(dir: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd: dir, env, encoding: 'utf8', maxBuffer: 1e9 })
}

/** What an agent does in one attempt: ten files changed, five new, two gone. */
function work(dir: string, salt: string): void {
  for (let n = 0; n < 10; n += 1) writeFileSync(join(dir, `d${n % 3}`, `f${n % 3}.txt`), `${salt} ${n}\n`)
  for (let n = 0; n < 5; n += 1) writeFileSync(join(dir, 'd0', `new-${salt}-${n}.txt`), salt)
}

interface Competitor {
  checkpoint(salt: string): Promise<void>
  revert(): Promise<void>
  readonly dir: string
}

function plain(): Competitor {
  const dir = makeRepository('plain')
  return {
    dir,
    checkpoint: async (salt) => {
      git(dir, 'add', '-A')
      git(dir, 'commit', '-q', '--allow-empty', '-m', salt)
    },
    revert: async () => {
      git(dir, 'reset', '-q', '--hard', 'HEAD')
      git(dir, 'clean', '-fdq')
    },
  }
}

/** A hundred files each, one of them edited. */
function addSubmodules(dir: string): void {
  const library = join(root, 'library')
  mkdirSync(library)
  for (let n = 0; n < 100; n += 1) writeFileSync(join(library, `f${n}.txt`), `file ${n}\n`)
  git(library, 'init', '-q', '-b', 'main')
  git(library, 'add', '-A')
  git(library, '-c', 'user.name=bench', '-c', 'user.email=bench@localhost', 'commit', '-q', '-m', 'first')
  for (let n = 0; n < submodules; n += 1) {
    git(dir, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library, `sub${n}`)
    writeFileSync(join(dir, `sub${n}`, 'f0.txt'), 'of the user\n')
  }
  git(dir, 'commit', '-q', '-m', 'submodules')
}

async function ours(): Promise<Competitor & { ensure(): Promise<void>; keep(n: number): Promise<void> }> {
  const dir = makeRepository('ours')
  if (submodules > 0) addSubmodules(dir)
  const journal: LoopEvent[] = []
  const gitDir = join(dir, '.git')
  const checkpoints = branchCheckpoints({
    git: gitIn({ worktree: dir, gitDir, gitCommonDir: gitDir }, { timeoutMs: 60_000, env }),
    change: 'bench',
    writeAhead: async (body) => {
      journal.push({ v: 1, seq: journal.length + 1, time: '', change_id: 'bench', ...body })
    },
    memory: () => journal.reduce(remember, blankMemory),
    protectedPaths: ['.claude/loop-state.json*'],
    clock: { now: () => Date.now() },
  })
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  return {
    dir,
    ensure: async () => void (await checkpoints.ensure('1')),
    keep: async (n) => void (await checkpoints.keep(n)),
    checkpoint: async (salt) => void (await checkpoints.save('1', salt)),
    revert: async () => void (await checkpoints.restore()),
  }
}

async function timed(task: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await task()
  return performance.now() - began
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

const times: Record<string, number[]> = {}
const note = (name: string, ms: number): void => void (times[name] ??= []).push(ms)
try {
  const theirs = plain()
  const own = await ours()
  const runs: Record<string, (salt: string) => Promise<void>> = {
    plain: async (salt) => {
      work(theirs.dir, salt)
      note('plain checkpoint', await timed(() => theirs.checkpoint(salt)))
      work(theirs.dir, `${salt}-bad`)
      unlinkSync(join(theirs.dir, 'd1', 'f1.txt'))
      note('plain revert', await timed(() => theirs.revert()))
    },
    ours: async (salt) => {
      work(own.dir, salt)
      note('ralph save', await timed(() => own.checkpoint(salt)))
      note('ralph ensure', await timed(() => own.ensure()))
      work(own.dir, `${salt}-bad`)
      unlinkSync(join(own.dir, 'd1', 'f1.txt'))
      note('ralph keep', await timed(() => own.keep(Number(salt.slice(1)) + 1)))
      note('ralph restore', await timed(() => own.revert()))
    },
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const name of Object.keys(runs).sort(() => Math.random() - 0.5)) await runs[name]?.(`r${round}`)
  }
  const mid = Object.fromEntries(Object.entries(times).map(([name, values]) => [name, median(values)]))
  const at = (name: string): number => mid[name] ?? Number.NaN
  const floor = at('plain checkpoint') + at('plain revert')
  for (const [name, ms] of Object.entries(mid))
    console.log(`${name.padEnd(18)} ${ms.toFixed(1).padStart(8)} ms`)
  console.log(
    `checkpoint + revert, ${files} files, median of ${rounds}: ${((at('ralph save') + at('ralph restore')) / floor).toFixed(2)}x plain git`,
  )
  const failed = at('ralph ensure') + at('ralph keep') + at('ralph restore')
  console.log(`a failed attempt in full (ensure, keep, restore): ${(failed / floor).toFixed(2)}x`)
} finally {
  rmSync(root, { recursive: true, force: true })
}
