// OpenAI's chat completions API, as OpenCode calls it.
import { randomUUID } from 'node:crypto'
import { usage } from './script.ts'
import { listOf, wordsOf, type Protocol } from './server.ts'

export const chatCompletions: Protocol = {
  matches: (path) => path === '/v1/chat/completions',
  read(body) {
    const names = listOf(body['tools']).map(
      (tool) => (tool['function'] as Record<string, unknown> | undefined)?.['name'],
    )
    if (!names.includes('bash')) return undefined
    const messages = listOf(body['messages'])
    const prompt = messages
      .filter((message) => message['role'] === 'user')
      .map((message) => wordsOf(message['content']))
      .join('\n')
    const results = messages.filter((message) => message['role'] === 'tool')
    return { prompt, results: results.length, last: wordsOf(results.at(-1)?.['content']) }
  },
  answer(step, body) {
    const id = `chatcmpl-${randomUUID()}`
    const call =
      step.do === 'write'
        ? { name: 'write', input: { filePath: step.path, content: step.content } }
        : step.do === 'tool'
          ? { name: `${step.server ?? 'ralph_story'}_${step.name}`, input: step.input }
          : { name: 'bash', input: { command: step.do === 'shell' ? step.command : '', description: 'run' } }
    const delta =
      step.do === 'say'
        ? { role: 'assistant', content: step.text }
        : {
            role: 'assistant',
            tool_calls: [
              {
                index: 0,
                id: `call_${id}`,
                type: 'function',
                function: { name: call.name, arguments: JSON.stringify(call.input) },
              },
            ],
          }
    const chunk = (choice: unknown, rest: object = {}): string =>
      `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 0, model: body['model'], choices: [choice], ...rest })}\n\n`
    const counted = {
      prompt_tokens: usage.input,
      completion_tokens: usage.output,
      total_tokens: usage.input + usage.output,
      completion_tokens_details: { reasoning_tokens: usage.thought },
      prompt_tokens_details: { cached_tokens: usage.cached },
    }
    return [
      chunk({ index: 0, delta, finish_reason: null }),
      chunk(
        { index: 0, delta: {}, finish_reason: step.do === 'say' ? 'stop' : 'tool_calls' },
        { usage: counted },
      ),
      'data: [DONE]\n\n',
    ].join('')
  },
  failure: ({ status, message }) => ({ error: { message, type: String(status), code: null } }),
}
