// Reads what Codex wrote about its answers: <home>/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl.
import { basename, join } from 'node:path'
import { bothPaths, homeOf, isInside, listJsonl, listNames } from './session-folder.ts'
import {
  asCount,
  asObject,
  asText,
  type SessionFile,
  type SessionQuery,
  type SessionSource,
  type UsageRecord,
  type JsonObject,
} from './usage-record.ts'
import { readJsonLines } from './json-lines.ts'

const dayMs = 24 * 60 * 60 * 1000

export function codexSessions(env: NodeJS.ProcessEnv, worktrees: readonly string[]): SessionSource {
  const roots = bothPaths(worktrees)
  const sessions = join(env['CODEX_HOME'] ?? join(homeOf(env), '.codex'), 'sessions')

  /** Of a turn only the days it may touch; a resumed thread keeps the file of its first day, so its name counts too. */
  function list(query: SessionQuery): readonly SessionFile[] {
    if (query.sizes === undefined) return listJsonl(sessions)
    const { sessionId } = query
    const earliest = dayOf(query.sinceMs - dayMs)
    return dayFolders(sessions).flatMap((day) => {
      if (day >= earliest) return listJsonl(join(sessions, day))
      const isNamed =
        sessionId !== undefined && listNames(join(sessions, day)).some((name) => isOf(name, sessionId))
      return isNamed ? listJsonl(join(sessions, day)).filter((file) => isOf(file.path, sessionId)) : []
    })
  }

  async function isOurs(file: SessionFile, query: SessionQuery): Promise<boolean> {
    if (query.sessionId !== undefined && isOf(file.path, query.sessionId)) return true
    return isInside((await readRollout(file, { headOnly: true })).folder, roots)
  }

  async function read(query: SessionQuery): Promise<{ records: readonly UsageRecord[]; skipped: string }> {
    const listed = list(query)
    const rollouts = new Map<string, Rollout>()
    for (const file of listed) {
      const from = query.sizes?.get(file.path) ?? 0
      if (file.bytes <= from || file.mtimeMs < query.sinceMs - 1000 || !(await isOurs(file, query))) continue
      rollouts.set(file.path, await readRollout(file, { headOnly: false }))
    }
    await addParents(rollouts, listed)
    // The oldest file that tells of an answer has it from the model; the later ones copied it, with new times.
    const byId = new Map<string, UsageRecord>()
    for (const [, rollout] of [...rollouts].sort(([a], [b]) => (basename(a) < basename(b) ? -1 : 1))) {
      for (const record of rollout.records) if (!byId.has(record.id)) byId.set(record.id, record)
    }
    return { records: [...byId.values()].filter((record) => !(record.timeMs < query.sinceMs)), skipped: '' }
  }

  return { agent: 'codex', list, isOurs, read }
}

/** A fork replays its parent's answers: without the parent's file they would look new. */
async function addParents(rollouts: Map<string, Rollout>, listed: readonly SessionFile[]): Promise<void> {
  const wanted = [...rollouts.values()].map((rollout) => rollout.parentId)
  for (let id = wanted.pop(); id !== undefined; id = wanted.pop()) {
    const parentId = id
    if (parentId === '') continue
    for (const file of listed.filter((file) => isOf(file.path, parentId) && !rollouts.has(file.path))) {
      const rollout = await readRollout(file, { headOnly: false })
      rollouts.set(file.path, rollout)
      wanted.push(rollout.parentId)
    }
  }
}

function isOf(path: string, sessionId: string): boolean {
  return path.endsWith(`-${sessionId}.jsonl`)
}

/** `YYYY/MM/DD` of all folders that hold rollouts. */
function dayFolders(sessions: string): readonly string[] {
  return listNames(sessions).flatMap((year) =>
    listNames(join(sessions, year)).flatMap((month) =>
      listNames(join(sessions, year, month)).map((day) => `${year}/${month}/${day}`),
    ),
  )
}

function dayOf(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10).replaceAll('-', '/')
}

interface Rollout {
  /** Where the session started; empty when the file does not say. */
  readonly folder: string
  /** Thread that this one was forked or spawned from; else empty. */
  readonly parentId: string
  readonly records: readonly UsageRecord[]
}

async function readRollout(
  file: SessionFile,
  { headOnly }: { readonly headOnly: boolean },
): Promise<Rollout> {
  const reading = new Reading(basename(file.path, '.jsonl'))
  const having = ['session_meta', 'turn_context', 'token_count', 'token_usage_record']
  await readJsonLines(file.path, { from: 0, to: file.bytes, having }, (line) => {
    reading.take(line)
    return !(headOnly && reading.folder !== '')
  })
  return reading.result()
}

class Reading {
  folder = ''
  #parentId = ''
  #sessionId = ''
  /** Id on the last session_meta before the first count: in a fork the copied one of the oldest ancestor. */
  #originId = ''
  #model = ''
  #total = ''
  /** Written at once for each answer, by newer versions; then the counters say the same again, later. */
  readonly #answers: UsageRecord[] = []
  readonly #counts: UsageRecord[] = []
  readonly #name: string

  constructor(name: string) {
    this.#name = name
  }

  result(): Rollout {
    const records = this.#answers.length > 0 ? this.#answers : this.#counts
    return { folder: this.folder, parentId: this.#parentId, records }
  }

  take(line: JsonObject): void {
    const payload = asObject(line['payload'])
    if (payload === undefined) return
    if (line['type'] === 'session_meta') this.#takeMeta(payload)
    else if (line['type'] === 'turn_context') this.#model = asText(payload['model']) || this.#model
    else if (line['type'] === 'token_usage_record') this.#takeAnswer(line, payload)
    else if (payload['type'] === 'token_count') this.#takeCount(line, payload)
  }

  #takeMeta(payload: JsonObject): void {
    if (this.#counts.length === 0) this.#originId = asText(payload['id'])
    if (this.#sessionId !== '') return
    this.#sessionId = asText(payload['id']) || this.#name
    this.folder = asText(payload['cwd'])
    this.#parentId = asText(payload['forked_from_id']) || asText(payload['parent_thread_id'])
    // A sub-agent's thread has an id of its own in the session of its parent (0.166).
    const session = asText(payload['session_id'])
    if (this.#parentId === '' && session !== this.#sessionId) this.#parentId = session
  }

  #takeAnswer(line: JsonObject, payload: JsonObject): void {
    const usage = asObject(payload['usage'])
    if (usage === undefined) return
    const id = asText(payload['response_id']) || `${asText(line['timestamp'])} ${JSON.stringify(usage)}`
    this.#answers.push(this.#record(line, id, usage))
  }

  #takeCount(line: JsonObject, payload: JsonObject): void {
    const info = asObject(payload['info'])
    const last = asObject(info?.['last_token_usage'])
    const total = asObject(info?.['total_token_usage'])
    if (last === undefined || total === undefined) return
    const key = JSON.stringify(counts(total))
    // The same counter again is a refresh of the display, not an answer.
    if (key === this.#total) return
    this.#total = key
    const delta = JSON.stringify(counts(last))
    // A thread's first count may equal that of an unrelated thread; later ones, with their totals, do not.
    const origin = this.#originId === this.#sessionId ? this.#sessionId : this.#originId || this.#parentId
    this.#counts.push(this.#record(line, key === delta ? `${origin} ${key}` : `${key} ${delta}`, last))
  }

  #record(line: JsonObject, id: string, usage: JsonObject): UsageRecord {
    return {
      id: `codex ${id}`,
      agent: 'codex',
      sessionId: this.#sessionId || this.#name,
      parentSessionId: this.#parentId,
      model: this.#model,
      timeMs: Date.parse(asText(line['timestamp'])),
      figures: counts(usage),
    }
  }
}

/** Codex counts cached tokens, read or written, as input too, and reasoning as output already. */
function counts(usage: JsonObject): UsageRecord['figures'] {
  const cached = asCount(usage['cached_input_tokens'])
  const written = asCount(usage['cache_write_input_tokens'])
  return {
    input_tokens: Math.max(0, asCount(usage['input_tokens']) - cached - written),
    output_tokens: asCount(usage['output_tokens']),
    cache_read_tokens: cached,
    cache_creation_tokens: written,
  }
}
