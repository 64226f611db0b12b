// Installs pinned real agents, the inspector of MCP and a newer Node into .cache/agents for the e2e tests: a folder of the project's own, never a dependency of it.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** Exact versions: on Node 20 npm would silently take an older Claude Code, and streams differ between versions. */
const agents = {
  claude: { package: '@anthropic-ai/claude-code', version: '2.1.325' },
  codex: { package: '@openai/codex', version: '0.166.0' },
  opencode: { package: 'opencode-ai', version: '1.18.33' },
  gemini: { package: '@google/gemini-cli', version: '0.61.0' },
  // The protocol's own client for test/e2e/mcp.test.ts; asks for Node 22, and its command line runs on 20.
  inspector: { package: '@modelcontextprotocol/inspector', version: '2.12.0' },
  // What most people have; the tests themselves run on the oldest that ralph takes.
  node: { package: 'node', version: '24.21.0' },
}

const cache = join(dirname(fileURLToPath(import.meta.url)), '..', '.cache', 'agents')
const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !(name in agents))
if (unknown.length > 0) {
  console.error(
    `install-agents: unknown agent ${unknown.join(', ')}; known: ${Object.keys(agents).join(', ')}`,
  )
  process.exit(2)
}
const chosen = asked.length > 0 ? asked : Object.keys(agents)

const installed = await Promise.all(chosen.map(install))
process.exit(installed.includes(false) ? 1 : 0)

async function install(name) {
  const { package: packageName, version } = agents[name]
  // A prefix each: one broken install leaves the others whole.
  const prefix = join(cache, `${name}-${version}`)
  const binary = join(prefix, 'node_modules', '.bin', name)
  if (existsSync(binary) && installedVersion(prefix, packageName) === version) {
    console.log(`${name} ${version}: present`)
    return true
  }
  mkdirSync(prefix, { recursive: true })
  const quiet = ['--no-save', '--no-audit', '--no-fund', '--loglevel=error']
  const words = ['install', '--prefix', prefix, ...quiet, `${packageName}@${version}`]
  try {
    await promisify(execFile)('npm', words, { cwd: prefix, timeout: 600_000 })
    if (!existsSync(binary)) throw new Error(`npm left no ${binary}`)
    console.log(`${name} ${version}: installed`)
    return true
  } catch (error) {
    const said = (error.stderr ?? '').trim().split('\n').slice(-3).join(' | ')
    console.error(`${name} ${version}: not installed: ${said || error.message}`)
    return false
  }
}

function installedVersion(prefix, packageName) {
  const manifest = join(prefix, 'node_modules', packageName, 'package.json')
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : undefined
}
