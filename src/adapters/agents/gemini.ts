// Gemini CLI: stream-json. It echoes the prompt as a message of the user's, and cuts its own words into deltas.
import { endingOfError, endingOfStatus } from './failure.ts'
import { at, countAt, parseJson, shortInput, textAt } from './json.ts'
import type { AgentFact, AgentKind } from './kind.ts'

export const gemini: AgentKind = {
  program: 'gemini',
  speaks: 'lines',
  hidesGitConfig: true,
  keys: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
  launch({ prompt, model, passThrough }) {
    const hasOwnRules = passThrough.some((arg) => /^(?:--approval-mode|--yolo|-y|--sandbox|-s)\b/.test(arg))
    return {
      file: 'gemini',
      args: [
        '--output-format',
        'stream-json',
        ...(hasOwnRules ? [] : ['--approval-mode', 'yolo']),
        '--skip-trust',
        ...(model === undefined ? [] : ['-m', model]),
        ...passThrough,
      ],
      // It would start itself a second time for more memory: 2 s, and a process more to end.
      env: { GEMINI_CLI_NO_RELAUNCH: 'true' },
      input: prompt,
    }
  },
  listen: () => ({ hear: (line) => (canMatter(line) ? parseGemini(parseJson(line)) : []) }),
  diagnose(exitCode, stderr) {
    if (exitCode === 0 || exitCode === undefined) return undefined
    if (exitCode === 41) return 'auth'
    // It exits with the HTTP status modulo 256.
    const status = [401, 403, 404, 429, 500, 502, 503, 504, 529].find((known) => known % 256 === exitCode)
    if (status !== undefined) return endingOfStatus(status)
    const ending = endingOfError(stderr)
    return ending === 'crash' ? undefined : ending
  },
}

function parseGemini(event: unknown): readonly AgentFact[] {
  switch (textAt(event, 'type')) {
    case 'init': {
      const facts: AgentFact[] = [{ type: 'session', id: textAt(event, 'session_id') }]
      const model = textAt(event, 'model')
      return model === '' ? facts : [...facts, { type: 'model', model }]
    }
    case 'message':
      if (textAt(event, 'role') !== 'assistant') return []
      return [
        {
          type: 'text',
          text: textAt(event, 'content'),
          ...(at(event, 'delta') === true && { isPartial: true as const }),
        },
      ]
    case 'tool_use': {
      const name = textAt(event, 'tool_name')
      const tool: AgentFact = { type: 'tool', name, input: shortInput(at(event, 'parameters')) }
      return name === 'ask_user' ? [tool, { type: 'halted', ending: 'question' }] : [tool]
    }
    case 'result':
      return result(event)
    default:
      return []
  }
}

function result(event: unknown): readonly AgentFact[] {
  const cached = countAt(event, 'stats', 'cached')
  const input = countAt(event, 'stats', 'input_tokens')
  const figures = {
    input_tokens: Math.max(0, input - cached),
    // What was thought is paid for as output, and is only in the total.
    output_tokens: Math.max(
      countAt(event, 'stats', 'output_tokens'),
      countAt(event, 'stats', 'total_tokens') - input,
    ),
    cache_read_tokens: cached,
    cache_creation_tokens: 0,
  }
  const usage: AgentFact = { type: 'usage', figures }
  if (textAt(event, 'status') === 'success') return [usage, { type: 'turn_over' }]
  const message = textAt(event, 'error', 'message')
  const ending = endingOfError(`${textAt(event, 'error', 'type')} ${message}`)
  return [usage, { type: 'failed', ending, message }]
}

function canMatter(line: Buffer): boolean {
  return line.length < 65_536 || !line.subarray(0, 64).includes('"tool_result"')
}
