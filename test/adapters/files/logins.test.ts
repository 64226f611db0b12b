// The ledger of logins at their limit: who waits, who goes first, and that nothing in its place ever hinders a loop (Q16).
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { accountOf } from '../../../src/adapters/agents/installed.ts'
import { systemClock } from '../../../src/adapters/clock.ts'
import { loginLedger, loginsFolder } from '../../../src/adapters/files/logins.ts'
import { bootId, isAlive, processIdentity } from '../../../src/adapters/process/table.ts'
import type { Logins } from '../../../src/ports.ts'

const identity = { pid: process.pid, started: processIdentity(process.pid), bootId: bootId(), isAlive }
const never = new AbortController().signal

function place(): { folder: string; as: (id: string, aheadMs?: number) => Logins; entry: () => string } {
  const folder = join(mkdtempSync(join(tmpdir(), 'ralph-logins-')), 'logins')
  onTestFinished(() => rmSync(join(folder, '..'), { recursive: true, force: true }))
  return {
    folder,
    as: (id, aheadMs = 0) =>
      loginLedger({
        folder,
        accountOf: (agent) => (agent === 'command' ? undefined : 'me'),
        loop: { id, change: 'demo', worktree: '/somewhere' },
        clock: { ...systemClock, now: () => Date.now() + aheadMs },
        identity,
      }),
    entry: () => join(folder, readdirSync(folder).find((name) => name.endsWith('.json')) ?? 'none'),
  }
}

const hourMs = 3_600_000

test('Q16: who was told of a limit may ask again itself; every other loop of that login waits, those of another do not', async () => {
  const { as } = place()
  const until = Date.now() + hourMs
  await as('a').limited('claude', until)
  expect(await as('b').look('claude')).toBe(until)
  expect(await as('a').look('claude')).toBeUndefined()
  expect(await as('b').look('codex')).toBeUndefined()
  await as('a').limited('command', until)
  expect(await as('b').look('command')).toBeUndefined()
})

test('Q16: after the reset one goes first; the others follow when it has its answer, and find nothing to wait for', async () => {
  const { as, folder } = place()
  await as('a').limited('claude', Date.now() + 1000)
  const [first, second] = [as('b', 2000), as('c', 2000)]
  expect(await first.look('claude')).toBeUndefined()
  expect(await second.look('claude')).toBeGreaterThan(Date.now() + 50_000)
  const freed = second.freed('claude', never)
  await first.answered('claude')
  expect(await freed).toBe(true)
  expect(await second.look('claude')).toBeUndefined()
  expect(readdirSync(folder)).toEqual([])
})

test('Q16: where the first one leaves without an answer the next one goes first; where it takes too long all do', async () => {
  const { as } = place()
  await as('a').limited('claude', Date.now() + 1000)
  const first = as('b', 2000)
  expect(await first.look('claude')).toBeUndefined()
  expect(await as('c', 120_000).look('claude')).toBeUndefined()
  await first.leave('claude')
  expect(await as('d', 2000).look('claude')).toBeUndefined()
  expect(await as('e', 2000).look('claude')).toBeDefined()
})

test('Q16: the first one is another process and is killed: its turn is taken over', async () => {
  const { as, folder } = place()
  await as('a').limited('claude', Date.now() + 1000)
  const driver = join(import.meta.dirname, 'logins-driver.ts')
  const child = spawn(process.execPath, ['--import', 'tsx', driver, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await new Promise((done) => child.stdout.once('data', done))
  const next = as('c', 2000)
  expect(await next.look('claude')).toBeDefined()
  const freed = next.freed('claude', never)
  const gone = new Promise((done) => child.once('exit', done))
  child.kill('SIGKILL')
  await gone
  expect(await freed).toBe(true)
  expect(await next.look('claude')).toBeUndefined()
  expect(await as('d', 2000).look('claude')).toBeDefined()
})

test('Q16: what a human does not want to wait for is passed over, and the answer frees the others', async () => {
  const { as } = place()
  await as('a').limited('claude', Date.now() + hourMs)
  const [asked, other] = [as('b'), as('c')]
  expect(await asked.look('claude')).toBeDefined()
  expect(await other.look('claude')).toBeDefined()
  asked.passOver('claude')
  expect(await asked.look('claude')).toBeUndefined()
  const freed = other.freed('claude', never)
  await asked.answered('claude')
  expect(await freed).toBe(true)
})

test('Q16: an answer does not undo what another loop was told meanwhile', async () => {
  const { as } = place()
  await as('a').limited('claude', Date.now() + 1000)
  const first = as('b', 2000)
  expect(await first.look('claude')).toBeUndefined()
  const later = Date.now() + hourMs
  await as('c', 2000).limited('claude', later)
  await first.answered('claude')
  expect(await as('d', 2000).look('claude')).toBe(later)
})

const stamp = (aheadMs: number): string => new Date(Date.now() + aheadMs).toISOString()
test.each([
  ['nothing', ''],
  ['half a file', '{"until": "2026'],
  ['something else', '[1]'],
  ['no times', '{"until": 5, "since": null, "loop": "a"}'],
  ['a limit for a year', JSON.stringify({ until: stamp(365 * 24 * hourMs), since: stamp(0), loop: 'a' })],
  [
    'a word from tomorrow',
    JSON.stringify({ until: stamp(30 * hourMs), since: stamp(24 * hourMs), loop: 'a' }),
  ],
  [
    'a limit of last week',
    JSON.stringify({ until: stamp(-160 * hourMs), since: stamp(-170 * hourMs), loop: 'a' }),
  ],
])('Q16: %s in the ledger is as if it were not there', async (_name, text) => {
  const { as, entry } = place()
  await as('a').limited('claude', Date.now() + hourMs)
  writeFileSync(entry(), text)
  expect(await as('b').look('claude')).toBeUndefined()
  await as('b').answered('claude')
  await as('b').limited('claude', Date.now() + hourMs)
  expect(await as('c').look('claude')).toBeDefined()
})

test('Q16: a ledger that cannot be written, or is a folder, hinders nobody', async () => {
  const { as, folder, entry } = place()
  await as('a').limited('claude', Date.now() + hourMs)
  const file = entry()
  rmSync(file)
  mkdirSync(file)
  expect(await as('b').look('claude')).toBeUndefined()
  await as('b').limited('claude', Date.now() + hourMs)
  expect(await as('b').freed('claude', AbortSignal.abort())).toBe(false)
  rmSync(folder, { recursive: true })
  writeFileSync(folder, 'a file')
  await as('b').limited('claude', Date.now() + hourMs)
  expect(await as('c').look('claude')).toBeUndefined()
  rmSync(folder)
  mkdirSync(folder)
  chmodSync(folder, 0o500)
  await as('b').limited('claude', Date.now() + hourMs)
  await as('b').answered('claude')
})

test('Q16: a login is its key or its folder; what has many providers, or is the user’s own program, is shared with nobody', () => {
  const home = { HOME: '/home/me' }
  expect(accountOf('claude', home)).toBe(
    accountOf('claude', { ...home, CLAUDE_CONFIG_DIR: '/home/me/.claude' }),
  )
  const key = accountOf('claude', { ...home, ANTHROPIC_API_KEY: 'k' })
  expect(key).not.toBe(accountOf('claude', home))
  expect(key).toBe(accountOf('claude', { HOME: '/elsewhere', ANTHROPIC_API_KEY: 'k' }))
  expect(accountOf('codex', { ...home, CODEX_HOME: '/c' })).not.toBe(accountOf('codex', home))
  expect(accountOf('gemini', home)).toBeDefined()
  for (const agent of ['opencode', 'command', 'acp', 'demo']) expect(accountOf(agent, home)).toBeUndefined()
  expect(accountOf('claude', { ...home, CLAUDE_CODE_USE_BEDROCK: '1' })).toBeUndefined()
  expect(accountOf('claude', {})).toBeUndefined()
  expect(loginsFolder({ ...home, XDG_STATE_HOME: '/s' })).toBe('/s/ralph/logins')
  expect(loginsFolder({ ...home, XDG_STATE_HOME: 'relative' })).toBe('/home/me/.local/state/ralph/logins')
})
