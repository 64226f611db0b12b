// Real agents that speak the Agent Client Protocol, against the scripted model server. A start takes seconds: FAILED, and a stop in the
// middle of a tool, are in test/e2e/real-agents.test.ts.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bench, type Bench, type Worked } from '../../agents/kit.ts'
import { realAgent } from '../../model-stub/real-agents.ts'
import { steps, type Script } from '../../model-stub/script.ts'
import { modelServer, type ModelServer } from '../../model-stub/server.ts'
import { expectNothingLeft, runReal, type Extra } from './real-run.ts'

let kit: Bench
let server: ModelServer | undefined
beforeEach(() => {
  kit = bench()
})
afterEach(async () => {
  await server?.close()
  kit.remove()
})

const agents = [
  ['gemini', 'gemini --acp'],
  ['opencode', 'opencode acp'],
] as const

for (const [name, command] of agents) {
  const { missing } = realAgent(name)
  const isSkipped = missing !== ''
  describe.skipIf(isSkipped)(`${command}${isSkipped ? `, skipped: not installed, ${missing}` : ''}`, () => {
    const run = async (script: Script, extra: Extra = {}): Promise<Worked> => {
      server = await modelServer(script)
      // It would start itself a second time, with a larger heap; it does in test/e2e/real-agents.test.ts.
      const env = { GEMINI_CLI_NO_RELAUNCH: 'true' }
      return runReal(kit, name, server, { acpCommand: command, env, ...extra })
    }

    it('edits a file by its own tools, runs a command, and says COMPLETE', async () => {
      const path = join(kit.cwd, 'made.txt')
      const worked = await run(
        steps(
          { do: 'write', path, content: 'made by a real agent' },
          { do: 'shell', command: 'echo ran >> ran.txt' },
          { do: 'say', text: 'All done.\n<promise>COMPLETE</promise>' },
        ),
      )
      expect(worked.ended).toMatchObject({ ending: 'finished', promise: { kind: 'complete' } })
      expect(readFileSync(path, 'utf8')).toBe('made by a real agent')
      expect(existsSync(join(kit.cwd, 'ran.txt'))).toBe(true)
      const tools = worked.signals.filter((signal) => signal.type === 'tool')
      expect(tools).toHaveLength(2)
      expect(tools[0]?.input).toContain('made.txt')
      expect(tools[1]?.input).toBe('echo ran >> ran.txt')
      expect(worked.ended.session_id).toBeTruthy()
      expectNothingLeft(worked)
      // OpenCode tells the tokens of its last call only, which are not those of the turn.
      if (name === 'opencode')
        expect(worked.ended).toMatchObject({
          model: 'stub/stub-model',
          usage: { input_tokens: 0, output_tokens: 0, cost_usd: 0.00963 },
        })
      else expect(worked.ended).toMatchObject({ model: 'gemini-2.5-pro', usage: { input_tokens: 3000 } })
    })

    it('a bad key is no failure of the story, and the message is the provider’s', async () => {
      const { ended } = await run(() => ({ do: 'fail', status: 401, message: 'API key not valid' }))
      expect(ended).toMatchObject({ ending: 'auth', promise: { kind: 'none' } })
      expect(ended.last_words).toMatch(/^(?:Internal error: )?API key not valid/)
    })

    it('a model that it does not have does no work', async () => {
      const script: Script = () =>
        name === 'gemini'
          ? { do: 'fail', status: 404, message: 'models/no-such-model is not found' }
          : { do: 'say', text: '<promise>COMPLETE</promise>' }
      const { ended } = await run(script, { model: 'no-such-model' })
      expect(ended).toMatchObject({ ending: 'model', promise: { kind: 'none' } })
    })
  })
}
