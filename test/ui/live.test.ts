// The live line in any width, texts from anywhere, and the question of a manual loop.
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { humanAt } from '../../src/ui/print/choice.ts'
import { applyLive, idleLive, liveText } from '../../src/ui/print/live.ts'
import { clean, clip, duration, oneLine, tokens, usd, widthOf } from '../../src/ui/print/text.ts'
import { event, script } from './events.ts'
import { Sink } from './fake-app.ts'

describe('live line', () => {
  it('property: is never as wide as the terminal, whatever titles and tools are called', () => {
    const text = fc.string({ unit: 'binary', maxLength: 200 })
    fc.assert(
      fc.property(text, text, fc.integer({ min: 20, max: 300 }), (title, input, columns) => {
        let live = applyLive(
          idleLive,
          event({ type: 'story.started', story_id: '1', title, index: 1, total: 2, completed: 0 }),
          0,
        )
        for (const each of script.slice(3, 6)) live = applyLive(live, each, 0)
        live = applyLive(live, event({ type: 'agent.tool', n: 1, name: '編集', input }), 0)
        const shown = liveText(live, { frame: 3, nowMs: 61_000, columns })
        expect(widthOf(shown)).toBeLessThan(columns)
        expect(shown).not.toMatch(/[\u0000-\u001F\u007F-\u009F]/)
      }),
    )
  })

  it('F18: shows tokens and cost of the run while an agent works, without a denominator that moves (B15)', () => {
    const usage = { input_tokens: 900, output_tokens: 100, cache_read_tokens: 0, cache_creation_tokens: 0 }
    const shown = [
      ...script.slice(0, 4),
      event({ type: 'agent.usage', n: 1, ...usage, source: 'stream' as const }),
      event({ type: 'agent.usage', n: 1, ...usage, cost_usd: 0.5 }),
    ].reduce((live, each) => applyLive(live, each, 0), idleLive)
    expect(liveText(shown, { frame: 0, nowMs: 61_000, columns: 100 })).toBe(
      '⠋ 1/2 Model · #1 · 1m 01s · 1.0k tokens · $0.50 · claude',
    )
  })

  it('F22: a wait counts down, and an overloaded service is not called a limit', () => {
    const wait = { type: 'waiting', until: '2026-02-09T17:02:22+01:00', agent: 'claude' } as const
    const until_ms = Date.parse(wait.until)
    const at = (why: 'limit' | 'overloaded', nowMs: number): string =>
      liveText(applyLive(idleLive, event({ ...wait, for: why, until_ms }), 1000), {
        frame: 0,
        nowMs,
        columns: 100,
      })
    expect(at('limit', 1000)).toBe('‖ 2h 59m left · usage limit reached, until 17:02')
    expect(at('limit', 1000 + 3_600_000)).toContain('1h 59m left')
    expect(at('overloaded', 1000)).not.toContain('limit')
  })

  it('is empty between iterations and at the end', () => {
    let live = idleLive
    const busy = script.map((each) => {
      live = applyLive(live, each, 0)
      return [each.type, live.busy]
    })
    expect(busy.filter(([type]) => type === 'iteration.ended' || type === 'complete')).toEqual([
      ['iteration.ended', false],
      ['iteration.ended', false],
      ['complete', false],
    ])
    expect(liveText(live, { frame: 0, nowMs: 0, columns: 80 })).toBe('')
  })
})

describe('texts', () => {
  it('property: cleaned text holds no control character but tab and line feed', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(clean(text)).not.toMatch(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/)
        expect(oneLine(text)).not.toContain('\n')
      }),
    )
  })

  it.each([
    ['\u001B[31mred\u001B[0m', 'red'],
    ['\u001B]0;title\u0007text', 'text'],
    ['\u001B]8;;http://x\u001B\\link\u001B]8;;\u001B\\', 'link'],
    ['a\u202Eb', 'ab'],
    ['one\r\ntwo', 'one\ntwo'],
  ])('%j is cleaned to %j', (raw, cleaned) => {
    expect(clean(raw)).toBe(cleaned)
  })

  it('counts wide and combining characters as a terminal does', () => {
    expect([widthOf('日本'), widthOf('e\u0301'), widthOf('abc')]).toEqual([4, 1, 3])
    expect(clip('日本語', 5)).toBe('日本…')
  })

  it('clips to the longest start that leaves room for the ellipsis, and only what is too wide', () => {
    const text = fc.array(fc.constantFrom('a', ' ', 'é', 'e\u0301', '日', '😀', '\u200B'), { maxLength: 12 })
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 14 }), (chars, width) => {
        const whole = chars.join('')
        const starts = Array.from(whole, (_, n) => Array.from(whole).slice(0, n).join(''))
        const longest = [...starts, whole].findLast((start) => widthOf(start) < width) ?? ''
        expect(clip(whole, width)).toBe(widthOf(whole) <= width ? whole : `${longest.trimEnd()}…`)
      }),
      { numRuns: 1000 },
    )
  })

  it.each([
    [duration(950), '950 ms'],
    [duration(12_340), '12.3 s'],
    [duration(59_990), '1m 00s'],
    [duration(3_599_990), '1h 00m'],
    [tokens(999_949), '999.9k'],
    [tokens(999_950), '1.00M'],
    [usd(0), '$0.00'],
    [usd(0.001), '<$0.01'],
  ])('%s is %s', (made, wanted) => {
    expect(made).toBe(wanted)
  })
})

describe('is a manual loop done?', () => {
  const asked = (typed: string, stop = new AbortController().signal) => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    const stdout = new Sink()
    stdout.isTTY = true
    stdin.end(typed)
    return humanAt({ stdin, stdout, env: {}, isQuiet: false, before: () => undefined }).isDone(
      'Add a login',
      stop,
    )
  }

  it.each([
    ['y\n', 'done'],
    ['YES\n', 'done'],
    ['n\n', 'go_on'],
    ['\n', 'later'],
    ['perhaps\nno\n', 'go_on'],
    ['', 'later'],
  ])('U1: %j means %s; only a yes is done', async (typed, answer) => {
    expect(await asked(typed)).toBe(answer)
  })

  it('F13: no line of the question is wider than the terminal', async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    const stdout = Object.assign(new Sink(), { isTTY: true, columns: 60 })
    stdin.end('l\n')
    const options = { stdin, stdout, env: { NO_COLOR: '1' }, isQuiet: false, before: () => undefined }
    await humanAt(options).isDone('Add a login', new AbortController().signal)
    expect(stdout.text).toContain('l  later     stop here; then `ralph done`')
    expect(stdout.text.split('\n').filter((line) => line.length > 60)).toEqual([])
  })

  it('a stop answers for the person: later', async () => {
    expect(await asked('y\n', AbortSignal.abort())).toBe('later')
  })
})
