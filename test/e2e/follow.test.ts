// A loop of the built program, followed by other processes while it runs and after it has ended.
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createApp } from '../../src/compose.ts'
import { cursorText } from '../../src/core/cursor.ts'
import type { Cursor } from '../../src/core/cursor.ts'
import { publicEventTypes } from '../../src/core/public-events.ts'
import type { LoopEvent } from '../../src/core/event.ts'
import type { Told } from '../../src/ports.ts'
import { onTerminal } from './on-terminal.ts'
import { eventsOf, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'

/** Speaks, waits until it is let go on, speaks again. */
const talker = (at: Scratch): string =>
  `echo "story $RALPH_STORY begins"; until [ -e '${at.root}/go' ]; do sleep 0.05; done; echo "story $RALPH_STORY ends"; echo "<promise>COMPLETE</promise>"`

function followed(at: Scratch, from?: Cursor): AsyncIterable<Told> {
  const io = {
    cwd: at.repo,
    env: at.env,
    stdout: process.stdout,
    stdin: process.stdin,
    stderr: process.stderr,
  }
  const stop = new AbortController().signal
  return createApp(io).observe.follow('demo', {
    until: 'end',
    stop,
    ...(from !== undefined && { from }),
  })
}

function publicOf(told: readonly Told[]): LoopEvent[] {
  return told.flatMap((each) =>
    each.type === 'event' && publicEventTypes.includes(each.event.type) ? [each.event] : [],
  )
}

test('another process hears the same events as --json prints, talk too, while the loop runs and after; logs -f and status --watch end with it', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const loop = start(at, ['loop', 'demo', '--agent-command', talker(at), '--json'])
  await loop.seen((out) => out.includes('story 1 begins'))
  const logs = start(at, ['logs', 'demo', '-f'])
  const status = start(at, ['status', 'demo', '--watch', '--json'])
  await logs.seen((out) => out.includes('story 1 begins'))
  await status.seen((out) => out.includes('"alive":true'))
  const told: Told[] = []
  for await (const each of followed(at)) {
    told.push(each)
    // Live: the loop is waiting for us, and has not ended.
    if (each.type === 'loop' && each.loop === 'running') writeFileSync(join(at.root, 'go'), '')
  }
  const finished = await loop.ended
  expect(finished.code).toBe(0)
  expect(publicOf(told)).toEqual(eventsOf(finished))
  expect(told.some((each) => each.type === 'event' && each.event.type === 'agent.message')).toBe(true)
  const cursors = told.flatMap((each) => (each.type === 'event' ? [cursorText(each.cursor)] : []))
  expect(new Set(cursors).size).toBe(cursors.length)
  expect(told.at(-1)).toMatchObject({ type: 'loop', loop: 'ended', state: { status: 'done' } })

  const heard = await logs.ended
  expect(heard).toMatchObject({ code: 0, stderr: '' })
  for (const words of ['story 1 begins', 'story 1 ends', 'story 2 begins', 'story 2 ends'])
    expect(heard.stdout).toContain(words)
  // F21: which story, which attempt.
  expect(heard.stdout).toMatch(
    /^▸ 1\/2 Story 1 {3}#1 of demo {3}\d\d:\d\d:\d\d\nstory 1 begins\n[^]*\n\n✓ done\n\n▸ 2\/2 Story 2 {3}#2 of demo {3}\d\d:\d\d:\d\d\nstory 2 begins\n/,
  )
  expect((await ralph(at, ['logs', 'demo', '-f', '--raw', '--iteration', '1'])).stdout).not.toContain('▸')
  // Without -f the same head, and a number finds its attempt as in `ralph diff 1`.
  expect((await ralph(at, ['logs', '1', 'demo'])).stdout).toMatch(
    /^▸ 1\/2 Story 1 {3}#1 of demo .*\nstory 1 begins\n/,
  )
  const unknown = await ralph(at, ['logs', '9'])
  expect([unknown.code, unknown.stderr]).toEqual([
    2,
    expect.stringContaining('There is no attempt #9 of demo.'),
  ])
  const watched = await status.ended
  expect(watched).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(watched.stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
    status: 'done',
    alive: false,
  })

  // After its end, from a name that the first one was given.
  const middle = told.find((each) => each.type === 'event' && each.event.type === 'agent.message')
  const later: Told[] = []
  for await (const each of followed(at, middle?.cursor)) later.push(each)
  expect(publicOf(later)).toEqual(publicOf(told.slice(told.findIndex((each) => each === middle) + 1)))

  // --fresh takes the talk along, and a cursor of the old run is still known.
  at.write('openspec/changes/demo/tasks.md', tasksOf(1))
  const fresh = await ralph(at, [
    'loop',
    'demo',
    '--fresh',
    '--agent-command',
    'echo again; echo "<promise>COMPLETE</promise>"',
    '--json',
  ])
  const own = join(at.repo, '.git/ralph/changes/demo')
  const [archived = ''] = readdirSync(join(own, 'archive'))
  expect(existsSync(join(own, 'archive', archived, 'talk'))).toBe(true)
  const both: Told[] = []
  for await (const each of followed(at, middle?.cursor)) both.push(each)
  const border = both.findIndex(({ type }) => type === 'run_began')
  expect(publicOf(both.slice(0, border))).toEqual(publicOf(later))
  expect(publicOf(both.slice(border))).toEqual(eventsOf(fresh))
  expect(at.git('status', '--porcelain', '--ignored').includes('talk')).toBe(false)
})

test('23: logs -f on a terminal waits for the first loop to begin; in a pipe there is nothing to wait for', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  expect(await ralph(at, ['logs', 'demo', '-f'])).toMatchObject({ code: 2 })
  const logs = onTerminal(at, ['logs', 'demo', '-f'])
  await logs.until((raw) => raw.includes('waiting for it'))
  writeFileSync(join(at.root, 'go'), '')
  expect((await ralph(at, ['loop', 'demo', '--agent-command', talker(at)])).code).toBe(0)
  expect((await logs.exited).exitCode).toBe(0)
  expect(logs.raw()).toContain('story 1 ends')
  const wrong = await onTerminal(at, ['logs', 'dmeo', '-f']).exited
  expect(wrong.exitCode).not.toBe(0)
})
