// What is passed over undecoded in a flood must change nothing: the promise found, the echo taken out, the words shown (P2, P3, P5).
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { textParser } from '../../../src/adapters/agents/output.ts'
import { echoFilter } from '../../../src/adapters/agents/echo.ts'
import { quoteMarker } from '../../../src/adapters/agents/quote.ts'
import { agentKind } from '../../../src/adapters/agents/table.ts'
import { startTurn } from '../../../src/adapters/agents/turn.ts'
import { promiseScanner, type PromiseFound } from '../../../src/core/promise.ts'

const done = '<promise>COMPLETE</promise>'
const prompt = `Do story 1.\nSay it at the end.\n${done}\nThat is all.`
const flood = 'All work and no play, été et 日本.\n'.repeat(2000)

const blank = '\n'.repeat(30_000)

describe('P5: a flood of plain words', () => {
  const piece = fc.constantFrom(
    flood,
    flood,
    blank,
    `${'x'.repeat(20_000)}\n`,
    `Fine. ${done}\n`,
    `${done}\n`,
    '<promise>FAILED: x\n',
    '</promise>\n',
    '```\n',
    '<pro\u001b[1mmise>COMPLETE</promise>\n',
    '\u001b[0m\n',
    prompt,
    'Do story 1.\n',
    'word',
    '\n',
  )

  it('P2, P3: gives the promise that its whole text has, wherever it is cut', () => {
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 9 }),
        fc.array(fc.nat(600_000), { maxLength: 12 }),
        (pieces, cuts) => {
          const bytes = Buffer.from(pieces.join(''))
          const { promise } = listen(bytes, cuts)
          expect(promise).toEqual(slowly(bytes.toString('utf8')))
        },
      ),
      { numRuns: 120 },
    )
  })

  it.each([
    ['after it', `${flood}${flood}${done}\n`, 'complete'],
    ['in the middle of a chunk', `${flood}${done}\n${flood}`, 'complete'],
    ['ending a line, and then the flood', `Fine. ${done}\n${flood}`, 'none'],
    ['ending a line, then a word and a flood of blank lines', `Fine. ${done}\nword\n${blank}`, 'none'],
    ['ending a line, then a flood of blank lines', `Fine. ${done}\n${blank}`, 'complete'],
    ['over it, in a reason', `<promise>FAILED: see\n${flood}</promise>\n`, 'failed'],
    ['in a fence that the flood is in too', `\`\`\`\n${flood}${done}\n`, 'none'],
    ['in an echo of the prompt', `${flood}${prompt}\n${flood}`, 'none'],
  ])('a promise %s', (_name, text, expected) => {
    for (const size of [65_536, 20_000, 7]) {
      const bytes = Buffer.from(text)
      const cuts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => i * size)
      const { promise } = listen(bytes, cuts)
      expect(promise.kind).toBe(expected)
      expect(promise).toEqual(slowly(text))
    }
  })

  it('a promise cut by the border of two floods', () => {
    const bytes = Buffer.from(`${flood}${flood}${done}\n${flood}`)
    const at = Buffer.from(flood).length * 2
    for (let inside = 0; inside <= done.length + 1; inside++) {
      const cuts = [Buffer.from(flood).length, at + inside]
      expect(listen(bytes, cuts).promise).toEqual({ kind: 'complete' })
    }
  })

  it('P2: an echo of a prompt that is a flood itself', () => {
    const orders = `Do story 1.\n${flood}${done}`
    for (const before of ['', 'word\n', flood.slice(0, 10_000)]) {
      const bytes = Buffer.from(`${before}${orders}\nDone.\n`)
      for (const cut of [30_000, 50_000, 70_000]) {
        expect(listen(bytes, [cut], orders).promise).toEqual({ kind: 'none' })
      }
    }
  })

  it('shows its last words, and marks what is left out', () => {
    const { said, lastWords } = listen(Buffer.from(`${flood.repeat(20)}the end`), [65_536, 131_072, 200_000])
    // In how many pieces depends on how long the reading took.
    expect(said.join('')).toMatch(/… \d+ lines left out\n(All work and no play, été et 日本\.\n)+the end$/)
    expect(said.every((text) => text.length <= 4097 && !text.includes('\ufffd'))).toBe(true)
    expect(lastWords).toBe(`${flood}the end`.slice(-2000))
  })
})

describe('P2: the prompt with other white space', () => {
  const orders = `You are working on one story of the OpenSpec change "demo".

## How to report

- Write ${done} as the last line of your final message, alone on that line.
- If it cannot be done, write <promise>FAILED: reason</promise> there instead, with the reason.

## Story 1. Parser

- [ ] 1.1 Read the file and print what is in it
`
  const words = orders.split(/\s+/).filter((word) => word !== '')
  const blank = fc.constantFrom(' ', '\n', '\n\n', '\t', ' \r\n')
  const refilled = fc
    .array(blank, { minLength: words.length, maxLength: words.length })
    .map((blanks) => words.map((word, i) => word + (blanks[i] ?? '')).join(''))
  const cuts = fc.array(fc.nat(2000), { maxLength: 6 })

  it('promises nothing, however it is filled and cut', () => {
    fc.assert(
      fc.property(refilled, cuts, (echo, places) => {
        expect(listen(Buffer.from(echo), places, orders).promise).toEqual({ kind: 'none' })
      }),
    )
  })

  it('takes nothing from a promise after it', () => {
    fc.assert(
      fc.property(
        refilled,
        cuts,
        fc.constantFrom('', 'Done.\n', 'I wrote it as asked:\n'),
        (echo, places, words) => {
          const bytes = Buffer.from(`${echo}\n${words}${done}\n`)
          expect(listen(bytes, places, orders).promise).toEqual({ kind: 'complete' })
        },
      ),
    )
  })

  it.each(['', 'x\n', 'Write\n', 'All 1.1 done.\n', 'I read the file and print what is in it.\n'])(
    'takes nothing from a promise after the few words "%s"',
    (before) => {
      for (const cut of [0, 3, before.length + 12, before.length + done.length - 1])
        expect(listen(Buffer.from(`${before}${done}`), [cut], orders).promise).toEqual({ kind: 'complete' })
    },
  )
})

describe('P5: lines that are left out', () => {
  it.each([[[]], [[400]], [[400, 4000]], [[10, 4000, 8000]]])(
    'are counted, each once, whoever leaves them out (cut after lines %j)',
    (cuts: readonly number[]) => {
      const lines = Array.from({ length: 20_000 }, (_, at) => `line ${String(at + 1).padStart(5, '0')}\n`)
      const bytes = cuts.map((line) => lines.slice(0, line).join('').length)
      const { said } = listen(Buffer.from(lines.join('')), bytes)
      const told = said.join('').split('\n')
      const gaps = told.map((line) => Number(/^… (\d+) lines? left out$/.exec(line)?.[1] ?? 0))
      const shown = told.filter((line) => line.startsWith('line '))
      expect(shown.at(-1)).toBe('line 20000')
      expect(shown.length + gaps.reduce((sum, gap) => sum + gap, 0)).toBe(20_000)
    },
  )
})

function listen(
  bytes: Buffer,
  cuts: readonly number[],
  orders = prompt,
): { promise: PromiseFound; said: string[]; lastWords: string } {
  const kind = agentKind('command')
  if (kind === undefined) throw new Error('no command agent')
  const said: string[] = []
  const turn = startTurn(
    kind,
    (signal) => {
      if (signal.type === 'message') said.push(signal.text)
    },
    () => false,
  )
  const parser = textParser(orders, turn)
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  let from = 0
  for (const place of places) {
    // As the process module does: the memory of a chunk is used for the next one.
    const lent = Buffer.from(bytes.subarray(from, place))
    if (lent.length > 0) parser.feed(lent)
    lent.fill('!')
    from = place
  }
  parser.end()
  const { promise, last_words } = turn.end({ exitCode: 0, leftBehind: 0, survivors: [] }, '', 0)
  return { promise, said, lastWords: last_words }
}

/** Line by line, without any shortcut. */
function slowly(text: string): PromiseFound {
  const filter = echoFilter(prompt)
  const scanner = promiseScanner()
  const marked = quoteMarker(prompt).feed(filter.feed(text) + filter.end())
  for (const line of marked.split(/(?<=\n)/)) scanner.feed(line)
  return scanner.end()
}
