#!/usr/bin/env node
// Stray words, cut JSON, unknown events and a tool result of 20 MB between the events that matter (P5).
import { init, readPrompt, say, success, text, toolResult } from './claude-lines.mjs'

await readPrompt()
process.stdout.write('npm warn something\n{"type":"assist\n[]\n"text"\nnull\n')
init()
say({ type: 'brand_new_event', data: { deep: [1, 2, 3] } })
say({ type: 'assistant' })
say({ type: 'assistant', message: { content: 'not a list' } })
toolResult('y'.repeat(20 * 1024 * 1024))
text('All fine\u2028here.\n<promise>COMPLETE</promise>')
success('ok')
