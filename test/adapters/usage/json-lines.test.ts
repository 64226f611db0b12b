// The reading of JSON lines: whatever bytes a killed agent leaves behind, whole lines are read and nothing throws.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readJsonLines } from '../../../src/adapters/usage/json-lines.ts'
import { measureUsage } from '../../../src/adapters/usage/measure.ts'
import { clockAt, sandbox, turnStartMs } from './sandbox.ts'
import type { Sandbox } from './sandbox.ts'

let box: Sandbox
beforeEach(async () => {
  box = await sandbox()
})
afterEach(() => box.remove())

async function read(bytes: Uint8Array, from = 0): Promise<[at: number, id: unknown][]> {
  const path = join(box.root, 'lines.jsonl')
  await box.write(path, bytes)
  const found: [number, unknown][] = []
  await readJsonLines(path, { from, to: bytes.length, having: ['"id"'] }, (line, at) => {
    found.push([at, line['id']])
    return true
  })
  return found
}

describe('readJsonLines', () => {
  test('lines that lie across chunks, one of 3 MB, and a last one without its LF', async () => {
    const lines = [
      `{"id":1,"x":"${'a'.repeat(1024 * 1024 - 20)}"}`,
      `{"id":2,"x":"${'ü'.repeat(1_500_000)}"}`,
      '{"id":3}',
    ]
    const bytes = Buffer.from(lines.join('\n'))
    const second = Buffer.byteLength(lines[0] ?? '') + 1
    expect(await read(bytes)).toEqual([
      [0, 1],
      [second, 2],
      [bytes.length - 8, 3],
    ])
    expect(await read(bytes, second)).toHaveLength(2)
  })

  test('a line beyond 64 MB is passed over, and the one after it is read', async () => {
    const huge = Buffer.concat([
      Buffer.from('{"id":1,"x":"'),
      Buffer.alloc(66 * 1024 * 1024, 97),
      Buffer.from('"}\n'),
    ])
    expect(await read(Buffer.concat([huge, Buffer.from('{"id":2}\n')]))).toEqual([[huge.length, 2]])
  })

  test('an empty file and a file of line feeds hold nothing', async () => {
    expect(await read(Buffer.alloc(0))).toEqual([])
    expect(await read(Buffer.from('\n\n\n'))).toEqual([])
  })

  test('it stops when it is told to', async () => {
    const path = join(box.root, 'lines.jsonl')
    await box.write(path, '{"id":1}\n{"id":2}\n')
    let calls = 0
    await readJsonLines(path, { from: 0, to: 18, having: ['id'] }, () => (calls += 1) > 1)
    expect(calls).toBe(1)
  })
})

test('R13: property: no bytes between two answers make measuring throw, go negative or lose an answer', async () => {
  const id = '01a1e08b-0000-7000-8000-00000000000a'
  const claude = join(box.claudeFolder, 's.jsonl')
  const codex = join(box.home, '.codex/sessions/2026/02/09', `rollout-2026-02-09T09-00-00-${id}.jsonl`)
  const answer = (name: string): string =>
    `{"cwd":"${box.worktree}","timestamp":"2026-02-09T09:05:00Z","message":{"id":"${name}","usage":{"input_tokens":7,"output_tokens":1}}}`
  // Bytes and JSON of the right words with values of any kind.
  const value = fc.jsonValue({ maxDepth: 2 })
  const shaped = fc
    .record({
      type: fc.constantFrom('assistant', 'session_meta', 'event_msg', 'token_usage_record'),
      timestamp: value,
      message: fc.oneof(
        value,
        fc.record({
          id: value,
          usage: fc.oneof(
            value,
            fc.record({ input_tokens: fc.constantFrom(null, -5, 'x', Number.MIN_VALUE) }),
          ),
        }),
      ),
      payload: fc.oneof(
        value,
        fc.record({ type: fc.constant('token_count'), info: value, usage: value, cwd: value }),
      ),
    })
    .map((line) => Buffer.from(JSON.stringify(line)))
  const noise = fc.oneof(
    shaped,
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 10))),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(noise, { maxLength: 6 }), async (lines) => {
      const { worktree, env } = box
      const measure = measureUsage({
        worktree,
        env,
        clock: clockAt(turnStartMs),
        loopStarted: '',
        source: 'sessions',
      })
      await rm(claude, { force: true })
      await rm(codex, { force: true })
      await measure.before('command')
      const junk = Buffer.concat(lines.map((line) => Buffer.concat([line, Buffer.from('\n')])))
      await box.write(
        claude,
        Buffer.concat([Buffer.from(`${answer('a')}\n`), junk, Buffer.from(`${answer('b')}\n`)]),
      )
      await box.write(codex, junk)
      const measured = await measure.after('command', undefined, undefined)
      expect(measured.estimated).toBe(false)
      expect(measured.input_tokens).toBe(14)
      expect(measured.output_tokens).toBe(2)
    }),
    { numRuns: 150, verbose: true },
  )
})
