// The LF splitter, the bounded tail and the transcript: P5.
import * as fc from 'fast-check'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lineSplitter } from '../../../src/adapters/process/lines.ts'
import { boundedTail } from '../../../src/adapters/process/tail.ts'
import { openTranscript } from '../../../src/adapters/process/transcript.ts'

describe('lines', () => {
  it('P5: bytes cut anywhere give the same lines, with multibyte characters, CRLF and U+2028 whole', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', 'é', '日本', '😀', '\u2028', '\n', '\r\n', '', '{"x":1}'), {
          maxLength: 30,
        }),
        fc.array(fc.nat(200), { maxLength: 10 }),
        (pieces, cuts) => {
          const text = pieces.join('')
          const bytes = Buffer.from(text)
          const places = [
            0,
            ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b),
            bytes.length,
          ]
          const chunks = places.slice(1).map((place, i) => bytes.subarray(places[i], place))
          const expected = text.split('\n').map((line) => line.replace(/\r$/, ''))
          if (text === '' || text.endsWith('\n')) expected.pop()
          expect(split(chunks, 1000).lines).toEqual(expected)
        },
      ),
      { numRuns: 2000 },
    )
  })

  it('P5: invalid UTF-8 breaks no line', () => {
    const { lines } = split([Buffer.from([0x61, 0xff, 0xfe, 0x0a, 0x62, 0x0a])], 100)
    expect(lines).toEqual(['a\ufffd\ufffd', 'b'])
  })

  it('P5: a line beyond the limit is reported by its size, the lines around it come as usual', () => {
    const chunks = ['one\n', 'x'.repeat(60), 'x'.repeat(60), '\ntwo\n', `${'y'.repeat(120)}\nthree`].map(
      (text) => Buffer.from(text),
    )
    expect(split(chunks, 100)).toEqual({ lines: ['one', 'two', 'three'], tooLong: [120, 120] })
  })
})

describe('lines that tell nothing', () => {
  it('P5: are passed over wherever they are cut behind their start, and only they', () => {
    const bytes = Buffer.from('one\n{"u"} long\n\n{"v"}\n{"u"}\ntwo {"u"}\n{"u"} no end')
    for (let cut = 0; cut <= bytes.length; cut++) {
      const lines: string[] = []
      const splitter = lineSplitter(
        100,
        (line) => lines.push(line.toString('utf8')),
        () => undefined,
        (chunk, start) => chunk.subarray(start, start + 4).equals(Buffer.from('{"u"')),
      )
      lend(bytes.subarray(0, cut), splitter)
      lend(bytes.subarray(cut), splitter)
      splitter.end()
      // A start that is cut is not seen; its line is handed out whole.
      expect(lines.filter((line) => !line.startsWith('{"u"'))).toEqual(['one', '', '{"v"}', 'two {"u"}'])
      expect(lines.length).toBeLessThanOrEqual(5)
      for (const line of lines) expect(bytes.toString('utf8').split('\n')).toContain(line)
    }
  })
})

describe('tail', () => {
  it('keeps the last bytes of a flood and never half a character', () => {
    const tail = boundedTail(1000)
    for (let i = 0; i < 5000; i++) lend(Buffer.from('日本語'), tail)
    lend(Buffer.from('the end'), tail)
    expect(tail.text().endsWith('日本語the end')).toBe(true)
    expect(tail.text()).not.toContain('\ufffd')
    expect(Buffer.byteLength(tail.text())).toBeLessThanOrEqual(1000)
  })
})

describe('transcript', () => {
  let dir: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'ralph-transcript-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  it('P5: keeps raw bytes, those of an earlier run too', () => {
    const path = join(dir, 'deep', 'one.log')
    const warnings: string[] = []
    for (const bytes of [Buffer.from([0xff, 0x00]), Buffer.from('two')]) {
      const transcript = openTranscript(path, 100, (message) => warnings.push(message))
      transcript.write(bytes)
      transcript.close()
    }
    expect(readFileSync(path)).toEqual(Buffer.from([0xff, 0x00, 0x74, 0x77, 0x6f]))
    expect(warnings).toEqual([])
  })

  it('stops at its size and says so once', () => {
    const path = join(dir, 'capped.log')
    const warnings: string[] = []
    const transcript = openTranscript(path, 10, (message) => warnings.push(message))
    for (let i = 0; i < 5; i++) transcript.write(Buffer.from('1234'))
    transcript.close()
    expect(readFileSync(path, 'utf8')).toBe('1234123412')
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain('more than 10 bytes')
  })

  it('R14: a place that cannot be written to is a warning, not a crash', () => {
    const warnings: string[] = []
    const transcript = openTranscript('/dev/full', 10, (message) => warnings.push(message))
    transcript.write(Buffer.from('x'))
    transcript.write(Buffer.from('x'))
    transcript.close()
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain('ENOSPC')
  })
})

function split(chunks: readonly Buffer[], maxBytes: number): { lines: string[]; tooLong: number[] } {
  const lines: string[] = []
  const tooLong: number[] = []
  const splitter = lineSplitter(
    maxBytes,
    (line) => lines.push(line.toString('utf8')),
    (bytes) => tooLong.push(bytes),
  )
  for (const chunk of chunks) lend(chunk, splitter)
  splitter.end()
  return { lines, tooLong }
}

/** As the process module does: the memory of a chunk is used for the next one. */
function lend(chunk: Buffer, to: { feed(chunk: Buffer): void }): void {
  const lent = Buffer.from(chunk)
  to.feed(lent)
  lent.fill('!')
}
