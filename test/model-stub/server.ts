// A scripted model server on 127.0.0.1: speaks to the real CLIs in the protocols of their providers.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { anthropic } from './anthropic.ts'
import { chatCompletions } from './chat-completions.ts'
import { gemini } from './gemini.ts'
import { responses } from './responses.ts'
import type { ModelCall, Script, Step } from './script.ts'

/** How one provider is asked and answers. */
export interface Protocol {
  matches(path: string): boolean
  /** None for calls that have no tools to work with: titles and the like. */
  read(body: Readonly<Record<string, unknown>>): Omit<ModelCall, 'before' | 'hasClaims'> | undefined
  answer(
    step: Extract<Step, { do: 'write' | 'shell' | 'say' | 'tool' }>,
    body: Readonly<Record<string, unknown>>,
  ): string
  failure(step: Extract<Step, { do: 'fail' }>): unknown
}

export interface ModelServer {
  readonly url: string
  /** Calls that followed the script, in order. */
  readonly calls: readonly ModelCall[]
  close(): Promise<void>
}

const protocols: readonly Protocol[] = [anthropic, responses, chatCompletions, gemini]

export async function modelServer(script: Script): Promise<ModelServer> {
  const calls: ModelCall[] = []
  const server = createServer((request, response) => {
    handle(request, response, script, calls).catch((error: unknown) => {
      response.writeHead(500).end(String(error))
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  script: Script,
  calls: ModelCall[],
): Promise<void> {
  const path = (request.url ?? '').split('?')[0] ?? ''
  const protocol = protocols.find((known) => known.matches(path))
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  if (request.method !== 'POST' || protocol === undefined) {
    response.writeHead(request.method === 'HEAD' ? 200 : 404).end()
    return
  }
  const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>
  const read = protocol.read(body)
  const hasClaims = JSON.stringify(body['tools'] ?? []).includes('story_complete')
  const call = read === undefined ? undefined : { ...read, hasClaims, before: calls.length }
  if (call !== undefined) calls.push(call)
  const step: Step = call === undefined ? { do: 'say', text: 'ok' } : script(call)
  if (step.do === 'hang') return
  if (step.do === 'fail') {
    response.writeHead(step.status, { 'content-type': 'application/json', ...step.headers })
    response.end(JSON.stringify(protocol.failure(step)))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(protocol.answer(step, body))
}

/** Fields of JSON that we did not write. */
export function listOf(value: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(value) ? (value as Record<string, unknown>[]) : []
}

export function wordsOf(content: unknown): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .map((part) => (typeof part['text'] === 'string' ? part['text'] : ''))
    .join('\n')
}

export function sse(events: readonly (Record<string, unknown> & { readonly type: string })[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
}
