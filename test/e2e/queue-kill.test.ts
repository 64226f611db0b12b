// The queue's supervisor and its loops, killed at every line of both journals and at random moments. `npm run torture -- --queue` is the
// long run of 200 moments.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { QueueEvent } from '../../src/core/queue-event.ts'
import { ralph, start } from './harness.ts'
import type { Running, Scratch } from './harness.ts'
import { landedTree, picture, project, report } from './queue-kit.ts'

const isLong = process.env['RALPH_QUEUE_KILLS'] !== undefined
const kills = Number(process.env['RALPH_QUEUE_KILLS'] ?? 2)
const seed = Number(process.env['RALPH_QUEUE_SEED'] ?? 1)
const upTo = (last: number): number[] => Array.from({ length: last }, (_, at) => at + 1)
/** Without a kill the queue writes this many lines for two changes that conflict, and a loop of one story this many. */
const queueLines = isLong ? upTo(26) : [4, 15, 18]
const loopLines = isLong ? upTo(27) : [10]

/** Two changes that conflict, and a gate that takes a moment, so that a kill can strike in it. */
function conflicting(): ReturnType<typeof project> {
  const habit = (own: string): string => `case "$prompt" in *"Put two changes together"*)
  printf 'of a\\nof b\\n' > shared.txt; echo '<promise>COMPLETE</promise>'; exit;; esac
# One that begins after the other has landed finds its line there.
sleep 0.1; if grep -q "of " shared.txt; then printf 'of a\\nof b\\n' > shared.txt; else echo "of ${own}" > shared.txt; fi
`
  const at = project({ a: habit('a'), b: habit('b') }, 1)
  at.write('gate.sh', 'sleep 0.1; ! grep -q "<<<<" shared.txt\n')
  at.git('commit', '-qam', 'a gate')
  return at
}

const lines = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '')

function journal(at: Scratch, of: string): readonly string[] {
  try {
    return lines(readFileSync(join(at.repo, '.git', 'ralph', of, 'journal.ndjson'), 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** Whatever happened: both landed once, each passed its gate as the commit that landed, and the checkout is as it was. */
async function settled(at: ReturnType<typeof project>, before: string): Promise<void> {
  const last = await ralph(at, ['up', ...at.args])
  expect([last.code, last.stderr, last.code === 0 ? '' : last.stdout]).toEqual([0, '', ''])
  expect(picture(at)).toBe(before)
  expect(at.git('log', '--format=%s', 'main..refs/ralph-landed/main').split('\n').toSorted()).toEqual([
    'The change a',
    'The change b',
  ])
  expect(landedTree(at)).toMatch(/work\/a\.txt[^]*work\/b\.txt/)
  const of = (path: string): string => at.git('show', `refs/ralph-landed/main:${path}`)
  expect([of('shared.txt'), of('work/a.txt'), of('work/b.txt')]).toEqual(['of a\nof b', '1', '1'])
  const events = journal(at, 'queue').map((line) => JSON.parse(line) as QueueEvent)
  const passed = new Set(
    events.flatMap((event) =>
      event.type === 'candidate.gated' && event.outcome === 'passed' ? [event.commit] : [],
    ),
  )
  const landed = events.flatMap((event) => (event.type === 'landed' ? [event.commit] : []))
  expect(landed.toSorted()).toEqual(at.git('rev-list', 'main..refs/ralph-landed/main').split('\n').toSorted())
  expect(landed.filter((commit) => !passed.has(commit))).toEqual([])
  expect((await report(at)).entries.map(({ state }) => state)).toEqual(['landed', 'landed'])
  expect(at.git('fsck', '--no-dangling', '--no-progress')).toBe('')
}

type Victim = 'up' | 'loops' | 'all'

/** Kills that found somebody, of how many. */
const struck = { kills: 0, of: 0 }

function kill(at: Scratch, up: Running, who: Victim): void {
  const victims = [...(who === 'up' ? [] : loopPids(at)), ...(who === 'loops' ? [] : [up.pid])]
  const isHit = victims.map((pid) => (pid === up.pid ? up.child.kill('SIGKILL') : killIfThere(pid)))
  struck.of += 1
  if (isHit.includes(true)) struck.kills += 1
}

it.each(
  queueLines.flatMap((line) =>
    (isLong ? (['up', 'loops', 'all'] as const) : (['up'] as const)).map((who) => ({ line, who })),
  ),
)(
  'Q6 Q8: $who killed behind line $line of the queue’s journal: the next one goes on',
  async ({ line, who }) => {
    const at = conflicting()
    const before = picture(at)
    const first = start(at, ['up', '--json', ...at.args])
    await Promise.race([first.seen((out) => lines(out).length >= line).catch(() => undefined), first.ended])
    kill(at, first, who)
    await first.ended
    await settled(at, before)
  },
)

it.each(loopLines)(
  'Q8: a loop is killed behind line %i of its own journal: the queue goes on with it',
  async (line) => {
    const at = conflicting()
    const before = picture(at)
    const first = start(at, ['up', '--json', ...at.args])
    while (first.child.exitCode === null && journal(at, 'changes/a').length < line) await delay(1)
    kill(at, first, 'loops')
    await first.ended
    await settled(at, before)
  },
)

/** By how far the queue is, not by the clock: on any machine a moment is one in which there is somebody to kill. */
const moment = (last: number): fc.Arbitrary<{ line: number; thenMs: number; who: Victim }> =>
  fc.record({
    line: fc.integer({ min: 1, max: last }),
    thenMs: fc.integer({ min: 0, max: 100 }),
    who: fc.constantFrom<Victim>('up', 'loops', 'all'),
  })

const rounds = fc
  .sample(fc.tuple(moment(18), moment(6)), { seed, numRuns: Math.ceil(kills / 2) })
  .map((moments) => {
    const words = moments.map(({ who, line, thenMs }) => `${who} ${thenMs} ms behind line ${line}`)
    return [words.join(', then '), moments] as const
  })

it.each(rounds)(
  'Q6 Q8: killed: %s: nothing is lost, nothing lands twice, nothing lands ungated',
  async (_, moments) => {
    const at = conflicting()
    const before = picture(at)
    for (const { line, thenMs, who } of moments) {
      const up = start(at, ['up', '--json', ...at.args])
      await Promise.race([up.seen((out) => lines(out).length >= line).catch(() => undefined), up.ended])
      await Promise.race([delay(thenMs), up.ended])
      kill(at, up, who)
      await up.ended
    }
    await settled(at, before)
  },
)

it('Q6 Q8: these kills found somebody to kill', () => {
  if (isLong) console.log(`${struck.kills} of ${struck.of} kills struck, seed ${seed}`)
  expect(struck.kills).toBeGreaterThan(struck.of / 2)
})

/** By their environment: to ask ralph takes longer than a loop of one story. */
function loopPids(at: Scratch): readonly number[] {
  const read = (pid: string, file: string): string => {
    try {
      return readFileSync(join('/proc', pid, file), 'utf8')
    } catch {
      // Gone meanwhile, or not ours to look at.
      return ''
    }
  }
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid) && read(pid, 'environ').includes(`HOME=${at.env['HOME'] ?? ''}\0`))
    .filter((pid) => /main\.js\0(loop|resume)\0/.test(read(pid, 'cmdline')))
    .map(Number)
}

function killIfThere(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}
