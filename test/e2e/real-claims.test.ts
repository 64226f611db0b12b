// Gate-on-claim with the real CLIs through the whole built program, against the scripted model server.
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { agentPath } from '../agents/kit.ts'
import { pointedAt, realAgent, type RealAgent } from '../model-stub/real-agents.ts'
import type { Script, Step } from '../model-stub/script.ts'
import { modelServer, type ModelServer } from '../model-stub/server.ts'
import { eventsOf, ralph, scratch, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'
import { expectTruth } from './truth.ts'

const rows: readonly { title: string; name: RealAgent; agent: readonly string[] }[] = [
  { title: 'claude', name: 'claude', agent: ['--agent', 'claude'] },
  { title: 'codex', name: 'codex', agent: ['--agent', 'codex'] },
  {
    title: 'gemini --acp',
    name: 'gemini',
    agent: ['--agent', 'acp', '--agent-command', 'gemini --acp'],
  },
]

/** What passes only when made.txt is good, and says so when it is not. */
const gate = 'grep -q good made.txt || { echo "made.txt is not good"; exit 1; }'
const claim: Step = { do: 'tool', name: 'story_complete', input: { summary: 'all done' } }
const done: Step = { do: 'say', text: 'That was it.' }

for (const row of rows) {
  const { missing } = realAgent(row.name)
  const isSkipped = row.name === 'gemini' && missing !== ''
  describe.skipIf(isSkipped)(`16: real ${row.title}${isSkipped ? `, skipped: ${missing}` : ''}`, () => {
    test('its first claim is refused with what the gate printed, it mends it in the same session, the second is accepted: one attempt', async () => {
      const at = scratch({ tasks: tasksOf(1) })
      const made = (content: string): Step => ({ do: 'write', path: join(at.repo, 'made.txt'), content })
      const script = [made('bad'), claim, made('good'), claim, done]
      const server = await serve((call) => script[call.results] ?? done)
      const end = await loop(row, at, server, ['--verify', gate, '--max-retries', '0'])
      expect(end.code).toBe(0)
      const claims = eventsOf(end).flatMap((event) =>
        event.type === 'claim.judged' ? [`${event.claim} ${event.outcome}`] : [],
      )
      expect(claims).toEqual(['1 refused', '2 accepted'])
      expect(server.calls.every(({ hasClaims }) => hasClaims)).toBe(true)
      expect(server.calls[2]?.last).toContain('made.txt is not good')
      expect(server.calls[4]?.last).toContain('Accepted.')
      expect(at.state().iterations).toMatchObject([{ verdict: 'complete', attempt: 1, claims: 2 }])
      expect(at.read('made.txt')).toBe('good')
      const { stdout } = await ralph(at, ['logs', 'demo'])
      expect(stdout).toMatch(/claim 1 refused: .*made\.txt is not good/)
      expect(stdout).toContain('claim 2 accepted')
    })

    test('a claim for another story is none, and what it breaks after an accepted one is judged again: not complete', async () => {
      const at = scratch({ tasks: tasksOf(2) })
      const made = (content: string): Step => ({ do: 'write', path: join(at.repo, 'made.txt'), content })
      const other: Step = { ...claim, input: { summary: 'all done', story: '2' } }
      const script = [made('good'), other, claim, made('bad'), done]
      const server = await serve((call) => script[call.results] ?? done)
      const end = await loop(row, at, server, ['--verify', gate, '--max-retries', '0'])
      expect(end.code).toBe(3)
      const claims = eventsOf(end).flatMap((event) =>
        event.type === 'claim.judged' ? [`${event.claim} ${event.outcome}`] : [],
      )
      expect(claims).toEqual(['1 accepted'])
      expect(at.state()).toMatchObject({
        iterations: [{ verdict: 'gate_failed', story_id: '1' }],
        stories: [{ tasks_done: 0 }, { tasks_done: 0 }],
      })
    })

    test('a tool of it that finds the secret, or guesses one, cannot claim: not complete, and told', async () => {
      const at = scratch({ tasks: tasksOf(1) })
      const made: Step = { do: 'write', path: join(at.repo, 'made.txt'), content: 'good' }
      const steal = (guess = ''): Step => ({
        do: 'shell',
        command: `"${process.execPath}" ${agentPath('steals-claim.mjs')} ${guess}`,
      })
      const script = [made, steal(), steal('0'.repeat(48)), done]
      const server = await serve((call) => script[call.results] ?? done)
      const end = await loop(row, at, server, ['--max-retries', '0'])
      expect(end.code).toBe(3)
      expect(at.state().iterations).toMatchObject([{ verdict: 'none' }])
      const events = eventsOf(end)
      expect(events.some(({ type }) => type.startsWith('claim.'))).toBe(false)
      const warnings = events.flatMap((event) => (event.type === 'warning' ? [event.message] : []))
      expect(warnings).toContain(
        "A claim that is not the agent's was refused: the secret of this attempt was used before.",
      )
      expect(warnings).toContain(
        "A claim that is not the agent's was refused: it does not know the secret of this attempt.",
      )
      // No variable of the tool has it, and no file beside the socket.
      expect(server.calls[2]?.last.replaceAll('\\', '')).toContain('"beside":["s"],"own":[]')
    })

    test('--claims 0: it is offered nothing, and its text counts as ever', async () => {
      const at = scratch({ tasks: tasksOf(1) })
      const server = await serve(() => ({ do: 'say', text: 'Done.\n<promise>COMPLETE</promise>' }))
      const end = await loop(row, at, server, ['--claims', '0'])
      expect(end.code).toBe(0)
      expect(
        server.calls.some(({ hasClaims, prompt }) => hasClaims || prompt.includes('story_complete')),
      ).toBe(false)
    })
  })
}

async function loop(
  { name, agent }: (typeof rows)[number],
  at: Scratch,
  server: ModelServer,
  more: readonly string[],
): Promise<Finished> {
  const { env, model, passThrough } = pointedAt(name, server.url, join(at.root, 'home'))
  const args = ['demo', '--json', ...agent, '--model', model, ...more, '--', ...passThrough]
  // Gemini takes servers in a folder that it trusts, and in no other; and would begin a second time, for a larger heap.
  const trust = { GEMINI_CLI_TRUST_WORKSPACE: 'true', GEMINI_CLI_NO_RELAUNCH: 'true' }
  const PATH = `${realAgent(name).bin}:${at.env['PATH'] ?? ''}`
  const end = await ralph(at, ['loop', ...args], { env: { ...env, ...trust, PATH } })
  expectTruth(at, end)
  return end
}

async function serve(script: Script): Promise<ModelServer> {
  const server = await modelServer(script)
  onTestFinished(() => server.close())
  return server
}
