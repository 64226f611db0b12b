// One answer of a model as an agent's session files tell it, and the tolerant reading of their numbers.
import type { UsageFigures } from '../../core/usage.ts'

export interface UsageRecord {
  /** Agents write an answer several times; the same id is the same answer. */
  readonly id: string
  readonly agent: string
  readonly sessionId: string
  /** Of a sub-agent or a fork: the session it came from; else empty. */
  readonly parentSessionId: string
  /** Empty when the file does not say. */
  readonly model: string
  /** NaN when the record has no time. */
  readonly timeMs: number
  readonly figures: UsageFigures
}

export interface SessionFile {
  readonly path: string
  readonly bytes: number
  readonly mtimeMs: number
}

export interface SessionQuery {
  readonly sinceMs: number
  /** Where the agent named its session; a hint for finding the file. */
  readonly sessionId?: string | undefined
  /** Where each file stood before the turn: what lies before that is not looked at. */
  readonly sizes?: ReadonlyMap<string, number> | undefined
}

/** The session files of one agent that belong to these work trees, and to no other project. */
export interface SessionSource {
  readonly agent: string
  /** By name and size only: cheap enough to be asked before each turn. */
  list(query: SessionQuery): readonly SessionFile[]
  /** Whether a listed file is really of these work trees: names are lossy, the recorded folder decides. */
  isOurs(file: SessionFile, query: SessionQuery): Promise<boolean>
  /** Each answer once. `skipped` says why the source could not be read, else empty. */
  read(query: SessionQuery): Promise<{ readonly records: readonly UsageRecord[]; readonly skipped: string }>
}

export type JsonObject = Readonly<Record<string, unknown>>

export function asObject(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** null, text, NaN and negative counts were all seen in real files; each counts as nothing. */
export function asCount(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.round(value) : 0
}
