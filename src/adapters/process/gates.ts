// Runs the user's gates: each by `sh -c` in the work tree, and nothing of it alive afterwards.
import type { GateResult, Gates } from '../../ports.ts'
import { faultMessage } from './fault.ts'
import { startGroup } from './group.ts'
import { boundedTail } from './tail.ts'

export interface ShellGatesOptions {
  readonly cwd: string
  /** The user's environment, ralph's own if absent; what `check` is given comes on top. */
  readonly env?: NodeJS.ProcessEnv
  /** Without it a gate may take as long as it takes. */
  readonly timeoutMs?: number
  readonly graceMs?: number
}

export function shellGates(options: ShellGatesOptions): Gates {
  return {
    async check(command, env, stop) {
      const began = performance.now()
      const tail = boundedTail(tailBytes)
      const result = (rest: Omit<GateResult, 'outputTail' | 'durationMs'>, note = ''): GateResult => ({
        ...rest,
        outputTail: `${tail.text()}${note}`,
        durationMs: Math.round(performance.now() - began),
      })
      if (stop.aborted) return result({ outcome: 'stopped' })
      const marker = env['RALPH_RUN_ID'] === undefined ? {} : { RALPH_RUN_ID: env['RALPH_RUN_ID'] }
      let group
      try {
        group = await startGroup({
          file: 'sh',
          args: ['-c', command],
          cwd: options.cwd,
          env: { ...(options.env ?? process.env), ...env },
          input: '',
          stdout: 'pipe',
          marker,
          timeoutMs: options.timeoutMs ?? Number.POSITIVE_INFINITY,
          idleTimeoutMs: 0,
          graceMs: options.graceMs ?? 2000,
          onOutput: (chunk) => tail.feed(chunk),
          onErrorOutput: (chunk) => tail.feed(chunk),
        })
      } catch (error) {
        return result({ outcome: 'could_not_run' }, faultMessage(error))
      }
      const running = group
      const onStop = (): void => running.end('stopped')
      stop.addEventListener('abort', onStop, { once: true })
      if (stop.aborted) onStop()
      const ended = await running.ended
      stop.removeEventListener('abort', onStop)
      if (ended.cause === 'stopped') return result({ outcome: 'stopped' })
      if (ended.cause === 'timeout') {
        const minutes = Number(((options.timeoutMs ?? 0) / 60_000).toFixed(2))
        return result(
          { outcome: 'failed' },
          `\nended by ralph after ${minutes} ${minutes === 1 ? 'minute' : 'minutes'} (--iteration-timeout)`,
        )
      }
      if (ended.exitCode === undefined)
        return result({ outcome: 'failed' }, `\nended by ${ended.signal ?? 'a signal'}`)
      // What a shell answers when there is no such program, or none that may be run: the gate has judged nothing.
      const couldNotRun = ended.exitCode === 126 || ended.exitCode === 127
      return result({
        outcome: couldNotRun ? 'could_not_run' : ended.exitCode === 0 ? 'passed' : 'failed',
        exitCode: ended.exitCode,
      })
    },
  }
}

const tailBytes = 4096
