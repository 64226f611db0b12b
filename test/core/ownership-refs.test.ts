// Whose ref, whose stash: by what the agent's own git told, and by nothing else.
import { describe, expect, it } from 'vitest'
import {
  dropperOfStashes,
  leftBeside,
  ownerOfAlias,
  ownerOfRef,
  ownerOfStash,
  type Ledger,
} from '../../src/core/ownership.ts'

const name = 'refs/heads/x'

/** `from>to` writes of the agent to `refs/heads/x`; commands as one would type them. */
function ledger(writes: readonly string[], commands: readonly string[] = [], ref = name): Ledger {
  return {
    writes: writes.map((write) => {
      const [from, to] = write.split('>').map((hash) => hash || undefined)
      return { by: 'agent', ref, from, to }
    }),
    switches: [],
    commands: commands.map((command) => ({ by: 'agent', argv: command.split(' '), worktree: '/w' })),
    trees: [],
  }
}

describe('ownerOfRef', () => {
  it.each([
    ['O12: nobody told of it', 'A', 'B', [], [], 'user', 'B'],
    ['O13: moved by the agent', 'A', 'B', ['A>B'], [], 'agent', 'A'],
    ['O13: moved twice, and back along both', 'A', 'C', ['A>B', 'B>C'], [], 'agent', 'A'],
    ['O12: moved by the user, then by the agent: back to the user’s', 'A', 'C', ['B>C'], [], 'agent', 'B'],
    [
      'O12: moved by the user in between: back to the user’s last',
      'A',
      'D',
      ['A>B', 'C>D'],
      [],
      'agent',
      'C',
    ],
    ['O12: moved by the agent, then by the user', 'A', 'C', ['A>B'], [], 'user', 'C'],
    ['O13: deleted by the agent', 'A', undefined, ['A>'], [], 'agent', 'A'],
    ['O12: deleted by the user', 'A', undefined, [], [], 'user', undefined],
    ['O12: moved by the user, then deleted by the agent', 'A', undefined, ['B>'], [], 'agent', 'B'],
    ['O13: made by the agent', undefined, 'A', ['>A'], [], 'agent', undefined],
    ['O13: made by renaming another', undefined, 'A', [], ['branch -m y x'], 'agent', undefined],
    ['O13: made by copying the current one', undefined, 'A', [], ['branch --copy x'], 'agent', undefined],
    ['O12: another was renamed', undefined, 'A', [], ['branch -m x y'], 'user', 'A'],
    ['O12: a commit with that word', undefined, 'A', [], ['commit -m x'], 'user', 'A'],
  ])('%s', (_, before, now, writes, commands, owner, found) => {
    const claim = ownerOfRef('demo', { name, before, now }, ledger(writes, commands))
    expect({ owner: claim.owner, found: claim.found }).toEqual({ owner, found })
    expect(claim.evidence).not.toBe('')
  })

  it.each([
    ['moved after it', undefined, 'Y', ['X>Y'], 'branch -m x', undefined],
    ['over one of the user’s', 'B', 'X', ['B>'], 'branch -M x', 'B'],
    ['over one of the user’s, and moved after it', 'B', 'Y', ['B>', 'X>Y'], 'branch -M x', 'B'],
    ['over one that the user had moved', 'B', 'Y', ['C>', 'X>Y'], 'branch -M x', 'C'],
    ['made again by the user meanwhile', undefined, 'Z', ['X>', 'U>Z'], 'branch -m x', 'U'],
  ])('O13: a branch renamed to it, %s', (_, before, now, writes, command, found) => {
    const own = ledger(writes, [command])
    const old = { by: 'agent' as const, ref: 'refs/heads/main', from: 'X', to: undefined }
    const claim = ownerOfRef('demo', { name, before, now }, { ...own, writes: [old, ...own.writes] })
    expect({ owner: claim.owner, found: claim.found }).toEqual({ owner: 'agent', found })
  })

  it('section 6.4: a branch of another loop is its own, unless the agent wrote it; that of this loop is not', () => {
    const ref = (branch: string): { name: string; before: string; now: string } => ({
      name: `refs/heads/ralph/${branch}`,
      before: 'A',
      now: 'B',
    })
    expect(ownerOfRef('demo', ref('other'), ledger([])).owner).toBe('other_loop')
    expect(ownerOfRef('demo', ref('other'), ledger(['A>B'], [], 'refs/heads/ralph/other')).owner).toBe(
      'agent',
    )
    expect(ownerOfRef('demo', ref('demo'), ledger([])).owner).toBe('user')
  })
})

it.each([
  ['a commit on top of the agent’s', 'C', ['A>B'], ['C']],
  ['a commit under the agent’s', 'C', ['B>C'], ['B']],
  ['both', 'D', ['B>C'], ['B', 'D']],
  ['none', 'C', ['A>B', 'B>C'], []],
])('O12: what others left on a branch: %s', (_, now, writes, tips) => {
  expect(leftBeside({ name, before: 'A', now }, ledger(writes))).toEqual(tips)
})

describe('stashes', () => {
  it('M5: an entry is the agent’s only if its git wrote it', () => {
    const own = ledger(['>S'], [], 'refs/stash')
    expect([ownerOfStash('S', own), ownerOfStash('T', own)]).toEqual(['agent', 'user'])
  })

  it.each([
    ['stash drop', 'agent'],
    ['stash pop -q', 'agent'],
    ['stash clear', 'agent'],
    ['reflog expire --expire=now --all', 'agent'],
    ['reflog delete stash@{0}', 'agent'],
    // What `git gc` does.
    ['reflog expire --all', 'user'],
    ['stash list', 'user'],
  ])('O12, O13: entries that are gone after `git %s` were dropped by the %s', (command, owner) => {
    expect(dropperOfStashes(ledger([], [command]))).toBe(owner)
  })
})

describe('ownerOfAlias', () => {
  it.each([
    ['O12: nobody told of it', [], [], 'user'],
    ['O13: its deletion was written', ['A>'], [], 'agent'],
    ['O13: it was made or led elsewhere', [], ['symbolic-ref refs/heads/x refs/heads/y'], 'agent'],
    ['O13: with a reason', [], ['symbolic-ref -m why refs/heads/x refs/heads/y'], 'agent'],
    ['O13: it was deleted', [], ['symbolic-ref --delete refs/heads/x'], 'agent'],
    ['O13: it was deleted as a branch', [], ['branch -qD w x'], 'agent'],
    ['O13: another was renamed over it', [], ['branch -M y x'], 'agent'],
    ['O12: the agent only asked', [], ['symbolic-ref --short refs/heads/x'], 'user'],
    ['O12: another was led to it', [], ['symbolic-ref refs/heads/y refs/heads/x'], 'user'],
    ['O12: branches were listed', [], ['branch --list x'], 'user'],
  ])('%s', (_, writes, commands, owner) => {
    expect(ownerOfAlias(name, ledger(writes, commands))).toMatchObject({ owner })
  })
})
