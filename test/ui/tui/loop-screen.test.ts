// The loop screen as data: what it shows of a recorded run at each size, and what its keys do.
import { describe, expect, test } from 'vitest'
import { runReport } from '../../../src/core/report.ts'
import { widthOf } from '../../../src/ui/print/text.ts'
import { textOf } from '../../../src/ui/tui/spans.ts'
import { view } from '../../../src/ui/tui/view-model.ts'
import type { Input } from '../../../src/ui/tui/inputs.ts'
import { initialState } from '../../../src/core/state.ts'
import { outcome } from '../../../src/core/outcome.ts'
import { meaningOf, storiesOf } from '../../../src/ui/tui/loop-model.ts'
import { halfWay, Player, playing, startMs, toldOf, whole } from './played.ts'
import type { At } from './played.ts'

const change = 'add-greeting'
const golden = (name: string): string => `./golden/${name}.txt`

const sizes = [
  [60, 20],
  [80, 24],
  [120, 35],
  [300, 100],
] as const

describe('a run half-way', () => {
  test.each(sizes)('at %i x %i it looks as it should', async (columns, rows) => {
    const player = playing(halfWay, { columns, rows })
    await expect(player.text()).toMatchFileSnapshot(golden(`loop-${String(columns)}x${String(rows)}`))
  })

  test('no line is wider, and no picture as high, as the terminal, in any tab at any size', () => {
    const player = playing(halfWay)
    for (let columns = 40; columns <= 300; columns += 29)
      for (let rows = 10; rows <= 100; rows += 15)
        for (const typed of ['1', '2', '3', '4', '5', '?', '\u001Bn', '\u001B/']) {
          player.hear({ type: 'resize', size: { columns, rows } }).type(typed)
          const { lines } = view(player.model)
          expect(lines).toHaveLength(rows - 1)
          expect(Math.max(...lines.map((line) => widthOf(textOf(line))))).toBeLessThanOrEqual(columns)
          player.type('\u001B')
        }
  })

  test('CJK and emoji, in names and in what the agent says: every frame ends at the edge, at any size', () => {
    const words = '用户登录 ✅ で日本語 👋🏽 한국어 👨‍👩‍👧 é'
    const run = halfWay.map(({ at, body }): At => {
      if (body.type === 'plan.read')
        return { at, body: { ...body, stories: body.stories.map((story) => ({ ...story, title: words })) } }
      if (body.type === 'story.started') return { at, body: { ...body, title: words } }
      if (body.type === 'agent.message')
        return { at, body: { ...body, text: `${words}${words} **${words}**` } }
      return body.type === 'agent.tool' ? { at, body: { ...body, input: `src/${words}.ts` } } : { at, body }
    })
    const player = playing(run)
    for (let columns = 40; columns <= 300; columns += 13)
      for (const typed of ['1', '2', '3', '4', '5', 'n日本語のメモ✅']) {
        player.hear({ type: 'resize', size: { columns, rows: 30 } }).type(typed)
        const lines = player.lines().filter((line) => /^[│╭╰]/.test(line))
        expect(lines.length).toBeGreaterThan(20)
        for (const line of lines) expect([columns, line, widthOf(line)]).toEqual([columns, line, columns])
        player.type('\u001B')
      }
  })

  test('a smaller window says how large it has to be', () => {
    expect(playing(halfWay, { columns: 30, rows: 8 }).text()).toContain('too small')
  })

  test('below 100 columns the stories are one line', () => {
    const row = (columns: number): string => playing(halfWay, { columns, rows: 30 }).lines()[2] ?? ''
    expect(row(99)).toContain('✓ 1 Language table  ✓ 2 Greet by name  ▸ 3 Languages  ○ 4 ')
    expect(row(60)).toContain('✓ 1  ✓ 2  ▸ 3 Languages  ○ 4')
    expect(playing(halfWay, { columns: 100, rows: 30 }).lines()[2]).toContain('Stories')
  })
})

describe('reading', () => {
  const talk = (count: number, from = 0): readonly At[] =>
    Array.from({ length: count }, (_, index) => ({
      at: 432,
      body: { type: 'agent.message', n: 4, text: `line ${String(from + index)}` },
    }))

  test('it follows the end, stops where the user scrolls, and says how many lines are new', () => {
    const run = [...halfWay, ...talk(100)]
    const player = playing(run, { columns: 80, rows: 24 })
    expect(player.text()).toContain('line 99')
    player.type('\u001B[5~')
    expect(player.text()).not.toContain('line 99')
    const seen = player.lines()[6]
    const more = toldOf([...run, ...talk(7, 100)]).slice(-8)
    player.hear({ type: 'told', change, records: more })
    expect(player.lines()[6]).toBe(seen)
    expect(player.text()).toContain('↓ 7 new lines')
    player.type('G')
    expect(player.text()).toContain('line 106')
    expect(player.text()).not.toContain('new line')
  })

  test('who follows the end sees the last lines of all of it, over the border between two attempts too', () => {
    for (const more of [8, 10, 12, 14, 16, 40, 3000]) {
      const player = playing([...halfWay, ...talk(more)], { columns: 80, rows: 24 })
      const followed = player.lines().slice(4, 21)
      // From the middle the whole text is laid out; a line above the end, its upper part is the same but for one.
      player.type('\u001B[A')
      expect(player.lines().slice(5, 21).join('\n')).toBe(followed.slice(0, -1).join('\n'))
    }
  })

  test('the mouse wheel scrolls', () => {
    const player = playing([...halfWay, ...talk(100)], { columns: 80, rows: 24 })
    player.type('\u001B[<64;10;10M')
    expect(player.text()).not.toContain('line 99')
    player.type('\u001B[<65;10;10M')
    expect(player.text()).toContain('line 99')
  })

  test('a flood is bounded, and what is read stays where it is while lines fall out above it', () => {
    const run = [...halfWay, ...talk(1_900)]
    const player = playing(run, { columns: 80, rows: 24 }).type('\u001B[5~')
    const seen = player.lines().slice(5, 20)
    const flood = toldOf([...run, ...talk(1_000, 1_900)]).slice(-1_001)
    player.hear({ type: 'told', change, records: flood })
    expect(player.lines().slice(5, 20)).toEqual(seen)
    const attempt = player.model.loop?.feed.attempts.at(-1)
    expect(attempt?.entries).toHaveLength(2_000)
    expect(attempt?.dropped).toBeGreaterThan(900)
    player.type('G')
    expect(player.text()).toContain('line 2899')
  })

  test('← and → show another story; at the one that is worked on it follows again', () => {
    const player = playing(halfWay).type('\u001B[D')
    expect(player.text()).toContain('› ✓ 2 Greet by name')
    expect(player.text()).toContain('✓ saved 1a2b3c4')
    player.type('\u001B[C')
    expect(player.model.loop?.storyId).toBeUndefined()
    // 26: from two stories away in one key.
    expect(player.type('\u001B[D\u001B[D').model.loop?.storyId).toBe('1')
    expect(player.type('G').model.loop?.storyId).toBeUndefined()
    expect(player.text()).not.toContain('› ✓')
  })

  test('/ finds, Enter closes the field, n and N and Enter go on, other keys are keys again, Esc ends it', () => {
    const player = playing([...halfWay, ...talk(60)], { columns: 80, rows: 24 }).type('/line 1')
    expect(player.text()).toContain('11 of 11')
    player.type('\r')
    expect(player.text()).toContain('/line 1')
    expect(player.text()).toContain('11 of 11')
    player.type('n')
    expect(player.text()).toContain(' 1 of 11')
    expect(player.text()).toMatch(/line 1\s/)
    expect(player.type('\r').text()).toContain(' 2 of 11')
    expect(player.type('N').text()).toContain(' 1 of 11')
    expect(player.type('5').text()).toContain('[Log]')
    expect(player.type('?').text()).toContain('any key')
    player.type(' 1')
    expect(player.type('\u001B').text()).toContain('q quit')
  })

  test('what was found stays in sight while more is said; in another tab it is looked for anew', () => {
    const run = [...halfWay, ...talk(60)]
    const player = playing(run, { columns: 80, rows: 24 }).type('/line 59\r')
    expect(player.text()).toContain('1 of 1 ')
    player.hear({ type: 'told', change, records: toldOf([...run, ...talk(40, 60)]).slice(-41) })
    expect(player.text()).toMatch(/line 59\s/)
    expect(player.text()).toContain('↓ 40 new lines')
    const log = player.type('5').text()
    expect(log).toContain('/line 59')
    expect(log).not.toContain('1 of 1 ')
    expect(player.type('n').text()).toContain('not found')
  })

  test('F11: words that are not found are said to be looked for in a part only, where there is more', () => {
    const flood = { at: 432, body: { type: 'agent.message', n: 4, text: '… 500 lines left out\nline 1\n' } }
    const player = playing([...halfWay, flood as At], { columns: 80, rows: 24 }).type('/zebra')
    expect(player.text()).toContain('/zebra')
    expect(player.text()).toContain('not found here; all of it: ralph logs  esc close')
    expect(playing(halfWay, { columns: 80, rows: 24 }).type('/zebra').text()).toContain(
      'not found  enter done',
    )
  })

  test('every tab has something to say', () => {
    const player = playing(halfWay)
    player.asked()
    expect(player.type('\t').text()).toContain('[Tasks]')
    expect(player.asked()).toContainEqual({ do: 'load', load: { what: 'so_far', change } })
    player.type('\t').hear({
      type: 'loaded',
      loaded: {
        what: 'so_far',
        change,
        now: {
          change_id: change,
          n: 4,
          is_cut: false,
          orphan_pids: [],
          stories: [],
          patch:
            'diff --git a/src/args.ts b/src/args.ts\nindex 1..2 100644\n--- a/src/args.ts\n+++ b/src/args.ts\n@@ -1 +1,2 @@\n one\n+two\n',
        },
      },
    })
    expect(player.text()).toContain('What #4 has changed so far')
    expect(player.text()).toContain('~ src/args.ts  +1')
    // What failed last is read while the next attempt works.
    expect(player.type('\t').text()).toContain('From #3; for #4 the gates have not run yet.')
    expect(player.text()).toContain('✕ npm test (exit 1)')
    expect(player.type('\t').text()).toContain("#3 npm test failed: expected 'hello' to be 'szia'")
    expect(player.type('\t').text()).toContain('[Agent]')
  })

  test('before any gate has run: which will, and when', () => {
    const begun = halfWay.findIndex(({ body }) => body.type === 'gate.started')
    const player = playing(halfWay.slice(0, begun)).type('4')
    expect(player.text()).toContain('The gates run when the agent says that the story is complete:')
    expect(player.text()).toContain('npm test')
  })

  test('while a gate runs the Agent tab says which, and for how long', () => {
    const begun = halfWay.findIndex(({ body }) => body.type === 'gate.started')
    expect(playing(halfWay.slice(0, begun)).text()).not.toContain('⠋ npm test')
    expect(playing(halfWay.slice(0, begun + 1)).text()).toMatch(/│ {3}\S npm test +\d/)
  })

  test('the gates of a story that is done: each with its outcome, and what they printed', () => {
    const player = playing(halfWay).type('4\u001B[D')
    expect(player.asked()).toContainEqual({ do: 'load', load: { what: 'gate_output', change, n: 2 } })
    const output = { change_id: change, n: 2, text: '$ npm test\n  ok 1\n(exit 0, 8 ms)\n', is_cut: false }
    player.hear({ type: 'loaded', loaded: { what: 'gate_output', change, output } })
    expect(player.text()).toContain('✓ npm test')
    expect(player.text()).toContain('    ok 1'.slice(2))
  })
})

describe('what failed is in sight', () => {
  const text = [
    '$ npm test',
    ...Array.from({ length: 60 }, (_, at) => `ok ${String(at)}`),
    ' FAIL  test/greet.test.ts > greets in Hungarian',
    "AssertionError: expected 'hello' to be 'szia'",
    ...Array.from({ length: 60 }, (_, at) => `coverage ${String(at)}`),
    '(exit 1, 8100 ms)',
  ].join('\n')
  const printed = (n: number, more = ''): Input => ({
    type: 'loaded',
    loaded: {
      what: 'gate_output',
      change,
      output: { change_id: change, n, text: `${text}${more}\n`, is_cut: false },
    },
  })

  test('the Gates tab opens at the failing test, not at the end; from there it scrolls', () => {
    const player = playing(halfWay, { columns: 80, rows: 24 }).type('4').hear(printed(3))
    expect(player.text()).toMatch(/│ ok 59 .*\n│  FAIL {2}test\/greet.test.ts > greets in Hungarian/)
    expect(player.text()).toContain('64–80 of 128')
    expect(player.type('\u001B[A').text()).toContain('ok 57')
    expect(player.text()).not.toContain('new line')
    expect(player.type('G').text()).toContain('(exit 1, 8100 ms)')
  })

  test('where the failure is in sight from the beginning, the beginning is shown', () => {
    const player = playing(halfWay, { columns: 80, rows: 100 }).type('4')
    const short = text.replaceAll(/ok \d+\n/g, '')
    player.hear({
      type: 'loaded',
      loaded: {
        what: 'gate_output',
        change,
        output: { change_id: change, n: 3, text: short, is_cut: false },
      },
    })
    expect(player.hear({ type: 'resize', size: { columns: 80, rows: 24 } }).text()).toContain('From #3')
    expect(player.text()).toContain('greets in Hungarian')
  })

  test('the gates of the next attempt are followed while they run, also by who has read those of the last', () => {
    const player = playing(halfWay, { columns: 80, rows: 24 }).type('4').hear(printed(3)).type('g')
    const begun = toldOf([...halfWay, { at: 432, body: { type: 'gate.started', n: 4, command: 'npm test' } }])
    player.hear({ type: 'told', change, records: begun.slice(-2) }, printed(4, '\nstill here'))
    expect(player.text()).toContain('still here')
    expect(player.text()).not.toContain('FAIL')
  })
})

test('B17: each attempt names the agent that ran it, not the one of now', () => {
  const next = halfWay.findIndex(({ body }) => body.type === 'iteration.started' && body.n === 4)
  const first = halfWay[0]?.body
  if (first?.type !== 'loop.started') throw new Error('no start')
  const start = (at: number, resumed: boolean, agent_program: string): At => ({
    at,
    body: { ...first, resumed, agent_program },
  })
  const run = [start(0, false, 'fail.sh'), ...halfWay.slice(1, next), start(416, true, 'q.sh')]
    .concat(halfWay.slice(next))
    .map(({ at, body }): At =>
      body.type === 'iteration.started' ? { at, body: { ...body, agent: 'command' } } : { at, body },
    )
  const text = playing(run).text()
  expect(text).toMatch(/#3 ─+ fail\.sh {2}14:03:53/)
  expect(text).toMatch(/#4 ─+ q\.sh {2}14:06:56/)
})

test('B17: in the Tasks tab a story has the mark that it has beside it', () => {
  const failed = halfWay.findIndex(({ body }) => body.type === 'iteration.started' && body.n === 4)
  const end = whole.at(-1)
  if (end?.body.type !== 'complete') throw new Error('no end')
  const body = { ...end.body, status: 'stuck', stop_reason: 'retries', exit_code: 3 } as const
  const player = playing([...halfWay.slice(0, failed - 1), { at: 668, body }])
    .read()
    .type('\u001B\u001B')
    .type('2')
  const stories = (player.model.loop?.state?.stories ?? []).map(({ id, title, status }) => ({
    id,
    title,
    status,
    tasks: [],
  }))
  const now = { change_id: change, n: 3, is_cut: false, orphan_pids: [], stories, patch: '' }
  player.hear({ type: 'loaded', loaded: { what: 'so_far', change, now } })
  expect(player.text().match(/✕ 3 Languages/g)).toHaveLength(2)
  expect(player.text()).not.toContain('▸')
})

describe('control', () => {
  const stop = { do: 'stop', change, isForce: false }
  const force = { do: 'stop', change, isForce: true }

  test('on a small screen the words of the Gates tab are whole', () => {
    const begun = halfWay.slice(
      0,
      halfWay.findIndex(({ body }) => body.type === 'gate.started'),
    )
    const player = playing(begun, { columns: 60, rows: 20 }).type('4')
    expect(player.text().replaceAll(/[│\s]+/g, ' ')).toContain(
      'The gates run when the agent says that the story is complete:',
    )
  })

  test('q asks first: d leaves it running, s stops it, Esc stays; whoever waits for it loses nothing by a key', () => {
    for (const [columns, words] of [
      [120, 'Quit? d leave it running · s stop it: its attempt is undone and kept · esc stay'],
      [80, 'Quit? d leave it running · s stop it · esc stay'],
      [40, 'Quit? d leave it · s stop it · esc stay'],
    ] as const) {
      const player = playing(halfWay, { columns, rows: 24 })
      player.asked()
      expect(player.type('q').text()).toContain(words)
      expect(player.type('q').asked()).toEqual([])
      expect(player.type('\u001B').text()).not.toContain('Quit?')
      expect(player.asked()).toEqual([])
      expect(player.type('qs').asked()).toEqual([stop])
      expect(player.text()).toContain('Stopping')
    }
    const player = playing(halfWay)
    player.asked()
    expect(player.type('qd').asked()).toMatchObject([{ do: 'quit', exitCode: 0 }])
    // The end of the loop is an answer, too.
    expect(
      playing(halfWay)
        .type('q')
        .hear({ type: 'told', change, records: toldOf(whole) })
        .text(),
    ).not.toContain('Quit?')
  })

  test('Ctrl-C stops, and says what that does; once', () => {
    const player = playing(halfWay)
    player.asked()
    player.type('\u0003')
    expect(player.asked()).toEqual([stop])
    expect(player.text()).toContain('Stopping')
    expect(player.type('\u0003').asked()).toEqual([])
  })

  test.each(['\u0003', 'q'])('three times within three seconds it kills, and quits: %j', (key) => {
    const player = playing(halfWay)
      .type(key === 'q' ? 'qs' : key)
      .later(1)
      .type(key)
      .later(1)
    player.asked()
    const acts = player.type(key).asked()
    expect(acts[0]).toEqual(force)
    expect(acts[1]).toMatchObject({ do: 'quit', exitCode: 130 })
  })

  test('three times in a longer while do not kill', () => {
    const player = playing(halfWay).type('\u0003').later(2).type('\u0003').later(2)
    expect(player.type('\u0003').asked()).not.toContainEqual(force)
  })

  test('p pauses; of a loop that pauses it is the way on', () => {
    const player = playing(halfWay)
    player.asked()
    expect(player.type('p').asked()).toEqual([{ do: 'pause', change, isOff: false }])
    const records = toldOf([...halfWay, { at: 433, body: { type: 'pause.requested' } }])
    player.hear({ type: 'told', change, records: records.slice(-2) })
    expect(player.text()).toContain('pauses after this attempt')
    expect(player.type('p').asked()).toEqual([{ do: 'pause', change, isOff: true }])
  })

  test('n writes a note; Enter sends it, Esc does not, and its letters are no keys', () => {
    const player = playing(halfWay).type('n')
    player.asked()
    player.type('use q, not \u001B[200~two\nlines\u001B[201~')
    expect(player.text()).toContain('A note for the next prompt')
    expect(player.text()).toContain('use q, not two lines')
    expect(player.asked()).toEqual([])
    expect(player.type('\r').asked()).toEqual([{ do: 'note', change, text: 'use q, not two lines' }])
    expect(player.type('nx\u001B').asked()).toEqual([])
    expect(player.model.loop?.note).toBeUndefined()
  })

  test('a wait has a countdown, and s ends it', () => {
    const until = startMs + 440_000 + 725_000
    const record = halfWay.slice(0, -5)
    const waiting: At = {
      at: 440,
      body: {
        type: 'waiting',
        for: 'limit',
        until: '2026-02-09T14:19:25+01:00',
        until_ms: until,
        agent: 'claude',
      },
    }
    const player = playing([...record, waiting])
    // The state is what decides: the reducer has its own way into a wait.
    const loop = player.model.loop
    if (loop?.state === undefined) throw new Error('nothing was told')
    const state = {
      ...loop.state,
      phase: 'waiting',
      current: undefined,
      waiting: { for: 'limit', untilMs: until, until: '2026-02-09T14:19:25+01:00', agent: 'claude' },
    } as typeof loop.state
    player.model = { ...player.model, loop: { ...loop, state } }
    expect(player.text()).toContain(
      '‖ usage limit reached: claude is asked again in 12m 05s, at 14:19 · s asks now',
    )
    expect(player.later(5).text()).toContain('in 12m 00s')
    player.asked()
    expect(player.type('s').asked()).toEqual([{ do: 'skip_wait', change }])
    // Nobody is asked by the wait's end alone.
    player.model = {
      ...player.model,
      loop: { ...loop, state: { ...state, pause: true } as typeof loop.state },
    }
    expect(player.text()).toMatch(/‖ usage limit reached: over in .* · paused, p continues/)
    expect(player.text()).toContain('‖ paused')
  })

  test('s without a wait says so', () => {
    expect(playing(halfWay).type('s').text()).toContain('does not wait')
  })

  test('d leaves the loop alone, and says how to join it again', () => {
    const player = playing(halfWay)
    player.asked()
    expect(player.type('d').asked()).toEqual([
      {
        do: 'quit',
        exitCode: 0,
        words: ['The loop of add-greeting continues.', 'Join it again with: ralph attach add-greeting'],
      },
    ])
  })

  test('? shows the keys, and any key closes them', () => {
    const player = playing(halfWay).type('?')
    expect(player.text()).toContain('Ctrl-C')
    expect(player.type('q').text()).toContain('[Agent]')
    expect(player.asked()).not.toContainEqual(stop)
  })
})

test('what the help says of the mouse is whole on a small screen, too', () => {
  const text = playing(halfWay, { columns: 60, rows: 24 }).type('?').text()
  expect(text.replaceAll(/[│\s]+/g, ' ')).toContain('Hold Shift (Option on a Mac) to select text.')
})

test('? on a run that has ended: the keys that work there, and no others', () => {
  const keysOn = (complete: 'complete' | 'no end'): string => {
    const player = new Player({ at: 'loop', change, isOwn: false })
    const records = toldOf(complete === 'complete' ? whole : halfWay).filter(({ type }) => type === 'event')
    const state = records.at(-1)?.state ?? initialState(change)
    const cursor = { run: 'r', record: 0, talk: 0 }
    const loop = complete === 'complete' ? 'ended' : 'dead'
    return player
      .hear({ type: 'told', change, records: [...records, { type: 'loop', loop, state, cursor }] })
      .type('?')
      .text()
  }
  expect(keysOn('complete')).toMatch(/enter +how it ended, and what next/)
  expect(keysOn('complete')).toMatch(/q +quit/)
  for (const gone of ['q q q', 'pause', 'note for', 'ralph attach', 'wait any longer', 'all changes'])
    expect(keysOn('complete')).not.toContain(gone)
  expect(keysOn('no end')).not.toContain('what next')
  expect(keysOn('no end')).toMatch(/q +quit/)
})

describe('the end', () => {
  test.each([
    [80, 24],
    [140, 45],
  ] as const)('at %i x %i it asks where the work goes', async (columns, rows) => {
    const player = playing(whole, { columns, rows }).read()
    await expect(player.text()).toMatchFileSnapshot(golden(`choice-${String(columns)}x${String(rows)}`))
  })

  const patch =
    'diff --git a/new.ts b/new.ts\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/new.ts\n@@ -0,0 +1 @@\n+one\n' +
    'diff --git a/old.ts b/old.ts\ndeleted file mode 100644\nindex 1..0\n--- a/old.ts\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n' +
    'diff --git a/from.ts b/to.ts\nsimilarity index 100%\nrename from from.ts\nrename to to.ts\n'
  const loaded = { type: 'loaded', loaded: { what: 'patch', change, n: undefined, patch } } as const

  test('a choice names the branch and counts the files; Enter does it', () => {
    const player = playing(whole).hear(loaded).read()
    expect(player.text()).toContain(
      'switch to main, 3 changed files uncommitted; ralph/add-greeting is deleted',
    )
    player.asked()
    expect(player.type('\u001B[B\r').asked()).toEqual([{ do: 'finish', change, choice: 'cleanup' }])
    expect(player.text()).toContain('Working…')
    player.hear({ type: 'said', act: 'finish', message: 'The work is on main, uncommitted.' })
    expect(player.text()).toContain('The work is on main, uncommitted.')
    expect(player.text()).not.toContain('ralph finish')
  })

  test('with a work tree of its own nobody is sent to the branch that they are on', () => {
    const apart = whole.map(({ at, body }): At =>
      body.type === 'loop.started' ? { at, body: { ...body, home: '/repo' } } : { at, body },
    )
    const text = playing(apart).hear(loaded).read().text()
    expect(text).toContain('bring 3 changed files to main, uncommitted; ralph/add-greeting is deleted')
    expect(text).not.toContain('switch to')
  })

  const rest = (): Input => ({ type: 'told', change, records: toldOf(whole).slice(halfWay.length) })

  test('a note that is being typed stays over the end of the run; its Enter chooses nothing', () => {
    const player = playing(halfWay).type('nUse the').hear(rest())
    player.asked()
    player.type(' words of q\r')
    expect(player.asked()).toEqual([])
    expect(player.text()).toContain('Use the words of q')
    expect(player.text()).toContain('The run is done: there is no next prompt for your words')
    expect(player.text()).not.toContain('What should happen')
    player.type('\u001B').type('\r')
    expect(player.text()).toContain('What should happen to the work?')
    expect(player.asked().map((act) => act.do)).toEqual(['load', 'load'])
    expect(player.model.ending?.stage).toBe('choice')
  })

  test('so does a search', () => {
    const player = playing(halfWay, { columns: 60, rows: 20 }).type('/file number').hear(rest()).type('s')
    expect(player.text()).not.toContain('What should happen')
    expect(player.text()).toContain('/file numbers')
    expect(player.type('\u001B').text()).toContain('What should happen to the work?')
  })

  test.each(['\r', '\u001B', 'c', '\u0003', 'q', '\u001B[B'])(
    '%j in the first half second of the question is no answer',
    (typed) => {
      const player = playing(whole)
      player.asked()
      for (const seconds of [0, 0.1, 0.3]) player.later(seconds).type(typed)
      expect(player.asked()).toEqual([])
      expect(player.model.ending).toMatchObject({ stage: 'choice', at: 0 })
      expect(player.text()).not.toContain('enter do it')
      expect(player.later(0.5).text()).toContain('enter do it')
    },
  )

  test('Tab shows the changed files before anything is chosen, and ? only keys that work', () => {
    const player = playing(whole).hear(loaded).read()
    player.asked()
    expect(player.type('\t').text()).toContain('+ new.ts  new  +1')
    expect(player.type('\r').asked()).toEqual([])
    expect(player.type('\u001B').text()).toContain('What should happen')
    expect(player.type('?').text()).toContain('do what is chosen')
    expect(player.type(' \u001B').type('?').text()).not.toContain('do what is chosen')
    expect(player.text()).toContain('PgUp PgDn')
  })

  const stopped = (run: readonly At[]): readonly At[] => {
    const end = whole.at(-1)?.body
    if (end?.type !== 'complete') throw new Error('no end')
    const how = {
      status: 'stopped',
      stop_reason: 'signal',
      exit_code: 130,
      reason: 'stopped by you',
    } as const
    return [...run, { at: 700, body: { ...end, ...how } }]
  }

  test('a run that is not done goes on with a; why it cannot is said', () => {
    const player = playing(stopped(halfWay)).read()
    player.asked()
    const act = { do: 'start', change, how: 'resume', flags: {} } as const
    expect(player.type('a').asked()).toEqual([])
    expect(player.text()).toContain('enter start the agent again')
    expect(player.type('\r').asked()).toEqual([act])
    expect(player.type('a\r').asked()).toEqual([])
    player.hear({ type: 'failed', act, message: 'No agent is there', hint: 'Install one.', exitCode: 6 })
    expect(player.text()).toContain('! No agent is there. Install one.')
    expect(player.type('a\r').asked()).toEqual([act])
    player.hear({ type: 'started', change })
    expect(player.model.at).toBe('loop')
    expect(playing(whole).read().text()).not.toContain('a try again')
  })

  test('F12: of many stories that are not done the first are named, whole or with an ellipsis, and the others counted', () => {
    const many = stopped(halfWay).map(({ at, body }): At => {
      if (body.type !== 'plan.read') return { at, body }
      const stories = Array.from({ length: 24 }, (_, n) => ({
        id: String(n + 1),
        title: `Story ${n + 1} ${'with a long title '.repeat(4)}`,
        status: 'open' as const,
        tasks_done: 0,
        tasks_total: 1,
      }))
      return { at, body: { ...body, stories, only_changed: undefined } }
    })
    const text = playing(many, { columns: 80, rows: 24 }).read().text().replaceAll(/\s+/g, ' ')
    expect(text).toMatch(/not done: 1 Story 1 with[^…]*…, 2 Story 2 [^…]*…, 3 Story 3 [^…]*… and 21 more/)
  })

  test('a and ↓: a note is written before it goes on, at the choice and at the result; Enter without one starts it as it is', () => {
    const act = { do: 'start', change, how: 'resume', flags: {} } as const
    for (const [columns, before] of [
      [120, ''],
      [80, '\u001B'],
      [40, '\u001B'],
    ] as const) {
      const player = playing(stopped(halfWay), { columns, rows: 24 }).read().type(before)
      player.asked()
      expect(player.lines().at(-1)).toContain('a continue')
      expect(player.type('a').text()).toMatch(/enter (start the agent )?again · ↓ (with )?a note/)
      player.type('\u001B[B')
      expect(player.text()).toContain('A note for the agent')
      expect(player.lines().every((line) => line.length <= columns)).toBe(true)
      expect(player.type('look in q?').text()).toContain('look in q?')
      expect(player.type('\r').asked()).toEqual([{ ...act, feedback: 'look in q?' }])
      const plain = playing(stopped(halfWay), { columns, rows: 24 }).read().type(before)
      plain.asked()
      expect(plain.type('a\u001B[B\u001B').text()).not.toContain('A note for the agent')
      expect(plain.type('a\u001B[B\r').asked()).toEqual([act])
    }
  })

  test('a goes on also where nothing was kept, and after a choice, for ralph resume does', () => {
    const act = { do: 'start', change, how: 'resume', flags: {} } as const
    const cleaned = stopped(halfWay).map(({ at, body }): At =>
      body.type === 'complete' ? { at, body: { ...body, status: 'stuck', choice: 'cleanup' } } : { at, body },
    )
    const player = playing(cleaned).read()
    player.asked()
    expect(player.text()).toContain('a try again')
    expect(player.type('a\r').asked()).toEqual([act])
    const chosen = playing(stopped(halfWay)).read().type('c\r')
    chosen.hear({ type: 'said', act: 'finish', message: 'The work is on main, uncommitted.' })
    chosen.asked()
    expect(chosen.type('a\r').asked()).toEqual([act])
  })

  test('F28: a command that was meant for the shell starts no agent: after an a only Enter does', () => {
    for (const typed of ['clear; ralph status\r', 'cat a.txt\r', 'git branch\r', 'an\r']) {
      const player = playing(stopped(halfWay)).read().type('\u001B')
      player.asked()
      const acts = player.type(typed).asked()
      expect(acts.filter((act) => act.do === 'start')).toEqual([])
    }
  })

  test('F28: a line for the shell chooses nothing, nor does the Enter after it; one letter and Enter do', () => {
    for (const typed of ['ls', 'sudo ls', 'git checkout main', 'als', 'c c']) {
      const player = playing(stopped(halfWay)).read()
      player.asked()
      expect(player.type(typed).text(), typed).toContain('Typed for the shell? esc leaves the question')
      expect(player.type('\r').asked(), typed).toEqual([])
      expect(player.text()).toContain('› keep')
      expect(player.text()).toContain('↑↓ choose')
    }
    const player = playing(stopped(halfWay)).read()
    player.asked()
    expect(player.type('s\r').asked()).toEqual([{ do: 'finish', change, choice: 'squash' }])
  })

  describe('a manual loop whose agent says that it is done', () => {
    const manual = (run: readonly At[]): readonly At[] =>
      run.map(({ at, body }) =>
        body.type === 'loop.started'
          ? { at, body: { ...body, settings: { ...body.settings, done_criteria: 'manual' as const } } }
          : { at, body },
      )
    const end = whole.at(-1)?.body
    if (end?.type !== 'complete') throw new Error('no end')
    const reason = 'The agent says that it is complete; you decide whether it is.'
    const waits = { ...end, status: 'stopped', stop_reason: 'human', exit_code: 5, reason } as const
    const waiting = [...manual(whole.slice(0, -1)), { at: 700, body: waits }]
    const agreed = [...waiting, { at: 710, body: { type: 'human.done' } as const }, { at: 710, body: end }]

    test('is asked about: yes asks where the work goes, and the exit code is that of a loop that is done', () => {
      const player = playing(waiting).read()
      player.asked()
      expect(player.text()).toContain('Is it done?')
      // Enter alone decides nothing.
      expect(player.text()).toContain('› later')
      expect(player.type('d\r').asked()).toEqual([{ do: 'done', change }])
      expect(player.type('\r').asked()).toEqual([])
      const records = toldOf(agreed).slice(waiting.length + 1)
      player.hear({ type: 'said', act: 'done', message: 'done' }, { type: 'told', change, records }).read()
      expect(player.text()).toContain('What should happen to the work?')
      player.asked()
      const quits = player.type('\u001B').type('q').asked().at(-1)
      expect(quits).toMatchObject({ do: 'quit', exitCode: 0 })
    })

    test('no: what is missing goes with the next attempt; its letters are no keys, and Esc goes back', () => {
      const player = playing(waiting).read()
      player.asked()
      expect(player.type('m\r').text()).toContain('What is missing?')
      expect(player.type('q? the page').asked()).toEqual([])
      expect(player.text()).toContain('q? the page')
      expect(player.type('\u001B').text()).not.toContain('What is missing?')
      player.type('\r').type('the page is empty').type('\r')
      const act = { do: 'start', change, how: 'resume', flags: {}, feedback: 'the page is empty' } as const
      expect(player.asked()).toEqual([act])
      player.hear({ type: 'failed', act, message: 'No agent is there', hint: 'Install one.', exitCode: 6 })
      expect(player.text()).toContain('! No agent is there. Install one.')
    })

    test('later: nothing is asked of anybody, and what to type is there', () => {
      const player = playing(waiting).read()
      player.asked()
      player.type('\u001B')
      expect(player.asked()).toEqual([])
      expect(player.model.ending?.stage).toBe('result')
      expect(player.type('q').asked()).toMatchObject([{ do: 'quit', exitCode: 5 }])
    })
  })

  test('where nothing was saved nothing is asked', () => {
    const saved = halfWay.findIndex(({ body }) => body.type === 'gate.started')
    const player = playing(stopped(halfWay.slice(0, saved))).read()
    expect(player.model.ending?.stage).toBe('result')
    expect(player.text()).toContain('a continue')
    expect(player.text()).not.toContain('keep')
  })

  test('the clock counts the work of agents and gates, not what was between two loops', () => {
    const day = 86_400
    const late = halfWay.map(({ at, body }) => ({ at: at >= 416 ? at + day : at, body }))
    const player = playing(late).later(day)
    expect(player.lines()[0]).toContain(
      playing(halfWay)
        .lines()[0]
        ?.match(/\d+m \d\ds/)?.[0],
    )
  })

  test("the clock never runs back: what lies between an agent and its gates is nobody's work", () => {
    const quick = halfWay.map(({ at, body }) =>
      body.type === 'agent.ended'
        ? { at, body: { ...body, duration_ms: 5000 } }
        : body.type === 'iteration.ended'
          ? { at, body: { ...body, iteration: { ...body.iteration, duration_ms: 5000 } } }
          : { at, body },
    )
    const seconds = quick.flatMap(({ body }, index) => {
      if (!/^(agent|gate|iteration)\.ended$/.test(body.type)) return []
      const [, m = '0', s = ''] =
        / {2}(?:(\d+)m )?(\d+) ?s(?: |$)/.exec(playing(quick.slice(0, index + 1)).lines()[0] ?? '') ?? []
      return [Number(m) * 60 + Number(s)]
    })
    expect(seconds).toEqual([5, 13, 13, 18, 26, 26, 31, 39, 39])
  })

  test('what each story took is what ralph report says: gates too, and every attempt that has a number', () => {
    const player = playing(whole).read().type('\u001B')
    const state = player.model.loop?.state
    const report = runReport({
      change_id: change,
      status: 'done',
      reason: '',
      stories: state?.stories ?? [],
      iterations: state?.iterations ?? [],
      gates_ms: new Map([[1, 60_000]]),
    })
    player.hear({ type: 'loaded', loaded: { what: 'report', change, report } })
    expect(player.text()).toMatch(/Language table +1 attempt +3m 01s/)
    expect(player.text()).toMatch(/Languages +2 attempts /)
  })

  test('what cannot be carried out is said, and can be chosen again', () => {
    const player = playing(whole).hear(loaded).read().type('\u001B[B\r')
    const act = { do: 'finish', change, choice: 'cleanup' } as const
    player.hear({ type: 'failed', act, message: 'main has moved.', hint: 'Merge it.', exitCode: 1 })
    expect(player.text()).toContain('! main has moved. Merge it.')
    player.asked()
    expect(player.type('k\r').asked()).toEqual([{ do: 'finish', change, choice: 'keep' }])
  })

  test.each(['cleanup', 'squash'] as const)(
    'a %s that was refused has moved nothing: the last words say where the work is, and why it is there',
    (choice) => {
      const player = playing(whole)
        .hear(loaded)
        .read()
        .type(`${choice.slice(0, 1)}\r`)
      const act = { do: 'finish', change, choice } as const
      expect(player.asked().at(-1)).toEqual(act)
      player.hear({ type: 'failed', act, message: 'own.txt is in the way.', hint: 'Move it.', exitCode: 1 })
      const [quit] = player.type('q').asked()
      const words = quit?.do === 'quit' ? quit.words.join('\n') : ''
      expect(words).toContain('The work is on ralph/add-greeting.')
      expect(words).toContain('note: own.txt is in the way. Move it.')
      expect(words).toContain('ralph finish add-greeting --cleanup')
      expect(words).not.toContain('uncommitted.')
      expect(words).not.toContain('git status')
    },
  )

  test('q on the run that was looked at again says what came of it, too', () => {
    const player = playing(whole).hear(loaded).read().type('\u001B').type('\u001B')
    expect(player.model.at).toBe('loop')
    player.asked()
    const [quit] = player.type('q').asked()
    expect(quit?.do === 'quit' && quit.words.join('\n')).toContain('ralph finish add-greeting --cleanup')
  })

  test('after a squash the commit is named that has it all', () => {
    const player = playing(whole).hear(loaded).read().type('s\r')
    const message = 'the work is one commit now, 1a2b3c4d5e6f.'
    player.hear({ type: 'said', act: 'finish', message, commit: '1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d' })
    expect(player.text()).toMatch(/look +git show 1a2b3c4/)
    expect(player.text()).not.toContain('git status')
  })

  test('the result names the tasks for a person, and says once how to see what was undone', () => {
    const run = whole.map(({ at, body }): At =>
      body.type === 'plan.read'
        ? { at, body: { ...body, human_tasks: ['5.1 Ask the lawyers'] } }
        : { at, body },
    )
    const player = playing(run).hear(loaded).read().type('\u001B')
    expect(player.text()).toMatch(/Left for you .*\n│ {3}! 5\.1 Ask the lawyers/)
    expect(player.text().match(/ralph attempts add-greeting/g)).toHaveLength(1)
    expect(player.text()).toContain('3 files changed against the start, in 4 commits')
  })

  test('Esc decides later; the result has the files, and q quits with the exit code of the loop', async () => {
    const player = playing(whole, { columns: 80, rows: 24 }).hear(loaded).read().type('\u001B')
    await expect(player.text()).toMatchFileSnapshot(golden('result-80x24'))
    player.type('\t')
    expect(player.text()).toContain('+ new.ts  new  +1')
    expect(player.text()).toContain('- old.ts  deleted  -1')
    expect(player.text()).toContain('> to.ts  renamed')
    player.asked()
    // B13: in a window that has become smaller since.
    const [quit] = player
      .hear({ type: 'resize', size: { columns: 60, rows: 24 } })
      .type('q')
      .asked()
    expect(quit).toMatchObject({ do: 'quit', exitCode: 0 })
    const words = quit?.do === 'quit' ? quit.words : []
    expect(words.join('\n')).toContain('ralph finish add-greeting --cleanup')
    expect(Math.max(...words.map((line) => line.length))).toBeLessThan(60)
  })

  test('B9: a run that ended long ago says where its work went, not that it is uncommitted still', () => {
    const end = whole.at(-1)?.body
    if (end?.type !== 'complete') throw new Error('no end')
    const finished: At = {
      at: 700,
      body: {
        type: 'loop.finished',
        choice: 'cleanup',
        ok: true,
        message: 'everything is on main, uncommitted',
        commit: undefined,
      },
    }
    const records = toldOf([
      ...whole.slice(0, -1),
      finished,
      { at: 700, body: { ...end, choice: 'cleanup' } },
    ])
    const player = new Player({ at: 'loop', change, isOwn: false })
    const events = records.filter(({ type }) => type === 'event')
    const state = events.at(-1)?.state ?? initialState(change)
    const cursor = { run: 'r', record: 0, talk: 0 }
    player.hear({
      type: 'told',
      change,
      records: [...events, { type: 'loop', loop: 'ended', state, cursor }],
    })
    expect(player.type('\r').text()).toContain('Everything was brought to main, uncommitted.')
    expect(player.text()).toMatch(/look +ralph diff --all add-greeting/)
    expect(player.text()).not.toContain('ralph finish')
  })

  test('the log says why a run ended once', () => {
    const message = "Story 3 failed 4 times; last: npm test failed: expected 'hello' to be 'szia'"
    const records = [
      ...halfWay,
      { at: 668, body: { type: 'error', code: 'retries', message, hint: '' } } as const,
      { at: 668, body: { ...whole.at(-1)?.body, status: 'stuck', reason: message } as At['body'] },
    ]
    const player = playing(records).read().type('\u001B\u001B').type('5')
    expect(player.text()).toContain('✕ the loop ended: stuck. Story 3 failed 4 times')
    expect(player.text()).not.toContain('error:')
  })

  test('what must not be missed is there before anything is chosen', () => {
    const message = '#4 changed what a gate runs: test/greet.mjs'
    const warned: At = { at: 667, body: { ...whole.at(-1)?.body, warnings: [message] } as At['body'] }
    const run = [...whole.slice(0, -1), warned]
    expect(playing(run, { columns: 80, rows: 24 }).text()).toContain(`note: ${message}`)
  })

  test('a run that failed says first which story and why', async () => {
    const run = whole.map(({ at, body }): At =>
      body.type === 'complete'
        ? {
            at,
            body: {
              ...body,
              status: 'stuck',
              stop_reason: 'retries',
              exit_code: 3,
              reason:
                "Story 3 failed 4 times; last: npm test: expected 'hello' to be 'szia' (test/greet.test.ts:14)",
            },
          }
        : { at, body },
    )
    const player = playing(run, { columns: 80, rows: 24 }).read()
    await expect(player.text()).toMatchFileSnapshot(golden('stuck-80x24'))
    player.type('\u001B')
    player.asked()
    expect(player.type('q').asked()).toMatchObject([{ do: 'quit', exitCode: 3 }])
  })

  test.each([
    [80, 24],
    [60, 20],
    [40, 10],
  ] as const)('at %i x %i every choice is to be seen, however long the reason', (columns, rows) => {
    const run = whole.map(({ at, body }): At =>
      body.type === 'complete'
        ? {
            at,
            body: { ...body, status: 'stuck', stop_reason: 'retries', reason: `It ${'is long '.repeat(80)}` },
          }
        : { at, body },
    )
    const text = playing(run, { columns, rows }).text()
    expect(text).toContain('What should happen')
    for (const choice of ['› keep ', '  cleanup ', '  squash ', '  later ']) expect(text).toContain(choice)
  })

  test.each([
    [40, 10],
    [80, 24],
    [140, 45],
  ] as const)('at %i x %i how it ended, or died, is whole where it matters, and fits', (columns, rows) => {
    const last = toldOf(halfWay).at(-1)
    if (last === undefined) throw new Error('nothing was told')
    const dead = playing(halfWay, { columns, rows })
    dead.hear({ type: 'told', change, records: [{ ...last, type: 'loop', loop: 'dead' }] })
    expect(dead.text().replaceAll(/\s+/g, ' ')).toContain('Continue with: ralph resume add-greeting')
    const reason = 'npm test failed (exit 1): AssertionError: the page must show the name of its user first'
    const ended = whole.map(({ at, body }): At =>
      body.type === 'complete' ? { at, body: { ...body, status: 'stuck', reason } } : { at, body },
    )
    const stuck = playing(ended, { columns, rows }).read().type('\u001B\u001B')
    expect(stuck.model.at).toBe('loop')
    expect(stuck.text().replaceAll(/\s+/g, ' ')).toContain(columns === 40 ? 'AssertionError: the' : reason)
    for (const player of [dead, stuck]) {
      expect(player.lines().length).toBeLessThan(rows)
      for (const each of player.lines()) expect(widthOf(each)).toBeLessThanOrEqual(columns)
    }
  })

  test('a loop that has died says what is safe and what to type', () => {
    const player = playing(halfWay)
    const [, ...rest] = toldOf(halfWay)
    const last = rest.at(-1)
    if (last === undefined) throw new Error('nothing was told')
    player.hear({ type: 'told', change, records: [{ ...last, type: 'loop', loop: 'dead' }] })
    expect(player.text()).toContain('Continue with: ralph resume add-greeting')
    player.asked()
    expect(player.type('q').asked()).toMatchObject([{ do: 'quit', exitCode: 1 }])
  })
})

test('U1: a story that was ticked by hand while its gate is red has no tick on the screens, and is not counted', () => {
  const stories = ['1', '2'].map(
    (id) => ({ id, title: '', status: 'done', tasks_done: 1, tasks_total: 1 }) as const,
  )
  const state = { ...initialState(change), stories, byHand: ['2'], outcome: outcome('hand', '', '') }
  expect(stories.map((story) => meaningOf(story, { state, life: 'ended' }))).toEqual(['done', 'failed'])
  expect(storiesOf({ state }).map(({ status }) => status)).toEqual(['done', 'open'])
})
