// The real CLIs of .cache/agents, pointed at the scripted model server: isolated, with a dummy key, telemetry off.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export type RealAgent = 'claude' | 'codex' | 'opencode' | 'gemini'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

await installed()

/** `npm test` begins the tests while it still installs: resolves when that has ended. */
async function installed(): Promise<void> {
  const pid = Number(process.env['RALPH_TEST_INSTALLING'])
  while (pid > 0 && isThere(pid)) await setTimeout(100)
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Installs Claude Code or Codex when it is not there. The folder for PATH, or why there is none. */
export function realAgent(name: RealAgent): { readonly bin: string; readonly missing: string } {
  const cache = join(root, '.cache', 'agents')
  const binOf = (): string | undefined =>
    (existsSync(cache) ? readdirSync(cache) : [])
      .filter((folder) => folder.startsWith(`${name}-`))
      .map((folder) => join(cache, folder, 'node_modules', '.bin'))
      .find((bin) => existsSync(join(bin, name)))
  if (binOf() === undefined && optional.includes(name))
    return { bin: '', missing: `node scripts/install-agents.mjs ${name}` }
  const install =
    binOf() === undefined
      ? spawnSync(process.execPath, [join(root, 'scripts/install-agents.mjs'), name], {
          encoding: 'utf8',
          env: { ...process.env, NODE_EXTRA_CA_CERTS: process.env['RALPH_TEST_CA_CERTS'] },
        })
      : undefined
  const bin = binOf()
  if (bin === undefined) return { bin: '', missing: install?.stderr ?? 'not installed' }
  return { bin: name === 'gemini' ? quickGemini(bin) : bin, missing: '' }
}

/**
 * It would compile a parser of shell lines for a long life: 1.2 of the 2.7 seconds that a start takes. To compile itself anew, and to
 * collect garbage often, is a tenth of the rest.
 */
function quickGemini(bin: string): string {
  // So called, a sandbox shows what lies beside it, wherever the clone is.
  const folder = join(bin, '..', '..', 'bin')
  const file = join(folder, 'gemini')
  const flags = '--liftoff-only --no-opt --no-sparkplug --min-semi-space-size=16'
  const script = `#!/bin/sh\nexec '${process.execPath}' ${flags} '${join(bin, 'gemini')}' "$@"\n`
  // One of another clone, or of before, may be kept there.
  if (existsSync(file) && readFileSync(file, 'utf8') === script) return folder
  mkdirSync(folder, { recursive: true })
  // Whole for who looks at the same time.
  writeFileSync(`${file}.${process.pid}`, script, { mode: 0o755 })
  renameSync(`${file}.${process.pid}`, file)
  return folder
}

/** Not installed from inside a test, only by `npm test` before: without a network each file would wait for it anew. */
const optional: readonly RealAgent[] = ['opencode', 'gemini']

export interface Pointed {
  readonly env: Readonly<Record<string, string>>
  readonly passThrough: readonly string[]
  readonly model: string
}

/** It would install a package of 95 MB for plugins into every new home, in the background of every run, and read a list of 4,000 models. */
function stillOpencode(home: string): { readonly models: string } {
  const config = join(home, '.config', 'opencode')
  const models = join(config, 'models.json')
  const manifest = { dependencies: { '@opencode-ai/plugin': '1.18.33' } }
  mkdirSync(join(config, 'node_modules', '@opencode-ai', 'plugin'), { recursive: true })
  writeFileSync(join(config, 'package.json'), JSON.stringify(manifest))
  writeFileSync(
    join(config, 'package-lock.json'),
    JSON.stringify({ lockfileVersion: 3, packages: { '': manifest } }),
  )
  writeFileSync(models, '{}')
  return { models }
}

/** Bun would compile for a long life, and collect garbage: a third of OpenCode's time, a sixth of a test with Claude Code. */
const shortLived = { BUN_JSC_useDFGJIT: '0', BUN_JSC_useGC: '0' }

/** Environment and arguments that make the CLI talk to the server and to nobody else. */
export function pointedAt(name: RealAgent, url: string, home: string): Pointed {
  switch (name) {
    case 'claude':
      return {
        env: {
          ANTHROPIC_BASE_URL: url,
          ANTHROPIC_API_KEY: 'test-key',
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          DISABLE_TELEMETRY: '1',
          DISABLE_ERROR_REPORTING: '1',
          CLAUDE_CODE_MAX_RETRIES: '0',
          ...shortLived,
        },
        passThrough: [],
        model: 'claude-sonnet-4-5',
      }
    case 'codex': {
      const provider = (key: string, value: string): string[] => [
        '-c',
        `model_providers.stub.${key}=${value}`,
      ]
      return {
        env: { STUB_KEY: 'test-key' },
        passThrough: [
          '-c',
          'model_provider="stub"',
          ...provider('name', '"stub"'),
          ...provider('base_url', `"${url}/v1"`),
          ...provider('env_key', '"STUB_KEY"'),
          ...provider('wire_api', '"responses"'),
          ...provider('request_max_retries', '0'),
          ...provider('stream_max_retries', '0'),
          '-c',
          'analytics.enabled=false',
          '-c',
          'check_for_update_on_startup=false',
          // Each of these would call out at the start.
          ...['plugins', 'remote_plugin', 'apps', 'plugin_discovery_prefetch'].flatMap((feature) => [
            '--disable',
            feature,
          ]),
        ],
        model: 'gpt-5-codex',
      }
    }
    case 'opencode': {
      const still = stillOpencode(home)
      const models = {
        'stub-model': {
          tool_call: true,
          limit: { context: 200_000, output: 8000 },
          cost: { input: 3, output: 15, cache_read: 0.3 },
        },
      }
      const provider = {
        stub: {
          npm: '@ai-sdk/openai-compatible',
          options: { baseURL: `${url}/v1`, apiKey: 'test-key' },
          models,
        },
      }
      return {
        env: {
          OPENCODE_DISABLE_MODELS_FETCH: '1',
          OPENCODE_MODELS_PATH: still.models,
          ...shortLived,
          OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
          OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
          OPENCODE_PURE: '1',
          OPENCODE_CONFIG_CONTENT: JSON.stringify({
            share: 'disabled',
            autoupdate: false,
            snapshot: false,
            permission: 'allow',
            provider,
          }),
        },
        passThrough: [],
        model: 'stub/stub-model',
      }
    }
    case 'gemini':
      mkdirSync(join(home, '.gemini'), { recursive: true })
      writeFileSync(
        join(home, '.gemini', 'settings.json'),
        JSON.stringify({
          security: { auth: { selectedType: 'gemini-api-key' } },
          privacy: { usageStatisticsEnabled: false },
        }),
      )
      return {
        env: { GEMINI_API_KEY: 'test-key', GOOGLE_GEMINI_BASE_URL: url },
        passThrough: [],
        model: 'gemini-2.5-pro',
      }
  }
}
