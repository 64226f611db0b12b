// What Claude Code 2.1 prints, line by line: for programs that stand in for it on PATH.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

export const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`)
export const init = () =>
  say({ type: 'system', subtype: 'init', session_id: 'session-1', model: 'claude-test', tools: [] })
export const text = (words, parent = null) =>
  say({
    type: 'assistant',
    message: { id: 'm', model: 'claude-test', content: [{ type: 'text', text: words }] },
    parent_tool_use_id: parent,
  })
export const tool = (name, input) =>
  say({
    type: 'assistant',
    message: { id: 'm', model: 'claude-test', content: [{ type: 'tool_use', id: 't', name, input }] },
    parent_tool_use_id: null,
  })
export const toolResult = (content) =>
  say({
    type: 'user',
    message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content }] },
  })
export const success = (result, rest = {}) =>
  say({
    type: 'result',
    subtype: 'success',
    is_error: false,
    api_error_status: null,
    num_turns: 2,
    result,
    session_id: 'session-1',
    total_cost_usd: 0.0127,
    permission_denials: [],
    terminal_reason: 'completed',
    modelUsage: {
      'claude-test': {
        inputTokens: 100,
        outputTokens: 20,
        cacheReadInputTokens: 30,
        cacheCreationInputTokens: 4,
      },
    },
    ...rest,
  })
export const failure = (status, result, rest = {}) =>
  success(result, {
    is_error: true,
    api_error_status: status,
    terminal_reason: 'api_error',
    modelUsage: {},
    total_cost_usd: 0,
    ...rest,
  })

/** How often this program has been started before, by a file that AGENT_STATE names. */
export function runsBefore() {
  const file = process.env.AGENT_STATE
  if (file === undefined) return 0
  const before = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0
  writeFileSync(file, String(before + 1))
  return before
}

export async function readPrompt() {
  let prompt = ''
  for await (const chunk of process.stdin) prompt += chunk
  return prompt
}
