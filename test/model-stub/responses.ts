// OpenAI's responses API, as Codex calls it.
import { randomUUID } from 'node:crypto'
import { usage } from './script.ts'
import { listOf, sse, wordsOf, type Protocol } from './server.ts'

export const responses: Protocol = {
  matches: (path) => path === '/v1/responses',
  read(body) {
    const input = listOf(body['input'])
    const results = input.filter((item) => item['type'] === 'function_call_output')
    const prompt = input
      .filter((item) => item['role'] === 'user')
      .map((item) => wordsOf(item['content']))
      .join('\n')
    const last = results.at(-1)?.['output']
    return { prompt, results: results.length, last: wordsOf(last) }
  },
  answer(step) {
    const id = `resp_${randomUUID()}`
    const call = (command: string): unknown => ({
      type: 'function_call',
      id: `fc_${randomUUID()}`,
      call_id: `call_${randomUUID()}`,
      name: 'exec_command',
      arguments: JSON.stringify({ cmd: command }),
    })
    const item =
      step.do === 'say'
        ? {
            type: 'message',
            role: 'assistant',
            id: `msg_${id}`,
            content: [{ type: 'output_text', text: step.text }],
          }
        : step.do === 'tool'
          ? {
              type: 'function_call',
              id: `fc_${randomUUID()}`,
              call_id: `call_${randomUUID()}`,
              namespace: `mcp__${step.server ?? 'ralph_story'}`,
              name: step.name,
              arguments: JSON.stringify(step.input),
            }
          : call(step.do === 'shell' ? step.command : writing(step.path, step.content))
    const counted = {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: usage.cached },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: usage.thought },
      total_tokens: usage.input + usage.output,
    }
    return sse([
      { type: 'response.created', response: { id } },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id, usage: counted } },
    ])
  },
  failure: ({ status, message, resetsAt }) => ({
    error: {
      type: status === 429 ? 'usage_limit_reached' : 'invalid_request_error',
      code: null,
      message,
      plan_type: 'plus',
      resets_at: resetsAt ?? Math.floor(Date.now() / 1000) + 7200,
    },
  }),
}

/** Codex has no tool of its own for files that a script could call without a patch. */
function writing(path: string, content: string): string {
  return `mkdir -p "$(dirname '${path}')" && printf '%s' '${content}' > '${path}'`
}
