// One login, two repositories, two loops: a limit that one was told pauses the other, through the whole built program (Q16).
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { agentPath, standIn } from '../agents/kit.ts'
import { eventsOf, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Running, Scratch } from './harness.ts'

test('Q16: while one loop waits for a limit, one in another repository starts no agent; after the reset one goes first, the other when that has its answer', async () => {
  const { one, two, begin, starts } = pair({ AGENT_RESET_SECONDS: '15' })
  const first = begin(one)
  await first.seen((out) => out.includes('"type":"waiting"'))
  expect(ledgers(one)).toHaveLength(1)
  const second = begin(two)
  await second.seen((out) => out.includes('"type":"waiting"'))
  expect(starts()).toBe(1)
  // Whoever goes first waits for this file; the other one says that it waits once more.
  const waits = (out: string): boolean => out.split('"type":"login.limited"').length > 1
  await Promise.race([first.seen(waits), second.seen((out) => out.split('"type":"waiting"').length > 2)])
  expect(starts()).toBeLessThan(3)
  writeFileSync(join(one.root, 'go'), '')
  const [a, b] = [await first.ended, await second.ended]
  expect([a.code, b.code]).toEqual([0, 0])
  expect(starts()).toBe(3)
  expect(one.state().iterations.map(({ verdict }) => verdict)).toEqual(['limit', 'complete'])
  expect(two.state().iterations.map(({ verdict, attempt }) => [verdict, attempt])).toEqual([['complete', 1]])
  const told = eventsOf(b)
  const types = told.map(({ type }) => type)
  expect(types.indexOf('login.limited')).toBeLessThan(types.indexOf('iteration.started'))
  const untils = [eventsOf(a), told].map((events) => events.find(({ type }) => type === 'waiting'))
  expect(untils[1]).toMatchObject({ for: 'limit', agent: 'claude', until: untils[0]?.['until' as never] })
  expect(ledgers(one)).toEqual([])
})

test('Q16: --limit-wait holds for a limit of another loop, too: exit 6, no agent, no iteration; with another login it runs at once', async () => {
  const { one, two, begin, starts } = pair({ AGENT_RESET_SECONDS: '3600' })
  expect((await begin(one, ['--limit-wait', '0.1']).ended).code).toBe(6)
  const refused = await begin(two, ['--limit-wait', '0.1']).ended
  expect(refused.code).toBe(6)
  expect(eventsOf(refused).at(-1)).toMatchObject({ type: 'complete', stop_reason: 'limit' })
  expect(two.state().iterations).toEqual([])
  expect(starts()).toBe(1)
  writeFileSync(join(one.root, 'go'), '')
  const other = ['--agent-env', `CLAUDE_CONFIG_DIR=${join(two.root, 'other')}`]
  expect((await begin(two, ['--fresh', ...other]).ended).code).toBe(0)
  expect(starts()).toBe(2)
})

test('Q16: who resumes the loop that was told of the limit asks again at once, and its answer frees the others', async () => {
  const { one, two, begin, starts } = pair({ AGENT_RESET_SECONDS: '3600' })
  expect((await begin(one, ['--limit-wait', '0.1']).ended).code).toBe(6)
  const waiting = begin(two)
  await waiting.seen((out) => out.includes('"type":"waiting"'))
  expect(starts()).toBe(1)
  writeFileSync(join(one.root, 'go'), '')
  expect((await begin(one, [], 'resume').ended).code).toBe(0)
  expect((await waiting.ended).code).toBe(0)
  expect(starts()).toBe(3)
})

test('Q16: a loop that waits for another one’s limit is stopped like any that waits', async () => {
  const { one, two, begin, starts } = pair({ AGENT_RESET_SECONDS: '3600' })
  expect((await begin(one, ['--limit-wait', '0.1']).ended).code).toBe(6)
  const waiting = begin(two)
  await waiting.seen((out) => out.includes('"type":"waiting"'))
  expect((await ralph(two, ['stop', 'demo'])).code).toBe(0)
  expect((await waiting.ended).code).toBe(143)
  expect(starts()).toBe(1)
})

/** Two repositories of the same user, and a claude that hits its limit once. */
function pair(env: Readonly<Record<string, string>>): {
  readonly one: Scratch
  readonly two: Scratch
  readonly begin: (at: Scratch, args?: readonly string[], command?: 'loop' | 'resume') => Running
  readonly starts: () => number
} {
  const [one, two] = [scratch({ tasks: tasksOf(1) }), scratch({ tasks: tasksOf(1) })]
  const bin = join(one.root, 'bin')
  mkdirSync(bin)
  standIn(bin, 'claude', agentPath('claude-limited-once.mjs'))
  const runs = join(one.root, 'runs')
  const all = { AGENT_STATE: runs, AGENT_WAITS_FOR: join(one.root, 'go'), ...env }
  const flags = Object.entries(all).flatMap(([name, value]) => ['--agent-env', `${name}=${value}`])
  const login = { HOME: one.env['HOME'] ?? '', PATH: `${bin}:${one.env['PATH'] ?? ''}` }
  return {
    one,
    two,
    begin: (at, args = [], command = 'loop') =>
      start(at, [command, 'demo', '--json', '--agent', 'claude', ...flags, ...args], { env: login }),
    starts: () => Number(readFileSync(runs, 'utf8')),
  }
}

function ledgers(at: Scratch): string[] {
  const folder = join(at.env['HOME'] ?? '', '.local', 'state', 'ralph', 'logins')
  return existsSync(folder) ? readdirSync(folder) : []
}
