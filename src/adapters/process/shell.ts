// Runs one shell line of the user's that is told something: its streams are files and pipes, as a gate's are.
import { faultMessage } from './fault.ts'
import { startGroup } from './group.ts'
import { boundedTail } from './tail.ts'

export interface ShellOptions {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly input: string
  readonly timeoutMs: number
}

/** Never throws: empty when it went well, else how it failed and what it said on stderr. */
export async function tellShell(
  command: string,
  { timeoutMs, ...options }: ShellOptions,
): Promise<{ readonly failed: string; readonly said: string }> {
  const tail = boundedTail(tailBytes)
  let group
  try {
    group = await startGroup({
      ...options,
      file: '/bin/sh',
      args: ['-c', command],
      stdout: 'pipe',
      marker: {},
      mayLeave: true,
      timeoutMs,
      idleTimeoutMs: 0,
      graceMs: 0,
      onOutput: () => undefined,
      onErrorOutput: (chunk) => tail.feed(chunk),
    })
  } catch (error) {
    return { failed: 'it could not be run', said: faultMessage(error) }
  }
  const { cause, exitCode, signal } = await group.ended
  const failed =
    cause === 'timeout'
      ? `took longer than ${timeoutMs / 1000} s`
      : exitCode === undefined
        ? `ended by ${signal ?? 'a signal'}`
        : exitCode === 0
          ? ''
          : `exit code ${exitCode}`
  return { failed, said: tail.text().trim() }
}

const tailBytes = 4096
