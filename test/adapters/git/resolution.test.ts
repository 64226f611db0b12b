// What an agent made of a conflict: what is refused, and what may land.
import { expect, it } from 'vitest'
import { markedCommit, mergeCommits } from '../../../src/adapters/git/landing.ts'
import { judgeResolution } from '../../../src/adapters/git/resolution.ts'
import { worldOfTest } from './world.ts'

it.each([
  ['both sides', { 'shared.txt': 'of base\nof tip\n' }, []],
  ['markers', {}, ['shared.txt has conflict markers']],
  ['only what landed', { 'shared.txt': 'of base\n' }, ['in shared.txt nothing of this change is left']],
  ['only its own', { 'shared.txt': 'of tip\n' }, ['in shared.txt nothing of what landed is left']],
  [
    'a deleted test',
    { 'shared.txt': 'of base\nof tip\n', 'test/a.test.js': '' },
    ['the test test/a.test.js was deleted, and it had no conflict'],
  ],
] as const)('Q23: a conflict that is resolved with %s', async (_, files, problems) => {
  const world = worldOfTest()
  const commit = (written: Readonly<Record<string, string>>): string => {
    for (const [path, text] of Object.entries(written)) {
      if (text === '') world.git('rm', '-q', path)
      else world.write(path, text)
    }
    world.git('add', '-A')
    world.git('commit', '-q', '--allow-empty', '-m', 'x')
    return world.git('rev-parse', 'HEAD').trim()
  }
  const fork = commit({ 'shared.txt': 'as it was\n', 'test/a.test.js': 'true\n' })
  const base = commit({ 'shared.txt': 'of base\n' })
  world.git('checkout', '-q', '--detach', fork)
  const tip = commit({ 'shared.txt': 'of tip\n' })
  const { tree, conflicts } = await mergeCommits(world.gitPort, base, tip)
  const marked = await markedCommit(world.gitPort, tree, tip, base)
  world.git('checkout', '-q', '--detach', marked)
  const resolved = commit(files)
  const judged = await judgeResolution(
    world.gitPort,
    { base, tip, paths: conflicts, marked, isBegun: true },
    resolved,
  )
  expect([conflicts, judged]).toEqual([['shared.txt'], problems])
})
