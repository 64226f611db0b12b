// The MCP server: what a client may ask, over a pair of streams, until the client has gone.
import { Readable } from 'node:stream'
import type { Writable } from 'node:stream'
import { McpServer } from '@modelcontextprotocol/server'
import type { CallToolResult, Transport } from '@modelcontextprotocol/server'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { RalphError } from '../../core/error.ts'
import type { App } from '../app.ts'
import type { Io } from '../io.ts'
import type { Client, StartRequest } from '../tui/client.ts'
import { orRefusal } from './answers.ts'
import { addControls } from './controls.ts'
import { flowTo } from './flow.ts'
import { addLooks } from './looks.ts'
import { addResources } from './resources.ts'
import type { Watched } from './resources.ts'

/** How the tools reach the program. */
export interface Asking {
  /** A look. */
  readonly ask: (work: (app: App) => Promise<CallToolResult>) => Promise<CallToolResult>
  /** A deed: it comes to its end even if the client goes away meanwhile. */
  readonly act: (work: (app: App) => Promise<CallToolResult>) => Promise<CallToolResult>
  readonly start: (wanted: StartRequest) => ReturnType<Client['start']>
  readonly now: () => number
}

export interface McpRequest {
  readonly io: Pick<Io, 'stdin' | 'stdout'>
  readonly version: string
  readonly allowsControl: boolean
  /** Anew where the folder was no repository: it may be one by now. */
  readonly loadApp: () => Promise<App>
  readonly start: (app: App, wanted: StartRequest) => ReturnType<Client['start']>
  readonly now: () => number
  /** What is wrong with what came in, or with ralph: stdout is for the protocol. */
  readonly complain: (message: string) => void
  readonly stop: AbortSignal
}

/** Longer than anything that a client has to say. */
const longestLine = 1024 * 1024

/** Resolves when the client has gone, or `stop` aborts, and nothing is being done any more. */
export async function serveMcp(request: McpRequest): Promise<void> {
  const { io, complain } = request
  const flow = flowTo(io.stdout)
  const gone = new AbortController()
  const onBug = (error: unknown): void =>
    complain(error instanceof Error ? (error.stack ?? error.message) : String(error))
  let loaded: Promise<App> | undefined
  const withApp = async <Answer>(work: (app: App) => Promise<Answer>): Promise<Answer> => {
    try {
      return await work(await (loaded ??= request.loadApp()))
    } catch (error) {
      if (error instanceof RalphError && error.code === 'not_a_repository') loaded = undefined
      throw error
    }
  }
  const deeds = new Set<Promise<unknown>>()
  const ask: Asking['ask'] = (work) => flow.run(() => orRefusal(() => withApp(work), onBug))
  const asking: Asking = {
    ask,
    act: (work) => {
      const deed = ask(work)
      deeds.add(deed)
      return deed.finally(() => deeds.delete(deed))
    },
    start: (wanted) => withApp((app) => request.start(app, wanted)),
    now: request.now,
  }
  let watched: Watched | undefined
  /** It may be asked for before there is a server to do it. */
  let isWatchWanted = false
  const wire = new StdioServerTransport(
    Readable.from(flow.throttled(io.stdin as AsyncIterable<Uint8Array>), { objectMode: false }),
    io.stdout as Writable,
    { maxBufferSize: longestLine },
  )
  const connection = serveStdio(
    ({ era }) => {
      const server = new McpServer(
        { name: 'ralph', title: 'Ralph loops', version: request.version },
        { instructions: instructionsFor(request.allowsControl) },
      )
      addLooks(server, asking)
      if (request.allowsControl) addControls(server, asking)
      watched = addResources(server, {
        // Before there is a repository there is no loop.
        look: () =>
          flow
            .run(() => withApp((app) => app.observe.loops()))
            .catch((error: unknown) => {
              if (error instanceof RalphError && error.code === 'not_a_repository') return []
              throw error
            }),
        isModern: era === 'modern',
        stop: gone.signal,
        onBug,
      })
      if (isWatchWanted) void watched.begin()
      return server
    },
    {
      transport: overheard(
        wire,
        (method) => {
          if (method !== 'subscriptions/listen') return
          isWatchWanted = true
          void watched?.begin()
        },
        () => gone.abort(),
      ),
      onerror: (error) => complain(error.message),
    },
  )
  const close = (): void =>
    void connection
      .close()
      .catch(onBug)
      .finally(() => gone.abort())
  request.stop.addEventListener('abort', close, { once: true })
  if (request.stop.aborted) close()
  if (!gone.signal.aborted)
    await new Promise((resolve) => gone.signal.addEventListener('abort', resolve, { once: true }))
  request.stop.removeEventListener('abort', close)
  while (deeds.size > 0) await Promise.allSettled(deeds)
}

/** The transport, with ears: the entry of the SDK takes its callbacks for itself. */
function overheard(
  wire: StdioServerTransport,
  onMethod: (method: string) => void,
  onClose: () => void,
): Transport {
  const transport: Transport = {
    start: () => wire.start(),
    send: (message) => wire.send(message),
    close: () => wire.close(),
  }
  wire.onmessage = (message) => {
    transport.onmessage?.(message)
    if ('method' in message) setImmediate(onMethod, message.method)
  }
  wire.onerror = (error) => transport.onerror?.(error)
  wire.onclose = () => {
    transport.onclose?.()
    onClose()
  }
  return transport
}

function instructionsFor(allowsControl: boolean): string {
  const looks =
    'Ralph runs a coding agent in a loop over an OpenSpec change, story by story. These tools show its loops: get_ralph_status for where they stand, get_loop_history and get_loop_log for what happened, get_attempt_diff for what an attempt changed. A loop whose freshness is dead has not ended: say so, and do not call it running.'
  return allowsControl
    ? `${looks} start_loop, stop_loop, resume_loop and finish_loop change things: use them only when the user asks for it.`
    : `${looks} This server only looks. To start and stop loops from here, run it as: ralph mcp --allow-control.`
}
