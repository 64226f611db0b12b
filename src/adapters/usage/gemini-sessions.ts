// Reads what Gemini CLI wrote about its answers: <home>/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl.
import { join } from 'node:path'
import { readJsonLines } from './json-lines.ts'
import { bothPaths, homeOf, isInside, listJsonl, listNames, textOf } from './session-folder.ts'
import type { JsonObject, SessionFile, SessionQuery, SessionSource, UsageRecord } from './usage-record.ts'
import { asCount, asObject, asText } from './usage-record.ts'

export function geminiSessions(env: NodeJS.ProcessEnv, worktrees: readonly string[]): SessionSource {
  const roots = bothPaths(worktrees)
  const projects = join(env['GEMINI_CLI_HOME'] ?? homeOf(env), '.gemini', 'tmp')

  /** A project's folder is named after the work tree's last part; the file in it says which one it is. */
  function list(): readonly SessionFile[] {
    return listNames(projects)
      .map((name) => join(projects, name))
      .filter((folder) => isInside(textOf(join(folder, '.project_root')).trim(), roots))
      .flatMap((folder) => listJsonl(join(folder, 'chats')))
  }

  async function read(query: SessionQuery): Promise<{ records: readonly UsageRecord[]; skipped: string }> {
    const byId = new Map<string, UsageRecord>()
    for (const file of list()) {
      const from = query.sizes?.get(file.path) ?? 0
      if (file.bytes <= from || file.mtimeMs < query.sinceMs - 1000) continue
      let sessionId = ''
      const range = { from: 0, to: file.bytes, having: ['"sessionId"', '"tokens"'] }
      await readJsonLines(file.path, range, (line) => {
        if (sessionId === '') sessionId = asText(line['sessionId'])
        // Written when the answer is there, and again with the results of its tools.
        for (const record of toRecord(line, sessionId)) byId.set(record.id, record)
        return true
      })
    }
    return { records: [...byId.values()].filter((record) => !(record.timeMs < query.sinceMs)), skipped: '' }
  }

  return { agent: 'gemini', list, isOurs: () => Promise.resolve(true), read }
}

function toRecord(line: JsonObject, sessionId: string): readonly UsageRecord[] {
  const tokens = asObject(line['tokens'])
  if (line['type'] !== 'gemini' || tokens === undefined) return []
  const cached = asCount(tokens['cached'])
  return [
    {
      id: `gemini ${sessionId} ${asText(line['id'])}`,
      agent: 'gemini',
      sessionId,
      parentSessionId: '',
      model: asText(line['model']),
      timeMs: Date.parse(asText(line['timestamp'])),
      figures: {
        input_tokens: Math.max(0, asCount(tokens['input']) + asCount(tokens['tool']) - cached),
        output_tokens: asCount(tokens['output']) + asCount(tokens['thoughts']),
        cache_read_tokens: cached,
        cache_creation_tokens: 0,
      },
    },
  ]
}
