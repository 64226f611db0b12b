#!/usr/bin/env node
// Waits for an overloaded service and never gives up (R8, R16).
import { init, readPrompt, say } from './claude-lines.mjs'

await readPrompt()
init()
setInterval(
  () =>
    say({
      type: 'system',
      subtype: 'api_retry',
      attempt: 1,
      max_retries: 10,
      retry_delay_ms: 500,
      error_status: 529,
      error: 'overloaded',
    }),
  50,
)
