// How much of an agent's talk is handed on: all of it while somebody can read it, pieces of a flood.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { talk } from '../../../src/adapters/agents/talk.ts'

describe('P5: whole messages', () => {
  it('each is told as it is, until there are too many; then they come together, the last one too', () => {
    const told: string[] = []
    const words = talk((text) => told.push(text))
    for (let n = 1; n <= 50_000; n++) words.say(`message ${n}`)
    words.flush()
    expect(told.slice(0, 3)).toEqual(['message 1', 'message 2', 'message 3'])
    expect(told.length).toBeLessThan(2100)
    const [, left = ''] = /^… (\d+) lines left out\nmessage \d+\n/.exec(told.at(-1) ?? '') ?? []
    const shown = told
      .flatMap((text) => text.trimEnd().split('\n'))
      .filter((line) => line.startsWith('message'))
    const gaps = told.flatMap((text) => /^… (\d+) lines/.exec(text)?.[1] ?? [])
    expect(left).not.toBe('')
    expect(shown.length + gaps.reduce((sum, gap) => sum + Number(gap), 0)).toBe(50_000)
    expect(told.at(-1)?.endsWith('message 49999\nmessage 50000\n')).toBe(true)
  })
})

it('F11: lines that are left out before a line without an end are counted, too', () => {
  const told: string[] = []
  const words = talk((text) => told.push(text))
  words.add('first\n')
  words.add(`${'line\n'.repeat(3000)}${'x'.repeat(9000)}`)
  words.flush()
  expect(told).toEqual(['first\n', `… 3000 lines left out\n…${'x'.repeat(4096)}`])
})

describe('B3: words that come one by one', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  const slowly = (...parts: readonly string[]): { told: string[]; words: ReturnType<typeof talk> } => {
    vi.useFakeTimers()
    const told: string[] = []
    const words = talk((text) => told.push(text))
    for (const part of parts) {
      words.add(part)
      vi.advanceTimersByTime(150)
    }
    return { told, words }
  }

  it('are told by whole lines', () => {
    const sentence = 'I will now look at the session store.'
    const parts = sentence.split(/(?<= )/)
    const { told, words } = slowly(...parts, '\nThen', ' I', ' write\n', 'the', ' test')
    expect(told).toEqual([`${sentence}\n`, 'Then I write\n'])
    words.flush()
    expect(told.join('')).toBe(`${sentence}\nThen I write\nthe test`)
  })

  it('are told without a line end after a pause', () => {
    const { told } = slowly('Tabs', ' or', ' spaces? ')
    expect(told).toEqual([])
    vi.advanceTimersByTime(2000)
    expect(told).toEqual(['Tabs or spaces? '])
  })

  it('are told without a line end when the line is long, and nothing is lost', () => {
    const parts = Array.from({ length: 400 }, (_, at) => `word${at} `)
    const { told, words } = slowly(...parts)
    expect(told.length).toBeGreaterThan(1)
    expect(told.length).toBeLessThan(5)
    words.flush()
    expect(told.join('')).toBe(parts.join(''))
  })
})
