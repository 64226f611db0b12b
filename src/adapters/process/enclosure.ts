// All that stands before a command when it is started: its limits outside, its cage, its limits inside. The one place where a start is wrapped.
import type { ChildProcess } from 'node:child_process'
import { openSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { Readable } from 'node:stream'
import { once } from '../../core/once.ts'
import type { Limits } from '../../core/resource-limits.ts'
import { filterFd, refuseMissing, statusFd, type Cell, type Start } from './cage.ts'
import { holdTo, type Hold } from './limits.ts'
import { readProc } from './table.ts'

export interface EnclosureOptions extends Start {
  /** Puts it into its cage. */
  readonly cage?: (start: Start) => Cell
  /** How much of the machine it may take. */
  readonly limits?: Limits
}

export interface Enclosure extends Pick<Start, 'file' | 'args' | 'env'> {
  /** Those of the arguments that make a cage; none where there is none. */
  readonly making: readonly string[]
  /** Besides the three that every program has. */
  readonly stdio: readonly ('pipe' | 'ignore' | number)[]
  readonly isCaged: boolean
  /** Whether all in it ends with its first process. */
  readonly endsWhole: boolean
  readonly hold: Pick<Hold, 'watch' | 'hear'> | undefined
  /** To be called at once: what its cage says of itself is told only once. */
  hear(child: ChildProcess): Heard
  /** Once nothing of it is alive, or nothing was started. */
  leave(
    child?: Pick<ChildProcess, 'exitCode' | 'signalCode'>,
  ): Promise<{ came: readonly string[]; reached: readonly string[] }>
}

export interface Heard {
  /** Whether the command has run: bubblewrap says how it ended, and nothing where it never began. */
  hasRun(): Promise<boolean>
  /** The first process in the cage, as it is numbered outside: all the others end before it. */
  readonly holder: number | undefined
}

export function enclose(options: EnclosureOptions): Enclosure {
  const { cage, limits, env } = options
  if (cage !== undefined || limits !== undefined) refuseMissing(options.file, env)
  const name = `ralph-${process.pid}-${(holds += 1)}`
  const folders = [options.cwd, env['TMPDIR'] ?? tmpdir(), env['HOME'] ?? ''].filter((path) => path !== '')
  const hold =
    limits === undefined ? undefined : holdTo(limits, { isCaged: cage !== undefined, name, folders })
  const [first = '', ...rest] = [...(hold?.inner ?? []), options.file, ...options.args]
  const bare = { ...options, file: first, args: rest, memoryBytes: limits?.memoryBytes }
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
    making: cell?.making ?? [],
    env: within.env,
    stdio:
      cell === undefined
        ? coveredFrom(statusFd)
        : ['pipe', cell.filter ?? 'ignore', ...coveredFrom(filterFd + 1)],
    isCaged: cell !== undefined,
    endsWhole: cell?.tells === true,
    hold,
    hear: (child) =>
      cell?.tells === true ? statusOf(child) : { hasRun: () => Promise.resolve(true), holder: undefined },
    async leave(child) {
      const came = (await cell?.leave()) ?? []
      const end = child === undefined ? undefined : { exitCode: child.exitCode, signal: child.signalCode }
      return { came, reached: hold?.release(end) ?? [] }
    },
  }
}

let holds = 0

/**
 * Files that ralph's own caller left open for it (`exec 200< ~`, to hold a lock) would lead out of every cage. Node keeps them from a child
 * only up to the first gap above 15; here nothing is in their place.
 */
export function coveredFrom(first: number): (number | 'ignore')[] {
  const left = process.platform === 'linux' ? leftOpen().filter((fd) => fd >= first) : []
  const last = Math.max(first - 1, ...left)
  return Array.from({ length: last + 1 - first }, (_, at) =>
    left.includes(first + at) ? nothing() : 'ignore',
  )
}

let nullFile: number | undefined
function nothing(): number {
  return (nullFile ??= openSync('/dev/null', 'r+'))
}

/** Once: all that Node opens itself closes by itself in a child. */
const leftOpen = once((): readonly number[] => {
  const closes = 0o2_000_000
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((fd) => {
      const flags = /^flags:\s*(\d+)/m.exec(readProc(process.pid, `fdinfo/${fd}`) ?? '')?.[1]
      return flags !== undefined && (Number.parseInt(flags, 8) & closes) === 0
    })
})

export function statusOf(child: ChildProcess): Heard {
  const status = child.stdio[statusFd]
  let text = ''
  let whole = Promise.resolve()
  if (status instanceof Readable) {
    status.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
    })
    status.on('error', () => undefined)
    whole = new Promise((resolve) => status.once('close', resolve))
  }
  return {
    async hasRun() {
      await whole
      return text.includes('"exit-code"')
    },
    get holder() {
      const pid = /"child-pid": (\d+)/.exec(text)?.[1]
      return pid === undefined ? undefined : Number(pid)
    },
  }
}
