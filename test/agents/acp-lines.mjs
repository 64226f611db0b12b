// A small ACP agent: JSON-RPC in lines, for programs that stand in for a real one.
import { createInterface } from 'node:readline'

export const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
export const update = (change) =>
  send({ method: 'session/update', params: { sessionId: 's-1', update: change } })
export const chunk = (text) =>
  update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })

/** Answers the opening; `onPrompt` gets the request's id, the prompt and the MCP servers, `onOther` everything else. */
export function serve(onPrompt, onOther = () => undefined) {
  let servers = []
  createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line)
    if (message.method === 'initialize')
      send({ id: message.id, result: { protocolVersion: 1, agentCapabilities: {} } })
    else if (message.method === 'session/new') {
      servers = message.params.mcpServers
      send({ id: message.id, result: { sessionId: 's-1' } })
    } else if (message.method === 'session/prompt')
      onPrompt(message.id, message.params.prompt[0].text, servers)
    else onOther(message)
  })
}
