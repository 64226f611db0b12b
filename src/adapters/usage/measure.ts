// Measures what one turn of an agent used: wt-usage, the agent's own figures, its session files, or an estimate that says so.
import type { UsageFigures } from '../../core/usage.ts'
import { addUsage, disagrees, noUsage, tokensUsed } from '../../core/usage.ts'
import type { Clock, MeasuredUsage, Usage, UsageTurn } from '../../ports.ts'
import { costOfRecords, ownCost, turnCostUsd } from './prices.ts'
import { readOrSkip, sessionSources } from './session-sources.ts'
import type { SessionQuery, SessionSource, UsageRecord } from './usage-record.ts'
import type { WtUsageAnswer } from './wt-usage.ts'
import { askWtUsage, between } from './wt-usage.ts'

export interface UsageDeps {
  readonly worktree: string
  /** PATH, HOME, CLAUDE_CONFIG_DIR, CODEX_HOME, XDG_DATA_HOME of the agent. */
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  /** Local ISO 8601 with offset, as wt-usage takes it. */
  readonly loopStarted: string
  readonly source: 'auto' | 'wt-usage' | 'agent' | 'sessions'
}

const wtUsageTimeoutMs = 10_000
const hurryTimeoutMs = 1500

interface Mark {
  readonly atMs: number
  readonly sizes: ReadonlyMap<string, number>
  readonly wtUsage: WtUsageAnswer
}

interface Chosen {
  readonly source: 'wt-usage' | 'agent' | 'sessions'
  readonly figures: UsageFigures
}

export interface MeasuringUsage extends Usage {
  /** In the middle of a turn: what the agent's session files tell of it so far; undefined when they tell nothing. Never throws. */
  soFar(agent: string, sessionId: string | undefined, model?: string): Promise<UsageFigures | undefined>
}

export function measureUsage(deps: UsageDeps): MeasuringUsage {
  const { env, worktree, clock, source } = deps
  const sources = sessionSources(env, [worktree], { below: false })
  const ask = (timeoutMs: number, stop: AbortSignal | undefined): Promise<WtUsageAnswer> =>
    source === 'auto' || source === 'wt-usage'
      ? askWtUsage({ since: deps.loopStarted, cwd: worktree, env, timeoutMs, stop })
      : Promise.resolve({ is: 'absent' })
  let mark: Mark | undefined
  let hasWarned = false

  async function before(_agent: string, stop?: AbortSignal): Promise<void> {
    const atMs = clock.now()
    const files = sources.flatMap((source) => source.list({ sinceMs: atMs, sizes: new Map() }))
    mark = {
      atMs,
      sizes: new Map(files.map((file) => [file.path, file.bytes])),
      wtUsage: await ask(wtUsageTimeoutMs, stop),
    }
  }

  async function soFar(
    agent: string,
    sessionId: string | undefined,
    model?: string,
  ): Promise<UsageFigures | undefined> {
    if (mark === undefined) return undefined
    const { records } = await readSessions(sources, agent, {
      sinceMs: mark.atMs,
      sessionId,
      sizes: mark.sizes,
    })
    const { cost_usd: _, ...figures } = addUsage(records.map((record) => record.figures))
    if (tokensUsed(figures) === 0) return undefined
    const price = await costOfRecords(records, model)
    return { ...figures, ...(price !== undefined && { cost_usd: price }) }
  }

  async function after(
    agent: string,
    own: UsageFigures | undefined,
    sessionId: string | undefined,
    model?: string,
    turn?: UsageTurn,
  ): Promise<MeasuredUsage> {
    // The demo has no model: none is its count, not a lack of one.
    if (agent === 'demo') return { ...noUsage, estimated: false, source: 'agent' }
    const startedMs = mark?.atMs ?? Date.parse(turn?.started ?? '')
    const query: SessionQuery = {
      sinceMs: Number.isNaN(startedMs) ? clock.now() : startedMs,
      sessionId,
      sizes: mark?.sizes ?? new Map(),
    }
    const sessions = await readSessions(sources, agent, query)
    const counted = await countedByWtUsage(mark?.wtUsage ?? { is: 'absent' }, () =>
      turn?.hurry === true ? ask(hurryTimeoutMs, undefined) : ask(wtUsageTimeoutMs, turn?.stop),
    )
    const sessionFigures = addUsage(sessions.records.map((record) => record.figures))
    const candidates: Chosen[] = []
    if (counted.figures !== undefined) candidates.push({ source: 'wt-usage', figures: counted.figures })
    if (own !== undefined && tokensUsed(own) > 0) candidates.push({ source: 'agent', figures: own })
    if (tokensUsed(sessionFigures) > 0) candidates.push({ source: 'sessions', figures: sessionFigures })

    const cost = async (figures: UsageFigures): Promise<{ cost_usd?: number }> => {
      const price =
        ownCost(own) ??
        (figures === sessionFigures
          ? await costOfRecords(sessions.records, model)
          : ((await turnCostUsd(model ?? '', figures)) ??
            (await turnCostUsd(onlyModel(sessions.records), figures))))
      return price === undefined ? {} : { cost_usd: price }
    }
    const isUnanswered = turn?.isUnanswered === true
    const wanted = pick(candidates, source, isUnanswered ? '' : counted.trouble)
    if (typeof wanted !== 'string') {
      const { cost_usd: _, ...tokens } = wanted.figures
      const note = [...candidates.map((other) => disagreement(wanted, other)), sessions.skipped]
      return {
        ...tokens,
        // Anew: the sum of some answers' costs would pass for the cost of all.
        ...(await cost(wanted.figures)),
        estimated: false,
        source: wanted.source,
        note: note.filter((part) => part !== '').join('; ') || undefined,
      }
    }
    if (isUnanswered)
      return { ...noUsage, estimated: false, source: 'agent', note: sessions.skipped || undefined }
    const bytes = mark === undefined ? 0 : await growth(sources, query)
    const figures = { ...noUsage, input_tokens: Math.floor(bytes / 4) }
    const why = [wanted, sessions.skipped].filter((part) => part !== '').join('; ')
    const guess =
      figures.input_tokens === 0
        ? 'They are counted as 0'
        : `About ${figures.input_tokens}, estimated from the size of its session files`
    const warning = `The tokens of this attempt are unknown: ${why}. ${guess}.`
    const isFirst = !hasWarned
    const isOwn = agent === 'command' && figures.input_tokens === 0 && why === nothingFound.auto
    hasWarned = true
    return {
      ...figures,
      ...(figures.input_tokens > 0 || ownCost(own) !== undefined ? await cost(figures) : {}),
      estimated: true,
      // Of the user's own command nobody expects figures: the end says that they are not known.
      ...(isFirst && !isOwn && { warning }),
      source: 'estimate',
      note: warning,
    }
  }

  return { before, soFar, after }
}

const nothingFound = {
  'wt-usage': 'wt-usage is not on PATH',
  agent: 'the agent did not report them',
  sessions: 'the session files of the agent do not have them',
  auto: 'the agent did not report them',
} satisfies Record<UsageDeps['source'], string>

/** Zero, falling or failing wt-usage goes straight to the estimate: that is the seed's rule, whatever else is known. */
function pick(candidates: readonly Chosen[], source: UsageDeps['source'], trouble: string): Chosen | string {
  if (trouble !== '') return `wt-usage: ${trouble}`
  const found = candidates.find((candidate) => source === 'auto' || candidate.source === source)
  return found ?? nothingFound[source]
}

interface WtUsageCount {
  readonly figures?: UsageFigures
  /** Why there are none, except that the program is absent. */
  readonly trouble: string
}

async function countedByWtUsage(
  before: WtUsageAnswer,
  ask: () => Promise<WtUsageAnswer>,
): Promise<WtUsageCount> {
  if (before.is === 'absent') return { trouble: '' }
  if (before.is === 'failed') return { trouble: before.cause }
  const after = await ask()
  if (after.is === 'failed') return { trouble: after.cause }
  if (after.is === 'absent') return { trouble: 'it vanished from PATH while the agent ran' }
  const used = between(before.figures, after.figures)
  return typeof used === 'string' ? { trouble: used } : { figures: used, trouble: '' }
}

/** The agent's own files, or every kind for a program that is none of the known agents: it may well run one. */
async function readSessions(
  sources: readonly SessionSource[],
  agent: string,
  query: SessionQuery,
): Promise<{ records: readonly UsageRecord[]; skipped: string }> {
  const own = sources.filter((source) => source.agent === agent)
  const read = await Promise.all((own.length > 0 ? own : sources).map((source) => readOrSkip(source, query)))
  const records = read.flatMap((part) => part.records)
  const ofSession = records.filter(
    (record) => record.sessionId === query.sessionId || record.parentSessionId === query.sessionId,
  )
  const skipped = read.map((part) => part.skipped).filter((part) => part !== '')
  return { records: ofSession.length > 0 ? ofSession : records, skipped: skipped.join('; ') }
}

async function growth(sources: readonly SessionSource[], query: SessionQuery): Promise<number> {
  let bytes = 0
  for (const source of sources) {
    for (const file of source.list(query)) {
      const grown = file.bytes - (query.sizes?.get(file.path) ?? 0)
      if (grown > 0 && (await source.isOurs(file, query).catch(() => false))) bytes += grown
    }
  }
  return bytes
}

function onlyModel(records: readonly UsageRecord[]): string {
  const models = new Set(records.map((record) => record.model))
  return models.size === 1 ? ([...models][0] ?? '') : ''
}

function disagreement(chosen: Chosen, other: Chosen): string {
  if (!disagrees(chosen.figures, other.figures)) return ''
  return `${chosen.source} says ${tokensUsed(chosen.figures)} tokens, ${other.source} says ${tokensUsed(other.figures)}`
}
