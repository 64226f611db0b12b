// The queue's supervisor and its loops, killed at every line of the queue's journal and at random moments. RALPH_QUEUE_KILLS=200 for the
// long run, RALPH_QUEUE_SEED for another one.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { QueueEvent } from '../../src/core/queue.ts'
import { ralph, start } from './harness.ts'
import type { Scratch } from './harness.ts'
import { landedTree, picture, project, report } from './queue-kit.ts'

const isLong = process.env['RALPH_QUEUE_KILLS'] !== undefined
const kills = Number(process.env['RALPH_QUEUE_KILLS'] ?? 2)
const seed = Number(process.env['RALPH_QUEUE_SEED'] ?? 1)
/** A run of two changes without a kill writes this many lines; the last ones are those of the landing. */
const lines = isLong ? Array.from({ length: 16 }, (_, at) => at + 1) : [4, 11]

function journal(at: Scratch): QueueEvent[] {
  const text = readFileSync(join(at.repo, '.git', 'ralph', 'queue', 'journal.ndjson'), 'utf8')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as QueueEvent)
}

/** Whatever happened: both landed once, each passed its gate as the commit that landed, and the checkout is as it was. */
async function settled(at: ReturnType<typeof project>, before: string): Promise<void> {
  const last = await ralph(at, ['up', ...at.args])
  expect([last.code, last.stderr]).toEqual([0, ''])
  expect(picture(at)).toBe(before)
  expect(at.git('log', '--format=%s', 'main..refs/ralph-landed/main').split('\n').toSorted()).toEqual([
    'The change a',
    'The change b',
  ])
  expect(landedTree(at)).toMatch(/work\/a\.txt[^]*work\/b\.txt/)
  const events = journal(at)
  const passed = new Set(
    events.flatMap((event) =>
      event.type === 'candidate.gated' && event.outcome === 'passed' ? [event.commit] : [],
    ),
  )
  const landed = events.flatMap((event) => (event.type === 'landed' ? [event.commit] : []))
  expect(landed.filter((commit) => !passed.has(commit))).toEqual([])
  expect((await report(at)).entries.map(({ state }) => state)).toEqual(['landed', 'landed'])
  expect(at.git('fsck', '--no-dangling', '--no-progress')).toBe('')
}

it.each(lines)(
  'Q6 Q8: the supervisor is killed behind line %i of its journal, and the next one goes on',
  async (line) => {
    const at = project({ a: '', b: '' }, 1)
    const before = picture(at)
    const first = start(at, ['up', '--json', ...at.args])
    await Promise.race([first.seen((out) => out.split('\n').length > line), first.ended])
    first.child.kill('SIGKILL')
    await first.ended
    await settled(at, before)
  },
)

it.each(
  fc.sample(fc.record({ afterMs: fc.integer({ min: 300, max: 6000 }), who: fc.constantFrom('up', 'loop') }), {
    seed,
    numRuns: kills,
  }),
)(
  'Q6 Q8: $who is killed after $afterMs ms, and nothing is lost, nothing lands twice, nothing lands ungated',
  async ({ afterMs, who }) => {
    const at = project({ a: '', b: '' }, 1)
    const before = picture(at)
    const first = start(at, ['up', '--json', ...at.args])
    await Promise.race([delay(afterMs), first.ended])
    if (who === 'up') first.child.kill('SIGKILL')
    else for (const pid of await loopPids(at)) killIfThere(pid)
    await first.ended
    await settled(at, before)
  },
)

async function loopPids(at: Scratch): Promise<readonly number[]> {
  const { stdout } = await ralph(at, ['status', '--json'])
  const reports = JSON.parse(stdout === '' ? '[]' : stdout) as
    | { readonly alive: boolean; readonly terminal_pid: number }
    | readonly { readonly alive: boolean; readonly terminal_pid: number }[]
  return [reports].flat().flatMap(({ alive, terminal_pid: pid }) => (alive ? [pid] : []))
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
