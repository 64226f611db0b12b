// Starts short commands from a small shell of ralph's own: the fork of ralph itself, 80 MB, takes milliseconds each time, and holds up all else.
// Whatever it cannot do just so (another command is running, a strange environment, no such program) is done by `exec`.
import { spawn, type ChildProcess } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs'
import { constants as system } from 'node:os'
import { exec, type ExecOptions, type ExecResult } from './exec.ts'
import { faultCode } from './fault.ts'
import { ownEnv } from './on-path.ts'
import { isName, quoted } from '../../core/shell-word.ts'
import { keepScratch, tempBase } from './temp.ts'

/** As `exec`; without an environment, with any. */
export async function launch(
  file: string,
  args: readonly string[],
  options: LaunchOptions,
): Promise<ExecResult> {
  const line = lineOf(file, args, options)
  const result = line === undefined ? undefined : await shell?.run(line, options)
  return result ?? exec(file, args, { env: ownEnv(process.env, process.cwd()), ...options })
}

type LaunchOptions = Omit<ExecOptions, 'env'> & Partial<Pick<ExecOptions, 'env'>>

/** While `work` goes on; afterwards nothing of it is left. */
export async function withShell<T>(work: () => Promise<T>): Promise<T> {
  users += 1
  await keepScratch(true)
  try {
    return await work()
  } finally {
    users -= 1
    if (isUnused()) await shell?.close()
    // Somebody may have begun while it closed.
    if (isUnused()) await keepScratch(false)
  }
}

interface Shell {
  /** What its commands get where nothing else is said. */
  readonly env: NodeJS.ProcessEnv
  readonly isBusy: boolean
  /** Undefined: nothing was run. */
  run(line: string, options: LaunchOptions): Promise<ExecResult | undefined>
  close(): Promise<void>
}

let shell: Shell | undefined
let users = 0
const isUnused = (): boolean => users === 0

/** Undefined where the shell is not the one to run it. */
function lineOf(
  file: string,
  args: readonly string[],
  { cwd, env = shell?.env, input }: LaunchOptions,
): string | undefined {
  if (users === 0 || env === undefined) return undefined
  shell ??= openShell(env)
  if (shell === undefined || shell.isBusy || !existsSync(cwd)) return undefined
  const own = shell.env
  if (Object.keys(own).some((name) => env[name] === undefined)) return undefined
  // `cd` sets it: what git's helpers see is what ralph was started with.
  const others = Object.entries(env).filter(
    ([name, value]) => value !== undefined && (own[name] !== value || name === 'PWD'),
  )
  if (others.some(([name]) => !isName(name))) return undefined
  const words = [
    ...others.map(([name, value = '']) => `${name}=${quoted(value)}`),
    ...[file, ...args].map(quoted),
  ]
  const stdin = input === undefined ? '/dev/null' : '/proc/self/fd/3'
  return `cd ${quoted(cwd)} && ${words.join(' ')} <${stdin} >&4 2>&5 3<&- 4>&- 5>&-; echo $?\n`
}

function openShell(env: NodeJS.ProcessEnv): Shell | undefined {
  if (process.platform !== 'linux' || !existsSync('/proc/self/fd')) return undefined
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !/^GIT_(?:CONFIG|INDEX)_/.test(name)))
  if (!Object.keys(own).every(isName)) return undefined
  const files = openFiles(env)
  if (files === undefined) return undefined
  const [input] = files
  const [out, err] = [reader(files[1]), reader(files[2])]
  // A group of its own: see `exec`.
  const child = spawn('/bin/sh', [], {
    cwd: '/',
    env: own,
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore', ...files],
  })
  let ended: ((result: ExecResult | undefined) => void) | undefined
  let isClosing = false
  const report = (result: Pick<ExecResult, 'exitCode' | 'signal'>): void => {
    const [stdout, stderr] = [out.rest(), err.rest().toString('utf8')]
    ended?.({ stdout, stderr, timedOut: false, ...result })
  }
  let said = ''
  /** Bytes in the file of the input. */
  let given = 0
  child.stdout?.on('data', (chunk: Buffer) => {
    said += chunk.toString('latin1')
    if (!said.endsWith('\n')) return
    const code = Number(said)
    said = ''
    // Not found, or no program at all, or too many words: it never ran.
    if (code === 126 || code === 127) {
      err.rest()
      ended?.(undefined)
    } else report(endOf(code))
  })
  child.stdin?.on('error', () => undefined)
  const gone = new Promise<void>((resolve) => {
    const end = (): void => {
      if (shell === opened) shell = undefined
      report({ signal: 'SIGKILL' })
      for (const file of files) closeSync(file)
      resolve()
    }
    child.once('error', end)
    child.once('exit', end)
  })
  keepAlive(child, false)
  const opened: Shell = {
    env: own,
    get isBusy() {
      return ended !== undefined
    },
    run(line, { input: text, timeoutMs, signal }) {
      return new Promise((resolve) => {
        let timedOut = false
        const kill = (): void => killGroup(child)
        const timer = setTimeout(() => {
          timedOut = true
          kill()
        }, timeoutMs)
        signal?.addEventListener('abort', kill, { once: true })
        ended = (result) => {
          ended = undefined
          clearTimeout(timer)
          signal?.removeEventListener('abort', kill)
          if (isClosing) child.stdin?.end()
          else keepAlive(child, false)
          resolve(result === undefined ? undefined : { ...result, timedOut })
        }
        keepAlive(child, true)
        if (text !== undefined) {
          const bytes = Buffer.from(text)
          if (bytes.length < given) ftruncateSync(input)
          given = bytes.length
          for (let at = 0; at < bytes.length;) at += writeSync(input, bytes, at, bytes.length - at, at)
        }
        child.stdin?.write(line)
      })
    },
    close() {
      // Who comes now opens another one; a command of somebody else's that is in it still comes to its end.
      if (shell === opened) shell = undefined
      isClosing = true
      keepAlive(child, true)
      if (ended === undefined) child.stdin?.end()
      return gone
    },
  }
  return opened
}

/** For what the commands read and write: without a name, so that nothing stays behind. */
function openFiles(env: NodeJS.ProcessEnv): [number, number, number] | undefined {
  // O_TMPFILE, which Node does not name.
  const nameless = 0o20_000_000 | constants.O_DIRECTORY | constants.O_RDWR
  const open = (more: number): number => openSync(tempBase(env), nameless | more, 0o600)
  const files: number[] = []
  try {
    files.push(open(0), open(constants.O_APPEND), open(constants.O_APPEND))
    const [input = 0, out = 0, err = 0] = files
    return [input, out, err]
  } catch {
    for (const file of files) closeSync(file)
    return undefined
  }
}

/** What was written since the last time. Emptied now and then only: on a disk that takes as long as a short command. */
function reader(file: number): { rest(): Buffer } {
  let done = 0
  return {
    rest() {
      const bytes = Buffer.alloc(fstatSync(file).size - done)
      for (let at = 0; at < bytes.length;) {
        const read = readSync(file, bytes, at, bytes.length - at, done + at)
        if (read === 0) break
        at += read
      }
      done += bytes.length
      if (done > 1024 * 1024) {
        ftruncateSync(file)
        done = 0
      }
      return bytes
    },
  }
}

/** A shell that waits for work keeps nobody from ending. */
function keepAlive(child: ChildProcess, isWorking: boolean): void {
  const parts = [child, child.stdin, child.stdout] as unknown as { ref(): void; unref(): void }[]
  for (const part of parts)
    if (isWorking) part.ref()
    else part.unref()
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if (faultCode(error) !== 'ESRCH') throw error
  }
}

/** A shell says 128 and the signal's number; git itself goes up to 129. */
function endOf(code: number): Pick<ExecResult, 'exitCode' | 'signal'> {
  const signals = Object.entries(system.signals) as [NodeJS.Signals, number][]
  const signal = code > 129 ? signals.find(([, number]) => number === code - 128)?.[0] : undefined
  return signal === undefined ? { exitCode: code } : { signal }
}
