// Limits that tell the wrong time, and chains with agents that cannot run, through the whole built program (R8).
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { agentPath, standIn } from '../agents/kit.ts'
import { ralph, scratch, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'
import { expectTruth } from './truth.ts'

describe('reset times', () => {
  test.each(['99999999999999', '1e300', '-5', '1000'])(
    'R8: a limit that resets at %s: exit 6 by --limit-wait, asked once, everything recorded',
    async (resetsAt) => {
      const at = scratch({ tasks: tasksOf(1) })
      const env = { AGENT_LIMITS: '99', AGENT_RESETS_AT: resetsAt }
      const end = await loop(at, ['--agent', 'claude', '--limit-wait', '0.1'], env)
      expect(end.code).toBe(6)
      expectTruth(at, end)
      expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'limit' })
      expect(at.state().iterations.map(({ verdict }) => verdict)).toEqual(['limit'])
    },
  )

  test('R8: a journal with a reset time beyond every date, cut off there, is resumed', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const env = { AGENT_RESET_SECONDS: '3600' }
    expect((await loop(at, ['--agent', 'claude', '--limit-wait', '0.1'], env)).code).toBe(6)
    const journal = join(at.repo, '.git', 'ralph', 'changes', 'demo', 'journal.ndjson')
    const lines = readFileSync(journal, 'utf8').split('\n')
    const cut = lines.findIndex((line) => line.includes('"type":"checkpoint.reverted"'))
    const poisoned = lines.slice(0, cut + 1).join('\n')
    expect(poisoned).toContain('"resets_at_ms":')
    writeFileSync(journal, `${poisoned.replace(/"resets_at_ms":\d+/, '"resets_at_ms":99999999999999000')}\n`)
    const end = await ralph(at, ['resume', 'demo', '--json'], withBin(at))
    expect(end.stderr).toBe('')
    expect(end.code).toBe(0)
    expect(at.state()).toMatchObject({ status: 'done' })
  })
})

/** The kit's limited agent stands in for claude. */
function loop(at: Scratch, args: readonly string[], env: Record<string, string>): Promise<Finished> {
  mkdirSync(binOf(at), { recursive: true })
  standIn(binOf(at), 'claude', agentPath('claude-limited-once.mjs'))
  const variables = Object.entries({ AGENT_STATE: join(at.root, 'runs'), ...env }).flatMap(
    ([name, value]) => ['--agent-env', `${name}=${value}`],
  )
  return ralph(at, ['loop', 'demo', '--json', ...args, ...variables], withBin(at))
}

function binOf(at: Scratch): string {
  return join(at.root, 'bin')
}

function withBin(at: Scratch): { env: NodeJS.ProcessEnv } {
  return { env: { PATH: `${binOf(at)}:${at.env['PATH']}` } }
}
