// What a cleanup brought, and its user put away since: nobody calls that committed, or finished.
import { expect, test } from 'vitest'
import { goodAgent, ralph, scratch, tasksOf, type Scratch } from './harness.ts'

async function cleanedUp(): Promise<Scratch> {
  const at = scratch({ tasks: tasksOf(1) })
  const looped = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--on-complete', 'cleanup'])
  expect(looped.code).toBe(0)
  return at
}

const status = async (at: Scratch): Promise<string> => (await ralph(at, ['status', 'demo'])).stdout

test('F14: work that was stashed after a cleanup is not committed: where it is kept is said, and what brings it again', async () => {
  const at = await cleanedUp()
  at.git('stash', '-q', '-u')
  const kept = at.git('for-each-ref', '--format=%(refname)', 'refs/ralph/demo/archive')
  const said = await status(at)
  expect(said).toMatch(/ {2}work +brought to main by the cleanup at \S+, and not there any more/)
  expect(said).toMatch(new RegExp(`^ {2}next +git merge --squash ${kept} +bring it again$`, 'm'))
  expect(said).not.toContain('ralph loop demo')
  const squashed = await ralph(at, ['finish', 'demo', '--squash'])
  expect([squashed.code, squashed.stdout]).toEqual([1, ''])
  expect(squashed.stderr).toContain('The work of demo is not on main any more')
  // An edit of the user's own is not the loop's work.
  at.write('README.md', '# mine\n')
  expect(await status(at)).toContain('and not there any more')
  at.git('checkout', '-q', 'README.md')
  at.git('merge', '-q', '--squash', kept)
  expect(await status(at)).toMatch(/ {2}work +on main, uncommitted/)
  at.git('commit', '-qm', 'the work')
  expect(await status(at)).toMatch(/ {2}work +on main, committed/)
})

test('F14: work that was committed on another branch after a cleanup is said to be there', async () => {
  const at = await cleanedUp()
  at.git('switch', '-qc', 'feature')
  at.git('add', '-A')
  at.git('commit', '-qm', 'the work')
  expect(await status(at)).toMatch(/ {2}work +on feature, committed; brought to main by the cleanup at/)
  at.git('switch', '-q', 'main')
  expect(await status(at)).toContain('and not there any more')
})
