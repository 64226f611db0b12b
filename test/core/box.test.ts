// One box: read as OpenSpec reads it, flipped without touching a byte around it.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readBox, setBox, setBoxes } from '../../src/core/box.ts'

/** OpenSpec 1.13.2's own pattern, against which the linear reader is checked. */
const openspecPattern = /^\s*(?:[-*+]|\d{1,9}[.)])\s*\[(?:\s*([^\]\s]?)\s*\](?![([])|\s+\])\s*(.*)/
const piece = fc.constantFrom(
  '-',
  '*',
  '+',
  '1.',
  '12)',
  '[',
  ']',
  ' ',
  '\t',
  'x',
  'X',
  '~',
  '(',
  'a',
  '\r',
  '\uFEFF',
  '\u00A0',
  '\u2028',
  '😀',
  '界',
)
const flip = (line: string, done: boolean): string => Buffer.from(setBox(Buffer.from(line), done)).toString()

describe('readBox', () => {
  test('P11: reads every line as the pattern of OpenSpec does', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const line = pieces.join('')
        const theirs = openspecPattern.exec(line)
        const ours = readBox(line)
        expect(ours === undefined).toBe(theirs === null)
        expect(ours?.mark).toBe(theirs === null ? undefined : (theirs[1] ?? ''))
        expect(ours?.text).toBe(theirs?.[2]?.trim())
      }),
      { numRuns: 5000 },
    )
  })

  test('P11: a bracket followed by a megabyte of blanks is read in linear time', () => {
    // OpenSpec's own pattern takes quadratic time here: this test would not end.
    expect(readBox(`- [${' '.repeat(1_000_000)}`)).toBeUndefined()
  })
})

describe('setBox', () => {
  test.each([
    ['- [ ] a', '- [x] a'],
    ['- [] a', '- [x] a'],
    ['- [~] a', '- [x] a'],
    ['- [   ] a', '- [ x ] a'],
    ['\t1) [ ] a  \r', '\t1) [x] a  \r'],
    ['- [ ](odd) a', '- [x] (odd) a'],
    ['- [ ][ref] a', '- [x] [ref] a'],
    ['- [X] a', '- [X] a'],
    ['\uFEFF- [ ] a', '\uFEFF- [x] a'],
  ])('P11: ticking %j gives %j', (before, after) => {
    expect(flip(before, true)).toBe(after)
  })

  test('P11: ticking and unticking gives back every byte, for any box of one blank', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), fc.string(), (pieces, tail) => {
        const line = `- [ ] ${pieces.join('')}${tail.replaceAll('\n', '')}`
        expect(flip(flip(line, true), false)).toBe(line)
      }),
    )
  })

  test('P11: bytes that are no UTF-8 stay as they are', () => {
    const line = Buffer.from([0x2d, 0x20, 0x5b, 0x20, 0x5d, 0x20, 0xff, 0xfe, 0x80])
    const ticked = Buffer.from(line)
    ticked[3] = 0x78
    expect(Buffer.from(setBox(line, true))).toEqual(ticked)
  })

  test('P11: only the named lines of a file are flipped', () => {
    const file = Buffer.from('- [ ] a\r\n- [ ] b\n- [ ] c')
    expect(Buffer.from(setBoxes(file, new Set([2]), true)).toString()).toBe('- [ ] a\r\n- [x] b\n- [ ] c')
  })

  test('a line without a box is refused', () => {
    expect(() => flip('- [A](https://example.com)', true)).toThrow('holds no box')
  })
})
