// What git's write-ahead facts in a journal come to, as this version and those before it have written them.
import { describe, expect, test } from 'vitest'
import type { EventBody } from '../../src/core/event.ts'
import { beganEvent, stepEvent } from '../../src/core/git-facts.ts'
import { blankMemory, remember } from '../../src/core/git-memory.ts'
import type { Operation, Step } from '../../src/core/git-facts.ts'
import type { GitMemory } from '../../src/core/git-memory.ts'

const origin = { ref: 'refs/heads/main', commit: 'c0' } as const

function memoryOf(...events: readonly EventBody[]): GitMemory {
  return events.reduce(remember, blankMemory)
}

function whole(op: string, data: Record<string, unknown>, ...steps: readonly string[]): EventBody[] {
  return [
    { type: 'git.began', op, data },
    ...steps.map((step): EventBody => ({ type: 'git.step', op, step })),
    { type: 'git.ended', op },
  ]
}

const started = whole('start', { origin, previous: '', time: 't' }, 'checkpoint c1')

describe('G25: a journal tells what became of each git operation', () => {
  test('a start: where the user stood, and the first checkpoint', () => {
    expect(memoryOf(...started)).toEqual({ ...blankMemory, origin, initial: 'c1', checkpoint: 'c1' })
    expect(memoryOf(...whole('start', { origin }, 'checkpoint c1')).checkpoint).toBe('c1')
  })

  test('an attempt that was kept and saved', () => {
    const opened: EventBody[] = [
      ...started,
      {
        type: 'iteration.started',
        n: 1,
        story_id: '1',
        attempt: 1,
        attempts: 4,
        max_iterations: 4,
        agent: 'x',
        base_commit: 'c1',
        log_file: '1.log',
      },
    ]
    expect(memoryOf(...opened).openAttempt).toBe(1)
    const kept = [...opened, ...whole('keep', { n: 1, commit: 'c1', now_ms: 7 }, 'head h1', 'beside 1 b1')]
    expect(memoryOf(...kept)).toMatchObject({
      openAttempt: 1,
      attempt: 1,
      isKept: true,
      keptMs: 7,
      keptHead: 'h1',
      beside: [{ n: 1, hash: 'b1' }],
    })
    const saved = memoryOf(
      ...kept,
      ...whole('save', { story: '1', message: 'checkpoint: 1' }, 'checkpoint c2'),
    )
    expect(saved).toEqual({
      ...blankMemory,
      origin,
      initial: 'c1',
      checkpoint: 'c2',
      attempt: 1,
      saved: { message: 'checkpoint: 1', commit: 'c2', before: 'c1' },
      later: [{ n: 1, commit: 'c2' }],
    })
  })

  test('what was undone has changed nothing', () => {
    const dropped = whole('save', { story: '1', message: 'checkpoint: 1' }, 'checkpoint c2', 'undone')
    expect(memoryOf(...started, ...dropped)).toEqual(memoryOf(...started))
  })

  test('after a rename the checkpoints have their new names', () => {
    const data = { from: 'c2', to: 'd2', initial: 'd1', checkpoint: 'd2', time: 't' }
    const renamed = memoryOf(...started, ...whole('rename', data))
    expect(renamed).toEqual({ ...memoryOf(...started), initial: 'd1', checkpoint: 'd2' })
  })

  test('a cleanup leaves the name of the archive and what was carried, nothing else', () => {
    const plan = { tip: 'c2', time: 't2', from: '', to: '', index: 'as_is' }
    const carried = { commit: 'k', origin }
    expect(memoryOf(...started, ...whole('finish', { tip: 'c2', time: 't2' }))).toEqual({
      ...blankMemory,
      cleaned: 't2',
    })
    expect(memoryOf(...started, ...whole('finish', { ...plan, carried }))).toEqual({
      ...blankMemory,
      cleaned: 't2',
      carried,
    })
  })

  test.each<[string, Operation, Step, object]>([
    [
      'start',
      { op: 'start', origin, previous: 'p', time: 't' },
      { did: 'checkpoint', commit: 'c' },
      { checkpoint: 'c' },
    ],
    ['take', { op: 'take', story: 'a story' }, { did: 'undone' }, { isUndone: true }],
    ['adopt', { op: 'adopt', story: '1', from: 'a' }, { did: 'undone' }, { isUndone: true }],
    [
      'save',
      { op: 'save', story: '1', message: 'checkpoint: 1' },
      { did: 'checkpoint', commit: 'c' },
      { checkpoint: 'c' },
    ],
    [
      'keep',
      { op: 'keep', n: 3, commit: 'c', now_ms: 1 },
      { did: 'beside', n: 3, hash: 'h' },
      { beside: [{ n: 3, hash: 'h' }] },
    ],
    ['restore', { op: 'restore', commit: 'c' }, { did: 'head', commit: 'h' }, { head: 'h' }],
    [
      'finish',
      {
        op: 'finish',
        tip: 'c',
        time: 't',
        trees: { from: 'f', to: 'g' },
        head: { commit: 'c' },
        index: 'prepared',
      },
      { did: 'undone' },
      { isUndone: true },
    ],
    [
      'finish',
      {
        op: 'finish',
        tip: 'c',
        time: 't',
        index: 'none',
        squash: { message: 'm', tree: 't' },
      },
      { did: 'undone' },
      { isUndone: true },
    ],
    [
      'rename',
      { op: 'rename', from: 'a', to: 'b', initial: 'i', checkpoint: 'b', time: 't' },
      { did: 'undone' },
      { isUndone: true },
    ],
  ])('%s, cut off after a step, is read back as it was written', (op, operation, step, then) => {
    const written = [beganEvent(operation), stepEvent(operation.op, step)]
    const read = JSON.parse(JSON.stringify(written)) as EventBody[]
    expect(memoryOf(...read).pending).toEqual({ operation, beside: [], isUndone: false, ...then })
    expect(written[0]).toMatchObject({ type: 'git.began', op })
  })

  test.each([
    [
      'start',
      { origin: { kind: 'detached', ref: '', commit: 'c' }, previous: '', time: 't' },
      { origin: { kind: 'detached', commit: 'c' }, time: 't' },
    ],
    [
      'start',
      { origin: { kind: 'unborn', ref: 'refs/heads/main', commit: '' } },
      { origin: { kind: 'unborn', ref: 'refs/heads/main' } },
    ],
    ['adopt', { story: '1', from: 'a', to: '' }, { story: '1', from: 'a' }],
    ['save', { story: '', message: '' }, { story: '', message: '' }],
    [
      'finish',
      { tip: 'c', time: 't', from: 'f', to: 'g', head: { ref: '', commit: 'c' }, index: 'none' },
      { tip: 'c', time: 't', trees: { from: 'f', to: 'g' }, head: { commit: 'c' }, index: 'none' },
    ],
    [
      'finish',
      { tip: 'c', time: 't', from: '', to: '', index: 'none', squash: { message: '', tree: 't', onto: '' } },
      { tip: 'c', time: 't', index: 'none', squash: { message: '', tree: 't' } },
    ],
  ])('%s of a journal that has an empty text where there is none is read', (op, data, then) => {
    const began: EventBody = { type: 'git.began', op, data }
    expect(memoryOf(began).pending?.operation).toEqual({ op, ...then })
  })

  test('journals from before attempts were timed are read', () => {
    expect(memoryOf(...whole('keep', { n: 1, commit: 'c1' }))).toMatchObject({ attempt: 1, keptMs: 0 })
  })

  test.each([
    ['merge', { from: 'a' }],
    ['start', { origin: 'main' }],
    ['keep', {}],
    ['rename', { from: 'a', to: 'b', time: 't' }],
    ['finish', { tip: 'c', time: 't', from: 'f', to: 'g', index: 'none', squash: 'all' }],
    ['finish', { tip: 'c', time: 't', from: 'f', to: 'g', index: 'lost' }],
    ['finish', { tip: 'c', time: 't', from: 'f', to: 'g', index: 'none', head: 'main' }],
  ])('%s with %j is pending, but nothing that this version could do', (op, data) => {
    const [began, ended] = whole(op, data) as [EventBody, EventBody]
    expect(memoryOf(...started, began).pending?.operation).toEqual({ op: 'unknown', name: op })
    expect(memoryOf(...started, began, ended)).toEqual(memoryOf(...started))
  })
})
