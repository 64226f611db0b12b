import { describe, expect, test } from 'vitest'
import type { Command } from '../../src/core/loop.ts'
import type { Settings } from '../../src/core/event.ts'
import { replay } from '../../src/core/loop.ts'
import { initialState } from '../../src/core/state.ts'
import { good, ofType, play, settings } from './world.ts'
import type { Deed, Run } from './world.ts'

const gated = { ...settings, gates: ['check'], max_retries: 0 }

function run(deed: Partial<Deed>, more: Partial<Settings> = {}): Run {
  return play({ settings: { ...gated, ...more }, tasks: [2], deeds: [{ ...good, ...deed }] })
}

function commands<D extends Command['do']>(done: Run, name: D): Extract<Command, { do: D }>[] {
  return done.commands.filter((command): command is Extract<Command, { do: D }> => command.do === name)
}

const verdict = (done: Run): string | undefined => done.state.iterations[0]?.verdict
const reason = (done: Run): string => done.state.iterations[0]?.reason ?? ''

test.each([
  ['passed', {}],
  ['failed', { gatesPass: false }],
  ['stirred', { stirs: [['a.txt']], stirsLate: [['b.txt']] }],
])('an older journal, where none was an empty word, is read as it was meant: gates that %s', (_, deed) => {
  const done = run(deed)
  const words: Record<string, object> = {
    'attempt.kept': { spec_lost: '' },
    'gates.checked': { failed: '', lost: '' },
    'checkpoint.refused': { lost: '' },
  }
  const older = done.events.map((event) => ({ ...words[event.type], ...event }))
  expect(older).not.toEqual(done.events)
  expect(replay(initialState('demo'), older)).toEqual(replay(initialState('demo'), done.events))
})

describe('O14: what passed the gates is what is saved', () => {
  test('nothing changes: one round, and the tree that passed is the one to be saved', () => {
    const done = run({})
    expect(commands(done, 'check_gates')).toHaveLength(1)
    const judged = { tree: 't0', isBinding: true, mayDiffer: '' }
    expect(commands(done, 'save_checkpoint')[0]?.judged).toEqual(judged)
    expect(verdict(done)).toBe('complete')
  })

  test('M6: files that change while the gates run are judged again; what passed last is saved', () => {
    const done = run({ stirs: [['a.txt']] })
    expect(commands(done, 'check_gates').map(({ tree, isLast }) => [tree, isLast])).toEqual([
      ['t0', false],
      ['t0+', false],
    ])
    expect(commands(done, 'save_checkpoint')[0]?.judged?.tree).toBe('t0+')
    expect(verdict(done)).toBe('complete')
  })

  test('M6: files that change in every run of the gates, whoever changes them: three runs, then the attempt fails with their names', () => {
    const done = run({ stirs: [['a'], ['a'], ['a'], ['a']] })
    expect(commands(done, 'check_gates').map(({ isLast }) => isLast)).toEqual([false, false, true])
    expect(commands(done, 'save_checkpoint')).toHaveLength(0)
    expect(verdict(done)).toBe('failed')
    expect(reason(done)).toMatch(/changed during each of 3 runs of the gates.* would be saved: a\./)
  })

  test.each([
    ['only what came with the first run and changed in each one', [['new'], ['new'], ['new']], 'complete'],
    ['another file in the last run', [['new'], ['new'], ['new', 'a']], 'failed'],
    ['not in the second run', [['new'], ['a'], ['new']], 'failed'],
    ['not in the first run', [['a'], ['new'], ['new']], 'failed'],
  ] as const)(
    'M6: what the gates write anew each time is saved as they left it: %s',
    (_, stirs, expected) => {
      const done = run({ stirs, makes: ['new'] })
      expect(verdict(done)).toBe(expected)
      expect(commands(done, 'save_checkpoint').map(({ judged }) => judged?.tree)).toEqual(
        expected === 'complete' ? ['t0+++'] : [],
      )
    },
  )

  test('M6: work that is gone after the gates fails the attempt with that reason, and what is there is kept before the revert', () => {
    const done = run({ stirs: [['a']], lost: 'somebody switched' })
    expect([verdict(done), reason(done)]).toEqual(['failed', 'somebody switched'])
    expect(commands(done, 'revert')).toMatchObject([{ isStirred: true }])
    expect(commands(done, 'check_gates')).toHaveLength(1)
  })

  test('a gate that fails because the work is gone: the reason is the latter', () => {
    const done = run({ gatesPass: false, stirs: [['a']], lost: 'somebody switched' })
    expect([verdict(done), reason(done)]).toEqual(['failed', 'somebody switched'])
  })

  test('a gate that fails in peace: nothing is kept a second time', () => {
    const done = run({ gatesPass: false })
    expect(verdict(done)).toBe('gate_failed')
    expect(commands(done, 'revert')).toMatchObject([{ isStirred: false }])
  })

  test('M6: a file that changes between the gates and the checkpoint: the gates run again', () => {
    const done = run({ stirsLate: [['a.txt']] })
    expect(commands(done, 'check_gates').map(({ tree }) => tree)).toEqual(['t0', 't0~'])
    expect(commands(done, 'save_checkpoint').map(({ judged }) => judged?.tree)).toEqual(['t0', 't0~'])
    expect(verdict(done)).toBe('complete')
  })

  test('M6: something that writes for ever fails the attempt, with the files', () => {
    const done = run({ stirsLate: [['a.txt'], ['a.txt'], ['a.txt'], ['a.txt']] })
    expect(commands(done, 'check_gates')).toHaveLength(3)
    expect(verdict(done)).toBe('failed')
    expect(reason(done)).toContain('something else writes to the work tree')
    expect(reason(done)).toContain('a.txt')
    expect(ofType(done, 'checkpoint.saved')).toHaveLength(0)
  })

  test('without gates no tree is binding', () => {
    const done = run({}, { gates: [] })
    expect(commands(done, 'save_checkpoint')[0]?.judged?.isBinding).toBe(false)
  })

  test('C1: an attempt that may not be saved fails with that reason, whatever it promised; in manual mode too', () => {
    const refused = run({ refused: 'cannot be put together' })
    expect([verdict(refused), reason(refused)]).toEqual(['failed', 'cannot be put together'])
    expect(commands(refused, 'check_gates')).toHaveLength(0)
    const manual = run(
      { refused: 'cannot be put together', promise: 'none' },
      {
        done_criteria: 'manual',
        max_iterations: 1,
      },
    )
    expect(verdict(manual)).toBe('failed')
    expect(ofType(manual, 'checkpoint.saved')).toHaveLength(0)
  })
})
