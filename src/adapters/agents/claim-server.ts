// The private server of one attempt: tools by which its agent, and nobody else, tells ralph how far the story is. See docs/decisions/0013.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { PromiseFound } from '../../core/promise.ts'
import type { AgentSignal, ClaimDesk } from '../../ports.ts'
import { faultMessage } from '../process/fault.ts'
import { lineSplitter } from '../process/lines.ts'
import { makeTemp, removeTemp } from '../process/temp.ts'
import { claimTools } from './claim-tools.ts'

/** How an agent's MCP client starts what connects it to ralph. */
export interface ClaimClient {
  /** Of the server, as the agent knows it. */
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Of Claude Code's kind, with the same in it; it is gone once the client has connected. */
  readonly configFile: string
}

export interface ClaimServer {
  readonly client: ClaimClient
  /** Whether its client has connected. */
  readonly isTaken: boolean
  /** Nothing is taken any more; resolves when nothing of it runs. */
  close(): Promise<void>
}

export interface ClaimsOf {
  /** Made for it already. */
  readonly folder?: string | undefined
  readonly desk: ClaimDesk
  readonly runId: string
  readonly env: NodeJS.ProcessEnv
  /** Its client reads of it in a file. */
  readonly hasFile: boolean
  readonly tell: (signal: AgentSignal) => void
  /** The agent's word, other than by text. */
  readonly promised: (promise: PromiseFound) => void
  /** None of the agent's time passes until this resolves. */
  readonly wait: (until: Promise<unknown>) => void
}

/** Throws where no socket can be made. */
export async function openClaims(of: ClaimsOf): Promise<ClaimServer> {
  const folder = of.folder ?? makeTemp(of.runId, of.env)
  const secret = randomBytes(24).toString('hex')
  const at = join(folder, 's')
  const client = {
    // Not `ralph`: so people call `ralph mcp` in the settings of their agents, and one would hide the other.
    name: 'ralph_story',
    command: process.execPath,
    args: ['-e', bridge],
    env: { RALPH_CLAIMS_AT: at, RALPH_CLAIMS_KEY: secret },
    configFile: join(folder, 'mcp.json'),
  }
  const { name, command, args, env } = client
  // Else Claude Code 2.1 would not show them to the model before it searches for them.
  const config = { mcpServers: { [name]: { type: 'stdio', command, args, env, alwaysLoad: true } } }
  const working = new Set<Promise<unknown>>()
  const sockets = new Set<Socket>()
  let isTaken = false
  let warnings = 0
  const refuse = (socket: Socket, why: string): void => {
    socket.destroy()
    if ((warnings += 1) <= mostWarnings)
      of.tell({ type: 'warning', message: `A claim that is not the agent's was refused: ${why}.` })
  }
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    if (sockets.size > mostSockets) return void socket.destroy()
    let session: ReturnType<typeof claimTools> | undefined
    const lines = lineSplitter(
      lineMaxBytes,
      (line) => {
        if (session !== undefined) return session.hear(line)
        // It has had its one try.
        if (socket.destroyed) return
        const isRight = isSame(line.toString('latin1'), secret)
        if (!isRight) return refuse(socket, 'it does not know the secret of this attempt')
        if (isTaken) return refuse(socket, 'the secret of this attempt was used before')
        isTaken = true
        rmSync(client.configFile, { force: true })
        session = claimTools(of, (text) => void socket.write(text), working)
        socket.once('close', () => session?.end())
      },
      () => socket.destroy(),
    )
    socket.on('data', (chunk: Buffer) => lines.feed(chunk))
  })
  try {
    if (of.hasFile) writeFileSync(client.configFile, JSON.stringify(config), { mode: 0o600 })
    await listening(server, at)
  } catch (error) {
    await removeTemp(folder)
    throw error
  }
  // Nothing waits for a server that nobody talks to.
  server.unref()
  const close = async (): Promise<void> => {
    server.close()
    for (const socket of sockets) socket.destroy()
    while (working.size > 0) await Promise.allSettled(working)
    await removeTemp(folder)
  }
  let closing: Promise<void> | undefined
  return {
    client,
    get isTaken() {
      return isTaken
    },
    close: () => (closing ??= close()),
  }
}

/**
 * The MCP client starts a program and talks to its stdin; this one hands the bytes on. It shows the secret once, with the first line, which
 * makes it worthless: who finds it later, in a file or in the list of processes, is refused.
 */
const bridge = `const{connect}=require('node:net'),{env,stdin,stdout,exit}=process,s=connect(env.RALPH_CLAIMS_AT)
s.on('error',()=>exit(1)).on('close',()=>exit(0)).write(env.RALPH_CLAIMS_KEY+'\\n')
stdin.pipe(s).pipe(stdout)`

const lineMaxBytes = 1024 * 1024
const mostSockets = 8
const mostWarnings = 3

function isSame(said: string, secret: string): boolean {
  const [one, other] = [Buffer.from(said), Buffer.from(secret)]
  return one.length === other.length && timingSafeEqual(one, other)
}

function listening(server: Server, at: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(new Error(faultMessage(error))))
    server.listen(at, resolve)
  })
}
