// Work that an agent leaves on a branch, under a tag or in a stash: no reason when the tree has it, and no COMPLETE when it has not.
import { afterEach, expect, it } from 'vitest'
import { makeWorld, type Strategy, type World } from './world.ts'

let w: World
afterEach(() => w.end())

async function refusal(strategy: Strategy, deeds: (w: World) => void): Promise<string | undefined> {
  w = makeWorld()
  w.write('mine.txt', 'uncommitted\n')
  const checkpoints = w.checkpoints(strategy)
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  deeds(w)
  return (await checkpoints.keep(1, true)).refused
}

const more = 'one\nmore\n'
function commitOn(branch: string, path = 'w.txt', text = 'work\n'): void {
  w.git('checkout', '-q', '-b', branch)
  w.write(path, text)
  w.git('add', path)
  w.git('commit', '-q', '-m', 'work')
  w.git('checkout', '-q', '-')
}

const places: readonly (readonly [where: string, why: RegExp, deeds: () => void])[] = [
  ['on a branch', /on the branch own \(w\.txt\).*git cherry-pick \w+\.\.\w+ brings/, () => commitOn('own')],
  [
    'in a stash',
    /in a stash \(.*\) \(w\.txt\).*git stash apply \w+ brings/,
    () => {
      w.write('w.txt', 'work\n')
      w.git('add', 'w.txt')
      w.git('stash', 'push', '-q', '--', 'w.txt')
    },
  ],
  [
    'in a stash, not tracked',
    /in a stash/,
    () => {
      w.write('w.txt', 'work\n')
      w.git('stash', 'push', '-q', '-u', '--', 'w.txt')
    },
  ],
  [
    'on a branch, pushed',
    /branch own \(w\.txt\)/,
    () => {
      w.git('init', '-q', '--bare', '../away')
      w.git('remote', 'add', 'origin', '../away')
      commitOn('own')
      w.git('push', '-q', 'origin', 'own')
    },
  ],
  [
    'under a tag',
    /under the tag v1 \(w\.txt\)/,
    () => {
      commitOn('own')
      w.git('tag', '-a', 'v1', '-m', 'v1', 'own')
      w.git('branch', '-q', '-D', 'own')
    },
  ],
  [
    'on a branch, other lines of a file that has a note too',
    /branch own \(a\.txt\)/,
    () => {
      commitOn('own', 'a.txt', more)
      w.write('a.txt', 'one\nnote\n')
    },
  ],
]
const both = (['branch', 'stash'] as const).flatMap((strategy) =>
  places
    .slice(0, strategy === 'branch' ? 6 : 3)
    .map(([where, ...rest]) => [where, strategy, ...rest] as const),
)

it.each(both)(
  'O1: a note in the tree and the work %s (%s): refused, with the place, the file and the command',
  async (_where, strategy, why, deeds) => {
    const refused = await refusal(strategy, () => {
      deeds()
      w.write('note.txt', 'note\n')
    })
    expect(refused).toMatch(why)
    expect(w.read('mine.txt')).toBe('uncommitted\n')
  },
)

it.each<Strategy>(['branch', 'stash'])(
  'O1: what the tree has, or what the agent brought and went on with, is no reason (%s)',
  async (strategy) => {
    const refused = await refusal(strategy, () => {
      w.user('clone', '-q', '.', '../away')
      w.user('-C', '../away', 'rm', '-q', 'run.sh')
      w.user('-C', '../away', 'commit', '-q', '-m', 'of others')
      w.git('remote', 'add', 'origin', '../away')
      w.git('fetch', '-q', 'origin')
      w.git('branch', '-q', 'theirs', 'FETCH_HEAD')
      w.git('tag', 'nothing')
      commitOn('ticks', 'plan/tasks.md', '- [x] 1\n')
      commitOn('same', 's.txt')
      w.write('moved.txt', 'work\n')
      commitOn('picked', 'p.txt', 'work\nof one\n')
      commitOn('taken', 't.txt', 'taken\n')
      w.git('cherry-pick', '-n', 'picked')
      w.write('p.txt', 'work\nof two\n')
      w.git('checkout', 'taken', '--', 't.txt')
      w.write('a.txt', more)
      w.git('stash', 'push', '-q', '--', 'a.txt')
      w.git('stash', 'pop', '-q')
      w.git('stash', 'push', '-q', '--', 'a.txt')
      w.git('stash', 'apply', '-q')
      w.write('a.txt', 'one\nmuch more\n')
    })
    expect(refused).toBe(undefined)
  },
)
