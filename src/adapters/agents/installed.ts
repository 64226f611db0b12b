// Which agents are there, and who pays for their calls: by looking, without starting any of them.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readJson } from '../../core/json.ts'
import { faultCode } from '../process/fault.ts'
import { onPath } from '../process/on-path.ts'
import { at, textAt } from './json.ts'
import { agentKinds } from './table.ts'
import type { AgentName } from './table.ts'

/** In order of preference; only those that a user installs. */
const preferred = ['claude', 'codex', 'opencode', 'gemini'] as const satisfies readonly AgentName[]

export function installedAgents(env: NodeJS.ProcessEnv): AgentName[] {
  return preferred.filter((name) => programOf(name, env) !== undefined)
}

export function programOf(name: AgentName, env: NodeJS.ProcessEnv): string | undefined {
  return onPath(agentKinds[name].program ?? name, env)
}

/** One line for the banner and `doctor`: a key in the environment may bill a user who has a subscription (R12). */
export function billing(agent: string, env: NodeJS.ProcessEnv): string {
  const home = env['HOME'] ?? ''
  const has = (name: string): boolean => (env[name] ?? '') !== ''
  switch (agent) {
    case 'claude': {
      if (has('CLAUDE_CODE_USE_BEDROCK')) return 'Amazon Bedrock (CLAUDE_CODE_USE_BEDROCK)'
      if (has('CLAUDE_CODE_USE_VERTEX')) return 'Google Vertex (CLAUDE_CODE_USE_VERTEX)'
      const key = ['ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY'].find(has)
      if (key !== undefined) return `API key (${key})`
      if (has('CLAUDE_CODE_OAUTH_TOKEN')) return 'subscription login (CLAUDE_CODE_OAUTH_TOKEN)'
      const config = env['CLAUDE_CONFIG_DIR'] ?? join(home, '.claude')
      return existsSync(join(config, '.credentials.json')) ? 'subscription login' : 'unknown'
    }
    case 'codex': {
      if (has('CODEX_API_KEY')) return 'API key (CODEX_API_KEY)'
      const file = join(env['CODEX_HOME'] ?? join(home, '.codex'), 'auth.json')
      const login = jsonIn(file)
      if (at(login, 'tokens') !== undefined && at(login, 'tokens') !== null) return 'subscription login'
      return textAt(login, 'OPENAI_API_KEY') === '' ? 'unknown' : `API key (${file})`
    }
    case 'gemini': {
      const key = ['GEMINI_API_KEY', 'GOOGLE_API_KEY'].find(has)
      if (key !== undefined) return `API key (${key})`
      return existsSync(join(home, '.gemini', 'oauth_creds.json')) ? 'Google login' : 'unknown'
    }
    case 'opencode': {
      const key = agentKinds.opencode.keys.find(has)
      if (key !== undefined) return `API key (${key}), if its provider is chosen`
      return existsSync(join(env['XDG_DATA_HOME'] ?? join(home, '.local', 'share'), 'opencode', 'auth.json'))
        ? 'logins of opencode'
        : 'unknown'
    }
    case 'demo':
      return 'free (no model is called)'
    default:
      return 'unknown'
  }
}

function jsonIn(path: string): unknown {
  try {
    return readJson(readFileSync(path, 'utf8'))
  } catch (error) {
    if (faultCode(error) !== '') return undefined
    throw error
  }
}
