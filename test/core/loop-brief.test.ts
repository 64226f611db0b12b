// A loop in a few fields, from state files of ralph's and of wt-tools, whole or not.
import { describe, expect, test } from 'vitest'
import { briefOf, freshnessOf, isOver } from '../../src/core/loop-brief.ts'

const wt = { status: 'running', current_iteration: 2, max_iterations: 5 }

describe('briefOf', () => {
  test.each([
    ['its change_id', { change_id: 'a', change: 'b', worktree_name: 'repo-wt-c' }, 'a'],
    ['the change that it drives', { change: 'b', worktree_name: 'repo-wt-c' }, 'b'],
    [
      'what stands behind -wt- in the name of its work tree',
      { change: null, worktree_name: 'repo-wt-c' },
      'c',
    ],
    ['the name of its work tree', { worktree_name: 'elsewhere' }, 'elsewhere'],
    ['the name of its folder', {}, 'folder'],
  ])('a loop of wt-tools is called by %s', (_, fields, name) => {
    expect(briefOf({ ...wt, ...fields }, 'folder')).toMatchObject({ change_id: name, written_by: 'wt-tools' })
  })

  test('null, missing and wrong fields of wt-tools are unknown, not an error', () => {
    const odd = { ...wt, task: null, started_at: null, total_tokens: 'many', terminal_pid: null, stories: 3 }
    expect(briefOf(odd, 'x')).toEqual({
      change_id: 'x',
      status: 'running',
      written_by: 'wt-tools',
      current_iteration: 2,
      max_iterations: 5,
      started_at: '',
      updated_at: '',
      task: '',
      total_tokens: 0,
    })
  })

  test.each([[undefined], [null], [[]], ['running'], [{}], [{ status: 'running' }], [{ ...wt, status: 7 }]])(
    'what tells of no loop is none: %j',
    (value) => {
      expect(briefOf(value, 'x')).toBeUndefined()
    },
  )

  test('stories are counted, not believed', () => {
    const stories = [{ status: 'done' }, { status: 'open' }, null, { status: 'done' }]
    expect(briefOf({ ...wt, schema_version: 1, stories }, 'x')).toMatchObject({
      written_by: 'ralph',
      stories_done: 2,
      stories_total: 3,
    })
  })
})

test.each([
  ['one that has ended', { isOver: true, isThere: true, signAgeMs: 0 }, 'ended'],
  [
    'one whose process is gone, whatever its file says',
    { isOver: false, isThere: false, signAgeMs: 0 },
    'dead',
  ],
  ['one that gives signs', { isOver: false, isThere: true, signAgeMs: 900 }, 'alive'],
  ['one that is there and silent', { isOver: false, isThere: true, signAgeMs: 61_000 }, 'stale'],
  ['one of another machine that gives signs', { isOver: false, isThere: undefined, signAgeMs: 900 }, 'alive'],
  [
    'one of another machine that is silent',
    { isOver: false, isThere: undefined, signAgeMs: 61_000 },
    'stale',
  ],
] as const)('freshness of %s', (_, facts, freshness) => {
  expect(freshnessOf(facts)).toBe(freshness)
})

test('idle and waiting:human of wt-tools are ends: its process has gone by then', () => {
  const words = ['starting', 'running', 'waiting:budget', 'waiting:api', 'idle', 'waiting:human', 'done']
  expect(words.filter((status) => isOver({ status }))).toEqual(['idle', 'waiting:human', 'done'])
})
