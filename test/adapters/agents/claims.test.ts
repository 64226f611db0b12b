// The private server of one attempt, with real sockets and processes: who gets in, what nonsense does, and that nothing is left.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { tmpdir } from 'node:os'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openClaims, type ClaimServer } from '../../../src/adapters/agents/claim-server.ts'
import { claude } from '../../../src/adapters/agents/claude.ts'
import { codex } from '../../../src/adapters/agents/codex.ts'
import type { AgentRun } from '../../../src/adapters/agents/kind.ts'
import type { PromiseFound } from '../../../src/core/promise.ts'
import type { AgentSignal, ClaimDesk } from '../../../src/ports.ts'
import { agentPath, bench } from '../../agents/kit.ts'

const accepting: ClaimDesk = {
  complete: () => Promise.resolve({ isAccepted: true, claim: 1, text: 'Accepted.' }),
  failed: () => undefined,
  progress: () => undefined,
  learned: () => Promise.resolve(true),
}

interface Opened {
  readonly server: ClaimServer
  readonly key: string
  readonly at: string
  readonly signals: readonly AgentSignal[]
  readonly promises: readonly PromiseFound[]
  /** A connection that shows this first; what comes back, and when it is closed. */
  readonly dial: (first: string) => {
    readonly socket: Socket
    readonly line: () => Promise<Record<string, unknown>>
    readonly closed: Promise<unknown>
  }
}

async function opened(desk: Partial<ClaimDesk> = {}, hasFile = true): Promise<Opened> {
  const signals: AgentSignal[] = []
  const promises: PromiseFound[] = []
  const server = await openClaims({
    desk: { ...accepting, ...desk },
    runId: 'claims-test',
    env: { TMPDIR: tmpdir() },
    hasFile,
    tell: (signal) => void signals.push(signal),
    promised: (promise) => void promises.push(promise),
    wait: () => undefined,
  })
  onTestFinished(() => server.close())
  const { RALPH_CLAIMS_AT: at = '', RALPH_CLAIMS_KEY: key = '' } = server.client.env
  return {
    server,
    key,
    at,
    signals,
    promises,
    dial(first) {
      const socket = connect(at)
      onTestFinished(() => void socket.destroy())
      socket.on('error', () => undefined)
      const closed = new Promise((done) => socket.once('close', done))
      let text = ''
      let heard = (): void => undefined
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('utf8')
        heard()
      })
      socket.write(`${first}\n`)
      return {
        socket,
        closed,
        line: () =>
          new Promise((done) => {
            heard = () => {
              const end = text.indexOf('\n')
              if (end === -1) return
              const line = text.slice(0, end)
              text = text.slice(end + 1)
              heard = () => undefined
              done(JSON.parse(line) as Record<string, unknown>)
            }
            heard()
          }),
      }
    },
  }
}

const call = (id: number, name: string, args: object): string =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } })}\n`
const claim = call(1, 'story_complete', { summary: 'done' })

describe('16: who gets in', () => {
  test('the first with the secret, and the file with it is gone then; the second with the same is refused and told', async () => {
    const { server, key, dial, signals, promises, at } = await opened()
    const { configFile } = server.client
    expect(statSync(configFile).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(at)).mode & 0o777).toBe(0o700)
    expect(readFileSync(configFile, 'utf8')).toContain(key)
    const first = dial(key)
    first.socket.write(claim)
    expect(await first.line()).toMatchObject({ id: 1, result: { isError: false } })
    expect(existsSync(configFile)).toBe(false)
    const second = dial(key)
    second.socket.write(claim)
    await second.closed
    expect(signals).toEqual([
      {
        type: 'warning',
        message: "A claim that is not the agent's was refused: the secret of this attempt was used before.",
      },
    ])
    expect(promises).toEqual([{ kind: 'complete', claim: 1 }])
    // The first goes on.
    first.socket.write(call(2, 'report_progress', { task: 'x' }))
    expect(await first.line()).toMatchObject({ id: 2 })
  })

  test('a wrong secret does not use up the right one; many of them are told three times', async () => {
    const { key, dial, signals } = await opened()
    for (const guess of ['', 'x', key.slice(1), `${key}0`, '0'.repeat(48)]) await dial(guess).closed
    expect(signals).toHaveLength(3)
    const right = dial(key)
    right.socket.write(claim)
    expect(await right.line()).toMatchObject({ id: 1 })
  })

  test('only who reads of it in a file gets one', async () => {
    const { server } = await opened({}, false)
    expect(existsSync(server.client.configFile)).toBe(false)
  })

  test('the secret is void at the first tool of an agent that has not connected', async () => {
    const at = bench()
    onTestFinished(() => at.remove())
    let found: readonly string[] | undefined
    const folder = (): readonly string[] =>
      readdirSync(dirname(at.cwd), { recursive: true, encoding: 'utf8' }).filter((name) =>
        name.endsWith('mcp.json'),
      )
    const { ended } = await at.claude('claude-works.mjs', {
      task: { claims: accepting },
      onSignal: ({ type }) => {
        if (type === 'started') found = folder()
      },
    })
    expect(found).toHaveLength(1)
    expect(ended.promise).toEqual({ kind: 'complete' })
    expect(folder()).toEqual([])
  })
})

describe('16: what is said', () => {
  test('nonsense, a flood and a line without an end hurt nobody', async () => {
    const { key, dial } = await opened()
    const { socket, line, closed } = dial(key)
    socket.write('not json\n[]\n"x"\n{"id":{}}\n{"jsonrpc":"2.0","method":"notifications/none"}\n')
    socket.write(call(7, 'no_such_tool', {}))
    expect(await line()).toMatchObject({ id: 7, result: { isError: true } })
    socket.write(call(8, 'story_complete', { summary: 5 }))
    expect(await line()).toMatchObject({ id: 8, result: { isError: true } })
    socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'no/such' })}\n`)
    expect(await line()).toMatchObject({ id: 9, error: { code: -32_601 } })
    socket.write('x'.repeat(3 * 1024 * 1024))
    socket.write('\n')
    await closed
  })

  test('too many calls at once are refused, and those before them answered', async () => {
    let open = (): void => undefined
    const opening = new Promise<void>((resolve) => {
      open = resolve
    })
    const complete: ClaimDesk['complete'] = async () => {
      await opening
      return { isAccepted: false, claim: 1, text: 'No.' }
    }
    const { key, dial, promises } = await opened({ complete })
    const { socket, line } = dial(key)
    for (let id = 1; id <= 17; id += 1) socket.write(call(id, 'story_complete', { summary: 'done' }))
    expect(await line()).toMatchObject({ id: 17, error: { message: 'too many calls at once' } })
    open()
    expect(await line()).toMatchObject({ id: 1 })
    expect(promises).toEqual([])
  })

  test('a client that goes away ends what is judged for it; closing waits until it has ended', async () => {
    const seen: string[] = []
    let begun = (): void => undefined
    const beginning = new Promise<void>((resolve) => {
      begun = resolve
    })
    const complete: ClaimDesk['complete'] = async (_summary, gone) => {
      begun()
      await new Promise((done) => gone.addEventListener('abort', done))
      seen.push('ended')
      return { isAccepted: false, claim: 1, text: '' }
    }
    const { key, dial, server } = await opened({ complete })
    dial(key).socket.write(claim)
    await beginning
    await server.close()
    expect(seen).toEqual(['ended'])
  })
})

describe('16: how it is offered', () => {
  const run: AgentRun = {
    prompt: '',
    cwd: '/tree',
    model: undefined,
    command: undefined,
    passThrough: [],
    isRoot: false,
    claims: {
      name: 'ralph_story',
      command: '/bin/node',
      args: ['-e', 'x "y"'],
      env: { A: 'b"c' },
      configFile: '/temp/mcp.json',
    },
  }

  test('Claude Code by a file, Codex by settings; neither with permissions of the user’s own', () => {
    expect(claude.launch(run).args).toEqual(expect.arrayContaining(['--mcp-config', '/temp/mcp.json']))
    expect(codex.launch(run).args).toEqual(
      expect.arrayContaining([
        'mcp_servers.ralph_story.command="/bin/node"',
        'mcp_servers.ralph_story.args=["-e","x \\"y\\""]',
        'mcp_servers.ralph_story.env={A="b\\"c"}',
      ]),
    )
    expect(claude.takesClaims?.(['--permission-mode', 'plan'])).toBe('not')
    expect(codex.takesClaims?.(['--sandbox', 'read-only'])).toBe('not')
    expect([claude.takesClaims?.([]), codex.takesClaims?.([])]).toEqual(['by file', 'by word'])
  })

  test('an agent that has tools of ralph’s and uses none: its text counts, and nothing of it is left', async () => {
    const at = bench()
    onTestFinished(() => at.remove())
    const { ended, alive, temporary } = await at.work('acp', {
      options: { command: agentPath('acp-works.mjs') },
      task: { claims: accepting },
    })
    expect(ended).toMatchObject({ ending: 'finished', promise: { kind: 'complete' } })
    expect({ alive, temporary }).toEqual({ alive: [], temporary: [] })
  })
})
