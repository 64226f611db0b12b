// Gates as real commands: fail closed, and nothing of them left alive.
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { shellGates } from '../../../src/adapters/process/gates.ts'
import { findAlive } from '../../../src/adapters/process/reap.ts'

let dir: string
let env: Record<string, string>
const never = new AbortController().signal

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ralph-gates-'))
  env = { RALPH_RUN_ID: randomUUID() }
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

it('a gate passes by exit code 0, in the work tree, with the environment it is given', async () => {
  const result = await shellGates({ cwd: dir }).check('pwd; echo "$RALPH_RUN_ID"', env, never)
  expect(result).toMatchObject({ outcome: 'passed', exitCode: 0 })
  expect(result.outputTail).toContain(env['RALPH_RUN_ID'])
  expect(result.outputTail).toContain(dir)
})

it('a gate that fails tells its code and the end of both its outputs', async () => {
  const result = await shellGates({ cwd: dir }).check(
    'seq 1 20000; echo "2 tests failed" >&2; exit 4',
    env,
    never,
  )
  expect(result).toMatchObject({ outcome: 'failed', exitCode: 4 })
  expect(result.outputTail).toContain('2 tests failed')
  expect(result.outputTail.length).toBeLessThanOrEqual(4096)
})

it('a gate may open its streams by name', async () => {
  const command = 'echo one | tee /dev/stderr > /dev/stdout && cat /dev/stdin && echo two > /dev/stderr'
  const result = await shellGates({ cwd: dir }).check(command, env, never)
  expect(result).toMatchObject({ outcome: 'passed', exitCode: 0 })
  expect(result.outputTail.split('\n').toSorted()).toEqual(['', 'one', 'one', 'two'])
})

it('a gate that a signal ended has failed', async () => {
  expect(await shellGates({ cwd: dir }).check('kill -9 $$', env, never)).toMatchObject({ outcome: 'failed' })
})

it('a gate that cannot run has neither passed nor failed', async () => {
  const gates = shellGates({ cwd: dir })
  expect(await gates.check('no-such-gate-program', env, never)).toMatchObject({ outcome: 'could_not_run' })
  expect(await shellGates({ cwd: join(dir, 'gone') }).check('true', env, never)).toMatchObject({
    outcome: 'could_not_run',
  })
})

it('a stop ends the gate and all of its children', async () => {
  const stop = new AbortController()
  const checking = shellGates({ cwd: dir, graceMs: 300 }).check(
    "trap '' INT TERM; setsid tail -f /dev/null & while :; do sleep 1; done",
    env,
    stop.signal,
  )
  await new Promise<void>((resolve) => {
    const look = setInterval(() => {
      if (findAlive({ marker: env }).length < 2) return
      clearInterval(look)
      resolve()
    }, 10)
  })
  stop.abort('stopped')
  expect(await checking).toMatchObject({ outcome: 'stopped' })
  expect(findAlive({ marker: env })).toEqual([])
})

it('R2: a gate beyond its time has failed, and nothing of it is alive', async () => {
  const result = await shellGates({ cwd: dir, timeoutMs: 600, graceMs: 200 }).check(
    "trap '' INT TERM; setsid tail -f /dev/null & tail -f /dev/null",
    env,
    never,
  )
  expect(result.outcome).toBe('failed')
  expect(result.outputTail).toContain('ended by ralph after 1 s (--iteration-timeout)')
  expect(findAlive({ marker: env })).toEqual([])
})

it('F25: the whole output is kept, and the failing test is found above the part that an event holds', async () => {
  const log = join(dir, 'logs', '3.gates.log')
  const gates = shellGates({ cwd: dir })
  const script = `echo 'not ok 1 - login'; echo "  location: '$PWD/test/a.test.js:3:1'"; echo '  ...'; seq 2000; exit 1`
  await gates.check('echo fine', env, never, log)
  const result = await gates.check(script, env, never, log)
  expect(result.outputTail).not.toContain('login')
  expect(result.failure).toMatchObject({ what: 'login', where: 'test/a.test.js:3:1' })
  expect(result.outputLines).toBe(2003)
  const kept = readFileSync(log, 'utf8')
  expect(kept).toMatch(/^\$ echo fine\nfine\n\(exit 0, \d+ ms\)\n\n\$ echo 'not ok/)
  expect(kept).toMatch(/\nnot ok 1 - login\n[^]*\n2000\n\(exit 1, \d+ ms\)\n\n$/)
})

it('F25: an output that cannot be kept is no reason to fail, but is said', async () => {
  const result = await shellGates({ cwd: dir }).check('true', env, never, '/dev/null/1.gates.log')
  expect(result.outcome).toBe('passed')
  expect(result.warning).toContain("The gate's output cannot be kept")
})
