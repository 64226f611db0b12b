// The Agent port: starts the program, listens to it, and resolves when nothing of it is alive.
// Long because a turn is one walk, from the start of its program to the last word on what outlived it.
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { RalphError } from '../../core/error.ts'
import type { AgentEnded, AgentEnding } from '../../core/event.ts'
import type { Limits } from '../../core/resource-limits.ts'
import type { Agent, AgentSignal, AgentTask, ClaimDesk } from '../../ports.ts'
import { watchRepository } from '../files/repository-watch.ts'
import type { Held } from '../process/cage-held.ts'
import { cageFault, type Cage, type Inmate } from '../process/cage.ts'
import { faultCode, faultMessage } from '../process/fault.ts'
import { startGroup, type Group, type GroupEnd, type GroupOptions } from '../process/group.ts'
import { hiddenSince, strangersIn } from '../process/strays.ts'
import { processIdentity } from '../process/table.ts'
import { boundedTail } from '../process/tail.ts'
import { makeTemp, movedInto, removeTemp, setApart } from '../process/temp.ts'
import { openTranscript } from '../process/transcript.ts'
import { openClaims, type ClaimServer } from './claim-server.ts'
import { isClaimTool } from './claim-tools.ts'
import { comingAgent, dismissed, type Coming } from './coming.ts'
import { throughShell } from './command.ts'
import { lineParser, textParser } from './output.ts'
import { agentEnvironment } from './environment.ts'
import { gitIdentity } from './environment.ts'
import type { AgentKind, AgentRun } from './kind.ts'
import { argumentsFor, offered } from './offered.ts'
import { agentKind } from './table.ts'
import { startTurn, type Turn } from './turn.ts'

export interface AgentsOptions {
  /** What `--agent-command` says. */
  readonly command?: string
  /** What stands after `--`. */
  readonly passThrough: readonly string[]
  /** Whom these arguments are meant for: the first of a chain; all, if absent. */
  readonly flagsFor?: string
  /** `--agent-env`. */
  readonly agentEnv: Readonly<Record<string, string>>
  /** `--no-api-key`. */
  readonly noApiKey: boolean
  /** The user's. */
  readonly env: NodeJS.ProcessEnv
  /** From the first signal to KILL. */
  readonly graceMs?: number
  /** How long an agent whose turn is over may take to leave. */
  readonly turnGraceMs?: number
  readonly transcriptMaxBytes?: number
  /** Of whoever reads along: no agent starts, and none is heard, before this resolves. Undefined: go on. */
  readonly room?: () => Promise<void> | undefined
  readonly cage?: Cage
  readonly limits?: Limits
  /** Of the repository: a temp folder that holds a part which is missing there is not removed. */
  readonly gitDirs?: readonly string[]
}

export function createAgents(options: AgentsOptions): Agent {
  let coming: Coming | undefined
  const dismiss = async (): Promise<void> => {
    const gone = coming
    coming = undefined
    await dismissed(gone)
  }
  const { cage, limits } = options
  return {
    expect(next) {
      void dismiss()
      const kind = agentKind(next.agent)
      if (cage === undefined || limits !== undefined || kind === undefined) return
      coming = comingAgent(next, cage, {
        user: options.env,
        marker: markerOf(next),
        keepsInput: kind.keepsInput === true,
        inmate: (tempDir, claimsFolder) => inmateOf(options, next.agent, tempDir, claimsFolder),
      })
    },
    dismiss,
    takesClaims: (agent) => offered(agent, options) !== 'not',
    async work(task, stop, tell) {
      const kind = agentKind(task.agent)
      if (kind === undefined) return notStarted('missing', `There is no agent called ${task.agent}.`)
      const room = stop.aborted ? undefined : options.room?.()
      // A wait may be long, and whoever starts something meanwhile has not done so beside the agent.
      if (coming?.n !== task.n || coming.agent !== task.agent || room !== undefined) await dismiss()
      await roomOrStop(room, stop)
      if (stop.aborted) {
        await dismiss()
        return notStarted(causeOf(stop), '')
      }
      const holdsPart = watchRepository(options.gitDirs ?? [])
      const came = coming
      coming = undefined
      const tempDir = came?.tempDir ?? makeTemp(task.env['RALPH_RUN_ID'] ?? '', options.env)
      try {
        return await runTurn({ kind, task, stop, tell, options, tempDir, came })
      } finally {
        await came?.leave()
        if (came?.claimsFolder !== undefined && existsSync(came.claimsFolder))
          await removeTemp(came.claimsFolder)
        if (holdsPart(tempDir)) {
          const message = `A part of the repository is missing, and the agent may have put it into its temp folder: that is kept as ${setApart(tempDir)}`
          tell({ type: 'warning', message })
        } else if (!(await removeTemp(tempDir))) {
          const moved = movedInto(tempDir)
          const message =
            moved.length > 0
              ? `The agent moved files that are not its own to its temp folder; they stay there until you move them back: ${moved.slice(0, 5).join(', ')}`
              : `The agent's temp folder could not be removed: ${tempDir}`
          tell({ type: 'warning', message })
        }
      }
    },
  }
}

async function roomOrStop(room: Promise<void> | undefined, stop: AbortSignal): Promise<void> {
  if (room === undefined) return
  const stopped = new Promise<void>((resolve) => {
    stop.addEventListener('abort', () => resolve(), { once: true })
  })
  await Promise.race([room, stopped])
}

interface Running {
  readonly kind: AgentKind
  readonly task: AgentTask
  readonly stop: AbortSignal
  readonly tell: (signal: AgentSignal) => void
  readonly options: AgentsOptions
  readonly tempDir: string
  readonly came: Coming | undefined
}

/** Its way to ralph's tools is open for as long as it lives, and no longer. */
async function runTurn(running: Running): Promise<AgentEnded> {
  const { kind, task, tell, options } = running
  const passThrough = argumentsFor(task.agent, options)
  const desk = offered(task.agent, options) === 'not' ? undefined : task.claims
  const hear = (signal: AgentSignal): void => {
    // What came of these is told in another way.
    if (desk !== undefined && signal.type === 'tool' && isClaimTool(signal)) return
    // The secret is good before the first tool only: none can find one that is.
    if (signal.type === 'tool' && claims?.isTaken === false) void claims.close()
    tell(signal)
  }
  const talk: Talk = { group: undefined, turn: startTurn(kind, hear, () => talk.group?.cause !== undefined) }
  const claims = desk === undefined ? undefined : await offer(desk, running, talk)
  const run: AgentRun = {
    prompt: task.prompt,
    cwd: task.cwd,
    model: task.model,
    command: options.command,
    passThrough,
    isRoot: process.getuid?.() === 0,
    ...(claims !== undefined && { claims: claims.client }),
  }
  try {
    return await converse(running, run, talk, () => claims?.close() ?? Promise.resolve())
  } finally {
    await claims?.close()
  }
}

/** Both ends of what is said: the program, once it runs, and what is made of its words. */
interface Talk {
  group: Group | undefined
  readonly turn: Turn
}

/** An agent that cannot be offered them has its text, as every other. */
async function offer(desk: ClaimDesk, running: Running, talk: Talk): Promise<ClaimServer | undefined> {
  const { task, tell, options, came } = running
  return openClaims({
    desk,
    folder: came?.claimsFolder,
    runId: task.env['RALPH_RUN_ID'] ?? '',
    env: options.env,
    hasFile: offered(task.agent, options) === 'by file',
    tell,
    promised: (promise) => talk.turn.hear({ type: 'promised', promise }),
    wait: (until) => talk.group?.wait(until),
  }).catch((error: unknown) => {
    const message = `The agent works without the tools of ralph: ${faultMessage(error)}`
    tell({ type: 'warning', message })
    return undefined
  })
}

async function converse(
  { kind, task, stop, tell, options, tempDir, came }: Running,
  run: AgentRun,
  talk: Talk,
  endClaims: () => Promise<void>,
): Promise<AgentEnded> {
  const { turn } = talk
  const launch = kind.launch(run)
  const env = agentEnvironment({
    user: options.env,
    task: task.env,
    kind: { ...launch.env, ...(kind.hidesGitConfig === true && (await gitIdentity(task.cwd, options.env))) },
    own: options.agentEnv,
    hidden: options.noApiKey ? kind.keys : [],
    tempDir,
  })
  const transcript = openTranscript(
    task.transcript,
    options.transcriptMaxBytes ?? transcriptMaxBytes,
    (message) => tell({ type: 'warning', message }),
  )
  const stderr = boundedTail(stderrBytes)
  const listener = kind.listen(run)
  const parser =
    kind.speaks === 'lines'
      ? lineParser(kind, listener, turn, tell, () => talk.group)
      : textParser(task.prompt, turn)
  let leaving: NodeJS.Timeout | undefined

  const held = await came?.held
  let group: Group
  try {
    group = await startGroup({
      ...launch,
      cwd: task.cwd,
      env,
      ...(kind.keepsInput === true && { keepsInput: true }),
      stdout: 'socket',
      marker: markerOf(task),
      held,
      ...caged(options, run, task.agent, { tempDir, held }),
      ...(options.limits !== undefined && { limits: options.limits }),
      timeoutMs: task.timeoutMs,
      idleTimeoutMs: task.idleTimeoutMs,
      graceMs: options.graceMs ?? stopGraceMs,
      ...(options.room !== undefined && { room: options.room }),
      farewell: () => (turn.isOver ? '' : (listener.cancel?.() ?? '')),
      onOutput(chunk) {
        transcript.write(chunk)
        parser.feed(chunk)
        // Some stay for minutes after their last word, for a background task of their own (R15).
        if (turn.isOver)
          leaving ??= setTimeout(() => talk.group?.end('turn_over'), options.turnGraceMs ?? turnGraceMs)
        if (turn.isOver && kind.keepsInput === true) talk.group?.closeInput()
        // Some would not leave while what they started for it runs.
        if (turn.isOver) void endClaims()
      },
      onErrorOutput(chunk) {
        transcript.write(chunk)
        stderr.feed(chunk)
      },
    })
  } catch (error) {
    transcript.close()
    if (error instanceof RalphError) throw error
    return cannotStart(error, launch.file, task.cwd)
  }
  talk.group = group
  const pidStarted = processIdentity(group.pid)
  tell({ type: 'started', pid: group.pid, pidStarted })
  const onStop = (): void => group.end(turn.isOver ? 'turn_over' : causeOf(stop))
  stop.addEventListener('abort', onStop, { once: true })
  if (stop.aborted) onStop()
  const ended = await group.ended
  const end = launch.file === 'sh' || options.cage !== undefined ? throughShell(ended) : ended
  stop.removeEventListener('abort', onStop)
  clearTimeout(leaving)
  await endClaims()
  parser.end()
  transcript.close()
  if (end.hasNoCage === true) return neverRan(launch.file, stderr.text())
  if (end.leftBehind > 0) {
    tell({
      type: 'warning',
      message: `The agent left ${end.leftBehind} of its processes running; ralph ended them.`,
    })
  }
  for (const path of end.came ?? [])
    tell({
      type: 'warning',
      message: `${path} appeared or was changed while the agent ran, and later runs use it, also outside the sandbox: check it, or remove it.`,
    })
  for (const message of strayWarnings(end, task.cwd, pidStarted, group.table))
    tell({ type: 'warning', message })
  return turn.end(end, stderr.text(), Date.now())
}

function caged(
  options: AgentsOptions,
  { claims }: AgentRun,
  agent: string,
  { tempDir, held }: { readonly tempDir: string; readonly held: Held | undefined },
): Pick<GroupOptions, 'cage'> {
  const { cage } = options
  if (cage === undefined) return {}
  const inmate = inmateOf(options, agent, tempDir, claims && dirname(claims.configFile))
  return { cage: (start) => cage.enter(start, inmate, held?.expected) }
}

function inmateOf(
  { command, agentEnv }: AgentsOptions,
  agent: string,
  tempDir: string,
  claimsFolder: string | undefined,
): Inmate {
  return {
    agent,
    ...(command !== undefined && { command }),
    keeps: Object.keys(agentEnv),
    tempDir,
    ...(claimsFolder !== undefined && { shown: [claimsFolder] }),
  }
}

/** A program that cannot be seen in there is missing; all else is the cage's own fault. */
function neverRan(file: string, stderr: string): AgentEnded {
  if (!/^bwrap: execvp /m.test(stderr)) throw cageFault(stderr)
  return notStarted('missing', `${file} could not be started in the sandbox: ${stderr.trim()}`)
}

/** What ralph must not or cannot end may go on editing: the user has to know. */
function strayWarnings(end: GroupEnd, cwd: string, since: string, table: Group['table']): string[] {
  const hidden = end.isHeld === true ? hiddenSince(since).map(({ pid }) => pid) : []
  const strangers = strangersIn(cwd, since, table)
    .map(({ pid }) => pid)
    .filter((pid) => !end.survivors.includes(pid))
  const held =
    'Something that the agent started is still alive and holds its output; ralph could not find it.'
  const stranger = `Started while the agent ran, and still at work in the work tree: process ${strangers.join(', ')}. ralph cannot tell whose; if it is the agent's, end it: kill ${strangers.join(' ')}`
  return [
    ...(end.isHeld === true
      ? [held + (hidden.length > 0 ? ` It may be process ${hidden.join(', ')}.` : '')]
      : []),
    ...(strangers.length > 0 ? [stranger] : []),
  ]
}

const transcriptMaxBytes = 1024 ** 3
const stderrBytes = 16_384
/** The whole stop must be recorded within 5 s of the signal. */
const stopGraceMs = 3000
const turnGraceMs = 5000

/** Of the iteration, not only of the run: what the user's gates left running is not the agent's. */
function markerOf(task: Pick<AgentTask, 'env'>): Record<string, string> {
  const names = ['RALPH_RUN_ID', 'RALPH_ITERATION']
  return Object.fromEntries(Object.entries(task.env).filter(([name]) => names.includes(name)))
}

function causeOf(stop: AbortSignal): 'budget' | 'stopped' {
  return stop.reason === 'budget' ? 'budget' : 'stopped'
}

function cannotStart(error: unknown, file: string, cwd: string): AgentEnded {
  // ENOENT is also what spawn says when the folder is gone (R14).
  if (!existsSync(cwd)) return notStarted('crash', `The work tree ${cwd} is gone.`)
  const isMissing = ['ENOENT', 'EACCES', 'ENOTDIR'].includes(faultCode(error))
  return notStarted(isMissing ? 'missing' : 'crash', `${file} could not be started: ${faultMessage(error)}`)
}

function notStarted(ending: AgentEnding, lastWords: string): AgentEnded {
  return { ending, promise: { kind: 'none' }, last_words: lastWords, survivors: [] }
}
