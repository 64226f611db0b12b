// The vocabulary: one symbol, one word and one colour per meaning, and ASCII where the locale has no more.
import { describe, expect, it } from 'vitest'
import { paintFor } from '../../src/ui/io.ts'
import {
  inColourOf,
  isUtf8,
  legible,
  mark,
  statusMeaning,
  statusWord,
  storyMeanings,
  symbolOf,
  verdictMeaning,
  verdictWord,
  waitWords,
} from '../../src/ui/vocabulary.ts'
import { Sink } from './fake-app.ts'

const plain = paintFor(new Sink(), { NO_COLOR: '1' })
const coloured = paintFor(new Sink(), { FORCE_COLOR: '1' })

describe('vocabulary', () => {
  it('a symbol stands for one meaning in one colour, and reads the same without colour', () => {
    expect(mark('done', plain)).toBe('✓')
    expect(mark('done', coloured)).toBe('\u001B[32m✓\u001B[39m')
    expect(inColourOf('undone', 'undone', coloured)).toBe('\u001B[33mundone\u001B[39m')
    expect(mark(verdictMeaning('gate_failed'), plain)).toBe('✕')
    expect(mark(statusMeaning('stopped'), plain)).toBe('‖')
    expect(mark(storyMeanings.human, plain)).toBe('!')
  })

  it('F27: words that users know', () => {
    expect(verdictWord('interrupted', plain)).toBe('stopped')
    expect(verdictWord('none', plain)).toBe('did not report')
    expect(statusWord('', plain)).toBe('not started')
  })

  it('F22: an overloaded service is not called a limit', () => {
    expect(verdictWord('limit', plain)).not.toContain('limit')
    expect(waitWords.overloaded).not.toContain('limit')
  })

  it.each([
    [{ LANG: 'C' }, '+ x > . < = ! -> ...'],
    [{ LANG: 'en_GB.UTF-8', LC_ALL: 'POSIX' }, '+ x > . < = ! -> ...'],
    [{ LANG: 'en_US.ISO-8859-1' }, '+ x > . < = ! -> ...'],
    [{ LANG: 'en_GB.UTF-8', TERM: 'linux' }, '+ x > . < = ! -> ...'],
    [{ LANG: 'C.utf8' }, '✓ ✕ ▸ ○ ↺ ‖ ! → …'],
    [{ LC_CTYPE: 'de_DE.UTF-8', LANG: 'C' }, '✓ ✕ ▸ ○ ↺ ‖ ! → …'],
    [{}, '✓ ✕ ▸ ○ ↺ ‖ ! → …'],
  ])('ASCII where the locale is not UTF-8: %j shows %s', (env, shown) => {
    const all = (['done', 'failed', 'working', 'open', 'undone', 'waiting', 'human'] as const).map(symbolOf)
    expect(legible([...all, '→', '…'].join(' '), env)).toBe(shown)
    expect(isUtf8(env)).toBe(shown.includes('✓'))
  })
})
