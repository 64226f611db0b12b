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

/** What can be seen of an agent's login, without starting it. */
export interface Login {
  /** `unknown`: it may have one where ralph does not look (a keychain, a provider of its own). */
  readonly is: 'found' | 'none' | 'unknown'
  /** Who pays; empty where nothing was found. */
  readonly how: string
}

const none: Login = { is: 'none', how: '' }
const unknown: Login = { is: 'unknown', how: '' }
const found = (how: string): Login => ({ is: 'found', how })

/** For the banner and `doctor`: a key in the environment may bill a user who has a subscription (R12). */
export function loginOf(agent: string, env: NodeJS.ProcessEnv, platform = process.platform): Login {
  const home = env['HOME'] ?? ''
  const has = (name: string): boolean => (env[name] ?? '') !== ''
  const firstOf = (...names: string[]): string | undefined => names.find(has)
  switch (agent) {
    case 'claude': {
      if (has('CLAUDE_CODE_USE_BEDROCK')) return found('Amazon Bedrock')
      if (has('CLAUDE_CODE_USE_VERTEX')) return found('Google Vertex')
      const key = firstOf('ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY')
      if (key !== undefined) return found(`API key ${key}`)
      if (has('CLAUDE_CODE_OAUTH_TOKEN')) return found('subscription login, CLAUDE_CODE_OAUTH_TOKEN')
      const config = env['CLAUDE_CONFIG_DIR'] ?? join(home, '.claude')
      if (existsSync(join(config, '.credentials.json'))) return found('subscription login')
      const own = jsonIn(join(env['CLAUDE_CONFIG_DIR'] ?? home, '.claude.json'))
      if (textAt(own, 'primaryApiKey') !== '') return found('API key of its Console login')
      const settings = jsonIn(join(config, 'settings.json'))
      const isSet = at(settings, 'apiKeyHelper') !== undefined || at(settings, 'env') !== undefined
      // On a Mac the login is in the keychain, and looking there asks the user for a password.
      return isSet || platform === 'darwin' ? unknown : none
    }
    case 'codex': {
      if (has('CODEX_API_KEY')) return found('API key CODEX_API_KEY')
      const folder = env['CODEX_HOME'] ?? join(home, '.codex')
      const login = jsonIn(join(folder, 'auth.json'))
      if (at(login, 'tokens') !== undefined && at(login, 'tokens') !== null)
        return found('subscription login')
      if (textAt(login, 'OPENAI_API_KEY') !== '') return found('API key of its login')
      return existsSync(join(folder, 'config.toml')) ? unknown : none
    }
    case 'gemini': {
      const key = firstOf('GEMINI_API_KEY', 'GOOGLE_API_KEY')
      if (key !== undefined) return found(`API key ${key}`)
      if (has('GOOGLE_GENAI_USE_VERTEXAI')) return found('Google Vertex')
      const folder = join(home, '.gemini')
      if (existsSync(join(folder, 'oauth_creds.json'))) return found('Google login')
      return existsSync(join(folder, '.env')) || existsSync(join(folder, 'settings.json')) ? unknown : none
    }
    case 'opencode': {
      const key = firstOf(...agentKinds.opencode.keys)
      if (key !== undefined) return found(`API key ${key}, if its provider is chosen`)
      const data = env['XDG_DATA_HOME'] ?? join(home, '.local', 'share')
      // It has models that need no login.
      return existsSync(join(data, 'opencode', 'auth.json')) ? found('logins of opencode') : unknown
    }
    case 'demo':
      return found('free, no model is called')
    default:
      return unknown
  }
}

/**
 * Whose limit its calls count toward, as far as it can be told; two loops with the same one share it. Undefined where it cannot: a
 * program of the user's own, or one that has many providers.
 */
export function accountOf(agent: string, env: NodeJS.ProcessEnv): string | undefined {
  const home = env['HOME'] ?? ''
  const byKey = (...names: string[]): string | undefined => {
    const name = names.find((each) => (env[each] ?? '') !== '')
    return name === undefined ? undefined : `key ${env[name] ?? ''}`
  }
  const byFolder = (folder: string | undefined, usual: string): string | undefined =>
    folder === undefined && home === '' ? undefined : `folder ${folder ?? join(home, usual)}`
  switch (agent) {
    case 'claude':
      if (byKey('CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_VERTEX') !== undefined) return undefined
      return (
        byKey('ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY', 'CLAUDE_CODE_OAUTH_TOKEN') ??
        byFolder(env['CLAUDE_CONFIG_DIR'], '.claude')
      )
    case 'codex':
      return byKey('CODEX_API_KEY') ?? byFolder(env['CODEX_HOME'], '.codex')
    case 'gemini':
      if (byKey('GOOGLE_GENAI_USE_VERTEXAI') !== undefined) return undefined
      return byKey('GEMINI_API_KEY', 'GOOGLE_API_KEY') ?? byFolder(undefined, '.gemini')
    default:
      return undefined
  }
}

/** How to get one, for those that `loginOf` may find without. */
export const loginFixes: Readonly<Record<string, string>> = {
  claude: 'Log in (run claude, then type /login), or set ANTHROPIC_API_KEY.',
  codex: 'Log in (codex login), or set CODEX_API_KEY.',
  gemini: 'Log in (run gemini once), or set GEMINI_API_KEY.',
}

function jsonIn(path: string): unknown {
  try {
    return readJson(readFileSync(path, 'utf8'))
  } catch (error) {
    if (faultCode(error) !== '') return undefined
    throw error
  }
}
