// Claude Code: `claude -p`, stream-json.
import type { AgentEnding } from '../../core/event.ts'
import { noUsage, tokensUsed } from '../../core/usage.ts'
import type { UsageFigures } from '../../core/usage.ts'
import { endingOfError, endingOfStatus, isUnpaid } from './failure.ts'
import { at, countAt, listAt, parseJson, shortInput, textAt } from './json.ts'
import type { AgentFact, AgentKind } from './kind.ts'
import { resetStamp } from './reset-time.ts'
import { textTail, type TextTail } from './talk.ts'

export const claude: AgentKind = {
  program: 'claude',
  speaks: 'lines',
  isIdle: (chunk, start) => !canMatter(chunk, start),
  keys: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
  takesClaims: (passThrough) => (hasOwnRules(passThrough) ? 'not' : 'by file'),
  launch({ prompt, model, passThrough, isRoot, claims }) {
    return {
      file: 'claude',
      args: [
        '-p',
        '--output-format',
        'stream-json',
        '--verbose',
        ...(hasOwnRules(passThrough) ? [] : ['--dangerously-skip-permissions']),
        ...(model === undefined ? [] : ['--model', model]),
        // A file, not its text: arguments can be read by everybody.
        ...(claims === undefined ? [] : ['--mcp-config', claims.configFile]),
        ...passThrough,
      ],
      env: {
        // An update in the middle of a loop would change the agent under it.
        DISABLE_AUTOUPDATER: '1',
        // It refuses to skip permissions as root otherwise.
        ...(isRoot && { IS_SANDBOX: '1' }),
      },
      input: prompt,
    }
  },
  listen: () => {
    const said = textTail(saidLimit)
    const spent = spending()
    return {
      hear(line, nowMs) {
        // A start that a border of chunks cut is seen only here.
        if (!canMatter(line, 0)) return []
        const event = parseJson(line)
        const facts = [...parseClaude(event, nowMs), ...spent.of(event)]
        let isOver = false
        for (const fact of facts) {
          if (fact.type === 'text') said.add(fact.text)
          else if (fact.type === 'turn_over') isOver = true
        }
        return isOver ? [...unsaid(event, said), ...facts] : facts
      },
    }
  },
  diagnose: (exitCode, stderr) => {
    const ending = exitCode === 0 ? 'crash' : endingOfError(stderr)
    return ending === 'crash' ? undefined : ending
  },
}

/** Whoever names permissions of their own gets those and no others; tools of ralph's would be refused then. */
function hasOwnRules(passThrough: readonly string[]): boolean {
  return passThrough.some((arg) =>
    /^--(?:permission-mode|allowed-?tools|disallowed-?tools|dangerously-skip-permissions)\b/i.test(arg),
  )
}

function parseClaude(event: unknown, nowMs: number): readonly AgentFact[] {
  switch (textAt(event, 'type')) {
    case 'system':
      return system(event)
    case 'assistant':
      return assistant(event)
    case 'rate_limit_event': {
      if (textAt(event, 'rate_limit_info', 'status') !== 'rejected') return []
      const atMs = resetStamp(countAt(event, 'rate_limit_info', 'resetsAt'), nowMs)
      return [
        { type: 'retry', ending: 'limit' },
        ...(atMs === undefined ? [] : [{ type: 'resets', atMs } as const]),
      ]
    }
    case 'result':
      return result(event)
    default:
      return []
  }
}

function system(event: unknown): readonly AgentFact[] {
  const subtype = textAt(event, 'subtype')
  if (subtype === 'init') {
    const [id, model] = [textAt(event, 'session_id'), textAt(event, 'model')]
    return [
      ...(id === '' ? [] : [{ type: 'session', id } as const]),
      ...(model === '' ? [] : [{ type: 'model', model } as const]),
    ]
  }
  if (subtype !== 'api_retry') return []
  const status = countAt(event, 'error_status')
  const ending = status === 0 ? 'offline' : endingOfStatus(status)
  // 2.1 retries a 401 ten times over three minutes; no retry brings a login back.
  if (ending !== 'auth') return [{ type: 'retry', ending }]
  return [{ type: 'failed', ending, message: `${textAt(event, 'error')} (HTTP ${status})`, isHopeless: true }]
}

function assistant(event: unknown): readonly AgentFact[] {
  // A sub-agent's words are for its parent.
  if (textAt(event, 'parent_tool_use_id') !== '') return []
  const content = listAt(event, 'message', 'content')
  const ending = errors.get(textAt(event, 'error'))
  if (ending !== undefined)
    return [{ type: 'retry', ending, message: content.map((block) => textAt(block, 'text')).join('\n') }]
  // The CLI's own error text.
  if (textAt(event, 'message', 'model') === '<synthetic>') return []
  return content.flatMap((block): AgentFact[] => {
    const type = textAt(block, 'type')
    if (type === 'text') return [{ type: 'text', text: textAt(block, 'text') }]
    if (type !== 'tool_use') return []
    const name = textAt(block, 'name')
    const tool: AgentFact = { type: 'tool', name, input: shortInput(at(block, 'input')) }
    return name === 'AskUserQuestion' ? [tool, { type: 'halted', ending: 'question' }] : [tool]
  })
}

const errors: ReadonlyMap<string, AgentEnding> = new Map([
  ['rate_limit', 'limit'],
  ['overloaded', 'overloaded'],
  ['server_error', 'overloaded'],
  ['authentication_failed', 'auth'],
  ['billing_error', 'auth'],
])

function result(event: unknown): readonly AgentFact[] {
  const facts: AgentFact[] = []
  const figures = usageOf(event)
  if (figures !== undefined) facts.push({ type: 'usage', figures })
  const message = textAt(event, 'result')
  if (at(event, 'is_error') === true || textAt(event, 'subtype') !== 'success') {
    const ending = endingOfResult(event, message)
    facts.push({
      type: 'failed',
      ending,
      message: (ending === 'crash' && complaint(event)) || message || textAt(event, 'subtype'),
    })
    return facts
  }
  // "Unknown command: /word" and its like: success, exit 0, and the model was never asked.
  if (at(event, 'num_turns') === 0) return [...facts, { type: 'failed', ending: 'no_turn', message }]
  if (listAt(event, 'permission_denials').length > 0)
    facts.push({ type: 'halted', ending: 'refused_permission' })
  return [...facts, { type: 'turn_over' }]
}

/** `error_max_turns` and its kin: what the assistant said last is no reason. */
function complaint(event: unknown): string {
  const subtype = textAt(event, 'subtype')
  const errors = listAt(event, 'errors').filter((error) => typeof error === 'string')
  return subtype === 'success' ? '' : [subtype, ...errors].join(': ')
}

/** A promise that the result alone has. Other words there are of no weight: they would hide why a turn halted. */
function unsaid(event: unknown, said: TextTail): readonly AgentFact[] {
  const text = textAt(event, 'result')
  return !text.includes('promise') || withoutBlanks(said.text()).includes(withoutBlanks(text))
    ? []
    : [{ type: 'text', text }]
}

function withoutBlanks(text: string): string {
  return text.replaceAll(/\s+/g, '')
}

function endingOfResult(event: unknown, message: string): AgentEnding {
  const status = countAt(event, 'api_error_status')
  if (isUnpaid(message) || /not logged in|invalid api key|please run \/login/i.test(message)) return 'auth'
  if (status > 0) return endingOfStatus(status)
  // The text of an error that is called a success is the program's own; of any other it may be what the assistant said.
  const byText = textAt(event, 'subtype') === 'success' ? endingOfError(message) : 'crash'
  return byText === 'crash' && textAt(event, 'terminal_reason') === 'api_error' ? 'offline' : byText
}

/** `modelUsage` counts sub-agents, `usage` does not; assistant events repeat the same figures and are useless. */
function usageOf(event: unknown): UsageFigures | undefined {
  const [models, turn] = [partsAt(event, 'modelUsage'), partsAt(event, 'usage')]
  if (models === undefined && turn === undefined) return undefined
  const sum = (field: string, ofTurn: string): number =>
    // Other versions, and programs that speak like it, tell the turn's sum alone.
    models === undefined || models.length === 0
      ? countAt(event, 'usage', ofTurn)
      : models.reduce((total: number, model) => total + countAt(model, field), 0)
  const cost = at(event, 'total_cost_usd')
  return {
    input_tokens: sum('inputTokens', 'input_tokens'),
    output_tokens: sum('outputTokens', 'output_tokens'),
    cache_read_tokens: sum('cacheReadInputTokens', 'cache_read_input_tokens'),
    cache_creation_tokens: sum('cacheCreationInputTokens', 'cache_creation_input_tokens'),
    ...(typeof cost === 'number' && cost >= 0 && { cost_usd: cost }),
  }
}

/** Each message of the model tells what it was asked with, again with each of its parts; what it answers is counted at the end only. */
function spending(): { of(event: unknown): readonly AgentFact[] } {
  const messages = new Map<string, UsageFigures>()
  let sum = noUsage
  let told = 0
  return {
    of(event) {
      const id = textAt(event, 'message', 'id')
      if (id === '' || at(event, 'message', 'usage') === undefined) return []
      const before = messages.get(id) ?? noUsage
      const figures = messageUsage(event)
      messages.set(id, figures)
      sum = {
        input_tokens: sum.input_tokens - before.input_tokens + figures.input_tokens,
        output_tokens: sum.output_tokens - before.output_tokens + figures.output_tokens,
        cache_read_tokens: sum.cache_read_tokens - before.cache_read_tokens + figures.cache_read_tokens,
        cache_creation_tokens:
          sum.cache_creation_tokens - before.cache_creation_tokens + figures.cache_creation_tokens,
      }
      // A live figure need not be told each time: every event is written down.
      if (tokensUsed(sum) < told + tellingStep) return []
      told = tokensUsed(sum)
      return [{ type: 'usage', figures: sum, isRough: true }]
    },
  }
}

function messageUsage(event: unknown): UsageFigures {
  const count = (field: string): number => countAt(event, 'message', 'usage', field)
  return {
    input_tokens: count('input_tokens'),
    output_tokens: count('output_tokens'),
    cache_read_tokens: count('cache_read_input_tokens'),
    cache_creation_tokens: count('cache_creation_input_tokens'),
  }
}

const tellingStep = 500

function partsAt(event: unknown, field: string): readonly unknown[] | undefined {
  const found = at(event, field)
  return typeof found === 'object' && found !== null ? Object.values(found) : undefined
}

/** Lines of other types tell nothing: deltas come again as messages. Only the compact form is known by its start; any other is read whole. */
function canMatter(chunk: Buffer, start: number): boolean {
  if (!mayStartWith(chunk, start, compactStart)) return true
  for (const type of tellingTypes) if (mayStartWith(chunk, start + compactStart.length, type)) return true
  return false
}

/** Byte by byte: most lines of a flood differ early, and a part of a buffer costs more than that to make. */
function mayStartWith(chunk: Buffer, from: number, start: Buffer): boolean {
  const length = Math.min(start.length, chunk.length - from)
  for (let at = 0; at < length; at++) if (chunk[from + at] !== start[at]) return false
  return true
}

const compactStart = Buffer.from('{"type":"')
const tellingTypes = ['assistant', 'result', 'system', 'rate_limit_event'].map((type) =>
  Buffer.from(`${type}"`),
)
const saidLimit = 262_144
