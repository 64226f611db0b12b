// Section 6.9: lock files of git's are moved away only where nobody can still be using them.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ownerOfLock, type LockFacts } from '../../../src/core/ownership.ts'
import { makeWorld, type World } from './world.ts'

function world(): World {
  const made = makeWorld()
  onTestFinished(() => made.end())
  return made
}

describe.skipIf(process.platform !== 'linux')('section 6.9: whose lock is it', () => {
  it('a lock that a process other than git holds open (libgit2, an IDE) is not moved away', async () => {
    const w = world()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const lock = join(w.dir, '.git/index.lock')
    const script = `require('fs').openSync(process.argv[1], 'wx'); console.log('held'); setInterval(() => {}, 1e6)`
    const editor = spawn(process.execPath, ['-e', script, lock], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void editor.kill())
    await once(editor.stdout, 'data')
    expect((await checkpoints.keep(1)).warnings).toEqual([])
    expect(existsSync(lock)).toBe(true)
    await expect(checkpoints.restore()).rejects.toThrow(
      new RegExp(`index\\.lock is there: process ${editor.pid} \\(node\\) has it open`),
    )
    editor.kill()
    await once(editor, 'exit')
    rmSync(lock)
    expect((await w.checkpoints().recover()).said).toContain('completed')
  })

  it('L: one that somebody left during an attempt is moved away, and nobody is blamed for it', async () => {
    const w = world()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const lock = join(w.dir, '.git/index.lock')
    writeFileSync(lock, 'of an IDE that was killed')
    const [told = ''] = (await checkpoints.keep(1)).warnings
    expect(told).toMatch(/^index\.lock was made during the attempt, and no process has it open any more/)
    expect(told).not.toContain('agent')
    const [, to = ''] = /moved away, to (.*)$/.exec(told) ?? []
    expect([existsSync(lock), readFileSync(to, 'utf8')]).toEqual([false, 'of an IDE that was killed'])
  })

  it('a lock that was there before the attempt began is not moved away', async () => {
    const w = world()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    const lock = join(w.dir, '.git/refs/heads/mine.lock')
    writeFileSync(lock, '')
    await checkpoints.ensure('1')
    expect((await checkpoints.keep(1)).warnings).toEqual([])
    expect(existsSync(lock)).toBe(true)
  })

  const left: LockFacts = {
    isInOwnFolder: false,
    holders: [],
    isGitAtWork: false,
    isOfAttempt: true,
    ageMs: 60_000,
  }
  it.each<[string, Partial<LockFacts>, string]>([
    ['of the attempt, quiet, nobody’s any more', {}, 'agent'],
    ['held open', { holders: [4711] }, 'user'],
    ['while a git is at work', { isGitAtWork: true }, 'user'],
    ['older than the attempt', { isOfAttempt: false }, 'user'],
    ['made just now', { ageMs: 100 }, 'unknown'],
    ['where nobody can look', { holders: undefined }, 'unknown'],
    ['in ralph’s own folder', { isInOwnFolder: true, isOfAttempt: false, isGitAtWork: true }, 'ralph'],
    ['in ralph’s own folder, held open', { isInOwnFolder: true, holders: [4711] }, 'user'],
    ['in ralph’s own folder, where nobody can look', { isInOwnFolder: true, holders: undefined }, 'ralph'],
  ])('%s', (_, facts, owner) => {
    expect(ownerOfLock({ ...left, ...facts }).owner).toBe(owner)
  })
})
