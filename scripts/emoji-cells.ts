// Emoji in two cells, as terminals of today draw them: xterm's own table is that of Unicode 6, which had them in one.
import type { IUnicodeVersionProvider, Terminal } from '@xterm/headless'

interface Inside {
  readonly _core: { readonly unicodeService: { readonly _activeProvider: IUnicodeVersionProvider } }
}

export function withEmoji(terminal: Terminal): Terminal {
  const { _activeProvider: old } = (terminal as unknown as Inside)._core.unicodeService
  const isEmoji = (code: number): boolean => /^\p{Emoji_Presentation}$/u.test(String.fromCodePoint(code))
  terminal.unicode.register({
    version: 'emoji',
    wcwidth: (code) => (isEmoji(code) ? 2 : old.wcwidth(code)),
    // Its width stands in the second and the third bit.
    charProperties: (code, before) => (isEmoji(code) ? 2 << 1 : old.charProperties(code, before)),
  })
  terminal.unicode.activeVersion = 'emoji'
  return terminal
}
