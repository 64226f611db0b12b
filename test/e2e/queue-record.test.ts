// The record of a change whose conflict an agent merged: its stories stay, a merge that was refused is not done, and nobody marked anything.
import { expect, it } from 'vitest'
import { ralph } from './harness.ts'
import { project, report } from './queue-kit.ts'

it('I1: a bare up merges a conflict with the agent and the gates of the change’s own run; a refused merge is told as refused, beside the change’s stories, and one that is accepted is nobody’s word', async () => {
  const at = project(
    {
      d: `case "$prompt" in *"Put two changes together"*)
  [ -f "$HOME/bad" ] || printf 'of main\\nof d\\n' > shared.txt; echo '<promise>COMPLETE</promise>'; exit;; esac
echo "of d" > shared.txt\n`,
    },
    2,
  )
  expect((await ralph(at, ['loop', 'd', '--worktree', ...at.args])).code).toBe(0)
  at.write('shared.txt', 'of main\n')
  at.git('commit', '-qam', 'main too')
  at.write('../home/bad', '')
  const refused = await ralph(at, ['up', 'd'])
  expect([refused.code, refused.stdout]).toEqual([3, expect.stringContaining('d: not yet: shared.txt has')])
  const look = async (...words: string[]): Promise<string> => (await ralph(at, [...words, 'd'])).stdout
  const history = await look('history')
  expect(history).toMatch(/#1 .*✕ refused[^]*#2 .*✕ refused/)
  const told = [history, await look('status'), await look('report'), await look('logs')].join('\n')
  expect(told).not.toMatch(/You marked|ralph done|story manual|0 of 0 tasks|✓ done/)
  expect(told).toMatch(/stories +2\/2 done, merge of both sides: open/)
  expect(await look('report')).toMatch(/Story 1[^]*Story 2[^]*Merge with what landed \(shared\.txt\)/)
  const [entry] = (await report(at)).entries
  expect(entry?.hint).not.toContain('leave it')

  at.git('-C', `${at.repo}-ralph-d`, 'reset', '-q', '--hard', 'HEAD~1')
  at.write('../repo-ralph-d/shared.txt', 'of main\nof d\n')
  at.git('-C', `${at.repo}-ralph-d`, 'commit', '-qam', 'Both sides')
  expect((await ralph(at, ['queue', 'retry', 'd'])).code).toBe(0)
  expect((await ralph(at, ['up'])).code).toBe(0)
  expect(await look('report')).toMatch(/✓ done[^]*Both sides are merged/)
  expect(await look('report')).not.toContain('You marked')
})
