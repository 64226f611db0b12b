// A stream that is opened late prints the same as one that was open from the start, whatever is behind it.
import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { lateOutput, type LateOutput } from '../../src/ui/cli/late-output.ts'

function streamFor(fd: number, isShort = true): { late: LateOutput; opened: () => PassThrough | undefined } {
  let stream: PassThrough | undefined
  const late = lateOutput(fd, () => (stream = new PassThrough()), isShort)
  return { late, opened: () => stream }
}

test('what is short goes straight into a file, in order, and the stream is never opened', () => {
  const path = join(mkdtempSync(join(tmpdir(), 'late-')), 'out')
  const fd = openSync(path, 'w')
  const { late, opened } = streamFor(fd)
  late.on('error', () => undefined)
  let isDone = false
  late.write('näher\n')
  late.write(Buffer.from('bytes\n'))
  late.write('', () => (isDone = true))
  closeSync(fd)
  expect(readFileSync(path, 'utf8')).toBe('näher\nbytes\n')
  expect({ isDone, tty: late.isTTY, errored: late.errored, stream: opened() }).toEqual({
    isDone: true,
    tty: undefined,
    errored: null,
    stream: undefined,
  })
})

test('what a pipe does not take at once is for the stream, and so are those who listen to its errors', () => {
  const path = join(mkdtempSync(join(tmpdir(), 'late-')), 'fifo')
  expect(spawnSync('mkfifo', [path]).status).toBe(0)
  // Both ends, and nobody waits: it takes 64 KiB and no more.
  const fd = openSync(path, 'r+')
  const { late, opened } = streamFor(openSync(path, 0o1 | 0o4000))
  const heard: unknown[] = []
  late.on('error', (error) => heard.push(error.message))
  late.write('x'.repeat(100_000))
  const rest = String(opened()?.read() ?? '')
  expect(rest.length).toBeGreaterThan(0)
  expect(rest.length).toBeLessThan(100_000)
  opened()?.emit('error', new Error('gone'))
  expect(heard).toEqual(['gone'])
  closeSync(fd)
})

test('of a loop every word is for the stream: it does not wait for whoever reads', () => {
  const fd = openSync(join(mkdtempSync(join(tmpdir(), 'late-')), 'out'), 'w')
  const { late, opened } = streamFor(fd, false)
  late.on('error', () => undefined)
  expect(opened()).toBeUndefined()
  late.write('a line\n')
  closeSync(fd)
  expect(String(opened()?.read())).toBe('a line\n')
})
