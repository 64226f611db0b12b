// Files of the user's that were in no commit when a loop began in their own checkout: none of them lands without their word.
import { expect, it } from 'vitest'
import { goodAgent, ralph, scratch, tasksOf } from './harness.ts'

it('F9: what the user had not committed when the loop began does not land: it is named, and lands once they have committed it', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('README.md', '# mine\n')
  at.write('notes.txt', 'mine\n')
  const looped = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--on-complete', 'keep'])
  expect(looped.code).toBe(0)
  at.git('switch', '-q', 'main')
  const land = ['land', 'demo', '--verify', 'true']
  const refused = await ralph(at, land)
  expect(refused.code).not.toBe(0)
  expect(refused.stdout).toMatch(/holds files that you had not committed .*: README\.md, notes\.txt/)
  expect(refused.stdout).toContain('ralph finish demo --squash')
  expect(at.git('for-each-ref', 'refs/ralph-landed')).toBe('')
  at.write('README.md', '# mine\n')
  at.write('notes.txt', 'mine\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'mine')
  expect((await ralph(at, land)).code).toBe(0)
  expect(at.git('diff', '--name-only', 'main', 'refs/ralph-landed/main')).not.toMatch(/README|notes/)
})
