#!/usr/bin/env node
// Stands in for Codex: one command, words, a completed turn.
import { writeFileSync } from 'node:fs'

const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`)
process.stdin.resume()
say({ type: 'thread.started', thread_id: 'thread-1' })
say({ type: 'item.started', item: { id: 'i1', type: 'command_execution', command: 'touch made' } })
writeFileSync('made-by-codex.txt', 'x')
say({
  type: 'item.completed',
  item: { id: 'i1', type: 'command_execution', command: 'touch made', exit_code: 0 },
})
say({
  type: 'item.completed',
  item: { id: 'i2', type: 'agent_message', text: '<promise>COMPLETE</promise>' },
})
say({ type: 'turn.completed', usage: { input_tokens: 10, cached_input_tokens: 4, output_tokens: 2 } })
process.exit(0)
