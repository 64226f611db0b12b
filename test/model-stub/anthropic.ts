// Anthropic's messages API, as Claude Code calls it.
import { randomUUID } from 'node:crypto'
import { usage } from './script.ts'
import { listOf, sse, wordsOf, type Protocol } from './server.ts'

export const anthropic: Protocol = {
  matches: (path) => path === '/v1/messages',
  read(body) {
    if (!listOf(body['tools']).some((tool) => tool['name'] === 'Bash')) return undefined
    const messages = listOf(body['messages'])
    const results = messages
      .flatMap((message) => listOf(message['content']))
      .filter((block) => block['type'] === 'tool_result')
    const prompt = messages
      .filter((message) => message['role'] === 'user')
      .map((message) => wordsOf(message['content']))
      .join('\n')
    return { prompt, results: results.length, last: wordsOf(results.at(-1)?.['content']) }
  },
  answer(step, body) {
    const id = randomUUID().replaceAll('-', '')
    const counted = {
      input_tokens: usage.input,
      cache_read_input_tokens: usage.cached,
      cache_creation_input_tokens: 30,
      output_tokens: 1,
    }
    const tool =
      step.do === 'write'
        ? { name: 'Write', input: { file_path: step.path, content: step.content } }
        : step.do === 'shell'
          ? { name: 'Bash', input: { command: step.command, description: 'run' } }
          : step.do === 'tool'
            ? { name: `mcp__${step.server ?? 'ralph_story'}__${step.name}`, input: step.input }
            : undefined
    const block =
      tool === undefined
        ? { type: 'text', text: '' }
        : { type: 'tool_use', id: `toolu_${id}`, name: tool.name, input: {} }
    const delta =
      tool === undefined
        ? { type: 'text_delta', text: step.do === 'say' ? step.text : '' }
        : { type: 'input_json_delta', partial_json: JSON.stringify(tool.input) }
    return sse([
      {
        type: 'message_start',
        message: {
          id: `msg_${id}`,
          type: 'message',
          role: 'assistant',
          model: body['model'],
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: counted,
        },
      },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: tool === undefined ? 'end_turn' : 'tool_use', stop_sequence: null },
        usage: { output_tokens: usage.output },
      },
      { type: 'message_stop' },
    ])
  },
  failure: ({ status, message }) => ({
    type: 'error',
    error: { type: errorTypes[status] ?? 'api_error', message },
  }),
}

const errorTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}
