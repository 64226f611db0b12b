// Runs one short command to its end: bytes in, bytes out, a time limit that kills the whole group and waits for it.
import { spawn } from 'node:child_process'
import { faultCode } from './fault.ts'

export interface ExecOptions {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly timeoutMs: number
  readonly input?: string | Uint8Array
  readonly signal?: AbortSignal
}

export interface ExecResult {
  readonly stdout: Buffer
  readonly stderr: string
  /** Absent when the command was ended by a signal or never started. */
  readonly exitCode?: number
  readonly signal?: NodeJS.Signals
  readonly timedOut: boolean
  /** Set when the program could not be started at all (ENOENT, E2BIG …). */
  readonly spawnError?: NodeJS.ErrnoException
}

const drainMs = 1000

/** Never throws for what the command does; the result says how it ended. */
export function exec(file: string, args: readonly string[], options: ExecOptions): Promise<ExecResult> {
  return new Promise((resolve) => {
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    let timedOut = false
    let chunks = 0
    let child: ReturnType<typeof spawn>
    try {
      // A group of its own: a hung helper (credential, hook, filter) dies with it, and Ctrl-C reaches ralph alone.
      child = spawn(file, args, {
        cwd: options.cwd,
        env: options.env,
        detached: true,
        stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      })
    } catch (error) {
      // E2BIG and EINVAL are thrown synchronously.
      if (!(error instanceof Error)) throw error
      resolve({ stdout: Buffer.alloc(0), stderr: '', timedOut, spawnError: error })
      return
    }
    const killGroup = (): void => {
      if (child.pid === undefined) return
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch (error) {
        if (faultCode(error) !== 'ESRCH') throw error
      }
    }
    const timer = setTimeout(() => {
      timedOut = true
      killGroup()
    }, options.timeoutMs)
    options.signal?.addEventListener('abort', killGroup, { once: true })
    child.stdout?.on('data', (chunk: Buffer) => {
      chunks += 1
      stdout.push(chunk)
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      chunks += 1
      stderr.push(chunk)
    })
    // A command may end before it has read all its input.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(options.input)

    let draining: NodeJS.Timeout | undefined
    const settle = (rest: Pick<ExecResult, 'exitCode' | 'signal' | 'spawnError'>): void => {
      clearTimeout(timer)
      clearTimeout(draining)
      options.signal?.removeEventListener('abort', killGroup)
      resolve({
        stdout: Buffer.concat(stdout),
        stderr: Buffer.concat(stderr).toString('utf8'),
        timedOut,
        ...rest,
      })
    }
    child.on('error', (error: NodeJS.ErrnoException) => settle({ spawnError: error }))
    const ended = (code: number | null, signal: NodeJS.Signals | null): void =>
      settle({ ...(code !== null && { exitCode: code }), ...(signal !== null && { signal }) })
    child.on('close', ended)
    // What it left running in a session of its own may hold the pipes for ever: then `close` never comes.
    child.on('exit', (code, signal) => {
      const drain = (): void => {
        const before = chunks
        draining = setTimeout(() => {
          // Timers come before reading: after a busy second the rest may still be in the pipe.
          setImmediate(() => {
            if (chunks !== before) return drain()
            child.stdout?.destroy()
            child.stderr?.destroy()
            ended(code, signal)
          })
        }, drainMs)
      }
      drain()
    })
  })
}
