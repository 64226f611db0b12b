#!/usr/bin/env node
// Prints AGENT_MEGABYTES of lines, then COMPLETE: nothing may be lost, memory stays bounded (P5).
import { writeSync } from 'node:fs'

process.stdin.resume()
const line = `${'All work and no play makes an agent print. '.repeat(3)}\n`
const block = Buffer.from(line.repeat(Math.ceil(65_536 / line.length)))
const bytes = Number(process.env.AGENT_MEGABYTES ?? '200') * 1024 * 1024
for (let left = bytes; left > 0; left -= block.length) writeAll(block.subarray(0, left))
writeAll(Buffer.from('\n<promise>COMPLETE</promise>\n'))
process.exit(0)

function writeAll(buffer) {
  for (let at = 0; at < buffer.length;) {
    try {
      at += writeSync(1, buffer, at)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}
