// Any agent that speaks the Agent Client Protocol: JSON-RPC in lines over stdin and stdout, one session, one prompt.
import type { AgentEnding } from '../../core/event.ts'
import { shell } from './command.ts'
import { endingOfError, endingOfStatus, isUnpaid } from './failure.ts'
import { at, countAt, jsonOf, listAt, parseJson, shortInput, textAt } from './json.ts'
import { providerKeys } from './keys.ts'
import type { AgentFact, AgentKind, AgentRun, Listener } from './kind.ts'

export const acp: AgentKind = {
  speaks: 'lines',
  keepsInput: true,
  keys: providerKeys,
  takesClaims: () => 'by word',
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
const choosing = 3
const prompting = 4

function acpListener(run: AgentRun): Listener {
  const tools = toolTeller()
  let session = ''
  let countsLastStepOnly = false
  let costUsd: number | undefined

  const say = (id: number, method: string, params: object): AgentFact => ({
    type: 'say',
    text: request(id, method, { sessionId: session, ...params }),
  })
  const prompt = (): AgentFact =>
    say(prompting, 'session/prompt', { prompt: [{ type: 'text', text: run.prompt }] })
  const update = (change: unknown): readonly AgentFact[] => {
    const kind = textAt(change, 'sessionUpdate')
    if (kind === 'agent_message_chunk')
      return [{ type: 'text', text: textAt(change, 'content', 'text'), isPartial: true }]
    if (kind === 'usage_update' && textAt(change, 'cost', 'currency') === 'USD')
      costUsd = countAt(change, 'cost', 'amount')
    return kind === 'tool_call' || kind === 'tool_call_update' ? tools.tell(change) : []
  }
  const asked = (message: unknown): readonly AgentFact[] => {
    // A notification, or nothing that could be answered.
    if (!['string', 'number'].includes(typeof at(message, 'id'))) return []
    const tool = tools.tell(at(message, 'params', 'toolCall'), true)
    return [...tool, { type: 'say', text: answer(message) }]
  }
  const opened = (result: unknown): readonly AgentFact[] => {
    session = textAt(result, 'sessionId')
    const setting = listAt(result, 'configOptions').find((option) => textAt(option, 'category') === 'model')
    const model = run.model ?? (textAt(result, 'models', 'currentModelId') || textAt(setting, 'currentValue'))
    const facts: AgentFact[] = [{ type: 'session', id: session }]
    if (model !== '') facts.push({ type: 'model', model })
    if (run.model === undefined) return [...facts, prompt()]
    const choice =
      setting === undefined
        ? say(choosing, 'session/set_model', { modelId: run.model })
        : say(choosing, 'session/set_config_option', {
            configId: textAt(setting, 'id'),
            value: run.model,
          })
    return [...facts, choice]
  }

  return {
    hear(line) {
      const message = parseJson(line)
      if (textAt(message, 'method') === 'session/update') return update(at(message, 'params', 'update'))
      if (at(message, 'method') !== undefined) return asked(message)
      const id = at(message, 'id')
      const error = at(message, 'error')
      // Another model than the one that was asked for must not do the work.
      if (error !== undefined && id === choosing) return [refusedModel(run.model ?? '', error)]
      if (error !== undefined) return [failure(error)]
      const result = at(message, 'result')
      switch (id) {
        case initializing:
          // OpenCode 1.18 answers with the figures of the last of its model calls; its session files have them all.
          countsLastStepOnly = textAt(result, 'agentInfo', 'name') === 'OpenCode'
          return [
            {
              type: 'say',
              text: request(opening, 'session/new', { cwd: run.cwd, mcpServers: serversOf(run) }),
            },
          ]
        case opening:
          return opened(result)
        case choosing:
          return [prompt()]
        case prompting:
          return ended(result, countsLastStepOnly, costUsd)
        default:
          return []
      }
    },
    cancel: () => (session === '' ? '' : notify('session/cancel', { sessionId: session })),
  }
}

/** Every agent of this protocol has to know this kind of server. */
function serversOf({ claims }: AgentRun): readonly object[] {
  if (claims === undefined) return []
  const env = Object.entries(claims.env).map(([name, value]) => ({ name, value }))
  return [{ name: claims.name, command: claims.command, args: claims.args, env }]
}

interface ToolTeller {
  /** Facts for a tool of which nothing was told yet. `isAsked`: it waits for a permission, so what it will do is known. */
  tell(call: unknown, isAsked?: boolean): readonly AgentFact[]
}

/** A call is announced before its input is there, or first heard of when it asks for a permission; it is told once. */
function toolTeller(): ToolTeller {
  const titles = new Map<string, string>()
  const told = new Set<string>()
  return {
    tell(call, isAsked = false) {
      const id = textAt(call, 'toolCallId')
      const title = textAt(call, 'title')
      if (told.has(id) || (title === '' && !titles.has(id))) return []
      if (textAt(call, 'status') === 'pending' && !isAsked) {
        titles.set(id, title)
        return []
      }
      if (id !== '') told.add(id)
      const input = shortInput(at(call, 'rawInput'))
      // Without its input the title says what it does, such as "Writing to made.txt".
      return input === '' || input === '{}'
        ? [{ type: 'tool', name: textAt(call, 'kind') || 'tool', input: title }]
        : [{ type: 'tool', name: titles.get(id) ?? title, input }]
    },
  }
}

function ended(
  result: unknown,
  countsLastStepOnly: boolean,
  costUsd: number | undefined,
): readonly AgentFact[] {
  const reason = textAt(result, 'stopReason')
  const facts: AgentFact[] = []
  const usage = at(result, 'usage') ?? at(result, '_meta', 'quota', 'token_count')
  const counted = countsLastStepOnly ? undefined : usage
  if (counted !== undefined || costUsd !== undefined) {
    facts.push({
      type: 'usage',
      figures: {
        input_tokens: countAt(counted, 'inputTokens') || countAt(counted, 'input_tokens'),
        output_tokens: countAt(counted, 'outputTokens') || countAt(counted, 'output_tokens'),
        cache_read_tokens: countAt(counted, 'cachedReadTokens'),
        cache_creation_tokens: countAt(counted, 'cachedWriteTokens'),
        ...(costUsd !== undefined && { cost_usd: costUsd }),
      },
    })
  }
  const used = listAt(result, '_meta', 'quota', 'model_usage').map((model) => textAt(model, 'model'))
  if (used.length === 1 && used[0] !== undefined) facts.push({ type: 'model', model: used[0] })
  if (reason === 'end_turn') return [...facts, { type: 'turn_over' }]
  return [
    ...facts,
    { type: 'failed', ending: 'crash', message: `the agent ended its turn: ${reason || 'no reason given'}` },
  ]
}

function refusedModel(model: string, error: unknown): AgentFact {
  const message = `the agent does not take the model ${model}: ${messageOf(error)}`
  return { type: 'failed', ending: 'model', message }
}

/** Each agent puts the class of an error elsewhere: an HTTP status as code, a word in `data`, or only the message. */
function failure(error: unknown): AgentFact {
  const message = messageOf(error)
  const data = jsonOf(at(error, 'data') ?? '')
  const code = countAt(error, 'code')
  // -32000 is the protocol's own "authentication required".
  const byCode: AgentEnding =
    at(error, 'code') === -32_000 ? 'auth' : code >= 400 && code < 600 ? endingOfStatus(code) : 'crash'
  const words = `${message} ${data.replaceAll(/([a-z])([A-Z])/g, '$1 $2').replaceAll('_', ' ')}`
  const byWords = endingOfError(words)
  // Gemini says 500 for whatever has no status of its own, such as an unknown model.
  const isVague = byCode === 'crash' || isUnpaid(words) || (code === 500 && byWords !== 'crash')
  const ending = isVague ? byWords : byCode
  return { type: 'failed', ending, message }
}

/** Some hand their provider's answer through as it came, a JSON text inside; what else they know is in words of `data`. */
function messageOf(error: unknown): string {
  const message = textAt(error, 'message')
  const inner = textAt(parseJson(Buffer.from(message)), 'error', 'message')
  const data = at(error, 'data')
  const words = (typeof data === 'object' && data !== null ? Object.values(data) : [data]).filter(
    (word) => typeof word === 'string' && word !== '',
  )
  return `${inner || message}${words.length === 0 ? '' : ` (${words.join(', ')})`}`
}

/** Everything is allowed, as with every other agent here; what else it asks for we do not have. */
function answer(message: unknown): string {
  const id = at(message, 'id')
  if (textAt(message, 'method') !== 'session/request_permission') {
    return `${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'not supported' } })}\n`
  }
  const options = listAt(message, 'params', 'options')
  // Once, and again for each: Gemini refuses the work of whoever allows always in a folder it was not told to trust.
  const allowing = ['allow_once', 'allow_always']
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
