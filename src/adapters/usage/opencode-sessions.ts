// Reads what OpenCode wrote about its answers: a SQLite file, through the sqlite3 program because Node 20 has no reader.
import { join } from 'node:path'
import { readJson } from '../../core/json.ts'
import { exec } from '../process/exec.ts'
import { onPath, ownEnv } from '../process/on-path.ts'
import { bothPaths, homeOf, isInside, statFile } from './session-folder.ts'
import type { JsonObject, SessionQuery, SessionSource, UsageRecord } from './usage-record.ts'
import { asCount, asObject, asText } from './usage-record.ts'

export function opencodeSessions(env: NodeJS.ProcessEnv, worktrees: readonly string[]): SessionSource {
  const roots = bothPaths(worktrees)
  const data = env['XDG_DATA_HOME'] ?? join(homeOf(env), '.local', 'share')
  const database = join(data, 'opencode', 'opencode.db')
  const skip = (skipped: string) => ({ records: [], skipped })

  async function read(query: SessionQuery): Promise<{ records: readonly UsageRecord[]; skipped: string }> {
    if (statFile(database) === undefined) return skip('')
    const sqlite = onPath('sqlite3', ownEnv(env, worktrees[0] ?? '/'))
    if (sqlite === undefined)
      return skip("OpenCode's sessions need the sqlite3 program, which is not on PATH")
    const result = await exec(sqlite, ['-readonly', '-json', database, answersSince(query.sinceMs)], {
      cwd: data,
      env,
      timeoutMs: 10_000,
    })
    if (result.exitCode !== 0) {
      const cause = result.timedOut ? 'no answer within 10 s' : result.stderr.trim().split('\n')[0]
      return skip(`OpenCode's sessions could not be read: ${cause}`)
    }
    return { records: rows(result.stdout).flatMap((row) => toRecord(row, roots)), skipped: '' }
  }

  // One file for all projects: its growth says nothing about this one.
  return { agent: 'opencode', list: () => [], isOurs: () => Promise.resolve(false), read }
}

/** Columns of the documents, not of the tables: those were renamed more than once. */
function answersSince(sinceMs: number): string {
  const field = (path: string): string =>
    `case when json_valid(m.data) then json_extract(m.data, '$.${path}') end`
  return `select m.id as id, m.session_id as session, s.parent_id as parent, s.directory as directory,
    ${field('modelID')} as model, ${field('providerID')} as provider, ${field('time.created')} as created,
    ${field('tokens')} as tokens, ${field('cost')} as cost
    from message m join session s on s.id = m.session_id
    where ${field('role')} = 'assistant' and ${field('time.created')} >= ${Math.floor(sinceMs)}`
}

function rows(stdout: Buffer): readonly JsonObject[] {
  const parsed = readJson(stdout.toString('utf8'))
  const list: readonly unknown[] = Array.isArray(parsed) ? parsed : []
  return list.map(asObject).filter((row) => row !== undefined)
}

function toRecord(row: JsonObject, roots: readonly string[]): readonly UsageRecord[] {
  const tokens = asObject(readJson(asText(row['tokens'])))
  if (tokens === undefined || !isInside(asText(row['directory']), roots)) return []
  const cache = asObject(tokens['cache'])
  const cost = row['cost']
  return [
    {
      id: `opencode ${asText(row['id'])}`,
      agent: 'opencode',
      sessionId: asText(row['session']),
      parentSessionId: asText(row['parent']),
      model: [asText(row['provider']), asText(row['model'])].filter((part) => part !== '').join('/'),
      timeMs: typeof row['created'] === 'number' ? row['created'] : Number.NaN,
      figures: {
        input_tokens: asCount(tokens['input']),
        output_tokens: asCount(tokens['output']) + asCount(tokens['reasoning']),
        cache_read_tokens: asCount(cache?.['read']),
        cache_creation_tokens: asCount(cache?.['write']),
        // OpenCode says 0 for a model without a price: that is "unpriced".
        ...(typeof cost === 'number' && cost > 0 && { cost_usd: cost }),
      },
    },
  ]
}
