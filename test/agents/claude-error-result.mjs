#!/usr/bin/env node
// Says COMPLETE, then its protocol calls the turn an error, exit code 0 (R10).
import { failure, init, readPrompt, text } from './claude-lines.mjs'

await readPrompt()
init()
text('<promise>COMPLETE</promise>')
failure(null, 'Execution error', { subtype: 'error_during_execution', terminal_reason: 'aborted_tools' })
