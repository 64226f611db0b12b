// 200 MB of agent output through ralph's runner, against a Node program that reads them from a pipe and does nothing with them.
import { build } from 'esbuild'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { cleanEnv, median, shuffled } from './measure.ts'

const rounds = 9
const maxRatio = 1.5
const maxRssMb = 150
const root = resolve(import.meta.dirname, '..')
const agents = join(root, 'test', 'agents')
const dir = mkdtempSync(join(tmpdir(), 'ralph-bench-output-'))

interface Sample {
  readonly wallMs: number
  /** User and system, of the reader alone: what the neighbours on a shared machine cannot stretch. */
  readonly cpuMs: number
  readonly rssMb: number
}

type Reader = 'read and dropped' | 'to a file' | 'through the runner'
const readers: readonly Reader[] = ['read and dropped', 'to a file', 'through the runner']
const kinds = [
  { name: 'text', agent: 'command', program: join(agents, 'floods.mjs') },
  { name: 'stream-json', agent: 'claude', program: join(agents, 'claude-floods.mjs') },
]

const start = 'const [began, burnt] = [performance.now(), process.cpuUsage()]'
const report = `
const { user, system } = process.cpuUsage(burnt)
const rssMb = process.resourceUsage().maxRSS / 1024
console.log(JSON.stringify({ wallMs: performance.now() - began, cpuMs: (user + system) / 1000, rssMb }))`

try {
  await build({
    entryPoints: [join(root, 'src/adapters/agents/agents.ts')],
    outfile: join(dir, 'agents.mjs'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    logLevel: 'error',
  })
  let isOk = true
  for (const kind of kinds) {
    writeFileSync(join(dir, 'claude'), `#!/bin/sh\nexec '${kind.program}'\n`, { mode: 0o755 })
    const samples = new Map<Reader, Sample[]>(readers.map((reader) => [reader, []]))
    for (let round = 0; round < rounds; round += 1) {
      for (const reader of shuffled(readers)) {
        const source =
          reader === 'through the runner'
            ? throughRunner(kind.agent, kind.program)
            : throughNode(kind.program, reader === 'to a file')
        samples.get(reader)?.push(await measure(source))
      }
    }
    const middle = (reader: Reader, of: (sample: Sample) => number): number =>
      median((samples.get(reader) ?? []).map(of))
    const ratio = (of: (sample: Sample) => number): number =>
      middle('through the runner', of) / middle('read and dropped', of)
    const [cpuRatio, wallRatio] = [ratio(({ cpuMs }) => cpuMs), ratio(({ wallMs }) => wallMs)]
    const rssMb = Math.max(...(samples.get('through the runner') ?? []).map((sample) => sample.rssMb))
    console.log(`\n200 MB of ${kind.name}, medians of ${rounds}`)
    for (const reader of readers) {
      const [cpuMs, wallMs] = [middle(reader, (each) => each.cpuMs), middle(reader, (each) => each.wallMs)]
      console.log(
        `  ${reader.padEnd(20)} ${cpuMs.toFixed(0).padStart(6)} ms CPU ${wallMs.toFixed(0).padStart(6)} ms wall`,
      )
    }
    console.log(
      `  ${wallRatio.toFixed(2)}x wall of read and dropped (goal: ${maxRatio}x), ${cpuRatio.toFixed(2)}x CPU, peak ${rssMb.toFixed(0)} MB (goal: ${maxRssMb} MB)`,
    )
    isOk &&= wallRatio <= maxRatio && rssMb <= maxRssMb
  }
  process.exitCode = isOk ? 0 : 1
} finally {
  rmSync(dir, { recursive: true, force: true })
}

/**
 * Synchronous writes: `pipe` into a write stream costs twice the CPU and would be a floor too easily reached.
 * A session of its own, as an agent must have: Linux schedules sessions in groups (autogroup), which stretches the wall clock under load.
 */
function throughNode(program: string, toFile: boolean): string {
  return `
import { spawn } from 'node:child_process'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
${start}
const path = ${JSON.stringify(join(dir, 'floor.log'))}
const file = openSync(path, 'a')
const child = spawn('sh', ['-c', ${JSON.stringify(program)}], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
let bytes = 0
child.stdout.on('data', (chunk) => { bytes += ${toFile ? 'writeSync(file, chunk)' : 'chunk.length'} })
await new Promise((resolve) => child.on('close', resolve))
closeSync(file)
if (bytes < 200 * 1024 * 1024) throw new Error('lost ' + bytes)
${report}
rmSync(path)`
}

function throughRunner(agent: string, command: string): string {
  return `
import { statSync, rmSync } from 'node:fs'
const { createAgents } = await import(${JSON.stringify(join(dir, 'agents.mjs'))})
const env = { ...process.env, PATH: ${JSON.stringify(dir)} + ':' + process.env.PATH }
const agents = createAgents({ command: ${JSON.stringify(command)}, passThrough: [], agentEnv: {}, noApiKey: false, env })
const transcript = ${JSON.stringify(join(dir, 'runner.log'))}
const task = {
  n: 1, prompt: 'Do it.\\nPlease.', agent: ${JSON.stringify(agent)}, cwd: ${JSON.stringify(dir)}, transcript,
  env: { RALPH_RUN_ID: 'bench-' + process.pid, RALPH_ITERATION: '1' }, timeoutMs: 600000, idleTimeoutMs: 600000,
}
${start}
const ended = await agents.work(task, new AbortController().signal, () => undefined)
if (ended.promise.kind !== 'complete') throw new Error(JSON.stringify(ended))
if (statSync(transcript).size < 200 * 1024 * 1024) throw new Error('transcript lost bytes')
${report}
rmSync(transcript)`
}

/** Each in a process of its own, as plain JavaScript: a loader's memory is not ralph's. */
function measure(source: string): Promise<Sample> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
      env: cleanEnv(),
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
