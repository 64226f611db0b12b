#!/usr/bin/env node
// An ACP agent that does what CLAIM_STEPS says, a list of steps for each attempt, with the tools that ralph offers; it keeps what it hears in CLAIM_LOG.
import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { chunk, send, serve } from './acp-lines.mjs'

const { CLAIM_STEPS, CLAIM_LOG, RALPH_ATTEMPT } = process.env
const attempts = JSON.parse(CLAIM_STEPS)
const steps = attempts[Math.min(Number(RALPH_ATTEMPT), attempts.length) - 1]
const log = (what) => appendFileSync(CLAIM_LOG, `${JSON.stringify(what)}\n`)

serve(async (id, prompt, servers) => {
  log({ servers: servers.map(({ name }) => name), isTold: prompt.includes('story_complete') })
  const tools = servers.length > 0 ? await connect(servers[0]) : undefined
  for (const step of steps) await take(step, tools)
  send({ id, result: { stopReason: 'end_turn' } })
})

async function take(step, tools) {
  if ('write' in step) writeFileSync(step.write, step.text)
  if ('say' in step) chunk(`${step.say}\n`)
  if ('run' in step) log({ run: spawnSync('sh', ['-c', step.run], { encoding: 'utf8' }).stdout })
  if ('exit' in step) process.exit(step.exit)
  if ('call' in step) log(await tools.call(...step.call))
  if ('calls' in step)
    for (const answer of await Promise.all(step.calls.map((call) => tools.call(...call)))) log(answer)
  // Not waited for.
  if ('begin' in step) void tools.call(...step.begin)
  if ('cancel' in step) tools.cancel()
}

async function connect({ command, args, env }) {
  const own = Object.fromEntries(env.map(({ name, value }) => [name, value]))
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...own },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const waiting = new Map()
  let last = 0
  const write = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, result, error } = JSON.parse(line)
    waiting.get(id)?.(result ?? error)
  })
  const ask = (method, params) =>
    new Promise((done) => {
      last += 1
      waiting.set(last, done)
      write({ id: last, method, params })
    })
  await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test' } })
  write({ method: 'notifications/initialized' })
  const { tools } = await ask('tools/list')
  log({ tools: tools.map(({ name }) => name) })
  return {
    call: async (name, input) => {
      const { content, isError, message } = await ask('tools/call', { name, arguments: input })
      return { answer: content?.[0].text ?? message, isError }
    },
    cancel: () => write({ method: 'notifications/cancelled', params: { requestId: last } }),
  }
}
