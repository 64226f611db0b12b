// Records what the real CLIs print, against the scripted model server, as trimmed fixtures by agent and version.
// Usage: node scripts/record-streams.mjs [claude codex opencode gemini]
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { register } from 'tsx/esm/api'

register()
const { agentKinds } = await import('../src/adapters/agents/table.ts')
const { pointedAt, realAgent } = await import('../test/model-stub/real-agents.ts')
const { modelServer } = await import('../test/model-stub/server.ts')
const { steps } = await import('../test/model-stub/script.ts')

const fixtures = join(dirname(fileURLToPath(import.meta.url)), '..', 'test', 'fixtures', 'streams')
const resetsAt = 4_102_444_800
const limitHeaders = {
  'anthropic-ratelimit-unified-status': 'rejected',
  'anthropic-ratelimit-unified-reset': String(resetsAt),
  'anthropic-ratelimit-unified-representative-claim': 'five_hour',
}
const shell = (command) => ({ do: 'shell', command })
const say = (text) => ({ do: 'say', text })
const fail =
  (status, message, headers = {}) =>
  () => ({ do: 'fail', status, message, headers })

const scenarios = {
  complete: {
    script: steps(
      { do: 'write', path: '@tree@/made.txt', content: 'x' },
      shell('echo "<promise>COMPLETE</promise>"'),
      say('All done.\n<promise>COMPLETE</promise>'),
    ),
  },
  failed: { script: steps(say('<promise>FAILED: no parser\nno tests</promise>')) },
  limit: {
    script: fail(429, 'The usage limit has been reached', limitHeaders),
    env: { ANTHROPIC_API_KEY: '', CLAUDE_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test-key' },
  },
  overloaded: { script: fail(529, 'Overloaded') },
  unauthorized: { script: fail(401, 'invalid x-api-key') },
}

const asked = process.argv.slice(2)
for (const name of asked.length > 0 ? asked : ['claude', 'codex']) {
  const { bin, missing } = realAgent(name)
  if (missing !== '') {
    console.error(`${name}: ${missing}`)
    process.exitCode = 1
    continue
  }
  const version = /-([\d.]+)\/node_modules/.exec(bin)?.[1] ?? 'unknown'
  for (const [scenario, given] of Object.entries(scenarios)) {
    const lines = await record(name, bin, given)
    const file = join(fixtures, name, version, `${scenario}.ndjson`)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `${lines.join('\n')}\n`)
    console.log(`${file.slice(fixtures.length + 1)}: ${lines.length} lines`)
  }
}

async function record(name, bin, { script, env = {} }) {
  const root = mkdtempSync(join(tmpdir(), 'ralph-record-'))
  const [tree, home] = ['tree', 'home'].map((folder) => join(root, folder))
  mkdirSync(tree)
  mkdirSync(home)
  const server = await modelServer((call) => {
    const step = script(call)
    return step.do === 'write' ? { ...step, path: step.path.replace('@tree@', tree) } : step
  })
  const pointed = pointedAt(name, server.url, home)
  const run = {
    prompt: 'Begin.\nDo the story.\n',
    cwd: tree,
    model: pointed.model,
    command: undefined,
    passThrough: pointed.passThrough,
    isRoot: true,
  }
  const launch = agentKinds[name].launch(run)
  const variables = Object.entries({ ...pointed.env, ...launch.env, ...env }).filter(
    ([, value]) => value !== '',
  )
  const child = spawn(launch.file, launch.args, {
    cwd: tree,
    env: { HOME: home, TMPDIR: root, ...Object.fromEntries(variables), PATH: `${bin}:${process.env.PATH}` },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  // A provider's failure may be retried for minutes; the first lines tell all.
  const timer = setTimeout(() => child.kill('SIGKILL'), 90_000)
  child.stdin.end(launch.input)
  let output = ''
  for await (const chunk of child.stdout) output += chunk
  clearTimeout(timer)
  await server.close()
  rmSync(root, { recursive: true, force: true })
  const places = [
    [tree, '/repo'],
    [home, '/home/user'],
    [root, '/tmp'],
    [server.url, 'http://127.0.0.1:1'],
  ]
  return output
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => trim(places.reduce((text, [from, to]) => text.replaceAll(from, to), line)))
}

/** Lists of tools and long texts say nothing to a parser. */
function trim(line) {
  if (!line.startsWith('{')) return line
  return JSON.stringify(JSON.parse(line), (key, value) => {
    if (['tools', 'slash_commands', 'agents', 'skills', 'plugins', 'mcp_servers'].includes(key)) return []
    return typeof value === 'string' && value.length > 500 ? `${value.slice(0, 500)}…` : value
  })
}
