// The one component: rows of a view on a terminal, as Ink draws them.
import { createElement } from 'react'
import { render } from 'ink-testing-library'
import { expect, test } from 'vitest'
import { drawn } from '../../../src/ui/tui/draw.ts'
import { Screen } from '../../../src/ui/tui/start.tsx'
import { view } from '../../../src/ui/tui/view-model.ts'
import { halfWay, playing } from './played.ts'

const plain = { isColour: false, isAscii: false }

test('a row for each line of the view, the empty ones too', () => {
  const { lastFrame, unmount } = render(createElement(Screen, { rows: ['one', '', '日本語 ✅', 'four'] }))
  expect(
    lastFrame()
      ?.split('\n')
      .map((row) => row.trimEnd()),
  ).toEqual(['one', '', '日本語 ✅', 'four'])
  unmount()
})

test('a picture is what the view says, and the next one replaces it', () => {
  const player = playing(halfWay, { columns: 100, rows: 24 })
  const picture = () => createElement(Screen, { rows: drawn(view(player.model), plain) })
  const { lastFrame, rerender, unmount } = render(picture())
  const unstyled = (): string => (lastFrame() ?? '').replaceAll(/\u001B\[\d+m/g, '')
  expect(
    unstyled()
      .split('\n')
      .map((row) => row.trimEnd()),
  ).toEqual(player.lines())
  player.type('\t')
  rerender(picture())
  expect(unstyled()).toContain('[Tasks]')
  unmount()
})

test('NO_COLOR leaves no colour; ASCII keeps every cell in its place', () => {
  const player = playing(halfWay, { columns: 100, rows: 24 })
  const shown = view(player.model)
  const colourless = drawn(shown, plain).join('\n')
  expect(colourless).not.toMatch(/\u001B\[3\dm/)
  expect(drawn(shown, { isColour: true, isAscii: false }).join('\n')).toContain('\u001B[36m')
  const ascii = drawn(shown, { isColour: false, isAscii: true }).map((row) =>
    row.replaceAll(/\u001B\[\d+m/g, ''),
  )
  expect(ascii.join('')).toMatch(/^[ -~]*$/)
  expect(ascii.map((row) => row.trimEnd().length)).toEqual(player.lines().map((row) => row.length))
})
