// Runs checkpoint operations in a process of their own, so that a shim can kill it between two git commands.
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { branchCheckpoints } from '../../../src/adapters/git/branch.ts'
import { gitIn } from '../../../src/adapters/git/git.ts'
import { stashCheckpoints } from '../../../src/adapters/git/stash/stash.ts'
import { blankMemory, remember } from '../../../src/core/git-memory.ts'
import type { EventBody, LoopEvent } from '../../../src/core/event.ts'
import type { Checkpoints } from '../../../src/ports.ts'

export const killable = {
  preflight: (checkpoints: Checkpoints) => checkpoints.preflight('start'),
  start: (checkpoints: Checkpoints) => checkpoints.start('start'),
  ensure: (checkpoints: Checkpoints) => checkpoints.ensure('1'),
  keep: (checkpoints: Checkpoints) => checkpoints.keep(1),
  save: (checkpoints: Checkpoints) =>
    checkpoints.save('1', 'checkpoint: 1', undefined, 'A title\n\nRalph-Story: 1'),
  restore: (checkpoints: Checkpoints) => checkpoints.restore(),
  finish: (checkpoints: Checkpoints) => checkpoints.finish('cleanup'),
  squash: (checkpoints: Checkpoints) => checkpoints.finish('squash', 'Demo\n\nRalph-Change: demo'),
  rename: (checkpoints: Checkpoints) => checkpoints.finish('rename'),
}
export type Killable = keyof typeof killable

export function openCheckpoints(
  dir: string,
  journal: string,
  strategy: string,
  env: NodeJS.ProcessEnv,
): Checkpoints {
  const gitDir = join(dir, '.git')
  const read = (): LoopEvent[] =>
    readFileSync(journal, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as LoopEvent)
  return (strategy === 'branch' ? branchCheckpoints : stashCheckpoints)({
    git: gitIn({ worktree: dir, gitDir, gitCommonDir: gitDir }, { timeoutMs: 30_000, env }),
    change: 'demo',
    writeAhead: (body: EventBody) => {
      appendFileSync(journal, `${JSON.stringify(body)}\n`)
      return Promise.resolve()
    },
    memory: () => read().reduce(remember, blankMemory),
    protectedPaths: ['.claude/loop-state.json*'],
    clock: { now: () => Date.UTC(2026, 0, 1) },
    env,
  })
}

interface Work {
  readonly dir: string
  readonly journal: string
  readonly strategy: string
  readonly operations: readonly string[]
  readonly env: NodeJS.ProcessEnv
}

const [dir, journal, strategy, ...operations] = process.argv.slice(2)
if (process.env['RALPH_KILL_DRIVER'] === '1') {
  if (dir && journal && strategy) void drive({ dir, journal, strategy, operations, env: process.env })
  else process.on('message', (work: Work) => void answer(work))
}

async function drive({ dir, journal, strategy, operations, env }: Work): Promise<void> {
  for (const operation of operations)
    await killable[operation as Killable](openCheckpoints(dir, journal, strategy, env))
}

/** For who asks again and again; as Node would show the error. */
async function answer(work: Work): Promise<void> {
  const said = await drive(work).then(() => '', inspect)
  process.send?.(said)
}
