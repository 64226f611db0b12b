// What the merge queue says and does after a stop: of one loop, of all, and of the queue itself.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { ralph, start, type Scratch } from './harness.ts'
import { events, landedTree, project, report } from './queue-kit.ts'

/** An agent that says that it is at work, and goes on when it is told to. */
const waits = 'touch "$HOME/at-$RALPH_CHANGE"; until [ -f "$HOME/go" ]; do sleep 0.05; done'
const atWork = async (at: Scratch, ...changes: readonly string[]): Promise<void> => {
  while (!changes.every((change) => existsSync(join(at.root, `home/at-${change}`)))) await delay(20)
}

it('stop: one loop beside the queue is parked for who stopped it; stop --all ends the rest, every look says so, and the next ralph up goes on with all of it', async () => {
  const at = project({ a: waits, b: waits }, 1)
  const running = start(at, ['up', '--json', ...at.args])
  await atWork(at, 'a', 'b')
  expect((await ralph(at, ['stop', 'b'])).code).toBe(0)
  await running.seen((out) => out.includes('entry.parked'))
  expect(await report(at)).toMatchObject({
    alive: true,
    entries: [
      { change: 'a', state: 'running', why: '' },
      {
        change: 'b',
        state: 'parked',
        why: 'its loop was stopped',
        hint: 'To continue it: ralph queue retry b',
      },
    ],
  })
  const all = await ralph(at, ['stop', '--all'])
  expect([all.code, all.stdout]).toEqual([
    0,
    expect.stringMatching(/^Stopped: ralph up\.\nStopped: a[^]*next {3}ralph up$/m),
  ])
  expect((await running.ended).code).toBe(143)
  expect(await report(at)).toMatchObject({
    alive: false,
    entries: [
      { change: 'a', state: 'waiting', why: 'its loop was stopped' },
      { change: 'b', state: 'parked' },
    ],
  })
  expect((await ralph(at, ['queue'])).stdout).toMatch(
    /0 of 2 landed, 1 waiting, 1 parked[^]*next +ralph up +it is not running/,
  )
  at.write('../home/go', '')
  const again = await ralph(at, ['up', '--json', ...at.args])
  expect([again.code, again.stderr]).toEqual([0, ''])
  expect(events(again).filter(({ type }) => type === 'landed')).toHaveLength(2)
  const { entries, ...head } = await report(at)
  expect(Object.keys(head).slice(0, 3)).toEqual(['target', 'target_commit', 'landed_commit'])
  expect(Object.keys(entries[0] ?? {}).slice(0, 10)).toEqual([
    'change',
    'state',
    'why',
    'after',
    'stories_done',
    'stories_total',
    'cost_usd',
    'branch',
    'candidate',
    'landed',
  ])
})

it('land: one change that is done lands, and the others of the queue stay as they are; one that never ran, or is not there, is refused', async () => {
  const at = project({ a: '', b: '', c: '' }, 1)
  expect((await ralph(at, ['up', 'a', 'b', '--no-land', ...at.args])).code).toBe(0)
  expect((await ralph(at, ['queue', 'add', 'c'])).code).toBe(0)
  const landed = await ralph(at, ['land', 'b', ...at.args])
  expect([landed.code, landed.stderr]).toEqual([0, ''])
  expect((await report(at)).entries.map(({ change, state }) => [change, state])).toEqual([
    ['a', 'done'],
    ['b', 'landed'],
    ['c', 'waiting'],
  ])
  expect(at.git('log', '--format=%s', 'main..refs/ralph-landed/main')).toBe('The change b')
  const never = await ralph(at, ['land', 'c'])
  expect([never.code, never.stderr]).toEqual([2, expect.stringContaining('ralph up c')])
  const unknown = await ralph(at, ['land', 'nope'])
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('There is no open change nope')])
})

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)(
  '%s: ralph up exits with %i, its loop goes on, and the next one lands it',
  async (signal, code) => {
    const at = project({ a: waits }, 1)
    const running = start(at, ['up', ...at.args])
    await running.seen((out) => out.includes('its loop runs'))
    await atWork(at, 'a')
    running.child.kill(signal)
    const ended = await running.ended
    expect([ended.code, ended.stdout]).toEqual([
      code,
      expect.stringContaining('Stopped. 1 loop continues: a. To continue: ralph up') as string,
    ])
    at.write('../home/go', '')
    expect((await ralph(at, ['up', ...at.args])).code).toBe(0)
    expect(landedTree(at)).toContain('work/a.txt')
  },
)

it('stop --force of one loop beside the queue parks it: the queue does not take it up again', async () => {
  const at = project({ a: `echo x >> "$HOME/starts"; ${waits}` }, 1)
  const running = start(at, ['up', '--json', ...at.args])
  await atWork(at, 'a')
  expect((await ralph(at, ['stop', 'a', '--force'])).code).toBe(0)
  expect((await running.ended).code).toBe(5)
  expect((await report(at)).entries).toMatchObject([{ state: 'parked', why: 'its loop was stopped' }])
  expect(at.read('../home/starts')).toBe('x\n')
  at.write('../home/go', '')
  expect((await ralph(at, ['queue', 'retry', 'a'])).code).toBe(0)
  expect((await ralph(at, ['up', ...at.args])).code).toBe(0)
})

it('stop --all --force, and a look at what it killed, the suspended ralph up too: the next ralph up goes on with it', async () => {
  const at = project({ a: waits }, 1)
  const running = start(at, ['up', '--json', ...at.args])
  await atWork(at, 'a')
  running.child.kill('SIGSTOP')
  expect((await ralph(at, ['stop', '--all', '--force'])).code).toBe(0)
  expect((await running.ended).signal).toBe('SIGKILL')
  // It writes the death down.
  expect((await ralph(at, ['status', 'a'])).stdout).toContain('died')
  expect((await report(at)).entries).toMatchObject([{ state: 'waiting', why: 'its loop was killed' }])
  at.write('../home/go', '')
  expect((await ralph(at, ['up', ...at.args])).code).toBe(0)
  expect((await report(at)).entries).toMatchObject([{ state: 'landed' }])
})

it('a change that the queue has parked is so on every face, with the same command; one that is stuck says what happened, and one that waits for its user what for', async () => {
  const at = project({ a: "echo '<promise>FAILED: no config</promise>'; exit 0", c: '' }, 1)
  at.write('openspec/changes/c/tasks.md', '## 1. A\n\n- [ ] 1.1 a\n\n## 2. Yours\n\n- [ ] 2.1 [human] b\n')
  at.git('commit', '-qam', 'plan')
  expect((await ralph(at, ['up', ...at.args])).code).toBe(3)
  const seen: Record<string, string> = {}
  for (const look of ['list', 'status', 'queue', 'why', 'report', 'history'])
    for (const change of ['a', 'c']) {
      const words = look === 'queue' || look === 'list' ? [look] : [look, change]
      const stdout = (seen[words.join(' ')] ??= (await ralph(at, words)).stdout)
      if (look !== 'history') expect(stdout, words.join(' ')).toMatch(/! (?:[ac] +)?parked/)
      expect(stdout, words.join(' ')).not.toMatch(/stuck|‖ stopped|needs you/)
      if (look !== 'history') expect(stdout, words.join(' ')).toContain(`ralph queue retry ${change}`)
    }
  expect(seen['why a']).toMatch(/failed once[^]*because +no config[^]*or +ralph resume a --feedback/)
  expect(seen['why c']).toMatch(/yours +\[human\] b: do it, then tick its box/)
})
