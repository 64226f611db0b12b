// The environment an agent gets: the user's, minus what would make a nested program misbehave.

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
