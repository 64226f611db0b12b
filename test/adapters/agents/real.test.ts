// The real CLIs against the scripted model server: tool calls that edit files, every failure, and the end of what they started.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bench, type Bench, type Worked } from '../../agents/kit.ts'
import { pointedAt, realAgent, type RealAgent } from '../../model-stub/real-agents.ts'
import { steps, type Script, type Step } from '../../model-stub/script.ts'
import { modelServer, type ModelServer } from '../../model-stub/server.ts'
import { expectNothingLeft, runReal, type Extra } from './real-run.ts'

const complete: Step = { do: 'say', text: 'All done.\n<promise>COMPLETE</promise>' }
const writing = (path: string): Step => ({ do: 'write', path, content: 'made by a real agent' })
const failing =
  (status: number, message: string, headers = {}): Script =>
  () => ({ do: 'fail', status, message, headers })

let kit: Bench
let server: ModelServer | undefined
beforeEach(() => {
  kit = bench()
})
afterEach(async () => {
  await server?.close()
  kit.remove()
})

for (const name of ['claude', 'codex', 'opencode', 'gemini'] as const) {
  const { missing } = realAgent(name)
  // Without Claude Code or Codex nothing is proven: those fail instead.
  const isSkipped = missing !== '' && (name === 'opencode' || name === 'gemini')
  describe.skipIf(isSkipped)(`real ${name}${isSkipped ? `, skipped: not installed, ${missing}` : ''}`, () => {
    it('is installed', () => expect(missing).toBe(''))

    it('edits a file by its own tools, runs a command, and says COMPLETE', async () => {
      const path = join(kit.cwd, 'made.txt')
      const worked = await run(
        name,
        steps(writing(path), { do: 'shell', command: 'echo ran >> ran.txt' }, complete),
      )
      expect(worked.ended).toMatchObject({
        ending: 'finished',
        promise: { kind: 'complete' },
        exit_code: 0,
      })
      expect(readFileSync(path, 'utf8')).toBe('made by a real agent')
      expect(existsSync(join(kit.cwd, 'ran.txt'))).toBe(true)
      expect(worked.signals.filter((signal) => signal.type === 'tool').length).toBeGreaterThanOrEqual(2)
      expect(worked.ended.session_id).toBeTruthy()
      expect(worked.ended.usage?.output_tokens).toBe(150)
      expect(worked.ended.usage?.cache_read_tokens).toBe(600)
      expectNothingLeft(worked)
    })

    // A start takes seconds: one run for two tests. FAILED, and a stop in the middle of a tool, are in test/e2e/real-agents.test.ts.
    let told: Promise<{ worked: Worked; prompt: string }> | undefined
    const tellAtLength = async (): Promise<{ worked: Worked; prompt: string }> => {
      const script = steps(
        { do: 'shell', command: "echo '<promise>COMPLETE</promise>'" },
        { do: 'say', text: 'Not done yet.' },
      )
      const worked = await run(name, script, {
        prompt: `Say this:\n<promise>COMPLETE</promise>\n${'word '.repeat(60_000)}\nEnd of it.`,
      })
      return { worked, prompt: server?.calls[0]?.prompt ?? '' }
    }

    it('P2: a token in the prompt and in a tool’s output does not count', async () => {
      const { worked } = await (told ??= tellAtLength())
      expect(worked.ended).toMatchObject({ ending: 'finished', promise: { kind: 'none' } })
    })

    it('P7: a prompt of 300 kB reaches the model whole', async () => {
      const { worked, prompt } = await (told ??= tellAtLength())
      expect(worked.ended.ending).toBe('finished')
      expect(prompt).toContain('Say this:\n<promise>COMPLETE</promise>\n')
      expect(prompt).toContain('End of it.')
      expect(prompt.length).toBeGreaterThan(300_000)
    })

    it('R16: a server that never answers is idle', async () => {
      const worked = await run(name, () => ({ do: 'hang' }), {
        idleTimeoutMs: 3000,
        timeoutMs: 110_000,
        ...(name === 'codex' && { bin: undisturbed(name) }),
      })
      expect(worked.ended).toMatchObject({ ending: 'idle', promise: { kind: 'none' } })
      expectNothingLeft(worked)
    })
  })
}

describe('real claude, failures', () => {
  it('R8: a subscription’s limit tells when it ends', async () => {
    const resetsAt = Math.floor(Date.now() / 1000) + 5400
    const headers = {
      'anthropic-ratelimit-unified-status': 'rejected',
      'anthropic-ratelimit-unified-reset': String(resetsAt),
      'anthropic-ratelimit-unified-representative-claim': 'five_hour',
      'anthropic-ratelimit-unified-5h-status': 'rejected',
      'anthropic-ratelimit-unified-5h-reset': String(resetsAt),
    }
    const { ended } = await run('claude', failing(429, 'limit', headers), {
      env: { ANTHROPIC_API_KEY: '', CLAUDE_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test-key' },
    })
    expect(ended).toMatchObject({ ending: 'limit', resets_at_ms: resetsAt * 1000, promise: { kind: 'none' } })
  })

  const rows: [string, number, string, string][] = [
    ['R8: overloaded', 529, 'Overloaded', 'overloaded'],
    ['R8: 429 without a reset', 429, 'slow down', 'limit'],
    ['a bad key', 401, 'invalid x-api-key', 'auth'],
    ['no credit', 400, 'Your credit balance is too low to access the Anthropic API.', 'auth'],
    ['an unknown model', 404, 'model: no-such-model', 'model'],
  ]
  it.each(rows)('%s', async (_name, status, message, ending) => {
    expect((await run('claude', failing(status, message))).ended).toMatchObject({
      ending,
      promise: { kind: 'none' },
    })
  })

  it('R8: no network', async () => {
    const { ended } = await run('claude', steps(complete), {
      env: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' },
    })
    expect(ended.ending).toBe('offline')
  })

  it('R16: a 401 is not retried for minutes', async () => {
    const { ended } = await run('claude', failing(401, 'OAuth token has expired'), {
      env: {
        CLAUDE_CODE_MAX_RETRIES: '10',
        ANTHROPIC_API_KEY: '',
        CLAUDE_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test-key',
      },
    })
    expect(ended.ending).toBe('auth')
  })

  it('no login at all', async () => {
    expect((await run('claude', steps(complete), { env: { ANTHROPIC_API_KEY: '' } })).ended.ending).toBe(
      'auth',
    )
  })

  it('P14: a prompt that begins with a slash is no turn', async () => {
    const { ended } = await run('claude', steps(complete), { prompt: '/clear' })
    expect(ended.ending).toBe('no_turn')
    expect(server?.calls).toEqual([])
  })

  it('529 twice, then fine: it retries by itself', async () => {
    const script: Script = ({ before }) =>
      before < 2 ? { do: 'fail', status: 529, message: 'Overloaded' } : complete
    const { ended } = await run('claude', script, { env: { CLAUDE_CODE_MAX_RETRIES: '4' } })
    expect(ended).toMatchObject({ ending: 'finished', promise: { kind: 'complete' } })
  })
})

describe('real codex, failures', () => {
  it('R8: a usage limit tells when it ends, in local time', async () => {
    const { ended } = await run('codex', failing(429, 'The usage limit has been reached'))
    expect(ended.ending).toBe('limit')
    const inMs = (ended.resets_at_ms ?? 0) - Date.now()
    // It prints minutes, rounded down; a minute is added.
    expect(inMs).toBeGreaterThan(7080_000)
    expect(inMs).toBeLessThan(7380_000)
  })

  const rows: [string, number, string, string][] = [
    ['R8: overloaded', 503, 'server_is_overloaded', 'overloaded'],
    ['R8: a broken server', 500, 'oops', 'overloaded'],
    ['a bad key', 401, 'Incorrect API key provided', 'auth'],
    ['an unknown model', 404, "The model 'no-such-model' does not exist", 'model'],
  ]
  it.each(rows)('%s', async (_name, status, message, ending) => {
    expect((await run('codex', failing(status, message))).ended).toMatchObject({
      ending,
      promise: { kind: 'none' },
    })
  })

  it('R8: no network: it would wait for ever, and that is not the story’s fault', async () => {
    const passThrough = pointedAt('codex', 'http://127.0.0.1:9', kit.cwd).passThrough
    const { ended } = await run('codex', steps(complete), { passThrough, timeoutMs: 6000 })
    expect(ended.ending).toBe('offline')
  })
})

const { missing: noGemini } = realAgent('gemini')
describe.skipIf(noGemini !== '')(`real gemini, failures${noGemini && `, skipped: ${noGemini}`}`, () => {
  const rows: [string, number, string, string][] = [
    ['R8: the quota of a day', 429, 'You exceeded your current quota', 'limit'],
    ['a bad key', 401, 'API key not valid', 'auth'],
    ['an unknown model', 404, 'models/no-such-model is not found for API version v1beta', 'model'],
  ]
  it.each(rows)('%s', async (_name, status, message, ending) => {
    expect((await run('gemini', failing(status, message))).ended).toMatchObject({
      ending,
      promise: { kind: 'none' },
    })
  })
})

const { missing: noOpencode } = realAgent('opencode')
describe.skipIf(noOpencode !== '')(
  `real opencode, failures${noOpencode && `, skipped: ${noOpencode}`}`,
  () => {
    it('a bad key', async () => {
      const { ended } = await run('opencode', failing(401, 'Incorrect API key provided'))
      expect(ended).toMatchObject({ ending: 'auth', promise: { kind: 'none' } })
    })
  },
)

/**
 * Codex watches /etc/codex, or /etc where there is none: whatever any other program opens there wakes it, and beside many it works too much to
 * be idle. So it gets an empty one, where that is allowed.
 */
function undisturbed(name: RealAgent): string {
  const bin = join(kit.cwd, '..', 'bin')
  const real = join(realAgent(name).bin, name)
  const apart = (then: string): string => `unshare --mount sh -c 'mount -t tmpfs none /etc && ${then}'`
  mkdirSync(bin, { recursive: true })
  writeFileSync(
    join(bin, name),
    `#!/bin/sh\n${apart('true')} 2> /dev/null && exec ${apart('exec "$0" "$@"')} '${real}' "$@"\nexec '${real}' "$@"\n`,
    { mode: 0o755 },
  )
  return bin
}

async function run(name: RealAgent, script: Script, extra: Extra = {}): Promise<Worked> {
  server = await modelServer(script)
  return runReal(kit, name, server, extra)
}
