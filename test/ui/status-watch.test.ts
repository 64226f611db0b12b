// `ralph status --watch` on terminals of every size: redrawn in place, never scrolled while the loop lives.
import xterm from '@xterm/headless'
import { expect, it } from 'vitest'
import type { StatusReport } from '../../src/ui/app.ts'
import { status } from './events.ts'
import { ralph } from './fake-app.ts'

const erase = /\u001B\[(\d+)A\r\u001B\[J/

it.concurrent.each([
  ['tiny', 20, 5],
  ['flat', 30, 2],
  ['narrow', 9, 40],
  ['usual', 100, 30],
])('in a %s terminal (%i x %i) each picture takes the place of the last', async (_name, columns, rows) => {
  const answers = [10, 2000, 300_000].map((total_tokens): StatusReport => ({ ...status, total_tokens }))
  const last = { ...status, alive: false, status: 'stopped' as const }
  const { out } = await ralph(['status', '--watch'], {
    answers: { status: () => Promise.resolve([answers.shift() ?? last]) },
    terminal: true,
    size: { columns, rows },
    env: { FORCE_COLOR: '1' },
  })
  const final = out.search(new RegExp(`${erase.source}(?![\\s\\S]*${erase.source})`))
  const terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, convertEol: true })
  await new Promise<void>((done) => terminal.write(out.slice(0, final), done))

  const { active: screen } = terminal.buffer
  expect([screen.baseY, screen.length]).toEqual([0, rows])
  const lines = Array.from({ length: rows }, (_, row) => screen.getLine(row)?.translateToString(true) ?? '')
  const title = lines.filter((line) => line.startsWith(status.change_id.slice(0, columns - 2)))
  expect(title).toHaveLength(1)
  if (rows > 6 && columns > 20) expect(lines.join('\n')).toContain('300.0k')
  // The last word is for the scrollback: whole.
  expect(out.slice(final)).toContain(`ralph resume ${status.change_id}`)
})

it('in a pipe a second that has passed is no news: it is written again when something has changed', async () => {
  const answers = [1, 2, 3, 4].map((second): StatusReport => {
    const updated_at = `2026-02-09T14:00:0${second}+01:00`
    return { ...status, total_tokens: second < 4 ? 10 : 300_000, updated_at }
  })
  const last = { ...status, alive: false, status: 'stopped' as const }
  const { out } = await ralph(['status', '--watch'], {
    answers: { status: () => Promise.resolve([answers.shift() ?? last]) },
  })
  expect(out.match(new RegExp(`^${status.change_id} `, 'gm'))).toHaveLength(3)
})

it('on a terminal it waits for the first loop to begin; in a pipe there is nothing to wait for', async () => {
  const last = { ...status, alive: false, status: 'stopped' as const }
  const looks: (readonly StatusReport[])[] = [[], [status]]
  const answers = { status: () => Promise.resolve(looks.shift() ?? [last]) }
  const { out } = await ralph(['status', '--watch'], { answers, terminal: true })
  expect(out).toContain('No loop has run in this repository yet')
  expect(out).toContain(`ralph resume ${status.change_id}`)
  const piped = await ralph(['status', '--watch'], { answers: { status: () => Promise.resolve([]) } })
  expect([piped.code, piped.out]).toEqual([0, expect.stringContaining('No loop has run') as string])
})
