#!/usr/bin/env node
// Its result is out, the process stays for a task of its own, and speaks again when it is told to leave (R15).
import { init, readPrompt, success, text } from './claude-lines.mjs'

await readPrompt()
init()
text('<promise>COMPLETE</promise>')
success('<promise>COMPLETE</promise>')
process.on('SIGINT', () => {
  text('<promise>FAILED: too late to matter</promise>')
  success('<promise>FAILED: too late to matter</promise>')
  process.exit(0)
})
setInterval(() => undefined, 1000)
