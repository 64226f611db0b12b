// A short command that leaves something behind must not hold ralph up: git helpers and usage programs fork daemons.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { exec } from '../../../src/adapters/process/exec.ts'
import type { ExecResult } from '../../../src/adapters/process/exec.ts'

let cwd: string
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'ralph-exec-'))
})
afterEach(() => {
  const stray = join(cwd, 'stray')
  if (existsSync(stray)) process.kill(Number(readFileSync(stray, 'utf8')), 'SIGKILL')
  rmSync(cwd, { recursive: true, force: true })
})

const sh = (script: string, timeoutMs: number): Promise<ExecResult> =>
  exec('sh', ['-c', script], { cwd, env: process.env, timeoutMs })

/** Holds the pipes of its parent, in a session of its own: no group kill reaches it. */
const daemon = `setsid sh -c 'echo $$ > stray; exec sleep 600' &`

test('R3: a command whose daemon keeps the pipes open ends with the command, its output whole', async () => {
  const result = await sh(`${daemon} head -c 300000 /dev/zero; exit 3`, 100_000)
  expect(result).toMatchObject({ exitCode: 3, timedOut: false })
  expect(result.stdout).toHaveLength(300_000)
})

test('G24: a command that hangs with such a daemon is over at its time limit', async () => {
  expect(await sh(`${daemon} wait`, 500)).toMatchObject({ signal: 'SIGKILL', timedOut: true })
})
