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
  expect(told).not.toMatch(/You marked|ralph done|story manual|0 of 0 tasks/)
  // What the run before did is its own: nothing of the merge is done.
  const [before = '', merging = ''] = history.split(/^d {2}this run$/m)
  expect([before, merging]).toEqual([
    expect.stringMatching(/^d {2}run 1,[^]*#1 .*Story 1 .*✓ done[^]*#2 .*Story 2 .*✓ done/),
    expect.not.stringContaining('✓ done'),
  ])
  expect(told.replace(before, '')).not.toContain('✓ done')
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

  // B9: merged by hand, with both runs' work and one count.
  const landed = at.git('rev-parse', 'refs/ralph-landed/main')
  const text = await look('report')
  expect(text).toMatch(/^ {2}2 of 2 stories, merge of both sides: done, 4 of 4 tasks, 4 attempts, /m)
  expect(text).toMatch(
    /✓ 1 Story 1 {3}#1 of run 1 [^]*work\/d\.txt\n[^]*✓ 2 Story 2 {3}#2 of run 1 [^]*✓ merge .* {3}by hand, gate green [^]*✕ #1 refused[^]*✕ #2 refused[^]* {4}1 file: shared\.txt\n/,
  )
  expect(text).toContain(`  work    landed on main as ${landed.slice(0, 7)}; your main is not updated yet\n`)
  expect(text).not.toContain('word only')
  expect(await look('history')).toMatch(/✓ by hand .*gate green; 1 file: shared\.txt/)
  const status = await look('status')
  expect(status).toMatch(
    /stories +2\/2 done, merge of both sides: done\n +attempts +2, and 2 before the merge\n/,
  )
  expect(status).not.toContain('last try')
  expect((await report(at)).entries).toMatchObject([{ stories_done: 2, stories_total: 2 }])
  const whole = await ralph(at, ['diff', '--all', 'd'])
  expect(whole.stdout.trim()).toBe(at.git('diff', '--full-index', '--binary', `${landed}^`, landed))
  // Nor is it forgotten once its folder and its branch are gone.
  at.git('worktree', 'remove', '--force', `${at.repo}-ralph-d`)
  at.git('branch', '-qD', 'ralph/d')
  expect((await report(at)).entries).toMatchObject([{ stories_done: 2, stories_total: 2 }])
  expect(await look('report')).toMatch(/ {2}work {4}landed on main as [^]*✓ merge .* {3}by hand, gate green /)
  expect((await ralph(at, ['diff', '--all', 'd'])).stdout).toBe(whole.stdout)
})
