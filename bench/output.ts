// 200 MB of agent output through ralph's runner, against `cat` through a Node pipe: time as a ratio, peak memory as it is.
import { build } from 'esbuild'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const rounds = 7
const maxRatio = 1.5
const maxRssMb = 150
const root = resolve(import.meta.dirname, '..')
const agents = join(root, 'test', 'agents')
const dir = mkdtempSync(join(tmpdir(), 'ralph-bench-output-'))

const report =
  'console.log(JSON.stringify({ ms: performance.now() - began, rssMb: process.resourceUsage().maxRSS / 1024 }))'

interface Sample {
  readonly ms: number
  readonly rssMb: number
}

/** Each in a process of its own, as plain JavaScript: a loader's memory is not ralph's. */
const programs = {
  'text through cat and a Node pipe': pipe(`'${join(agents, 'floods.mjs')}' | cat`),
  'text through the runner': runner('command', join(agents, 'floods.mjs')),
  'stream-json through cat and a Node pipe': pipe(`'${join(agents, 'claude-floods.mjs')}' | cat`),
  'stream-json through the runner': runner('claude', ''),
}

try {
  await build({
    entryPoints: [join(root, 'src/adapters/agents/agents.ts')],
    outfile: join(dir, 'agents.mjs'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    logLevel: 'error',
  })
  writeFileSync(join(dir, 'claude'), `#!/bin/sh\nexec '${join(agents, 'claude-floods.mjs')}'\n`, {
    mode: 0o755,
  })
  const samples = new Map<string, Sample[]>(Object.keys(programs).map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    // In turns, so that a noisy minute hits all of them.
    for (const [name, source] of Object.entries(programs)) samples.get(name)?.push(await measure(source))
  }
  // The best round: on a shared machine the others measure the neighbours.
  const best = (name: string, of: (sample: Sample) => number): number =>
    Math.min(...(samples.get(name) ?? []).map(of))
  let isOk = true
  for (const name of Object.keys(programs)) {
    console.log(
      `${name}: ${best(name, ({ ms }) => ms).toFixed(0)} ms, peak ${best(name, ({ rssMb }) => rssMb).toFixed(0)} MB`,
    )
  }
  for (const kind of ['text', 'stream-json']) {
    const name = `${kind} through the runner`
    const ratio = best(name, ({ ms }) => ms) / best(`${kind} through cat and a Node pipe`, ({ ms }) => ms)
    const rssMb = Math.max(...(samples.get(name) ?? []).map((sample) => sample.rssMb))
    isOk &&= ratio <= maxRatio && rssMb <= maxRssMb
    console.log(
      `${kind}: ${ratio.toFixed(2)}x of cat, ${rssMb.toFixed(0)} MB (goal: ${maxRatio}x, ${maxRssMb} MB)`,
    )
  }
  process.exitCode = isOk ? 0 : 1
} finally {
  rmSync(dir, { recursive: true, force: true })
}

function pipe(command: string): string {
  return `
import { spawn } from 'node:child_process'
const began = performance.now()
const child = spawn('sh', ['-c', ${JSON.stringify(command)}], { stdio: ['ignore', 'pipe', 'inherit'] })
let bytes = 0
child.stdout.on('data', (chunk) => { bytes += chunk.length })
await new Promise((resolve) => child.on('close', resolve))
if (bytes < 200 * 1024 * 1024) throw new Error('lost ' + bytes)
${report}`
}

function runner(agent: string, command: string): string {
  return `
import { statSync, rmSync } from 'node:fs'
const { createAgents } = await import(${JSON.stringify(join(dir, 'agents.mjs'))})
const env = { ...process.env, PATH: ${JSON.stringify(dir)} + ':' + process.env.PATH }
const agents = createAgents({ command: ${JSON.stringify(command)}, passThrough: [], agentEnv: {}, noApiKey: false, env })
const transcript = ${JSON.stringify(join(dir, `${agent}.log`))}
const task = {
  n: 1, prompt: 'Do it.\\nPlease.', agent: ${JSON.stringify(agent)}, cwd: ${JSON.stringify(dir)}, transcript,
  env: { RALPH_RUN_ID: 'bench-' + process.pid, RALPH_ITERATION: '1' }, timeoutMs: 600000, idleTimeoutMs: 600000,
}
const began = performance.now()
const ended = await agents.work(task, new AbortController().signal, () => undefined)
if (ended.promise.kind !== 'complete') throw new Error(JSON.stringify(ended))
if (statSync(transcript).size < 200 * 1024 * 1024) throw new Error('transcript lost bytes')
rmSync(transcript)
${report}`
}

function measure(source: string): Promise<Sample> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8')
    })
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(output) as Sample)
      else reject(new Error(`exit code ${code}`))
    })
  })
}
