// The promise rules of contract 4 and the hazards P1-P5, as tables and properties.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { promiseScanner, type PromiseFound, type PromiseScanner } from '../../src/core/promise.ts'

const complete: PromiseFound = { kind: 'complete' }
const none: PromiseFound = { kind: 'none' }
const failed = (reason: string): PromiseFound => ({ kind: 'failed', reason })
const done = '<promise>COMPLETE</promise>'

describe('what counts', () => {
  const rows: [string, string, PromiseFound][] = [
    ['alone on its line', `Work.\n${done}\nMore words.`, complete],
    ['alone without a final line break', done, complete],
    ['bold', `**${done}**\nBye.`, complete],
    [
      'FAILED whose reason has COMPLETE on a line of its own',
      `<promise>FAILED: asked to end with\n${done}\nbut tests fail</promise>\n`,
      failed(`asked to end with\n${done}\nbut tests fail`),
    ],
    [
      'FAILED whose reason lists COMPLETE',
      `<promise>FAILED: not\n- ${done}\nyet</promise>`,
      failed(`not\n- ${done}\nyet`),
    ],
    [
      'FAILED whose reason mentions a tag',
      '<promise>FAILED: a `<promise>` tag in src</promise>',
      failed('a `<promise>` tag in src'),
    ],
    [
      'FAILED whose reason holds COMPLETE',
      `<promise>FAILED: cannot say ${done} because tests fail</promise>`,
      failed(`cannot say ${done} because tests fail`),
    ],
    [
      'FAILED whose reason holds an end tag',
      '<promise>FAILED: reason with </promise> inside</promise>',
      failed('reason with </promise> inside'),
    ],
    ['COMPLETE, then a FAILED that was cut off', `${done}\n<promise>FAILED: cut off here`, none],
    ['COMPLETE, then a FAILED that was cut off in its first word', `${done}\n<promise>FAI`, none],
    [
      'COMPLETE, then a FAILED over lines that was cut off',
      `${done}\n<promise>FAILED: cut\noff here\n`,
      none,
    ],
    ['COMPLETE, then a cut-off FAILED after prose', `Yes. ${done}\nNo: <promise>FAILED: cut`, none],
    [
      'FAILED, then a FAILED that was cut off',
      `<promise>FAILED: a</promise>\n<promise>FAILED: b`,
      failed('a'),
    ],
    ['COMPLETE, then a COMPLETE that was cut off', `${done}\n<promise>COMPL`, complete],
    ['a FAILED that never ended, then COMPLETE', `<promise>FAILED: hm\nI found it.\n${done}\nBye.`, complete],
    ['in backticks', `\`${done}\`\nBye.`, complete],
    ['in bold backticks after a list dash', `- **\`${done}\`**\nBye.`, complete],
    ['after a list number', `1. ${done}\nBye.`, complete],
    ['indented', `    ${done}\nBye.`, complete],
    ['white space inside', `<promise>  COMPLETE\t</promise>\nBye.`, complete],
    ['white space in the tags', `< promise >COMPLETE< / promise >\nBye.`, complete],
    ['over several lines', `<promise>\nCOMPLETE\n</promise>\nBye.`, complete],
    ['CRLF', `Done.\r\n${done}\r\nBye.\r\n`, complete],
    ['a line redrawn by CR', `Working\r${done}\nBye.`, complete],
    ['terminal colours', `\u001b[32m${done}\u001b[0m\nBye.`, complete],
    ['a colour reset after the last line', `Words.\nAll tests pass. ${done}\n\u001b[0m\n`, complete],
    ['a colour inside the tag', `Words.\nMore.\n<pro\u001b[1mmise>COMPLETE</promise>\nBye.\n`, complete],
    ['at the end of the last line', `All tests pass. ${done}`, complete],
    ['bold at the end of the last line', `All tests pass. **${done}**\n\n  \n`, complete],
    ['after a fence that was closed', `\`\`\`sh\nnpm test\n\`\`\`\n${done}\nBye.`, complete],
    ['after a tilde fence that holds backticks', `~~~\n\`\`\`\n~~~\n${done}\nBye.`, complete],
    ['after a comment that was closed', `<!-- note -->\n${done}\nBye.`, complete],
    ['after a comment over lines', `<!--\nnote\n-->\n${done}\nBye.`, complete],
    ['after a comment that holds a fence', `<!--\n\`\`\`\n-->\n${done}\nBye.`, complete],
    ['after a fence that holds a comment’s begin', `\`\`\`html\n<!--\n\`\`\`\n${done}\nBye.`, complete],
    ['after prose that names a comment’s begin', `I wrote <!-- there.\n${done}\nBye.`, complete],
    ['in a details block', `<details>\n${done}\n</details>`, complete],
    ['a reason with a comment’s begin', `<promise>FAILED: a\n<!-- b</promise>\nBye.`, failed('a\n<!-- b')],
    ['after an inline triple tick', `\`\`\`x\`\`\`\n${done}\nBye.`, complete],
    ['a reason', '<promise>FAILED: the API is gone</promise>\nBye.', failed('the API is gone')],
    ['a reason over lines', '<promise>FAILED: two\nthings\n</promise>\nBye.', failed('two\nthings')],
    ['a reason with a fence', '<promise>FAILED: no\n```\nerr\n```\n</promise>', failed('no\n```\nerr\n```')],
    ['a reason with an open fence', '<promise>FAILED: no\n```\nerr</promise>\nBye.', failed('no\n```\nerr')],
    ['a reason begun after prose', 'I stop. <promise>FAILED: a\nb</promise>\n', failed('a\nb')],
    [
      'a reason that names the tag in a fence',
      `<promise>FAILED: x\n\`\`\`\n${done}\n\`\`\`\n</promise>`,
      failed(`x\n\`\`\`\n${done}\n\`\`\``),
    ],
    ['FAILED without a reason', '<promise>FAILED</promise>', failed('')],
    ['FAILED: reason unknown', '<promise>FAILED: reason unknown</promise>', failed('reason unknown')],
  ]
  it.each(rows)('%s', (_name, text, expected) => expect(scan(text)).toEqual(expected))
})

describe('what does not count', () => {
  const rows: [string, string][] = [
    ['P1: a promise not given yet', `I will not output \`${done}\` yet`],
    ['P1: in the middle of a sentence', `When I say ${done} it is over.\n`],
    ['P1: at the end of a line that is not the last', `I will soon print ${done}\nbut not now.`],
    ['P1: quoted in backticks at the end of a sentence', `I was asked to print \`${done}\``],
    ['in a fence', `\`\`\`\n${done}\n\`\`\``],
    ['in a fence with an info string', `\`\`\`text title\n${done}\n\`\`\`\nBye.`],
    ['in an indented fence of a list', `- \`\`\`\n  ${done}\n  \`\`\``],
    ['in a fence that is never closed', `\`\`\`\n${done}`],
    ['in a longer fence that holds a shorter one', `\`\`\`\`\n\`\`\`\n${done}\n\`\`\`\n\`\`\`\`\n`],
    ['in a comment', `<!-- ${done} -->`],
    ['in a comment over lines', `<!--\n${done}\n-->\nBye.`],
    ['in a comment of a list', `- <!-- later:\n  ${done}\n  -->`],
    ['in a comment that holds a fence', `<!--\n\`\`\`\nx\n\`\`\`\n${done}\n-->`],
    ['in a comment that is never closed', `<!-- draft\n${done}`],
    ['on the line that closes a comment', `<!--\n--> ${done}`],
    ['in a block quote', `> ${done}`],
    ['in quotes at the end', `He said "${done}"`],
    ['another word', '<promise>DONE</promise>'],
    ['lower case', '<promise>complete</promise>'],
    ['never closed', '<promise>COMPLETE'],
    ['P2: the placeholder in braces', '<promise>FAILED: {reason}</promise>'],
    ['P2: the placeholder bare', '<promise>FAILED: reason</promise>'],
    ['P2: the placeholder in angle brackets', '<promise>FAILED: <reason></promise>'],
    ['P2: an ellipsis', '<promise>FAILED: ...</promise>'],
    ['nothing at all', ''],
  ]
  it.each(rows)('%s', (_name, text) => expect(scan(text)).toEqual(none))
})

describe('what contradicts a promise and is none', () => {
  const after = (text: string): [PromiseFound, string] => {
    const scanner = promiseScanner()
    scanner.feed(text)
    return [scanner.end(), scanner.contradiction]
  }
  it.each([
    ['in a sentence', `${done}\nCorrection: <promise>FAILED: red</promise> sorry\n`, 'FAILED: red'],
    ['at the end of a line that is not the last', `${done}\nNo: <promise>FAILED</promise>\nBye.`, 'FAILED'],
    ['lower case', `${done}\n<promise>failed: x</promise>\n`, 'failed: x'],
    ['another word', `Hm.\n${done}\n**<promise>BLOCKED: x</promise>**\nBye.`, 'BLOCKED: x'],
  ])('P3: COMPLETE counts, and it is told: %s', (_name, text, said) =>
    expect(after(text)).toEqual([complete, said]),
  )
  it.each([
    ['before it', `<promise>failed: x</promise>\n${done}\n`],
    ['in backticks', `${done}\nI did not say \`<promise>FAILED: x</promise>\` then.\n`],
    ['in a fence', `${done}\n\`\`\`\n<promise>failed: x</promise>\n\`\`\`\n`],
    ['in a block quote', `${done}\n> Or <promise>FAILED: x</promise> if not\n`],
    ['the placeholder', `${done}\nElse <promise>FAILED: reason</promise> it would be\n`],
    ['COMPLETE once more', `${done}\nSo <promise>COMPLETE</promise> it is\n`],
  ])('P3: nothing is told: %s', (_name, text) => expect(after(text)).toEqual([complete, '']))
})

describe('which one', () => {
  it('P3: COMPLETE, then FAILED: the last', () => {
    expect(scan(`${done}\n<promise>FAILED: tests</promise>\n`)).toEqual(failed('tests'))
  })
  it('P3: FAILED, then COMPLETE: the last', () => {
    expect(scan(`<promise>FAILED: tests</promise>\nFixed.\n${done}`)).toEqual(complete)
  })
  it('P3: an unfinished FAILED does not swallow the COMPLETE after it', () => {
    expect(scan(`I could say <promise>FAILED: but\nno.\n${done}\n`)).toEqual(complete)
  })
  it('P3: a placeholder after a promise leaves it standing', () => {
    expect(scan(`${done}\n<promise>FAILED: {reason}</promise>\n`)).toEqual(complete)
  })
  it('P4: a token in an earlier message than the last counts', () => {
    expect(scan(`Done.\n${done}`, 'I have also updated the notes.')).toEqual(complete)
  })
  it('a token at the end of prose counts in the final message only', () => {
    expect(scan(`Done. ${done}`, 'And now the notes.')).toEqual(none)
    expect(scan(`Done. ${done}`, '  \n')).toEqual(complete)
  })
  it('a fence or a tag left open ends with its message', () => {
    expect(scan('```\nhalf', `${done}\nBye.`)).toEqual(complete)
    expect(scan('<!-- half', `${done}\nBye.`)).toEqual(complete)
    expect(scan('<promise>FAILED: half', 'text</promise>')).toEqual(none)
  })
})

describe('P5: pieces and floods', () => {
  const piece = fc.constantFrom(
    done,
    '<promise>',
    '</promise>',
    'FAILED: x',
    'COMPLETE',
    '\n',
    '\r\n',
    '\r',
    ' ',
    '- ',
    '**',
    '`',
    '```',
    '~~~',
    '<!--',
    '-->',
    'word',
    '> ',
    '\u001b[1m',
    '\u001b]0;title',
    '\u0007',
    'é',
    '\u2028',
  )
  it('a line that ends with CRLF at the end of a piece has one end, not two', () => {
    const scanner = promiseScanner()
    for (const text of ['<promise>FAILED: x\r\n', '- </promise>\n']) scanner.feed(text)
    expect(scanner.end()).toEqual({ kind: 'failed', reason: 'x\n-' })
  })
  it('the way a text is cut changes nothing', () => {
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 25 }),
        fc.array(fc.nat(400), { maxLength: 12 }),
        (pieces, cuts) => {
          const text = pieces.join('')
          const scanner = promiseScanner()
          const places = [
            0,
            ...cuts.map((cut) => cut % (text.length + 1)).toSorted((a, b) => a - b),
            text.length,
          ]
          for (let i = 1; i < places.length; i++) scanner.feed(text.slice(places[i - 1], places[i]))
          expect(scanner.end()).toEqual(scan(text))
        },
      ),
      { numRuns: 3000 },
    )
  })
  it('a promise after a line of 20 MB is found, alone and at its end', () => {
    const block = 'x'.repeat(65_536)
    for (const [tail, expected] of [
      [`\n${done}\n`, complete],
      [` ${done}`, complete],
      [` ${done} not`, none],
    ] as const) {
      const scanner = promiseScanner()
      for (let i = 0; i < 320; i++) scanner.feed(block)
      scanner.feed(tail)
      expect(scanner.end()).toEqual(expected)
    }
  })
  it('a comment that begins or ends in a flood is not missed', () => {
    const flood = 'a line of the flood\n'.repeat(5000)
    for (const [begin, end, expected] of [
      ['<!--\n', '', none],
      ['<!--\n', '-->\n', complete],
    ] as const) {
      const scanner = promiseScanner()
      scanner.feed(`first\n${flood}${begin}${flood}`)
      scanner.feed(`${flood}${end}${flood}`)
      scanner.feed(`${done}\nBye.\n`)
      expect(scanner.end()).toEqual(expected)
    }
  })
  it('a reason of 2 MB is kept up to its limit, and still counts', () => {
    const scanner = promiseScanner()
    scanner.feed('<promise>FAILED: log\n')
    for (let i = 0; i < 20_000; i++) scanner.feed(`${'line '.repeat(20)}\n`)
    scanner.feed('</promise>\n')
    const found = scanner.end()
    expect(found.kind).toBe('failed')
    expect(found.kind === 'failed' && found.reason.length).toBeLessThanOrEqual(16_400)
  })
})

function scan(...messages: string[]): PromiseFound {
  const scanner = promiseScanner()
  for (const message of messages) {
    scanner.feed(message)
    scanner.endMessage()
  }
  return scanner.end()
}

describe('16: what is told by another way than text', () => {
  const rows: [string, (scanner: PromiseScanner) => void, PromiseFound][] = [
    [
      'stands when nothing follows',
      (scanner) => scanner.told({ kind: 'complete', claim: 1 }),
      { kind: 'complete', claim: 1 },
    ],
    [
      'is stronger than what was said before, also in the same message',
      (scanner) => {
        scanner.feed('<promise>FAILED: no')
        scanner.feed('t yet</promise>')
        scanner.told(complete)
      },
      complete,
    ],
    [
      'gives way to what is said after it',
      (scanner) => {
        scanner.told(complete)
        scanner.feed('<promise>FAILED: wrong after all</promise>')
      },
      failed('wrong after all'),
    ],
    [
      'is not touched by talk',
      (scanner) => {
        scanner.told(complete)
        scanner.feed('I am done.\n')
      },
      complete,
    ],
  ]
  it.each(rows)('%s', (_, tell, expected) => {
    const scanner = promiseScanner()
    tell(scanner)
    expect(scanner.end()).toEqual(expected)
  })
})
