// A shell line that is told something, as a real process.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { tellShell } from '../../../src/adapters/process/shell.ts'
import { processIdentity } from '../../../src/adapters/process/table.ts'

let dir: string

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ralph-shell-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const tell = (command: string, timeoutMs = 60_000) =>
  tellShell(command, { cwd: dir, env: process.env, input: '{"type":"complete"}\n', timeoutMs })
const written = (name: string): string => readFileSync(join(dir, name), 'utf8')

it('gets all that it is told, and may open its streams by name', async () => {
  const command = 'cat /dev/stdin > told && echo one > /dev/stdout && echo two > /dev/stderr'
  expect(await tell(command)).toEqual({ failed: '', said: 'two' })
  expect(written('told')).toBe('{"type":"complete"}\n')
})

it('one that fails says how, and its last words on stderr', async () => {
  expect(await tell('echo out; echo why >&2; exit 9')).toEqual({ failed: 'exit code 9', said: 'why' })
  expect(await tell('kill -9 $$')).toEqual({ failed: 'ended by SIGKILL', said: '' })
})

it('one that takes too long is ended, with its children', async () => {
  expect(await tell('sleep 100 & echo $! > pid; wait', 500)).toMatchObject({
    failed: 'took longer than 0.5 s',
  })
  expect(processIdentity(Number(written('pid')))).toBe('')
})

it('what it puts into the background lives on', async () => {
  expect(await tell('sleep 100 & echo $! > pid')).toEqual({ failed: '', said: '' })
  const pid = Number(written('pid'))
  expect(processIdentity(pid)).not.toBe('')
  process.kill(pid, 'SIGKILL')
})
