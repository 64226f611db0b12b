// Any agent that speaks the Agent Client Protocol: JSON-RPC in lines over stdin and stdout, one session, one prompt.
import type { AgentEnding } from '../../core/event.ts'
import { shell } from './command.ts'
import { endingOfError, endingOfStatus } from './failure.ts'
import { at, countAt, listAt, parseJson, shortInput, textAt } from './json.ts'
import type { AgentFact, AgentKind, AgentRun, Listener } from './kind.ts'
import { resetTime } from './reset-time.ts'

export const acp: AgentKind = {
  speaks: 'lines',
  keepsInput: true,
  keys: [],
  launch: ({ command, passThrough }) => ({
    ...shell(command ?? '', passThrough),
    env: {},
    // No files and no terminals of ours: the agent has its own, in the same work tree.
    input: request(initializing, 'initialize', {
      protocolVersion: 1,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    }),
  }),
  listen: (run) => acpListener(run),
  diagnose: (exitCode, stderr) =>
    exitCode === 126 || exitCode === 127 ? 'missing' : nothingIfCrash(endingOfError(stderr)),
}

const initializing = 1
const opening = 2
const prompting = 3

function acpListener(run: AgentRun): Listener {
  let session = ''
  return {
    hear(line, nowMs) {
      const message = parseJson(line)
      if (textAt(message, 'method') === 'session/update') return update(at(message, 'params', 'update'))
      if (at(message, 'method') !== undefined)
        return at(message, 'id') === undefined ? [] : [{ type: 'say', text: answer(message) }]
      const error = at(message, 'error')
      if (error !== undefined) return [failure(error, nowMs)]
      const result = at(message, 'result')
      switch (at(message, 'id')) {
        case initializing:
          return [{ type: 'say', text: request(opening, 'session/new', { cwd: run.cwd, mcpServers: [] }) }]
        case opening: {
          session = textAt(result, 'sessionId')
          const say = request(prompting, 'session/prompt', {
            sessionId: session,
            prompt: [{ type: 'text', text: run.prompt }],
          })
          const modelId = run.model
          const choose =
            modelId === undefined ? '' : request(4, 'session/set_model', { sessionId: session, modelId })
          return [
            { type: 'session', id: session },
            { type: 'say', text: `${choose}${say}` },
          ]
        }
        case prompting:
          return ended(result)
        default:
          return []
      }
    },
    cancel: () => (session === '' ? '' : notify('session/cancel', { sessionId: session })),
  }
}

function update(change: unknown): readonly AgentFact[] {
  switch (textAt(change, 'sessionUpdate')) {
    case 'agent_message_chunk':
      return [{ type: 'text', text: textAt(change, 'content', 'text'), isPartial: true }]
    case 'tool_call': {
      const title = textAt(change, 'title') || textAt(change, 'kind')
      return [{ type: 'tool', name: title, input: shortInput(at(change, 'rawInput')) }]
    }
    default:
      return []
  }
}

function ended(result: unknown): readonly AgentFact[] {
  const reason = textAt(result, 'stopReason')
  const facts: AgentFact[] = []
  const usage = at(result, 'usage') ?? at(result, '_meta', 'quota', 'token_count')
  if (usage !== undefined) {
    facts.push({
      type: 'usage',
      figures: {
        input_tokens: countAt(usage, 'inputTokens') || countAt(usage, 'input_tokens'),
        output_tokens: countAt(usage, 'outputTokens') || countAt(usage, 'output_tokens'),
        cache_read_tokens: countAt(usage, 'cachedReadTokens'),
        cache_creation_tokens: countAt(usage, 'cachedWriteTokens'),
      },
    })
  }
  if (reason === 'end_turn') return [...facts, { type: 'turn_over' }]
  return [
    ...facts,
    { type: 'failed', ending: 'crash', message: `the agent ended its turn: ${reason || 'no reason given'}` },
  ]
}

/** Each agent puts the class of an error elsewhere: an HTTP status as code, a word in `data`, or only the message. */
function failure(error: unknown, nowMs: number): AgentFact {
  const message = textAt(error, 'message')
  const data = JSON.stringify(at(error, 'data') ?? '')
  const code = countAt(error, 'code')
  // -32000 is the protocol's own "authentication required".
  const byCode: AgentEnding =
    at(error, 'code') === -32_000 ? 'auth' : code >= 400 && code < 600 ? endingOfStatus(code) : 'crash'
  const words = `${message} ${data.replaceAll(/([a-z])([A-Z])/g, '$1 $2').replaceAll('_', ' ')}`
  const ending = byCode === 'crash' ? endingOfError(words) : byCode
  const resetsAtMs = ending === 'limit' ? resetTime(words, nowMs) : undefined
  return {
    type: 'failed',
    ending,
    message: `${message} ${data === '""' ? '' : data}`.trim(),
    ...(resetsAtMs !== undefined && { resetsAtMs }),
  }
}

/** Everything is allowed, as with every other agent here; what else it asks for we do not have. */
function answer(message: unknown): string {
  const id = at(message, 'id')
  if (textAt(message, 'method') !== 'session/request_permission') {
    return `${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'not supported' } })}\n`
  }
  const options = listAt(message, 'params', 'options')
  const allowing = ['allow_always', 'allow_once']
    .map((kind) => options.find((option) => textAt(option, 'kind') === kind))
    .find((option) => option !== undefined)
  const outcome =
    allowing === undefined
      ? { outcome: 'cancelled' }
      : { outcome: 'selected', optionId: textAt(allowing, 'optionId') }
  return `${JSON.stringify({ jsonrpc: '2.0', id, result: { outcome } })}\n`
}

function request(id: number, method: string, params: unknown): string {
  return `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`
}

function notify(method: string, params: unknown): string {
  return `${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`
}

function nothingIfCrash(ending: AgentEnding): AgentEnding | undefined {
  return ending === 'crash' ? undefined : ending
}
