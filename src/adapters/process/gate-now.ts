// One gate as its user would run it: here and now, without a loop. In ralph's own process group, so that Ctrl-C ends both.
import { spawn } from 'node:child_process'
import { shortFailure } from '../../core/gate-failure.ts'
import { boundedTail } from './tail.ts'

interface GateNow {
  readonly passed: boolean
  /** "exit 1: greets: 'hi' == 'hello'"; empty where it passed. */
  readonly why: string
}

export function gateNow(
  command: string,
  {
    cwd,
    env,
    timeoutMs,
  }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv; readonly timeoutMs: number },
): Promise<GateNow> {
  return new Promise((resolve) => {
    const tail = boundedTail(tailBytes)
    const child = spawn('sh', ['-c', command], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    })
    child.stdout.on('data', (chunk: Buffer) => tail.feed(chunk))
    child.stderr.on('data', (chunk: Buffer) => tail.feed(chunk))
    child.on('error', (error) => resolve({ passed: false, why: error.message }))
    const settle = (code: number | null, signal: NodeJS.Signals | null): void => {
      const said = shortFailure(tail.text())
      const how = code === null ? `ended by ${signal ?? 'a signal'}` : `exit ${String(code)}`
      const why = code === 0 ? '' : `${how}${said === '' ? '' : `: ${said}`}`
      resolve({ passed: code === 0, why })
    }
    child.on('close', settle)
    // What it has left behind may hold its output open: the gate has ended all the same.
    child.on('exit', (code, signal) => {
      setTimeout(() => {
        child.stdout.destroy()
        child.stderr.destroy()
        settle(code, signal)
      }, drainMs).unref()
    })
  })
}

const drainMs = 1000
const tailBytes = 256 * 1024
