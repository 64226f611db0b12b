// `ralph mcp` in the hands of the real Claude Code and the real Codex, against the scripted model server.
import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { pointedAt, realAgent } from '../model-stub/real-agents.ts'
import type { Script, Step } from '../model-stub/script.ts'
import { modelServer, type ModelServer } from '../model-stub/server.ts'
import { eventsOf, goodAgent, program, ralph, scratch, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'
import { install } from './usage-kit.ts'

const rows = [
  {
    name: 'claude',
    add: 'claude mcp add --scope user ralph -- ralph mcp',
    ask: ['claude', '-p', 'Where does the loop stand?', '--dangerously-skip-permissions'],
  },
  {
    name: 'codex',
    add: 'codex mcp add ralph -- ralph mcp',
    ask: ['codex', 'exec', '--dangerously-bypass-approvals-and-sandbox', 'Where does the loop stand?'],
  },
] as const

for (const { name, add, ask } of rows)
  describe(`MCP: real ${name}`, () => {
    test('asks ralph mcp how the loop stands, and is told', async () => {
      const at = scratch({ tasks: tasksOf(1) })
      await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
      const server = await serve(({ results }) =>
        results === 0
          ? { do: 'tool', server: 'ralph', name: 'get_ralph_status', input: { change_id: 'demo' } }
          : said,
      )
      const { env, passThrough, model } = withServer(at, server)
      const [file, ...words] = ask
      const args = [...words, '--model', model, ...passThrough]
      const asked = promisify(execFile)(file, args, { cwd: at.repo, env })
      asked.child.stdin?.end()
      await asked
      // Both show the model the structured content, and not the words.
      const shown = server.calls.map(({ last }) => last.replaceAll('\\', '')).join('')
      expect(shown).toContain('"change_id":"demo","status":"done"')
    })

    test('as the agent of a loop, with ralph mcp in its own settings: the loop’s private server counts, and its claim is accepted', async () => {
      const at = scratch({ tasks: tasksOf(1) })
      const claim: Step = { do: 'tool', name: 'story_complete', input: { summary: 'all done' } }
      const script = [{ do: 'shell', command: 'echo good > made.txt' }, claim, said] as const
      const server = await serve(({ results }) => script[results] ?? said)
      const { env, passThrough, model } = withServer(at, server)
      const words = ['--json', '--agent', name, '--model', model, '--max-retries', '0', '--', ...passThrough]
      const end = await ralph(at, ['loop', 'demo', ...words], { env })
      expect(end.code).toBe(0)
      const claims = eventsOf(end).flatMap((event) => (event.type === 'claim.judged' ? [event.outcome] : []))
      expect(claims).toEqual(['accepted'])
    })

    /** The user has typed what docs/mcp.md says. */
    function withServer(
      at: Scratch,
      { url }: ModelServer,
    ): { env: NodeJS.ProcessEnv; passThrough: readonly string[]; model: string } {
      install(at, 'ralph', `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`)
      const { env: own, passThrough, model } = pointedAt(name, url, at.env['HOME'] ?? '')
      const { bin, missing } = realAgent(name)
      expect(missing).toBe('')
      // As root Claude Code refuses to skip permissions otherwise.
      const env = { ...at.env, ...own, IS_SANDBOX: '1', PATH: `${at.env['PATH'] ?? ''}:${bin}` }
      execFileSync('sh', ['-c', add], { cwd: at.repo, env, stdio: 'pipe' })
      return { env, passThrough, model }
    }
  })

const said: Step = { do: 'say', text: 'That was it.' }

async function serve(script: Script): Promise<ModelServer> {
  const server = await modelServer(script)
  onTestFinished(() => server.close())
  return server
}
