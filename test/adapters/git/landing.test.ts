// The tree in which merges are tried out: what is in it is what lands, and nothing of anybody else's is touched.
import { appendFileSync, chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  carryHome,
  landedRef,
  landingBase,
  markedCommit,
  mergeSince,
  moveLanded,
  notLandedOn,
  startOf,
  targetRefs,
  wasIn,
} from '../../../src/adapters/git/landing/landing.ts'
import {
  closeScratchTree,
  commitScratch,
  openScratchTree,
  setUpPaths,
  strayPaths,
} from '../../../src/adapters/git/landing/scratch.ts'
import { worldOfTest } from './world.ts'
import type { World } from './world.ts'

function started(): { readonly world: World; readonly head: string } {
  const world = worldOfTest()
  world.write('code.txt', 'one\n')
  world.write('sub/more.txt', 'two\n')
  world.write('.gitignore', '*.cache\n')
  world.git('add', '-A')
  world.git('commit', '-qm', 'start')
  return { world, head: world.git('rev-parse', 'HEAD').trim() }
}

const nothing: (path: string) => boolean = () => false

it('I1: whatever hides it from git, an edit of a gate is seen; what .gitignore and the set-up leave is none', async () => {
  const { world, head } = started()
  const scratch = await openScratchTree(world.gitPort, head)
  const inTree = (path: string): string => join(scratch.worktree, path)
  const stray = (isSetUp = nothing): Promise<readonly string[]> => strayPaths(scratch, head, isSetUp)
  writeFileSync(inTree('left.cache'), 'x')
  expect(await stray()).toEqual([])
  world.write('.git/info/exclude', 'hidden.txt\nvenv/\n')
  world.git('config', '--global', 'core.excludesFile', join(world.root, 'home', 'ignore'))
  writeFileSync(join(world.root, 'home', 'ignore'), 'global.txt\n')
  mkdirSync(inTree('venv'))
  writeFileSync(inTree('venv/a'), '')
  const isSetUp = await setUpPaths(scratch)
  writeFileSync(inTree('venv/b'), '')
  writeFileSync(inTree('hidden.txt'), '')
  writeFileSync(inTree('global.txt'), '')
  expect(await stray(isSetUp)).toEqual(['global.txt', 'hidden.txt'])
  const commit = await commitScratch(scratch, [head], 'x', undefined, { folders: [], isSetUp })
  expect(world.git('diff', '--name-only', head, commit)).toBe('global.txt\nhidden.txt\n')
  for (const path of ['hidden.txt', 'global.txt', 'venv']) rmSync(inTree(path), { recursive: true })
  world.git('-C', scratch.worktree, 'reset', '-q', head)
  world.git('-C', scratch.worktree, 'update-index', '--assume-unchanged', 'code.txt')
  world.git('-C', scratch.worktree, 'update-index', '--skip-worktree', 'sub/more.txt')
  world.git('config', 'core.fileMode', 'false')
  appendFileSync(inTree('code.txt'), 'hidden\n')
  rmSync(inTree('sub/more.txt'))
  chmodSync(inTree('.gitignore'), 0o755)
  expect(await stray()).toEqual(['.gitignore', 'code.txt', 'sub/more.txt'])
  world.git('-C', scratch.worktree, 'commit', '-q', '--allow-empty', '-m', 'by the gate')
  expect(await stray()).toEqual(['.gitignore', 'code.txt', 'sub/more.txt'])
})

it('I1: in a sparse checkout the landing tree is whole, and so is what is made of it; a folder that must not be ignored lands with everything in it', async () => {
  const { world, head } = started()
  world.git('sparse-checkout', 'set', '--no-cone', 'code.txt')
  expect(existsSync(join(world.dir, 'sub/more.txt'))).toBe(false)
  const scratch = await openScratchTree(world.gitPort, head)
  expect([
    existsSync(join(scratch.worktree, 'sub/more.txt')),
    await strayPaths(scratch, head, nothing),
  ]).toEqual([true, []])
  mkdirSync(join(scratch.worktree, 'archive'))
  writeFileSync(join(scratch.worktree, 'archive/a.cache'), 'x')
  const how = { folders: ['archive'], isSetUp: nothing }
  const commit = await commitScratch(scratch, [head], 'x', undefined, how)
  expect(world.git('diff', '--name-status', head, commit)).toBe('A\tarchive/a.cache\n')
})

it('Q6 I6: a landing tree that was half made is made anew; a folder of somebody else’s in its place is left alone', async () => {
  const { world, head } = started()
  const dir = `${world.dir}-ralph--landing`
  mkdirSync(dir)
  writeFileSync(join(dir, 'mine.txt'), 'of the user\n')
  await expect(openScratchTree(world.gitPort, head)).rejects.toThrow('is in the way')
  expect(existsSync(join(dir, 'mine.txt'))).toBe(true)
  // As a kill leaves it: the mark is there, and of the tree only a part.
  mkdirSync(join(world.dir, '.git/ralph/queue'), { recursive: true })
  writeFileSync(join(world.dir, '.git/ralph/queue/landing-tree'), dir)
  const scratch = await openScratchTree(world.gitPort, head)
  expect([existsSync(join(dir, 'mine.txt')), existsSync(join(dir, 'code.txt'))]).toEqual([false, true])
  world.git('worktree', 'lock', scratch.worktree)
  await closeScratchTree(world.gitPort)
  expect(existsSync(dir)).toBe(false)
  await openScratchTree(world.gitPort, head)
})

it('Q4 I2 I4: what landed and what the user committed are the same merge whenever it is asked for; a branch that was moved since is not carried, and one that was set back is known', async () => {
  const { world, head } = started()
  const git = world.gitPort
  const old = (name: string, parent: string): string =>
    world.git('-c', 'user.name=x', 'commit-tree', '-p', parent, '-m', name, `${head}^{tree}`).trim()
  const landed = old('landed', head)
  world.git('checkout', '-q', '--detach')
  expect(await moveLanded(git, 'main', landed, undefined)).toBe(true)
  expect(await moveLanded(git, 'main', old('other', head), undefined)).toBe(false)
  world.git('branch', '-qf', 'main', old('mine', head))
  expect(await carryHome(git, 'main', landed, head)).toBe('main was moved meanwhile')
  const base = await landingBase(git, 'main', await targetRefs(git, 'main'))
  const merged = 'commit' in base ? base.commit : ''
  expect(world.git('show', '-s', '--format=%ct', merged)).toBe(
    world.git('show', '-s', '--format=%ct', 'main'),
  )
  expect(await wasIn(git, 'main', landed)).toBe(false)
  world.git('branch', '-qf', 'main', merged)
  world.git('branch', '-qf', 'main', head)
  expect(await wasIn(git, 'main', landed)).toBe(true)
  expect(world.git('rev-parse', landedRef('main')).trim()).toBe(landed)
})

it('I1: a merge since a start takes only what was done since, and a run that put a conflict together began at what had landed', async () => {
  const { world, head } = started()
  const git = world.gitPort
  const commit = (path: string, text: string): string => {
    world.write(path, text)
    world.git('add', '-A')
    world.git('commit', '-qm', path)
    return world.git('rev-parse', 'HEAD').trim()
  }
  const start = commit('secret.txt', 'key\n')
  const initial = commit('plan.md', 'plan\n')
  const tip = commit('code.txt', 'one\nmine\n')
  expect(await startOf(git, initial, tip)).toBe(start)
  const { tree, conflicts } = await mergeSince(git, start, head, tip)
  expect([conflicts, world.git('diff', '--name-only', head, tree)]).toEqual([[], 'code.txt\nplan.md\n'])
  world.git('reset', '-q', '--hard', head)
  const other = commit('code.txt', 'one\nother\n')
  expect((await mergeSince(git, start, other, tip)).conflicts).toEqual(['code.txt'])
  // Rebased by hand: the branch has its start no longer.
  expect(await startOf(git, initial, other)).toBe(undefined)
  world.git('reset', '-q', '--hard', await markedCommit(git, tree, tip, other))
  expect(await startOf(git, commit('both.txt', ''), world.git('rev-parse', 'HEAD').trim())).toBe(other)
})

it('I2 Q3: a branch that a rebase will move at its end, or that is only a name for another one, stays where it is, and it is said why', async () => {
  const { world, head } = started()
  const git = world.gitPort
  const on = (branch: string, text: string): void => {
    world.git('checkout', '-q', '-b', branch)
    world.write('code.txt', text)
    world.git('commit', '-qam', branch)
  }
  on('old', 'old\n')
  world.git('checkout', '-q', 'main')
  on('middle', 'middle\n')
  on('top', 'top\n')
  expect(() => world.git('rebase', '-q', '--update-refs', 'old')).toThrow()
  const middle = world.git('rev-parse', 'middle').trim()
  const landed = world.git('commit-tree', '-p', middle, '-m', 'landed', `${head}^{tree}`).trim()
  await moveLanded(git, 'middle', landed, undefined)
  expect(await carryHome(git, 'middle', landed, middle)).toBe(`middle is being rebased in ${world.dir}`)
  expect(world.git('rev-parse', 'middle').trim()).toBe(middle)
  world.git('rebase', '--abort')
  expect(await carryHome(git, 'middle', landed, middle)).toBe('')
  world.git('symbolic-ref', 'refs/heads/other', 'refs/heads/top')
  const top = world.git('rev-parse', 'top').trim()
  const onTop = world.git('commit-tree', '-p', top, '-m', 'landed', `${head}^{tree}`).trim()
  await moveLanded(git, 'other', onTop, undefined)
  expect(await carryHome(git, 'other', onTop, top)).toBe('other is only another name for top')
  expect(world.git('rev-parse', 'top').trim()).toBe(top)
  await expect(targetRefs(git, 'other')).rejects.toThrow('other is only another name for top')
})

it('I1: what an agent puts where landed work goes behind the one look at it is no base for anybody, and no branch follows to it', async () => {
  const { world, head } = started()
  const git = world.gitPort
  const commit = (name: string): string =>
    world.git('-c', 'user.name=x', 'commit-tree', '-p', head, '-m', name, `${head}^{tree}`).trim()
  const [landed, evil] = [commit('landed'), commit('evil')]
  world.git('checkout', '-q', '--detach')
  const before = await targetRefs(git, 'main')
  world.git('update-ref', landedRef('main'), evil)
  expect(await landingBase(git, 'main', before)).toEqual({ commit: head })
  expect(await notLandedOn(git, 'main', [evil], before)).toEqual([evil])
  expect(await carryHome(git, 'main', landed, head)).toBe('')
  expect(world.git('rev-parse', 'main').trim()).toBe(landed)
})
