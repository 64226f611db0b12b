// A program to talk to without a repository: records what it was asked, answers with what the test gave it.
import { PassThrough, Writable } from 'node:stream'
import { loadConfig } from '../../src/config/load.ts'
import type { App, Control, Observe } from '../../src/ui/app.ts'
import { run } from '../../src/ui/cli/run.ts'
import type { Input, Io } from '../../src/ui/io.ts'

export interface Call {
  readonly name: string
  readonly request: unknown
}

export type Answers = Partial<Observe & Control>

/** Every function of `answers` is used as it is; any other one is a call the test did not expect. */
export function fakeApp(answers: Answers): { app: App; calls: Call[] } {
  const calls: Call[] = []
  const known: Answers = {
    settings: (flags) => loadConfig({ flags, env: { XDG_CONFIG_HOME: '/nonexistent' } }),
    recordDeaths: () => Promise.resolve(false),
    ...answers,
  }
  const both = new Proxy(known, {
    get: (target, name) => {
      const answer: unknown = Reflect.get(target, name)
      if (typeof name !== 'string' || name === 'then') return undefined
      return (request: unknown): unknown => {
        calls.push({ name, request })
        if (typeof answer !== 'function') throw new Error(`the command asked for ${name}`)
        return (answer as (request: unknown) => unknown)(request)
      }
    },
  })
  const { observe, control } = { observe: both as Observe, control: both as Control }
  return { app: { observe, control }, calls }
}

export class Sink extends Writable {
  text = ''
  isTTY = false
  columns: number | undefined = undefined
  rows: number | undefined = undefined
  override _write(chunk: Buffer | string, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
  readonly calls: readonly Call[]
}

export interface RunOptions {
  readonly answers?: Answers
  readonly env?: NodeJS.ProcessEnv
  readonly terminal?: boolean
  readonly size?: { readonly columns: number; readonly rows: number }
  readonly typed?: string
}

/** The whole command line in this process, with streams of its own. */
export async function ralph(argv: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const stdout = new Sink()
  const stderr = new Sink()
  const stdin: Input = Object.assign(new PassThrough(), { isTTY: options.terminal ?? false })
  stdout.isTTY = options.terminal ?? false
  stderr.isTTY = options.terminal ?? false
  stdout.columns = options.size?.columns
  stdout.rows = options.size?.rows
  if (options.typed !== undefined) (stdin as PassThrough).end(options.typed)
  const { app, calls } = fakeApp(options.answers ?? {})
  const io: Io = {
    env: { TERM: 'xterm', ...options.env },
    cwd: '/nowhere',
    stdin,
    stdout,
    stderr,
  }
  const code = await run(argv, { io, version: '1.2.3', loadApp: () => Promise.resolve(app) })
  return { code, out: stdout.text, err: stderr.text, calls }
}
