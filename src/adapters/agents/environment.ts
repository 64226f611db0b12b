// The environment an agent gets: the user's, minus what would make a nested program misbehave.
import { exec } from '../process/exec.ts'

export interface EnvironmentOptions {
  readonly user: NodeJS.ProcessEnv
  /** RALPH_… of this iteration. */
  readonly task: Readonly<Record<string, string>>
  /** What this kind of agent needs. */
  readonly kind: Readonly<Record<string, string>>
  /** The user's `--agent-env`: stronger than all. */
  readonly own: Readonly<Record<string, string>>
  /** Hidden names; empty unless `--no-api-key`. */
  readonly hidden: readonly string[]
  readonly tempDir: string
}

export function agentEnvironment({
  user,
  task,
  kind,
  own,
  hidden,
  tempDir,
}: EnvironmentOptions): NodeJS.ProcessEnv {
  const kept = Object.entries(user).filter(
    ([name, value]) => !isHarmful(name, value ?? '') && !hidden.includes(name),
  )
  return { ...Object.fromEntries(kept), TMPDIR: tempDir, ...kind, ...own, ...task }
}

function isHarmful(name: string, value: string): boolean {
  // A debugger, a loader or a coverage hook of ralph's own would be inherited by every Node program of the agent's.
  if (name === 'NODE_OPTIONS')
    return /--inspect|--require|-r\b|--import|--loader|--experimental-loader/.test(value)
  return harmful.has(name) || /^(?:VITEST|JEST_WORKER)/.test(name)
}

const harmful = new Set([
  // Of a Claude Code session that ralph itself was started from.
  'CLAUDECODE',
  'CLAUDE_CODE_ENTRYPOINT',
  'CLAUDE_CODE_SSE_PORT',
  'NODE_V8_COVERAGE',
  'NODE_CHANNEL_FD',
  'NODE_UNIQUE_ID',
  // Would point the agent's git at another repository (a hook of the user's that starts ralph).
  'GIT_DIR',
  'GIT_WORK_TREE',
  'GIT_INDEX_FILE',
  'GIT_OBJECT_DIRECTORY',
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_COMMON_DIR',
  'GIT_NAMESPACE',
  'GIT_PREFIX',
  // There is no terminal.
  'FORCE_COLOR',
  'CLICOLOR_FORCE',
  'COLUMNS',
  'LINES',
])

export async function gitIdentity(cwd: string, env: NodeJS.ProcessEnv): Promise<Record<string, string>> {
  const [name, email] = await Promise.all(['user.name', 'user.email'].map((key) => configured(key, cwd, env)))
  if (name === undefined || name === '' || email === undefined || email === '') return {}
  const found = {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  }
  // What the user exports is stronger.
  return Object.fromEntries(Object.entries(found).filter(([key]) => env[key] === undefined))
}

async function configured(key: string, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const result = await exec('git', ['config', '--get', key], { cwd, env, timeoutMs: 5000 })
  return result.exitCode === 0 ? result.stdout.toString('utf8').trim() : ''
}
