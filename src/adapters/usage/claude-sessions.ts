// Reads what Claude Code wrote about its answers: <config>/projects/<encoded folder>/<session>.jsonl and its sub-agents' files.
import { basename, dirname, join, sep } from 'node:path'
import { readJsonLines } from './json-lines.ts'
import { bothPaths, homeOf, isInside, listJsonl, listNames, statFile } from './session-folder.ts'
import type { JsonObject, SessionFile, SessionQuery, SessionSource, UsageRecord } from './usage-record.ts'
import { asCount, asObject, asText } from './usage-record.ts'

export function claudeSessions(
  env: NodeJS.ProcessEnv,
  worktrees: readonly string[],
  options: { readonly below: boolean },
): SessionSource {
  const roots = bothPaths(worktrees)
  const folders = new Set(roots.map(encode))
  const firstFolders = new Map<string, string>()

  function list(query: SessionQuery): readonly SessionFile[] {
    const { sessionId } = query
    return projectFolders(env).flatMap((folder) => {
      if (isCandidate(basename(folder), folders, options.below)) return listJsonl(folder)
      if (sessionId === undefined || sessionId.includes(sep)) return []
      // The rule of the folder's name changes between versions; the session's own name does not.
      const main = statFile(join(folder, `${sessionId}.jsonl`))
      return main === undefined ? [] : listJsonl(join(folder, sessionId)).concat(main)
    })
  }

  async function isOurs(file: SessionFile, query: SessionQuery): Promise<boolean> {
    const main = mainFile(file.path)
    if (query.sessionId !== undefined && basename(main) === `${query.sessionId}.jsonl`) return true
    const started = (await firstFolder(main)) || (await firstFolder(file.path))
    // No folder on record at all: the folder's name is all there is, and only an exact one will do.
    if (started === '') return folders.has(basename(dirname(main)))
    return isInside(started, roots)
  }

  async function firstFolder(path: string): Promise<string> {
    const known = firstFolders.get(path)
    if (known !== undefined) return known
    let found = ''
    // The first one: a session's folder moves with `cd`, its project does not.
    const file = statFile(path)
    if (file !== undefined) {
      const to = Math.min(file.bytes, 1024 * 1024)
      await readJsonLines(
        path,
        { from: 0, to, having: ['"cwd"'] },
        (line) => (found = asText(line['cwd'])) === '',
      )
    }
    // A file that has only begun may still name its folder later.
    if (found !== '') firstFolders.set(path, found)
    return found
  }

  async function read(query: SessionQuery): Promise<{ records: readonly UsageRecord[]; skipped: string }> {
    const byId = new Map<string, UsageRecord>()
    for (const file of list(query)) {
      const from = query.sizes?.get(file.path) ?? 0
      if (file.bytes <= from || file.mtimeMs < query.sinceMs - 1000 || !(await isOurs(file, query))) continue
      await readJsonLines(file.path, { from, to: file.bytes, having: ['"usage"'] }, (line, at) => {
        const record = toRecord(line, file.path, at)
        // A resumed session may carry its whole history into a new file: those answers are older than this turn.
        if (record === undefined || record.timeMs < query.sinceMs) return true
        // An answer is written again and again while it grows; a broken line takes nothing of it away.
        const known = byId.get(record.id)
        if (known === undefined || totalOf(record) >= totalOf(known)) byId.set(record.id, record)
        return true
      })
    }
    return { records: [...byId.values()], skipped: '' }
  }

  return { agent: 'claude', list, isOurs, read }
}

/** What Claude Code 2.1 makes of a folder: lossy (`a.b`, `a_b` and `a-b` collide), so it is a hint only. */
export function encode(folder: string): string {
  return folder.replaceAll(/[^A-Za-z0-9]/g, '-')
}

function isCandidate(name: string, encoded: ReadonlySet<string>, below: boolean): boolean {
  if (encoded.has(name)) return true
  for (const folder of encoded) {
    // Over 200 characters it is cut, and a hash that differs between versions follows.
    if (folder.length > 200 && name.startsWith(`${folder.slice(0, 200)}-`)) return true
    if (below && name.startsWith(`${folder}-`)) return true
  }
  return false
}

function projectFolders(env: NodeJS.ProcessEnv): readonly string[] {
  const set = env['CLAUDE_CONFIG_DIR']
  const home = homeOf(env)
  const configs = set
    ? set.split(',').map((part) => part.trim())
    : [join(home, '.claude'), join(env['XDG_CONFIG_HOME'] ?? join(home, '.config'), 'claude')]
  return configs.flatMap((config) => {
    const projects = join(config, 'projects')
    return listNames(projects).map((name) => join(projects, name))
  })
}

/** `<project>/<session>/subagents/agent-x.jsonl` belongs to `<project>/<session>.jsonl`. */
function mainFile(path: string): string {
  const parts = path.split(sep)
  const project = parts.lastIndexOf('projects') + 1
  return parts.length - project > 2 ? `${parts.slice(0, project + 2).join(sep)}.jsonl` : path
}

function totalOf({ figures }: UsageRecord): number {
  return (
    figures.input_tokens + figures.output_tokens + figures.cache_read_tokens + figures.cache_creation_tokens
  )
}

function toRecord(line: JsonObject, path: string, at: number): UsageRecord | undefined {
  const message = asObject(line['message'])
  const usage = asObject(message?.['usage'])
  if (message === undefined || usage === undefined) return undefined
  const main = basename(mainFile(path), '.jsonl')
  return {
    id: asText(message['id']) || `${path}@${at}`,
    agent: 'claude',
    sessionId: asText(line['sessionId']) || main,
    parentSessionId: main,
    model: asText(message['model']),
    timeMs: Date.parse(asText(line['timestamp'])),
    figures: {
      input_tokens: asCount(usage['input_tokens']),
      output_tokens: asCount(usage['output_tokens']),
      cache_read_tokens: asCount(usage['cache_read_input_tokens']),
      cache_creation_tokens: asCount(usage['cache_creation_input_tokens']),
    },
  }
}
