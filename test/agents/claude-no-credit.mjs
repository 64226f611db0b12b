#!/usr/bin/env node
// There is a login, but the account is empty.
import { init, readPrompt, say } from './claude-lines.mjs'

await readPrompt()
init()
say({
  type: 'result',
  subtype: 'success',
  is_error: true,
  api_error_status: 400,
  num_turns: 1,
  result: 'Credit balance is too low',
})
process.exitCode = 1
