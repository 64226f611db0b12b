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
    expect(told.at(-1)?.startsWith('…')).toBe(true)
    expect(told.at(-1)?.endsWith('message 49999\nmessage 50000\n')).toBe(true)
  })
})
