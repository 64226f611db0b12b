#!/usr/bin/env node
// Hits the subscription's limit AGENT_LIMITS times (reset after AGENT_RESET_SECONDS, or the literal AGENT_RESETS_AT), then works (R8).
// The first that works does not answer before there is a file AGENT_WAITS_FOR.
import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { failure, init, readPrompt, runsBefore, say, success, text } from './claude-lines.mjs'

await readPrompt()
init()
const before = runsBefore()
const limits = Number(process.env.AGENT_LIMITS ?? '1')
if (before < limits) {
  const resetsAt = Number(
    process.env.AGENT_RESETS_AT ??
      Math.ceil(Date.now() / 1000) + Number(process.env.AGENT_RESET_SECONDS ?? '3'),
  )
  say({
    type: 'rate_limit_event',
    rate_limit_info: { status: 'rejected', resetsAt, rateLimitType: 'five_hour' },
  })
  failure(429, "You've hit your limit · resets 10pm (UTC)")
  process.exit(1)
}
const awaited = process.env.AGENT_WAITS_FOR
while (awaited !== undefined && before === limits && !existsSync(awaited)) await delay(20)
text('<promise>COMPLETE</promise>')
success('<promise>COMPLETE</promise>')
