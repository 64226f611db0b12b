// All that stands before a command when it is started: its limits outside, its cage, its limits inside. The one place where a start is wrapped.
import type { ChildProcess } from 'node:child_process'
import { Readable } from 'node:stream'
import type { Limits } from '../../core/resource-limits.ts'
import { refuseMissing, statusFd, type Cell, type Start } from './cage.ts'
import { holdTo, type Hold } from './limits.ts'

export interface EnclosureOptions extends Start {
  /** Puts it into its cage. */
  readonly cage?: (start: Start) => Cell
  /** How much of the machine it may take. */
  readonly limits?: Limits
}

export interface Enclosure extends Pick<Start, 'file' | 'args' | 'env'> {
  /** Besides the three that every program has. */
  readonly stdio: readonly 'pipe'[]
  readonly isCaged: boolean
  /** Whether all in it ends with its first process. */
  readonly endsWhole: boolean
  readonly hold: Pick<Hold, 'watch' | 'hear'> | undefined
  /** Whether the command has run: bubblewrap says how it ended, and nothing where it never began. */
  hasRun(child: ChildProcess): Promise<boolean>
  /** Once nothing of it is alive, or nothing was started. */
  leave(
    child?: Pick<ChildProcess, 'exitCode' | 'signalCode'>,
  ): Promise<{ came: readonly string[]; reached: readonly string[] }>
}

export function enclose(options: EnclosureOptions): Enclosure {
  const { cage, limits, env } = options
  if (cage !== undefined || limits !== undefined) refuseMissing(options.file, env)
  const name = `ralph-${process.pid}-${(holds += 1)}`
  const hold = limits === undefined ? undefined : holdTo(limits, { isCaged: cage !== undefined, name })
  const [first = '', ...rest] = [...(hold?.inner ?? []), options.file, ...options.args]
  const bare = { ...options, file: first, args: rest }
  let cell: Cell | undefined
  try {
    cell = cage?.(bare)
  } catch (error) {
    hold?.release()
    throw error
  }
  const within = cell ?? bare
  const [file = '', ...args] = [...(hold?.outer ?? []), within.file, ...within.args]
  return {
    file,
    args,
    env: within.env,
    stdio: cell === undefined ? [] : ['pipe'],
    isCaged: cell !== undefined,
    endsWhole: cell?.tells === true,
    hold,
    hasRun: async (child) => cell?.tells !== true || (await statusOf(child)).includes('"exit-code"'),
    async leave(child) {
      const came = (await cell?.leave()) ?? []
      const end = child === undefined ? undefined : { exitCode: child.exitCode, signal: child.signalCode }
      return { came, reached: hold?.release(end) ?? [] }
    },
  }
}

let holds = 0

/** All that was said there. */
async function statusOf(child: ChildProcess): Promise<string> {
  const status = child.stdio[statusFd]
  if (!(status instanceof Readable)) return ''
  let text = ''
  status.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  status.on('error', () => undefined)
  await new Promise((resolve) => status.once('close', resolve))
  return text
}
