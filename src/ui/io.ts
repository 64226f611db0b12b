// The streams and the surroundings of one command, so that tests can bring their own.
import { fstatSync } from 'node:fs'
import { paintWith, type Paint } from './paint.ts'

export type { Paint } from './paint.ts'

export interface Output extends NodeJS.WritableStream {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  readonly fd?: number | undefined
  /** What waits to be read. */
  readonly writableLength?: number | undefined
}

export interface Input extends NodeJS.ReadableStream {
  readonly isTTY?: boolean | undefined
}

export interface Io {
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
}

/** For whoever is no terminal, whatever the surroundings say. */
export const plain: Paint = paintWith(false)

/** NO_COLOR beats FORCE_COLOR beats what the stream is. */
export function paintFor(stream: Output, env: NodeJS.ProcessEnv): Paint {
  if (env['NO_COLOR']) return plain
  const forced = env['FORCE_COLOR']
  if (forced !== undefined && forced !== '') return paintWith(forced !== '0' && forced !== 'false')
  return paintWith(isTerminal(stream) && env['TERM'] !== 'dumb')
}

/** As with 2>&1, or on one terminal: who reads one reads the other. */
export function isOnePlace({ stdout, stderr }: Pick<Io, 'stdout' | 'stderr'>): boolean {
  if (stdout === stderr) return true
  if (stdout.fd === undefined || stderr.fd === undefined) return false
  try {
    const [one, other] = [fstatSync(stdout.fd), fstatSync(stderr.fd)]
    return one.dev === other.dev && one.ino === other.ino
  } catch {
    // Closed: nobody reads it.
    return false
  }
}

export function isTerminal(stream: { readonly isTTY?: boolean | undefined }): boolean {
  return stream.isTTY === true
}
