// Real processes race for the lock, and each is stopped (SIGSTOP) or killed at every point of taking it over.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { bundle } from '../../bundle.ts'
import { readProc } from '../../../src/adapters/process/table.ts'

const root = mkdtempSync(join(tmpdir(), 'ralph-race-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const driver = join(root, 'driver.cjs')
bundle(join(import.meta.dirname, 'lock-driver.ts'), driver)

let folder = ''
let path = ''
beforeEach(() => {
  folder = mkdtempSync(join(root, 'lock-'))
  path = join(folder, 'lock.json')
})

interface Taker {
  readonly pid: number
  /** Takes the lock; resolves with `held`, `refused`, or `stopped <call>`. */
  take(): Promise<string>
  /** What it says after it was stopped. */
  goOn(): Promise<string>
  release(): Promise<void>
  kill(): Promise<void>
}

async function taker(stopAt = 0): Promise<Taker> {
  const child = spawn(process.execPath, [driver, path, String(stopAt)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const pid = child.pid ?? 0
  const ended = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const heard = async (): Promise<string> => String((await lines.next()).value)
  expect(await heard()).toBe('ready')
  return {
    pid,
    async take() {
      child.stdin.write('take\n')
      const said = await heard()
      while (said.startsWith('stopped') && !/\) T /.test(readProc(pid, 'stat') ?? ''))
        await new Promise(setImmediate)
      return said
    },
    goOn() {
      child.kill('SIGCONT')
      return heard()
    },
    async release() {
      child.stdin.write('release\n')
      await ended
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

const dead = JSON.stringify({
  pid: 4_000_000,
  pid_started: '1',
  boot_id: 'an earlier boot',
  host: hostname(),
  token: 'dead',
  change: 'demo',
  worktree: '/somewhere',
  since: '2026-01-01T00:00:00+00:00',
})

const ownerOnDisk = (): number => (JSON.parse(readFileSync(path, 'utf8')) as { pid: number }).pid

/** One that is stopped over `before` at its n-th call of the file system; undefined past the last one, where it gets the lock. */
async function stoppedAt(n: number, before: string): Promise<{ one: Taker; where: string } | undefined> {
  writeFileSync(path, before)
  const one = await taker(n)
  const where = await one.take()
  if (where !== 'held') return { one, where: `${where}, call ${n}` }
  expect(n).toBeGreaterThan(7)
  await one.kill()
  for (const name of readdirSync(folder)) rmSync(join(folder, name))
  return undefined
}

describe.skipIf(process.platform !== 'linux')('O16, section 6.10: taking over a dead lock', () => {
  test.each([
    ['a dead owner’s', dead, ['held', 'released and held again', 'killed and held again']],
    ['a broken', '', ['held']],
  ])(
    'stopped at any point over %s lock: never two owners, whoever comes meanwhile',
    async (_, before, all) => {
      for (let n = 1; ; n += 1) {
        for (const meanwhile of all) {
          const stopped = await stoppedAt(n, before)
          if (stopped === undefined) return
          const slow = stopped.one
          const where = `${stopped.where}; meanwhile ${meanwhile}`
          let other = await taker()
          let said = await other.take()
          if (said === 'held' && meanwhile !== 'held') {
            await (meanwhile === 'released and held again' ? other.release() : other.kill())
            other = await taker()
            said = await other.take()
          }
          const slowSaid = await slow.goOn()
          expect([said, slowSaid].sort(), where).toEqual(['held', 'refused'])
          const owner = said === 'held' ? other : slow
          expect(ownerOnDisk(), where).toBe(owner.pid)
          await owner.release()
          expect(readdirSync(folder), where).toEqual([])
        }
      }
    },
    120_000,
  )

  test('killed at any point it is no dead end, and leaves nothing behind', async () => {
    for (let n = 1; ; n += 1) {
      const stopped = await stoppedAt(n, dead)
      if (stopped === undefined) return
      await stopped.one.kill()
      const next = await taker()
      expect(await next.take(), stopped.where).toBe('held')
      await next.release()
      expect(readdirSync(folder), stopped.where).toEqual([])
    }
  }, 60_000)

  test.each([
    ['a dead owner’s lock', dead],
    ['a broken lock', ''],
    ['no lock', undefined],
  ])(
    'of twelve processes at once over %s exactly one gets it',
    async (_, before) => {
      const takers = await Promise.all(Array.from({ length: 12 }, () => taker()))
      if (before !== undefined) writeFileSync(path, before)
      const said = await Promise.all(takers.map((each) => each.take()))
      expect(said.filter((word) => word === 'held')).toHaveLength(1)
      expect(said.filter((word) => word === 'refused')).toHaveLength(11)
      expect(ownerOnDisk()).toBe(takers[said.indexOf('held')]?.pid)
    },
    60_000,
  )
})
