// A user who is still writing while an attempt is kept and reverted: nothing of it is in no ref.
import { afterEach, describe, expect, it } from 'vitest'
import { makeWorld, type World } from './world.ts'

const worlds: World[] = []
afterEach(() => {
  for (const made of worlds.splice(0)) made.end()
})

describe.each(['branch', 'stash'] as const)(
  'O3, found by torture: between keep and revert (%s)',
  (strategy) => {
    it('what the user writes there is kept with the attempt before it is undone', async () => {
      const w = makeWorld()
      worlds.push(w)
      const checkpoints = w.checkpoints(strategy, { clock: { now: () => Date.now() } })
      await checkpoints.preflight('start')
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      await w.note({
        type: 'iteration.started',
        n: 1,
        story_id: '1',
        attempt: 1,
        attempts: 4,
        max_iterations: 4,
        agent: 'command',
        base_commit: '',
        log_file: '',
      })
      w.write('agent.txt', 'by the agent\n')
      await checkpoints.keep(1)
      w.write('late.txt', 'by the user, late\n')
      w.write('a.txt', 'edited by the user, late\n')
      await checkpoints.restore()
      expect(w.read('a.txt')).toBe('one\n')
      const attempt = 'refs/ralph/demo/attempts/1'
      expect(w.user('show', `${attempt}:late.txt`)).toBe('by the user, late\n')
      expect(w.user('show', `${attempt}:a.txt`)).toBe('edited by the user, late\n')
      expect(w.user('show', `${attempt}:agent.txt`)).toBe('by the agent\n')
      expect(w.user('show', '-s', '--format=%B', attempt)).toContain('Ralph-Base: ')
    })

    it('what the user commits there stays on the user’s branch; on the loop’s it is named, with the command that brings it back', async () => {
      const w = makeWorld()
      worlds.push(w)
      w.write('notes.txt', 'not committed\n')
      const checkpoints = w.checkpoints(strategy, { clock: { now: () => Date.now() } })
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      w.write('agent.txt', 'by the agent\n')
      w.write('a.txt', 'by the agent\n')
      await checkpoints.keep(1)
      w.write('late.txt', 'by the user, late\n')
      w.user('add', 'late.txt', 'notes.txt')
      w.user('commit', '-qm', 'late')
      const commit = w.user('rev-parse', '--short=12', 'HEAD').trim()
      await checkpoints.restore()
      const told = w.journal.flatMap((event) => (event.type === 'warning' ? [event.message] : [])).join('\n')
      if (strategy === 'branch') {
        expect(told).toContain(`git cherry-pick ${commit} brings it back`)
        expect(w.user('show', `refs/ralph/demo/moved/1/beside/${commit}:late.txt`)).toBe(
          'by the user, late\n',
        )
      } else {
        expect(told).not.toContain(commit)
        expect(w.user('rev-parse', '--short=12', 'main').trim()).toBe(commit)
        expect(w.user('status', '--porcelain')).toBe('')
        expect(w.read('late.txt')).toBe('by the user, late\n')
      }
      expect([w.read('a.txt'), w.read('notes.txt')]).toEqual(['one\n', 'not committed\n'])
      // And it goes on from there.
      await checkpoints.ensure('1')
      expect(w.user('status', '--porcelain')).not.toContain('agent.txt')
    })
  },
)
