import { describe, expect, test } from 'vitest'
import {
  headWords,
  isSweptBy,
  judgeTree,
  lossOf,
  moverOf,
  type TreeFacts,
} from '../../src/core/ownership-tree.ts'

const here: TreeFacts = { isRootless: false, isSwept: false, missing: [], rewritten: [], stashed: [] }
const byAgent = { to: 'main', by: 'agent' as const }
const bySomebody = { to: 'main', by: undefined }

describe('C1: whose doing it is that files of the checkpoint are not there', () => {
  test.each<[string, Partial<TreeFacts>, string, string]>([
    ['nothing is missing', {}, 'take', ''],
    ['a deletion by hand is a wish', { missing: ['a'] }, 'take', ''],
    ['a sweep by git', { isSwept: true, missing: ['a'] }, 'merge', 'swept the work tree'],
    ['a sweep that took nothing', { isSwept: true }, 'take', ''],
    ['a sweep, and the file was written anew', { isSwept: true, rewritten: ['a'] }, 'merge', 'swept'],
    ['left with a sweep', { left: byAgent, isSwept: true, missing: ['a'] }, 'merge', 'the agent left'],
    [
      'amended: left, but no file was replaced',
      { left: byAgent, missing: ['a'], rewritten: ['b'] },
      'take',
      '',
    ],
    ['left, everything is there', { left: byAgent, isSwept: true }, 'take', ''],
    ['the user switched', { left: bySomebody, missing: ['a'] }, 'merge', 'somebody switched'],
    ['the user switched, both wrote', { left: bySomebody, rewritten: ['a'] }, 'merge', 'somebody switched'],
    ['the user amended', { left: bySomebody }, 'take', ''],
    [
      'no history in common',
      { left: byAgent, isRootless: true, isSwept: true, missing: ['a'] },
      'fail',
      'no history',
    ],
    ['stashed by somebody', { stashed: ['a'] }, 'fail', 'somebody stashed'],
  ])('%s', (_, facts, deed, words) => {
    const judgement = judgeTree({ ...here, ...facts })
    expect(judgement.do).toBe(deed)
    expect('why' in judgement ? judgement.why : '').toContain(words)
  })
})

describe('O3: who moved HEAD', () => {
  const now = { ref: 'refs/heads/x', commit: 'c2' } as const
  const toX = { by: 'agent' as const, head: 'refs/heads/x' }
  const away = { by: 'agent' as const, head: 'refs/heads/y' }
  const wrote = { by: 'gate' as const, ref: 'refs/heads/x', from: 'c1', to: 'c2' }
  test.each([
    ['nobody that was watched', [], [], undefined],
    ['its last switch leads there', [toX], [], 'agent'],
    ['it went on elsewhere; who came back is somebody else', [toX, away], [], undefined],
    ['it wrote the branch', [], [wrote], 'gate'],
    ['it wrote the branch, and somebody moved it again', [], [{ ...wrote, to: 'c9' }], undefined],
    ['detached', [{ ...toX, head: 'c2' }], [], undefined],
  ])('%s', (_, switches, writes, by) => {
    expect(moverOf(now, now, { switches, writes, commands: [] })).toBe(by)
  })

  test.each([
    ['the agent went there, and on by a commit of its own', 'agent', 'c2', 'agent'],
    ['somebody else went on', 'agent', 'c9', undefined],
    ['a gate went on', 'gate', 'c2', undefined],
  ] as const)('detached: %s', (_, by, to, expected) => {
    const switches = [{ by: 'agent' as const, head: 'c1' }]
    const writes = [{ by, ref: 'HEAD', from: 'c1', to }]
    const detached = { commit: 'c2' }
    expect(moverOf({ ref: 'refs/heads/x' }, detached, { switches, writes, commands: [] })).toBe(expected)
  })

  test.each([
    ['it only committed where somebody had gone', 'commit -m x', undefined],
    ['it only moved another branch', 'branch -f y HEAD', undefined],
    ['by a new name', 'branch -m x', 'gate'],
    ['by another name', 'symbolic-ref HEAD refs/heads/x', 'gate'],
  ])('HEAD names another branch: %s', (_, command, by) => {
    const commands = [{ by: 'gate' as const, argv: command.split(' '), worktree: '/w' }]
    const was = { ref: 'refs/heads/ralph/demo' } as const
    expect(moverOf(was, now, { switches: [], writes: [wrote], commands })).toBe(by)
    expect(moverOf(was, now, { switches: [away], writes: [wrote], commands })).toBe(undefined)
  })

  test('a detached HEAD is told by its commit', () => {
    const switches = [{ ...toX, head: 'c2' }]
    expect(moverOf(now, { commit: 'c2' }, { switches, writes: [], commands: [] })).toBe('agent')
  })

  test('nobody is blamed without evidence', () => {
    expect(headWords(byAgent, 'agent')).toBe('the agent left the branch of the loop for main')
    expect(headWords(bySomebody, 'agent')).toBe(
      'somebody switched the work tree to main while the agent worked',
    )
    expect(headWords(bySomebody, 'gates')).toBe('somebody switched the work tree to main while the gates ran')
    expect(headWords({ to: 'main', by: 'gate' }, 'gates')).toBe('a gate switched the work tree to main')
    expect(headWords({ ...byAgent, isRewritten: true }, 'agent')).toBe(
      'the agent rewrote main (amend, reset or rebase)',
    )
    expect(headWords({ ...bySomebody, isRewritten: true }, 'agent')).toBe(
      'somebody rewrote main (amend, reset or rebase) while the agent worked',
    )
  })
})

describe('O2: which git commands sweep the work tree', () => {
  test.each([
    ['checkout .', true],
    ['checkout -f main', true],
    ['checkout -b topic main', true],
    ['checkout -b topic', false],
    ['checkout -- one.txt', false],
    ['checkout -- .', true],
    ['checkout main -- :/', true],
    ['switch main', true],
    ['switch -c topic', false],
    ['restore one.txt', false],
    ['restore .', true],
    ['restore --staged .', false],
    ['restore -S -W .', true],
    ['reset --hard', true],
    ['reset --soft HEAD~1', false],
    ['reset', false],
    ['clean -fd', true],
    ['clean -n', false],
    ['clean -fd build', false],
    ['stash', true],
    ['stash push -u', true],
    ['stash list', false],
    ['stash; stash pop', false],
    ['stash; stash; stash pop', true],
    ['status; add -A; commit -m x', false],
    ['rm one.txt', false],
  ])('%s: %s', (typed, expected) => {
    expect(isSweptBy(typed.split('; ').map((command) => ({ argv: command.split(' ') })))).toBe(expected)
  })

  test('what a stash or a rebase runs is a part of it; what an alias runs is not', () => {
    const clean = { argv: ['clean', '--force'] }
    expect(isSweptBy([{ ...clean, within: 'stash' }])).toBe(false)
    expect(isSweptBy([{ ...clean, within: 'nuke' }])).toBe(true)
  })
})

describe('O14: why there is nothing to save any more', () => {
  const still = { stashed: [], isUndone: false }
  test.each([
    ['all is there', still, /^$/],
    [
      'HEAD is elsewhere',
      { ...still, head: bySomebody },
      /^somebody switched .* while the gates ran; the attempt is kept$/,
    ],
    ['stashed', { ...still, stashed: ['On main: mine'] }, /^somebody stashed .*\(On main: mine\)/],
    ['undone', { ...still, isUndone: true }, /was undone/],
  ])('%s', (_, facts, words) => {
    expect(lossOf(facts) ?? '').toMatch(words)
  })
})
