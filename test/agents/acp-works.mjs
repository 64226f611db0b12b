#!/usr/bin/env node
// An ACP agent that asks for a permission, edits a file, and cuts its promise into chunks; it stays until stdin closes.
import { writeFileSync } from 'node:fs'
import { chunk, send, serve, update } from './acp-lines.mjs'

let promptId
serve(
  (id) => {
    promptId = id
    update({ sessionUpdate: 'tool_call', title: 'Write', rawInput: { path: 'made.txt' } })
    send({ id: 90, method: 'fs/read_text_file', params: {} })
    const options = [
      { optionId: 'no', kind: 'reject_once' },
      { optionId: 'yes', kind: 'allow_once' },
    ]
    send({ id: 91, method: 'session/request_permission', params: { options } })
  },
  (answer) => {
    if (answer.id === 90 && answer.error === undefined) throw new Error('has no files to read')
    if (answer.id !== 91) return
    if (answer.result.outcome.optionId !== 'yes') throw new Error('refused')
    writeFileSync('made.txt', 'x')
    for (const part of ['All done.\n<prom', 'ise>COMP', 'LETE</promise>']) chunk(part)
    send({
      id: promptId,
      result: { stopReason: 'end_turn', usage: { inputTokens: 10, outputTokens: 2, cachedReadTokens: 3 } },
    })
  },
)
