// A budget for all loops of the merge queue together, through the built program.
import { expect, it } from 'vitest'
import { ralph } from './harness.ts'
import { project, report } from './queue-kit.ts'
import { installClaude, spawned } from './usage-kit.ts'

it('Q17 I7: three loops at once share --max-cost: together they spend no more; with more all of them land', async () => {
  const at = project({ a: '', b: '', c: '' }, 3)
  installClaude(
    at,
    `mkdirSync('work', { recursive: true })
appendFileSync('work/' + process.env.RALPH_CHANGE + '.txt', process.env.RALPH_STORY)
text('<promise>COMPLETE</promise>')
success('')
`,
  )
  const up = ['up', '--jobs', '3', '--agent', 'claude', '--max-cost']
  const first = await ralph(at, [...up, '0.08'])
  expect([first.code, first.stderr]).toEqual([6, ''])
  const { entries, max_cost_usd: budget } = await report(at)
  const spent = entries.reduce((sum, { cost_usd: usd }) => sum + usd, 0)
  expect(budget).toBe(0.08)
  expect(spent).toBeGreaterThan(0.05)
  expect(spent).toBeLessThanOrEqual(0.08)
  const more = await ralph(at, [...up, '1'])
  expect([more.code, more.stderr]).toEqual([0, ''])
  expect(spawned(at)).toHaveLength(9)
})

it('Q17: --max-cost with an agent that has no price is refused with exit 2, as a loop refuses it, and nothing is touched; queue pull with a name is, too', async () => {
  const at = project({ a: '', b: '' }, 1)
  const before = at.git('for-each-ref')
  const refused = await ralph(at, ['up', '--max-cost', '5', ...at.args])
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--max-cost cannot be kept')])
  expect([(await report(at)).entries, at.git('for-each-ref')]).toEqual([[], before])
  const pull = await ralph(at, ['queue', 'pull', 'a'])
  expect([pull.code, pull.stderr]).toEqual([2, expect.stringContaining('ralph queue pull')])
})
