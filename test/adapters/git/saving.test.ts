import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { makeWorld, type Strategy, type World } from './world.ts'

let w: World
afterEach(() => w.end())

const iteration = {
  type: 'iteration.started',
  n: 1,
  story_id: '1',
  attempt: 1,
  attempts: 1,
  max_iterations: 1,
  agent: 'command',
  base_commit: '',
  log_file: '',
} as const

/** An attempt that wrote work.txt, kept and waiting to be saved. */
async function attempted(strategy: Strategy): Promise<{
  checkpoints: ReturnType<World['checkpoints']>
  tree: string
}> {
  w = makeWorld()
  const checkpoints = w.checkpoints(strategy)
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  await w.note(iteration)
  w.write('work.txt', 'work\n')
  const { tree, refused } = await checkpoints.keep(1, true)
  expect(refused).toBe(undefined)
  return { checkpoints, tree }
}

describe.each<Strategy>(['branch', 'stash'])('O14: between the gates and the checkpoint (%s)', (strategy) => {
  it('M6: the tree that passed is saved', async () => {
    const { checkpoints, tree } = await attempted(strategy)
    expect(await checkpoints.look(tree)).toEqual({ tree, stirred: [], lost: undefined })
    const saved = await checkpoints.save('1', 'checkpoint: 1', { tree, isBinding: true, mayDiffer: '' })
    expect(saved).toMatchObject({ changed: true })
    expect(w.git('rev-parse', `${saved.commit}^{tree}`).trim()).toBe(tree)
  })

  it('M6: another tree is refused with what differs, and the checkpoint stays where it is', async () => {
    const { checkpoints, tree } = await attempted(strategy)
    const before = w.git('rev-parse', 'refs/ralph/demo/checkpoint')
    w.write('work.txt', 'broken\n')
    const saved = await checkpoints.save('1', 'checkpoint: 1', { tree, isBinding: true, mayDiffer: '' })
    expect(saved.refused).toMatchObject({ stirred: ['work.txt'], lost: undefined })
    expect(w.git('rev-parse', 'refs/ralph/demo/checkpoint')).toBe(before)
    const now = saved.refused?.tree ?? ''
    const again = await checkpoints.save('1', 'checkpoint: 1', { tree: now, isBinding: true, mayDiffer: '' })
    expect(w.git('show', `${again.commit}:work.txt`)).toBe('broken\n')
  })

  it('C1: what came beside the attempts, and a later one removes, is told with its way back', async () => {
    const { checkpoints } = await attempted(strategy)
    w.write('while the gates ran.txt', 'mine\n')
    w.write('src/b.txt', 'edited while the gates ran\n')
    await checkpoints.save('1', 'checkpoint: 1', undefined)
    w.write('between.txt', 'mine\n')
    await checkpoints.ensure('2')
    await w.note({ ...iteration, n: 2, story_id: '2' })
    const own = ['between.txt', 'src/b.txt', 'while the gates ran.txt']
    for (const path of [...own, 'work.txt']) rmSync(join(w.dir, path))
    const { gone } = await checkpoints.keep(2, true)
    expect(gone.map(({ path }) => path)).toEqual(own)
    for (const { restore } of gone) execFileSync('sh', ['-c', restore], { cwd: w.dir })
    expect(own.map((path) => w.read(path))).toEqual(['mine\n', 'edited while the gates ran\n', 'mine\n'])
  })

  it('G25: kept again after its revert, an attempt holds what was undone as well as what was edited since', async () => {
    const { checkpoints } = await attempted(strategy)
    await checkpoints.restore()
    w.write('src/b.txt', 'edited since\n')
    const { commit } = await checkpoints.keep(1)
    const show = (path: string): string => w.git('show', `${commit}:${path}`)
    expect([show('work.txt'), show('src/b.txt')]).toEqual(['work\n', 'edited since\n'])
  })

  it('boxes that ralph itself has ticked since are no difference', async () => {
    const { checkpoints, tree } = await attempted(strategy)
    w.write('täsks.md', '- [x] 1.1\n')
    const judged = { tree, isBinding: true, mayDiffer: 'täsks.md' }
    const saved = await checkpoints.save('1', 'checkpoint: 1', judged)
    expect(saved.refused).toBeUndefined()
    expect(w.git('show', `${saved.commit}:täsks.md`)).toBe('- [x] 1.1\n')
  })

  it('without gates what is there is saved, unless the work is gone', async () => {
    const { checkpoints, tree } = await attempted(strategy)
    const judged = { tree, isBinding: false, mayDiffer: '' }
    w.git('stash', 'push', '-q', '-u', '-m', 'mine')
    const gone = await checkpoints.save('1', 'checkpoint: 1', judged)
    expect(gone.refused?.lost).toMatch(/somebody stashed the work tree .*mine/)
    w.git('stash', 'pop', '-q')
    w.write('more.txt', 'more\n')
    const saved = await checkpoints.save('1', 'checkpoint: 1', judged)
    expect(w.git('show', `${saved.commit}:more.txt`)).toBe('more\n')
  })

  it('without gates what was kept is saved; what a person writes in that moment stays, and is found before the next attempt', async () => {
    const { checkpoints, tree } = await attempted(strategy)
    w.write('mine.txt', 'mine\n')
    const saved = await checkpoints.save('1', 'checkpoint: 1', { tree, isBinding: false, mayDiffer: '' })
    expect(w.git('rev-parse', `${saved.commit}^{tree}`).trim()).toBe(tree)
    await checkpoints.ensure('2')
    await w.note({ ...iteration, n: 2, story_id: '2' })
    rmSync(join(w.dir, 'mine.txt'))
    await checkpoints.keep(2)
    await checkpoints.restore()
    expect([w.read('mine.txt'), w.read('work.txt')]).toEqual(['mine\n', 'work\n'])
  })

  it('without gates what ralph has put back since the attempt was kept is in the checkpoint', async () => {
    const { checkpoints, tree } = await attempted(strategy)
    w.write('work.txt', 'put back\n')
    const saved = await checkpoints.save('1', 'checkpoint: 1', { tree, isBinding: false, mayDiffer: '' })
    expect(w.git('show', `${saved.commit}:work.txt`)).toBe('put back\n')
  })

  it('what was undone is told as that', async () => {
    const { checkpoints, tree } = await attempted(strategy)
    w.git('clean', '-fdq')
    expect((await checkpoints.look(tree)).lost).toContain('undone')
  })

  it.each([
    ['a gate', 'a gate switched the work tree to feature;'],
    ['somebody else', 'somebody switched the work tree to feature while the gates ran;'],
  ])('O3: %s that switches the work tree is named as such', async (who, words) => {
    const { checkpoints, tree } = await attempted(strategy)
    w.user('branch', 'feature', 'main')
    const watched = await checkpoints.watch('gate', 1)
    const env = { ...w.env, ...(who === 'a gate' && watched) }
    execFileSync('git', ['checkout', '-q', 'feature'], { cwd: w.dir, env })
    execFileSync('git', ['clean', '-fdq'], { cwd: w.dir, env })
    expect((await checkpoints.look(tree)).lost).toContain(words)
  })
})
