#!/usr/bin/env node
// No network at the first call, then works (R8).
import { failure, init, readPrompt, runsBefore, say, success, text } from './claude-lines.mjs'

await readPrompt()
init()
if (runsBefore() === 0) {
  say({
    type: 'system',
    subtype: 'api_retry',
    attempt: 1,
    max_retries: 1,
    retry_delay_ms: 500,
    error_status: null,
    error: 'unknown',
  })
  failure(null, 'API Error: Connection refused (ECONNREFUSED)')
  process.exit(1)
}
text('<promise>COMPLETE</promise>')
success('<promise>COMPLETE</promise>')
