#!/usr/bin/env node
// The service is overloaded at the first call, then works (R8).
import { failure, init, readPrompt, runsBefore, say, success, text } from './claude-lines.mjs'

await readPrompt()
init()
if (runsBefore() === 0) {
  say({
    type: 'system',
    subtype: 'api_retry',
    attempt: 1,
    max_retries: 10,
    retry_delay_ms: 500,
    error_status: 529,
    error: 'overloaded',
  })
  failure(529, 'API Error: 529 overloaded_error')
  process.exit(1)
}
text('<promise>COMPLETE</promise>')
success('<promise>COMPLETE</promise>')
