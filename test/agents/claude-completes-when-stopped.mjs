#!/usr/bin/env node
// Answers the stop with one more turn: COMPLETE, a good result, exit code 0 (R18, Claude Code 2.1.197).
import { init, readPrompt, success, text } from './claude-lines.mjs'

await readPrompt()
init()
process.on('SIGINT', () => {
  text('<promise>COMPLETE</promise>')
  success('<promise>COMPLETE</promise>')
  process.exit(0)
})
text('working')
setInterval(() => undefined, 1000)
