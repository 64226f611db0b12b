// How much of an agent's talk is handed on: all of it while somebody can read it, pieces of a flood.
import { describe, expect, it } from 'vitest'
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
