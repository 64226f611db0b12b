// The merge queue's screen as data: its table at two sizes, the way to a loop and back, and how it ends.
import { describe, expect, test } from 'vitest'
import type { QueueReport } from '../../../src/ui/app.ts'
import { plain } from '../../../src/ui/io.ts'
import { queueBoard } from '../../../src/ui/print/queue.ts'
import { Sink } from '../fake-app.ts'
import { Player } from './played.ts'

type Row = QueueReport['entries'][number]

const row = (change: string, more: Partial<Row>): Row => ({
  change,
  state: 'waiting',
  why: '',
  after: [],
  stories_done: 0,
  stories_total: 0,
  cost_usd: 0,
  branch: `ralph/${change}`,
  target: 'main',
  candidate: '',
  landed: '',
  warnings: [],
  attempt: 0,
  started_at: '',
  worked_ms: 0,
  ...more,
})

const hash = '1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d'
const ran = {
  stories_total: 3,
  started_at: '2026-02-09T12:00:00+01:00',
  worked_ms: 240_000,
  // The time between is not its own: it was parked.
  working_since: '2026-02-09T13:59:16+01:00',
}
const report: QueueReport = {
  target: 'main',
  target_commit: hash,
  landed_commit: `2${hash.slice(1)}`,
  take: 'ralph queue pull',
  alive: true,
  max_cost_usd: 40,
  entries: [
    row('add-login', { ...ran, state: 'landed', stories_done: 3, cost_usd: 1.2, landed: hash }),
    row('add-export', { ...ran, state: 'running', stories_done: 1, attempt: 2, cost_usd: 0.85 }),
    row('add-greeting', {
      ...ran,
      state: 'running',
      attempt: 1,
      waiting_for: 'limit',
      waiting_until: '2026-02-09T15:30:00+01:00',
    }),
    row('fix-dates', {
      ...ran,
      state: 'parked',
      stories_done: 2,
      why: '`npm test` fails after the merge: expected 3 to be 4 in test/dates.test.ts, line 12',
      hint: 'Its output: .git/ralph/queue/logs/fix-dates.log. Fix it on ralph/fix-dates, then: ralph queue retry fix-dates',
    }),
    row('polish-cli', { why: 'waits for fix-dates, which is parked', after: ['fix-dates'] }),
  ],
}

function own(size = { columns: 80, rows: 24 }): Player {
  const player = new Player({ at: 'queue' }, size)
  return player.hear({ type: 'loaded', loaded: { what: 'queue', report } })
}

describe('the queue on its screen', () => {
  test.each([
    [60, 20],
    [80, 24],
    [140, 45],
  ] as const)(
    'at %i x %i: each change with its state, what it took, and why it waits',
    async (columns, rows) => {
      const file = `./golden/queue-${String(columns)}x${String(rows)}.txt`
      await expect(own({ columns, rows }).type('\u001B[B\u001B[B\u001B[B').text()).toMatchFileSnapshot(file)
    },
  )

  test.each([60, 64, 70, 76, 80, 90])(
    'F13: at %i columns no command that is to be copied is broken',
    (columns) => {
      const hints = [
        'Its output: .git/ralph/queue/logs/add-two-factor.log. Fix it on ralph/add-two-factor, then: ralph queue retry add-two-factor',
        'Bring it back: git branch ralph/add-two-factor refs/ralph/a/checkpoint; then: ralph queue retry add-two-factor',
      ]
      for (const hint of hints) {
        const entries = [row('add-two-factor', { ...ran, state: 'parked', why: 'it fails', hint })]
        const loaded = { what: 'queue', report: { ...report, entries } } as const
        const text = new Player({ at: 'queue' }, { columns, rows: 24 })
          .hear({ type: 'loaded', loaded })
          .text()
        expect(text).toContain('ralph queue retry add-two-factor')
        if (hint.startsWith('Bring'))
          expect(text).toContain('git branch ralph/add-two-factor refs/ralph/a/checkpoint')
      }
    },
  )

  test.each([60, 80])(
    'F13: at %i columns lines to type give way to the command that prints them, in one piece',
    (columns) => {
      const hint = `Edit a.txt. Then type these lines:\n  cd /${'long/'.repeat(20)}\n  git grep -n x\n  ralph queue retry a`
      const entries = [row('add-two-factor', { ...ran, state: 'parked', why: 'it fails', hint })]
      const loaded = { what: 'queue', report: { ...report, entries } } as const
      const text = new Player({ at: 'queue' }, { columns, rows: 24 }).hear({ type: 'loaded', loaded }).text()
      expect(text).toContain('What to type: ralph status add-two-factor')
      expect(text).not.toMatch(/long\/|git grep/)
    },
  )

  test('F10: while the gates of a landing run, its state and the counts say testing', () => {
    const entries = [row('add-login', { ...ran, state: 'gating' })]
    const loaded = { what: 'queue', report: { ...report, entries } } as const
    const text = new Player({ at: 'queue' }).hear({ type: 'loaded', loaded }).text()
    expect([text.match(/testing/g)?.length, /gating|landing/.test(text)]).toEqual([2, false])
  })

  test('it looks again by itself, every second', () => {
    const player = own()
    player.asked()
    expect(player.later(2).asked()).toEqual([{ do: 'load', load: { what: 'queue' } }])
    expect(player.later(2).asked()).toEqual([])
  })

  test('Enter joins the loop of a change, Esc, q and d lead back; one that never ran is not joined', () => {
    const player = own().type('\u001B[B')
    player.asked()
    expect(player.type('\r').asked()).toEqual([{ do: 'follow', change: 'add-export' }])
    expect(player.model.at).toBe('loop')
    expect(player.lines().at(-1)).toContain('q quit · esc back · p pause')
    expect(player.type('\u001B').asked()).toContainEqual({ do: 'unfollow' })
    expect([player.model.at, player.text().includes('› ▸ add-export')]).toEqual(['queue', true])
    player.type('\u001B[F')
    player.asked()
    expect([player.type('\r').asked(), player.model.at]).toEqual([[], 'queue'])
    expect(player.text()).not.toContain('enter')
  })

  test('26: Enter on a change whose loop has just begun joins it, and waits for its first word', () => {
    const loaded = {
      what: 'queue',
      report: { ...report, entries: [row('add-login', { state: 'running' })] },
    } as const
    const player = new Player({ at: 'queue' }).hear({ type: 'loaded', loaded })
    player.asked()
    expect(player.type('\r').asked()).toEqual([{ do: 'follow', change: 'add-login' }])
    expect(player.model.at).toBe('loop')
  })

  test('q stops the ralph up of this process as Ctrl-C would; one that is only looked at goes on', () => {
    const player = own()
    player.asked()
    expect(player.type('q').asked()).toEqual([{ do: 'quit', exitCode: 130, words: [] }])
    const looked = new Player({ at: 'select', queue: report }, { columns: 80, rows: 24 })
    expect(looked.model.at).toBe('queue')
    looked.asked()
    expect(looked.type('q').asked()).toEqual([{ do: 'quit', exitCode: 0, words: [] }])
  })

  test('when nothing is left to do it closes; whoever looks at a loop is told, and leaves with Esc', () => {
    const player = own()
    player.asked()
    expect(player.hear({ type: 'queue_over' }).asked()).toEqual([{ do: 'quit', exitCode: 0, words: [] }])
    const inLoop = own().type('\r')
    inLoop.asked()
    expect(inLoop.hear({ type: 'queue_over' }).asked()).toEqual([])
    expect(inLoop.text()).toContain('nothing left to do')
    expect(inLoop.type('\u001B').asked()).toEqual([{ do: 'quit', exitCode: 0, words: [] }])
  })

  test('from the list: u opens it where there is one, Esc goes back; one that is at work is there at once', () => {
    const player = new Player({ at: 'select' }, { columns: 80, rows: 24 })
    const list = { changes: [] }
    // B10: before the first look nobody knows that there is none.
    const early = new Player({ at: 'select', list }, { columns: 80, rows: 24 })
    expect(early.type('u').model.at).toBe('queue')
    player.hear({ type: 'loaded', loaded: { what: 'changes', list, reports: [] } })
    expect([player.text().includes('u queue'), player.type('u').model.at]).toEqual([false, 'select'])
    expect(player.text()).toContain('There is no merge queue here')
    player.later(10)
    player.hear({ type: 'loaded', loaded: { what: 'changes', list, reports: [], queue: report } })
    expect([player.text().includes('u queue'), player.type('u').model.at]).toEqual([true, 'queue'])
    expect(player.type('\u001B').model.at).toBe('select')
  })

  test('a queue that cannot be read says so, and what to do', () => {
    const act = { do: 'load', load: { what: 'queue' } } as const
    const player = own().hear({
      type: 'failed',
      act,
      message: 'Line 3 cannot be read.',
      hint: 'mv it',
      exitCode: 1,
    })
    expect(player.text()).toMatch(/! Line 3 cannot be read\..*mv it/)
  })
})

test('B16: Enter pressed below the live table leaves no line of it behind', async () => {
  const out = Object.assign(new Sink(), { isTTY: true, columns: 80, rows: 24 })
  const board = queueBoard(
    out,
    plain,
    () => Promise.resolve(report),
    () => 0,
    () => (out.text === '' ? 0 : 2),
  )
  await board.close()
  const rows = out.text.split('\n').length - 1
  expect(out.text.endsWith(`\n\r\u001B[${String(rows + 2)}A\u001B[J`)).toBe(true)
})
