#!/usr/bin/env node
// An ACP agent that works until it is cancelled, then says COMPLETE all the same (R18).
import { chunk, send, serve } from './acp-lines.mjs'

let promptId
serve(
  (id) => {
    promptId = id
    chunk('working')
  },
  (message) => {
    if (message.method !== 'session/cancel') return
    chunk('\ncancelled\n<promise>COMPLETE</promise>\n')
    send({ id: promptId, result: { stopReason: 'end_turn' } })
    process.exit(0)
  },
)
