#!/usr/bin/env node
// The login is gone; it would go on trying for minutes (R16).
import { init, readPrompt, say } from './claude-lines.mjs'

await readPrompt()
init()
let attempt = 0
setInterval(
  () =>
    say({
      type: 'system',
      subtype: 'api_retry',
      attempt: ++attempt,
      max_retries: 10,
      retry_delay_ms: 500,
      error_status: 401,
      error: 'authentication_failed',
    }),
  50,
)
