#!/usr/bin/env node
// Stands in for Claude Code with AGENT_MEGABYTES of tool results and words between them, then COMPLETE (P5).
import { writeSync } from 'node:fs'

process.stdin.resume()
const line = (event) => `${JSON.stringify(event)}\n`
const result = line({
  type: 'user',
  message: {
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: 't', content: 'const x = "promise"\n'.repeat(400) }],
  },
})
const words = line({
  type: 'assistant',
  message: { id: 'm', model: 'claude-test', content: [{ type: 'text', text: 'Reading on.' }] },
  parent_tool_use_id: null,
})
const block = Buffer.from(result.repeat(20) + words)
writeAll(
  Buffer.from(line({ type: 'system', subtype: 'init', session_id: 'session-1', model: 'claude-test' })),
)
const bytes = Number(process.env.AGENT_MEGABYTES ?? '200') * 1024 * 1024
for (let left = bytes; left > 0; left -= block.length) writeAll(block)
const done = { type: 'text', text: '<promise>COMPLETE</promise>' }
writeAll(
  Buffer.from(line({ type: 'assistant', message: { id: 'm', content: [done] }, parent_tool_use_id: null })),
)
writeAll(
  Buffer.from(line({ type: 'result', subtype: 'success', is_error: false, num_turns: 9, result: done.text })),
)
process.exit(0)

function writeAll(buffer) {
  for (let at = 0; at < buffer.length;) {
    try {
      at += writeSync(1, buffer, at)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}
