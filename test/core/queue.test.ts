import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { comesAfter, dueNow, findCycle, freeUsd, queueExit, seenEntry } from '../../src/core/queue-due.ts'
import { emptyQueue, evolveQueue, replayQueue } from '../../src/core/queue.ts'
import type { LoopFacts, QueueFacts } from '../../src/core/queue-due.ts'
import type { QueueBody } from '../../src/core/queue-event.ts'
import type { QueueState } from '../../src/core/queue.ts'

const hash = (digit: string): string => digit.repeat(40)
const opened: QueueBody = { type: 'queue.opened', target: 'main', jobs: 2, land: 'squash', lands: true }
const added = (change: string, ...after: string[]): QueueBody => ({ type: 'entry.added', change, after })
const spawned = (change: string, slot = 1): QueueBody => ({
  type: 'loop.spawned',
  change,
  base: hash('a'),
  slot,
})
const ended = (change: string, cost = 0): QueueBody => ({
  type: 'loop.ended',
  change,
  cost_usd: cost,
  tip: hash('b'),
})
const landed = (change: string): QueueBody => ({ type: 'landed', change, commit: hash('c') })

function after(...bodies: readonly QueueBody[]): QueueState {
  const events = bodies.map((body, at) => ({ v: 1 as const, seq: at + 1, time: '', ...body }))
  return replayQueue(events)
}

const facts = (
  loops: Readonly<Record<string, Partial<LoopFacts>>> = {},
  more: Partial<QueueFacts> = {},
): QueueFacts => ({
  loops: new Map(
    Object.entries(loops).map(([change, each]) => [
      change,
      { isApart: true, loop: 'none', costUsd: 0, ...each },
    ]),
  ),
  likelyUsd: 0,
  hold: '',
  ...more,
})

describe('what is due', () => {
  it('Q15: entries begin in the order in which they came, at most as many as there are places, each in a slot of its own', () => {
    const due = dueNow(after(opened, added('a'), added('b'), added('c')), facts())
    expect(due).toEqual([
      { do: 'spawn', change: 'a', how: 'loop', slot: 1 },
      { do: 'spawn', change: 'b', how: 'loop', slot: 2 },
      { do: 'tell', event: { type: 'entry.waiting', change: 'c', why: 'waits for a free place' } },
    ])
  })

  it('Q14: what waits for another begins when that has landed, not when its loop is done, and names one that is parked', () => {
    const queue = [opened, added('a'), added('b', 'a'), spawned('a')]
    const waiting = (state: QueueState): unknown => state.entries.find(({ change }) => change === 'b')?.why
    const told = after(...queue, { type: 'entry.waiting', change: 'b', why: 'waits for a' })
    expect(waiting(told)).toBe('waits for a')
    expect(dueNow(after(...queue, ended('a')), facts()).filter((step) => step.do === 'spawn')).toEqual([])
    const parked: QueueBody = { type: 'entry.parked', change: 'a', for: 'failed', why: 'red', hint: '' }
    expect(dueNow(after(...queue, parked), facts())).toEqual([
      { do: 'tell', event: { type: 'entry.waiting', change: 'b', why: 'waits for a, which is parked' } },
    ])
    expect(dueNow(after(...queue, ended('a'), landed('a')), facts())).toContainEqual({
      do: 'spawn',
      change: 'b',
      how: 'loop',
      slot: 1,
    })
  })

  it('I5: what has landed on another branch is not there to begin at', () => {
    const elsewhere: QueueBody = { ...added('a'), target: 'release' } as QueueBody
    const state = after(opened, elsewhere, added('b', 'a'), spawned('a'), ended('a'), landed('a'))
    expect(dueNow(state, facts())).toEqual([
      {
        do: 'tell',
        event: {
          type: 'entry.waiting',
          change: 'b',
          why: 'waits for a, which has landed on release, not on main',
        },
      },
    ])
  })

  it('Q8: a loop that runs already is adopted, one that is done is landed, one in the user’s checkout is left alone', () => {
    const state = after(opened, added('runs'), added('done'), added('mine'))
    const due = dueNow(
      state,
      facts({
        runs: { loop: 'running' },
        done: { loop: 'ended', exitCode: 0, tip: hash('b') },
        mine: { loop: 'ended', exitCode: 3, isApart: false },
      }),
    )
    expect(due.map((step) => (step.do === 'tell' ? step.event.type : step.do))).toEqual([
      'loop.spawned',
      'loop.ended',
      'entry.parked',
    ])
  })

  it('B5: a run in the user’s checkout says what helps: finish it, land it, commit it; where nothing is left it leaves the queue', () => {
    const mine = { loop: 'ended', isApart: false } as const
    const due = dueNow(
      after(opened, added('stuck'), added('kept'), added('taken'), added('over')),
      facts({
        stuck: { ...mine, exitCode: 3 },
        kept: { ...mine, exitCode: 0 },
        taken: { ...mine, exitCode: 0, left: 'uncommitted' },
        over: { ...mine, exitCode: 0, left: 'nothing' },
      }),
    )
    expect(due.map((step) => (step.do === 'tell' ? step.event : step.do))).toMatchObject([
      { type: 'entry.parked', hint: expect.stringContaining('Finish it there') as string },
      { type: 'entry.parked', hint: 'Land it: ralph land kept' },
      { type: 'entry.parked', hint: 'Commit it, then: ralph queue retry taken' },
      { type: 'entry.removed', why: expect.stringContaining('no story of it is open') as string },
    ])
  })

  it('Q8: a loop that was killed is resumed, three times at most', () => {
    const dead = facts({ a: { loop: 'dead' } })
    const state = after(opened, added('a'), spawned('a'))
    expect(dueNow(state, dead)).toEqual([{ do: 'spawn', change: 'a', how: 'resume', slot: 1 }])
    const often = after(opened, added('a'), spawned('a'), spawned('a'), spawned('a'))
    expect(dueNow(often, dead)).toMatchObject([
      { do: 'tell', event: { type: 'entry.parked', for: 'failed' } },
    ])
  })

  it('a loop that was stopped or killed while no queue was there goes on with the next one; stopped beside a queue it is parked for who stopped it', () => {
    const stopped = facts({ a: { loop: 'ended', exitCode: 143, reason: 'stopped by SIGTERM' } })
    const running = [opened, added('a'), spawned('a')]
    expect(dueNow(after(...running), stopped)).toMatchObject([
      {
        do: 'tell',
        event: { for: 'human', why: 'its loop was stopped', hint: expect.stringMatching(/retry a$/) },
      },
    ])
    expect(dueNow(after(...running, opened), stopped)).toEqual([
      { do: 'spawn', change: 'a', how: 'resume', slot: 1 },
    ])
    expect(dueNow(after(...running, opened, spawned('a')), stopped)).toMatchObject([{ do: 'tell' }])
    const limit = facts({ a: { loop: 'ended', exitCode: 6, reason: 'the limit' } })
    expect(dueNow(after(...running, opened), limit)).toMatchObject([{ do: 'spawn', how: 'resume' }])
    const killed = facts({ a: { loop: 'ended', exitCode: 137, reason: 'The loop was killed.' } })
    expect(dueNow(after(...running, opened), killed)).toMatchObject([{ do: 'spawn', how: 'resume' }])
    const failed = facts({ a: { loop: 'ended', exitCode: 3, reason: 'no' } })
    expect(dueNow(after(...running, opened), failed)).toMatchObject([{ do: 'tell', event: { why: 'no' } }])
  })

  it('one lands at a time, and one that was begun goes on first', () => {
    const both = [opened, added('a'), added('b'), spawned('a'), spawned('b', 2), ended('b'), ended('a')]
    expect(dueNow(after(...both), facts())).toEqual([{ do: 'land', change: 'a' }])
    const begun: QueueBody = { type: 'candidate.began', change: 'b', base: hash('a'), tip: hash('b') }
    expect(dueNow(after(...both, begun), facts())).toEqual([{ do: 'land', change: 'b' }])
  })

  it('Q4: a target that moves under three candidates in a row is somebody at work: the entry waits', () => {
    const moved: QueueBody = { type: 'base.moved', change: 'a', to: hash('d') }
    const story = [opened, added('a'), spawned('a'), ended('a'), moved, moved, moved]
    const state = after(...story)
    expect(dueNow(state, facts())).toEqual([])
    expect(state.entries).toMatchObject([
      { state: 'done', why: expect.stringContaining('3 times') as string },
    ])
    const [entry] = state.entries
    // With no queue at work, too.
    expect(entry && seenEntry(entry, { isApart: true, loop: 'ended', costUsd: 0 }, false, '')).toMatchObject({
      state: 'done',
      why: expect.stringContaining('moved 3 times while it was tested') as string,
      hint: expect.stringContaining('ralph up') as string,
    })
    expect(dueNow(after(...story, opened), facts())).toEqual([{ do: 'land', change: 'a' }])
  })

  it('Q18: while the disk is low no loop begins, and what waits says how much is needed and free', () => {
    const hold = 'waits for room on the disk: 512 MB needed, 3 MB free'
    expect(dueNow(after(opened, added('a')), facts({}, { hold }))).toEqual([
      { do: 'tell', event: { type: 'entry.waiting', change: 'a', why: hold } },
    ])
  })

  it('Q17: no loop begins that the budget for all would not cover', () => {
    const budget = { ...opened, max_cost_usd: 10 } as QueueBody
    const state = after(budget, added('a'), added('b'), spawned('a'), ended('a', 7))
    expect(freeUsd(state)).toBe(3)
    expect(dueNow(state, facts({}, { likelyUsd: 7 }))).toContainEqual({
      do: 'tell',
      event: { type: 'entry.waiting', change: 'b', why: 'waits: the budget is used up' },
    })
    expect(dueNow(state, facts({}, { likelyUsd: 2 }))).toContainEqual({
      do: 'spawn',
      change: 'b',
      how: 'loop',
      slot: 1,
      money: { reservedUsd: 3, maxCostUsd: 3 },
    })
  })

  it('Q17 I7: loops side by side share the budget; one that has used up its share goes on with what others leave, and not without more', () => {
    const budget = { ...opened, max_cost_usd: 10 } as QueueBody
    const given = (change: string, slot: number, usd: number, most = usd): QueueBody =>
      ({ ...spawned(change, slot), reserved_usd: usd, max_cost_usd: most }) as QueueBody
    expect(dueNow(after(budget, added('a'), added('b')), facts())).toMatchObject([
      { change: 'a', money: { reservedUsd: 5, maxCostUsd: 5 } },
      { change: 'b', money: { reservedUsd: 5, maxCostUsd: 5 } },
    ])
    const both = [budget, added('a'), added('b'), given('a', 1, 5), given('b', 2, 5)]
    const short = { loop: 'ended', exitCode: 6, isShort: true, costUsd: 4.5 } as const
    const [step] = dueNow(after(...both), facts({ a: short, b: { loop: 'running' } }))
    expect(step).toMatchObject({ do: 'tell', event: { type: 'loop.ended', cost_usd: 4.5, is_short: true } })
    if (step?.do !== 'tell') throw new Error('nothing told')
    // The other one may still spend its five: half a dollar is no more than it had.
    expect(dueNow(after(...both, step.event), facts({ a: short, b: { loop: 'running' } }))).toEqual([
      { do: 'tell', event: { type: 'entry.waiting', change: 'a', why: 'waits: the budget is used up' } },
    ])
    const left = after(...both, step.event, ended('b', 1))
    expect(freeUsd(left)).toBe(4.5)
    expect(dueNow(left, facts({ a: short }))).toContainEqual({
      do: 'spawn',
      change: 'a',
      how: 'resume',
      slot: 1,
      money: { reservedUsd: 4.5, maxCostUsd: 9 },
    })
    const usedUp = after(...both, step.event, ended('b', 5.5))
    expect(dueNow(usedUp, facts({ a: short })).filter((each) => each.do === 'spawn')).toEqual([])
  })

  it('I7: what a loop that failed has cost counts, also one that put a conflict together; what landed before does not', () => {
    const budget = { ...opened, max_cost_usd: 10 } as QueueBody
    const failed = after(budget, added('a'), spawned('a'))
    const [step] = dueNow(failed, facts({ a: { loop: 'ended', exitCode: 3, costUsd: 4 } }))
    if (step?.do !== 'tell') throw new Error('nothing told')
    expect(freeUsd(after(budget, added('a'), spawned('a'), step.event))).toBe(6)
    const conflicted: QueueBody = {
      type: 'candidate.conflicted',
      change: 'a',
      base: hash('a'),
      tip: hash('b'),
      paths: ['x.txt'],
      marked: hash('c'),
    }
    const judged: QueueBody = { type: 'resolution.judged', change: 'a', problems: [], cost_usd: 2 }
    const story = [budget, added('a'), spawned('a'), ended('a', 3), conflicted, spawned('a'), judged]
    expect(freeUsd(after(...story))).toBe(5)
    expect(freeUsd(after(...story, landed('a')))).toBe(5)
    expect(freeUsd(after(...story, landed('a'), budget))).toBe(10)
  })

  it('Q8: a loop that was written down and never started is started, whatever the run before it came to', () => {
    const over = { ...spawned('a'), over: 'run 1' } as QueueBody
    const ofRun = (run: string, exitCode: number): QueueFacts =>
      facts({ a: { loop: 'ended', exitCode, run } })
    const state = after(opened, added('a'), over)
    expect(dueNow(state, ofRun('run 1', 3))).toEqual([{ do: 'spawn', change: 'a', how: 'resume', slot: 1 }])
    expect(dueNow(state, ofRun('run 2', 3))).toMatchObject([{ do: 'tell', event: { type: 'entry.parked' } }])
    const conflicted: QueueBody = {
      type: 'candidate.conflicted',
      change: 'a',
      base: hash('a'),
      tip: hash('b'),
      paths: ['x.txt'],
      marked: hash('c'),
    }
    const resolving = [opened, added('a'), spawned('a'), ended('a'), conflicted, over]
    expect(dueNow(after(...resolving), ofRun('run 1', 0))).toEqual([{ do: 'resolve', change: 'a', slot: 1 }])
    expect(dueNow(after(...resolving), ofRun('run 2', 5))).toEqual([{ do: 'judge', change: 'a' }])
    const wrong: QueueBody = { type: 'resolution.judged', change: 'a', problems: ['no'] }
    const again = after(...resolving, wrong)
    expect(dueNow(again, ofRun('run 2', 5))).toEqual([{ do: 'resolve', change: 'a', slot: 1 }])
    expect(again.entries).toMatchObject([{ conflict: { problems: ['no'] } }])
  })

  it('I3: one that was taken out stays out, whatever its gates say then; one that is under way is not begun anew by being added', () => {
    const removed: QueueBody = { type: 'entry.removed', change: 'a' }
    const red: QueueBody = { type: 'entry.parked', change: 'a', for: 'failed', why: 'red', hint: '' }
    const begun = [opened, added('a'), spawned('a'), ended('a')]
    expect(after(...begun, removed, red, spawned('a')).entries).toMatchObject([{ state: 'removed' }])
    expect(after(...begun, added('a')).entries).toMatchObject([{ state: 'done' }])
  })

  it('a conflict is given to an agent twice, then it is parked', () => {
    const conflicted: QueueBody = {
      type: 'candidate.conflicted',
      change: 'a',
      base: hash('a'),
      tip: hash('b'),
      paths: ['x.txt'],
      marked: hash('e'),
    }
    const state = after(opened, added('a'), spawned('a'), ended('a'), conflicted)
    expect(dueNow(state, facts())).toEqual([{ do: 'resolve', change: 'a', slot: 1 }])
    const begun = after(opened, added('a'), spawned('a'), ended('a'), conflicted, spawned('a'))
    expect(dueNow(begun, facts({ a: { loop: 'ended', exitCode: 5 } }))).toEqual([
      { do: 'judge', change: 'a' },
    ])
    expect(dueNow(begun, facts({ a: { loop: 'ended', exitCode: 3, reason: 'no' } }))).toMatchObject([
      {
        do: 'tell',
        event: {
          type: 'entry.parked',
          why: 'it and what landed both changed x.txt; no',
        },
      },
    ])
    const third = [conflicted, spawned('a'), ended('a'), conflicted, spawned('a'), ended('a'), conflicted]
    expect(dueNow(after(opened, added('a'), spawned('a'), ended('a'), ...third), facts())).toMatchObject([
      {
        do: 'tell',
        event: {
          type: 'entry.parked',
          why: 'it and what landed both changed x.txt; no merge of both was accepted: 2 tries used',
        },
      },
    ])
  })
})

describe('what a look shows', () => {
  const began: QueueBody = { type: 'candidate.began', change: 'a', base: hash('a'), tip: hash('b') }
  const outOfRoom: QueueBody = { type: 'entry.waiting', change: 'a', why: 'waits for room on the disk: 9 MB' }
  const look = (loop: Partial<LoopFacts>, isAlive: boolean, ...more: readonly QueueBody[]): unknown => {
    const queue = after(opened, added('a'), ...more)
    const [entry] = queue.entries
    if (entry === undefined) throw new Error('no entry')
    const facts: LoopFacts = { isApart: true, loop: 'none', costUsd: 0, ...loop }
    const { state, why } = seenEntry(entry, facts, isAlive, comesAfter(queue, entry))
    return [state, why]
  }
  it('what it waited for has landed since: it says so no longer', () => {
    const waits: QueueBody = { type: 'entry.waiting', change: 'a', why: 'waits for b, which is parked' }
    const ordered: QueueBody = { type: 'entry.ordered', change: 'a', after: ['b'] }
    const b = [added('b'), ordered, waits]
    expect(look({}, false, ...b)).toEqual(['waiting', 'waits for b'])
    expect(look({}, false, ...b, { type: 'landed', change: 'b', commit: hash('c') })).toEqual([
      'waiting',
      'waits for ralph up',
    ])
  })
  it.each([
    ['waiting', {}, [], 'waiting', 'waits for ralph up'],
    ['out of room', {}, [outOfRoom], 'waiting', 'waits for room on the disk: 9 MB; then: ralph up'],
    ['running', { loop: 'running' }, [spawned('a')], 'running', 'continues; ralph up lands it'],
    ['stopped', { loop: 'ended', exitCode: 143 }, [spawned('a')], 'waiting', 'its loop was stopped'],
    ['killed', { loop: 'dead' }, [spawned('a')], 'waiting', 'its loop was killed'],
    [
      'killed and looked at',
      { loop: 'ended', exitCode: 137 },
      [spawned('a')],
      'waiting',
      'its loop was killed',
    ],
    ['failed', { loop: 'ended', exitCode: 3, reason: 'no' }, [spawned('a')], 'parked', 'no'],
    ['at a limit', { loop: 'ended', exitCode: 6, reason: 'limit' }, [spawned('a')], 'waiting', 'limit'],
    ['done', { loop: 'ended', exitCode: 0 }, [spawned('a')], 'done', 'waits for ralph up'],
    ['cut off while it landed', {}, [spawned('a'), ended('a'), began], 'done', 'waits for ralph up'],
    ['landed', {}, [spawned('a'), ended('a'), landed('a')], 'landed', ''],
  ] as const)('with no queue at work, one that was %s', (_, loop, events, state, why) => {
    expect(look(loop, false, ...events)).toEqual([state, why])
  })

  it('what a queue at work says of its entries is how they are', () => {
    expect(look({ loop: 'ended', exitCode: 143 }, true, spawned('a'))).toEqual(['running', ''])
  })
})

describe('the end', () => {
  it.each([
    ['all landed', 0, [added('a'), spawned('a'), ended('a'), landed('a')]],
    ['one failed', 3, [added('a'), { type: 'entry.parked', change: 'a', for: 'failed', why: '', hint: '' }]],
    [
      'only a human can go on',
      5,
      [added('a'), { type: 'entry.parked', change: 'a', for: 'human', why: '', hint: '' }],
    ],
    ['a limit', 6, [added('a'), { type: 'entry.parked', change: 'a', for: 'limit', why: '', hint: '' }]],
    ['halted', 5, [added('a'), { type: 'queue.halted', why: 'red', hint: '' }]],
  ] as const)('%s: exit %i', (_, exit, bodies) => {
    expect(queueExit(after(opened, ...(bodies as readonly QueueBody[])))).toBe(exit)
  })

  it('with --no-land a loop that is done is all there is to do', () => {
    const state = after({ ...opened, lands: false }, added('a'), spawned('a'), ended('a'))
    expect([dueNow(state, facts()), queueExit(state)]).toEqual([[], 0])
  })
})

it('Q14: dependencies in a circle are found', () => {
  expect(
    findCycle(
      new Map([
        ['b', ['a']],
        ['c', ['b']],
      ]),
    ),
  ).toBeUndefined()
  expect(
    findCycle(
      new Map([
        ['b', ['a']],
        ['a', ['c']],
        ['c', ['b']],
      ]),
    ),
  ).toEqual(['b', 'a', 'c', 'b'])
})

/** Any order of events that a supervisor, a crash and wishes from elsewhere can bring about. */
const bodies = fc.array(
  fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(9)).map(([change, which]): QueueBody => {
    const all: readonly QueueBody[] = [
      added(change),
      { type: 'entry.removed', change },
      { type: 'entry.first', change },
      { type: 'entry.retried', change },
      spawned(change),
      ended(change, 1),
      { type: 'candidate.began', change, base: hash('a'), tip: hash('b') },
      { type: 'base.moved', change, to: hash('d') },
      landed(change),
      { type: 'entry.parked', change, for: 'failed', why: 'x', hint: '' },
    ]
    return all[which] ?? added(change)
  }),
  { maxLength: 40 },
)

it('I3 I7: whatever happened, no change is started twice, never more run than there are places, at most one lands, and the budget holds', () => {
  fc.assert(
    fc.property(bodies, fc.integer({ min: 1, max: 3 }), (story, jobs) => {
      const state = after({ ...opened, jobs, max_cost_usd: 5 }, ...story)
      const due = dueNow(state, facts({}, { likelyUsd: 1 }))
      const spawns = due.flatMap((step) => (step.do === 'spawn' ? [step.change] : []))
      const running = state.entries.filter((entry) => entry.state === 'running')
      const fresh = spawns.filter((change) => !running.some((entry) => entry.change === change))
      expect(new Set(spawns).size).toBe(spawns.length)
      if (fresh.length > 0) expect(running.length + fresh.length).toBeLessThanOrEqual(jobs)
      expect(due.filter((step) => step.do === 'land').length).toBeLessThanOrEqual(1)
      expect(fresh.length === 0 || freeUsd(state) - fresh.length >= 0).toBe(true)
      expect(state.entries.filter((entry) => entry.state === 'landed' && entry.landed === undefined)).toEqual(
        [],
      )
    }),
  )
})

it('I8: the state is that of its events, one by one or all at once', () => {
  fc.assert(
    fc.property(bodies, (story) => {
      const events = [opened, ...story].map((body, at) => ({ v: 1 as const, seq: at + 1, time: '', ...body }))
      let state = emptyQueue
      for (const event of events) state = evolveQueue(state, event)
      expect(state).toEqual(replayQueue(events))
    }),
  )
})
