// Runs one agent of this folder through the real Agent port, in a folder of its own, and checks that nothing of it is left.
import { randomUUID } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createAgents, type AgentsOptions } from '../../src/adapters/agents/agents.ts'
import { findAlive } from '../../src/adapters/process/reap.ts'
import type { AgentEnded } from '../../src/core/event.ts'
import type { AgentSignal, AgentTask } from '../../src/ports.ts'

const here = dirname(fileURLToPath(import.meta.url))

/** Path of a misbehaving agent. */
export function agentPath(name: string): string {
  return join(here, name)
}

export interface Worked {
  readonly ended: AgentEnded
  readonly signals: readonly AgentSignal[]
  readonly transcript: Buffer
  /** Processes of this run that are still alive: must be none. */
  readonly alive: readonly number[]
  /** Left in the folder that holds the run's TMPDIR: must be nothing. */
  readonly temporary: readonly string[]
}

export interface Bench {
  readonly cwd: string
  readonly stop: AbortController
  /** Runs `--agent-command` with a script of this folder. */
  command(script: string, rest?: Rest): Promise<Worked>
  /** Runs `--agent claude` with a script of this folder standing in for it on PATH. */
  claude(script: string, rest?: Rest): Promise<Worked>
  work(agent: string, rest?: Rest): Promise<Worked>
  remove(): void
}

interface Rest {
  readonly options?: Partial<AgentsOptions>
  readonly task?: Partial<AgentTask>
  readonly onSignal?: (signal: AgentSignal) => void
}

export function bench(): Bench {
  const root = mkdtempSync(join(tmpdir(), 'ralph-kit-'))
  const [cwd, bin, temp, home] = ['tree', 'bin', 'temp', 'home'].map((name) => {
    mkdirSync(join(root, name))
    return join(root, name)
  }) as [string, string, string, string]
  const stop = new AbortController()
  const runId = randomUUID()

  const work = async (agent: string, { options, task, onSignal }: Rest = {}): Promise<Worked> => {
    const signals: AgentSignal[] = []
    const transcript = join(root, 'transcripts', '1.log')
    const agents = createAgents({
      passThrough: [],
      agentEnv: {},
      noApiKey: false,
      graceMs: 1000,
      ...options,
      env: { PATH: `${bin}:${process.env['PATH'] ?? ''}`, HOME: home, TMPDIR: temp, ...options?.env },
    })
    const ended = await agents.work(
      {
        n: 1,
        prompt:
          'You are to do story 1.\nWhen all is done, print <promise>COMPLETE</promise> alone on the last line, please.\n',
        agent,
        cwd,
        env: {
          RALPH_RUN_ID: runId,
          RALPH_ITERATION: '1',
          RALPH_STORY: '1',
          RALPH_ATTEMPT: '1',
          RALPH_CHANGE: 'add-x',
        },
        transcript,
        timeoutMs: 60_000,
        idleTimeoutMs: 0,
        ...task,
      },
      stop.signal,
      (signal) => {
        signals.push(signal)
        onSignal?.(signal)
      },
    )
    const alive = findAlive({ marker: { RALPH_RUN_ID: runId } }).map(({ pid }) => pid)
    return { ended, signals, transcript: readIf(transcript), alive, temporary: readdirSync(temp) }
  }
  return {
    cwd,
    stop,
    command: (script, rest) =>
      work('command', { ...rest, options: { command: agentPath(script), ...rest?.options } }),
    claude: (script, rest) => {
      standIn(bin, 'claude', agentPath(script))
      return work('claude', rest)
    },
    work,
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** Puts a program of that name into a folder of PATH. */
export function standIn(bin: string, name: string, script: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\nexec '${script}' "$@"\n`)
  chmodSync(join(bin, name), 0o755)
}

function readIf(path: string): Buffer {
  return readdirSync(dirname(dirname(path))).includes('transcripts') ? readFileSync(path) : Buffer.alloc(0)
}
