// Reads what Codex wrote about its answers: <home>/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl.
import { basename, join } from 'node:path'
import { readRollout } from './codex-rollout.ts'
import type { Rollout } from './codex-rollout.ts'
import { bothPaths, homeOf, isInside, listJsonl, listNames } from './session-folder.ts'
import type { SessionFile, SessionQuery, SessionSource, UsageRecord } from './usage-record.ts'

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
