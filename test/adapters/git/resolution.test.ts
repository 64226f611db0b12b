// What an agent made of a conflict: what is refused, and what may land.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { markedCommit, mergeCommits } from '../../../src/adapters/git/landing/landing.ts'
import { judgeResolution, markersLeft } from '../../../src/adapters/git/landing/resolution.ts'
import type { Conflict } from '../../../src/core/queue.ts'
import { makeWorld } from './world.ts'

const middle = Array.from({ length: 8 }, (_, at) => `line ${at} of the middle\n`).join('')
const two = (first: string, last: string): string => `${first}\n${middle}${last}\n`
const check = (name: string, value: string): string => `it('${name}', () => expect(f()).toBe(${value}))\n`
const started = {
  'shared.txt': 'as it was\n',
  'two.js': two('const a = 1', 'const z = 1'),
  'call.js': 'call(one)\n',
  'test/a.test.js': 'true\n',
  'both.test.js': check('old', '1') + middle + check('end', '9'),
  'gone.js': 'function old() { return 1 }\n',
  'other.js': 'of nobody\n',
  'landed.js': 'nothing\n',
}
const more = '// and much more, so that nobody takes it for the same file\n'
const both = {
  'shared.txt': 'of base\nof tip\n',
  'two.js': two('const a = add(2, 3)', 'const z = add(4, 5)'),
  'call.js': 'call(one, landed, own)\n',
  'both.test.js': check('old', '1') + middle + check('landed', '2') + check('own', '3') + check('end', '9'),
  'gone.js': '',
  'new.js': `function old() { return compute(7, { own: true }) }\n${more}`,
}
const landedTest = check('old', '1') + middle + check('landed', '2') + check('end', '9')
const ownTest = check('old', '1') + middle + check('own', '3') + check('end', '9')

const world = makeWorld()
afterAll(() => world.end())
let conflict: Conflict

function commit(written: Readonly<Record<string, string | undefined>>): string {
  for (const [path, text] of Object.entries(written)) {
    if (text === undefined) continue
    if (text === '') world.git('rm', '-q', '--ignore-unmatch', path)
    else world.write(path, text)
  }
  world.git('add', '-A')
  world.git('commit', '-q', '--allow-empty', '-m', 'x')
  return world.git('rev-parse', 'HEAD').trim()
}

beforeAll(async () => {
  const fork = commit(started)
  const base = commit({
    'shared.txt': 'of base\n',
    'two.js': two('const a = 2', 'const z = 4'),
    'call.js': 'call(one, landed)\n',
    'both.test.js': landedTest,
    'gone.js': '',
    'new.js': `function old() { return 1 }\n${more}`,
    'landed.js': 'what the other change brought here\n',
  })
  world.git('checkout', '-q', '--detach', fork)
  const tip = commit({
    'shared.txt': 'of tip\n',
    'two.js': two('const a = 3', 'const z = 5'),
    'call.js': 'call(one, own)\n',
    'both.test.js': ownTest,
    'gone.js': 'function old() { return compute(7, { own: true }) }\n',
  })
  const { tree, conflicts: paths } = await mergeCommits(world.gitPort, base, tip)
  expect(paths).toEqual(['both.test.js', 'call.js', 'gone.js', 'shared.txt', 'two.js'])
  const marked = await markedCommit(world.gitPort, tree, tip, base)
  conflict = { base, tip, paths, marked, generated: [], isBegun: true, problems: [] }
})

it.each([
  ['both sides', {}, []],
  ['a file beside it that had to follow', { 'other.js': 'of nobody, with both\n' }, []],
  [
    'markers',
    { 'shared.txt': undefined, 'two.js': `${both['two.js']}=======\n` },
    ['shared.txt has conflict markers', 'two.js has conflict markers'],
  ],
  ['only what landed', { 'shared.txt': 'of base\n' }, ['in shared.txt what this change did was dropped']],
  ['only its own', { 'shared.txt': 'of tip\n' }, ['in shared.txt what landed was dropped']],
  [
    'only what landed and a blank line',
    { 'shared.txt': '\n  of   base\n\n' },
    ['in shared.txt what this change did was dropped'],
  ],
  [
    'only its own and a remark',
    { 'call.js': '// put together\ncall(one, own)\n' },
    ['in call.js what landed was dropped'],
  ],
  [
    'one of two hunks',
    { 'two.js': two('const a = add(2, 3)', 'const z = 4') },
    ['in two.js what this change did was dropped'],
  ],
  ['a conflicted file deleted', { 'shared.txt': '' }, ['shared.txt was deleted, and both sides have it']],
  ['another file deleted', { 'other.js': '' }, ['other.js was deleted, and it had no conflict']],
  [
    'what landed in another file taken back',
    { 'landed.js': 'nothing\n' },
    ['in landed.js what landed was dropped'],
  ],
  [
    'a moved function without what this change did to it',
    { 'new.js': `function old() { return 1 }\n${more}// put together\n` },
    ['in gone.js what this change did was dropped'],
  ],
  [
    'a deleted test',
    { 'test/a.test.js': '' },
    ['the test test/a.test.js was deleted, and it had no conflict'],
  ],
  [
    'a changed test',
    { 'test/a.test.js': 'true || true\n' },
    ['the test test/a.test.js was changed, and it had no conflict'],
  ],
  [
    'a test without a line of the base',
    { 'both.test.js': both['both.test.js'].replace(check('end', '9'), '') },
    [expect.stringContaining('the test both.test.js lost a line that had no conflict')],
  ],
  [
    'a test that is skipped',
    { 'both.test.js': both['both.test.js'].replace("it('own'", "it.skip('own'") },
    ['the test both.test.js skips what neither side skips'],
  ],
] as const)('Q23: a conflict that is resolved with %s', async (_, files, problems) => {
  world.git('checkout', '-q', '--detach', conflict.marked)
  const judged = await judgeResolution(world.gitPort, conflict, commit({ ...both, ...files }))
  expect(judged.problems).toEqual(problems)
  const beside = Object.keys(files).filter((path) => !conflict.paths.includes(path))
  expect(judged.beside).toEqual(expect.arrayContaining(beside))
})

it('Q23: a conflict that is resolved with another mode of a file than both sides give it', async () => {
  const { tip } = conflict
  world.git('checkout', '-q', '--detach', conflict.base)
  world.git('update-index', '--chmod=+x', 'shared.txt', 'other.js')
  world.git('commit', '-qm', 'modes')
  const base = world.git('rev-parse', 'HEAD').trim()
  const { tree, conflicts: paths } = await mergeCommits(world.gitPort, base, tip)
  const marked = await markedCommit(world.gitPort, tree, tip, base)
  const judged = async (...drop: readonly string[]): Promise<unknown> => {
    world.git('checkout', '-qf', '--detach', marked)
    commit(both)
    if (drop.length > 0) world.git('update-index', '--chmod=-x', ...drop)
    world.git('commit', '-q', '--allow-empty', '-m', 'x')
    world.git('reset', '-q', '--hard')
    const now = world.git('rev-parse', 'HEAD').trim()
    return (await judgeResolution(world.gitPort, { ...conflict, base, paths, marked }, now)).problems
  }
  expect(await judged()).toEqual([])
  const words = 'has the mode 100644, and both sides together give 100755'
  expect(await judged('shared.txt', 'other.js')).toEqual([`shared.txt ${words}`, `other.js ${words}`])
})

it('Q23 I1: markers that a merge left are found in what would land, also half of them and without the merge; a file that is about markers is none', async () => {
  const { base, marked } = conflict
  const left = (tip: string): Promise<readonly string[]> =>
    markersLeft(world.gitPort, { base, tip, commit: tip })
  world.git('checkout', '-q', '--detach', marked)
  const all = ['both.test.js', 'call.js', 'shared.txt', 'two.js']
  expect([await left(marked), await left(commit({}))]).toEqual([all, all])
  expect(await left(commit({ ...both, 'shared.txt': 'of base\n=======\nof tip\n' }))).toEqual(['shared.txt'])
  const about = '<<<<<<< HEAD\na\n=======\nb\n>>>>>>> topic\n'
  expect(await left(commit({ ...both, 'markers.md': about }))).toEqual([])
  world.git('checkout', '-q', '--detach', base)
  world.git('read-tree', '-u', '--reset', marked)
  expect(await left(commit({ 'markers.md': about }))).toEqual(all)
})
