// The agents whose session files ralph can read, and a reading that cannot fail.
import { claudeSessions } from './claude-sessions.ts'
import { codexSessions } from './codex-sessions.ts'
import { geminiSessions } from './gemini-sessions.ts'
import { opencodeSessions } from './opencode-sessions.ts'
import type { SessionQuery, SessionSource } from './usage-record.ts'

/** `below`: sessions that began in a folder inside a work tree count too. */
export function sessionSources(
  env: NodeJS.ProcessEnv,
  worktrees: readonly string[],
  options: { readonly below: boolean },
): readonly SessionSource[] {
  return [
    claudeSessions(env, worktrees, options),
    codexSessions(env, worktrees),
    opencodeSessions(env, worktrees),
    geminiSessions(env, worktrees),
  ]
}

/** A session file may vanish or be locked away at any moment; that is no reason to lose an iteration. */
export async function readOrSkip(
  source: SessionSource,
  query: SessionQuery,
): ReturnType<SessionSource['read']> {
  try {
    return await source.read(query)
  } catch (error) {
    return { records: [], skipped: `the sessions of ${source.agent} could not be read (${String(error)})` }
  }
}
