// The operating system's table of processes: who is alive, since when, whose child, and which of them carry a run's marker.
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { faultCode } from './fault.ts'

export interface ProcessEntry {
  readonly pid: number
  readonly parent: number
  readonly group: number
  /** As the OS tells it: a pid alone can be reused. */
  readonly started: string
  readonly cpuMs: number
}

/** Variables that every process of a run inherits; they find what left its process group. */
export type Marker = Readonly<Record<string, string>>

/** Everything alive; a zombie is dead. Where a birth is named, those that are older may be left out. */
export function processTable(since?: Birth): ProcessEntry[] {
  return process.platform === 'linux' ? linuxTable(since) : psTable(runPs(['-axo', `${psColumns},command=`]))
}

/** When a process began, counted in processes: whatever it has started since then has a higher number, until the numbers begin anew. */
export interface Birth {
  readonly pid: number
  readonly forks: number
  /** As the OS tells it; 0 where it does not. */
  readonly started: number
}

/** Right after its start. */
export function birthOf(pid: number): Birth {
  if (process.platform !== 'linux') return { pid, forks: 0, started: 0 }
  return { pid, forks: forksSoFar(), started: Number(linuxEntry(pid)?.started ?? 0) }
}

/** Those of the table whose environment carries every variable of the marker. A process of another user cannot be read and is left out. */
export function withMarker(table: readonly ProcessEntry[], marker: Marker): ProcessEntry[] {
  const wanted = Object.entries(marker).map(([name, value]) => `${name}=${value}`)
  // Without a marker nobody is ours; `every` would say that all are.
  if (wanted.length === 0) return []
  if (process.platform === 'linux') {
    // Children of 2 are the kernel's own threads: most of a quiet machine's processes.
    return table.filter(({ pid, parent }) => {
      if (parent === 2) return false
      const environment = readProc(pid, 'environ')
      return environment !== undefined && hasAll(environment.split('\0'), wanted)
    })
  }
  const marked = new Set(markedInPs(runPs(['-axEww', '-o', 'pid=,command=']), wanted))
  return table.filter(({ pid }) => marked.has(pid))
}

/** Start time of a living process, or empty: with the pid it is an identity that outlives ralph. */
export function processIdentity(pid: number): string {
  if (process.platform === 'linux') return linuxEntry(pid)?.started ?? ''
  if (process.platform === 'win32') return answers(pid) ? 'unknown' : ''
  return psTable(runPs(['-o', `${psColumns},command=`, '-p', String(pid)]))[0]?.started ?? ''
}

export function isAlive(pid: number, started: string): boolean {
  return started !== '' && processIdentity(pid) === started
}

/** Waits until it has ended, and no longer than that. */
export async function gone(pid: number, atMostMs: number): Promise<void> {
  const [born, until] = [processIdentity(pid), performance.now() + atMostMs]
  while (isAlive(pid, born) && performance.now() < until) await delay(1)
}

/** Changes with every start of the machine; a pid recorded under another one is dead. */
export function bootId(): string {
  if (process.platform === 'linux') return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  if (process.platform === 'win32') return 'unknown'
  return execFileSync('sysctl', ['-n', 'kern.boottime'], { encoding: 'utf8' }).trim()
}

/** Windows tells no start time without a program of its own; alive or not must do there. */
function answers(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    if (faultCode(error) === 'ESRCH') return false
    if (faultCode(error) === 'EPERM') return true
    throw error
  }
}

function hasAll(have: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((entry) => have.includes(entry))
}

// --- Linux ------------------------------------------------------------------------------------------------------

function linuxTable(since: Birth | undefined): ProcessEntry[] {
  const first = since === undefined ? 0 : firstSince(since)
  const startedAt = since?.started ?? 0
  return (
    readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid >= first)
      .map((pid) => linuxEntry(pid))
      .filter((entry) => entry !== undefined)
      // Where numbers have begun anew: to read the environment of each of them takes longer than all else.
      .filter(({ started }) => Number(started) >= startedAt)
  )
}

/** The lowest number that a younger process can have; 0 where they may have begun anew. */
function firstSince({ pid, forks }: Birth): number {
  const most = Number(readProcFile('/proc/sys/kernel/pid_max'))
  // Twice, and some more: a start that failed uses up a number, too.
  const last = pid + 2 * (forksSoFar() - forks) + 1000
  return forks > 0 && last < most ? pid : 0
}

/** Threads, too; 0 where that is not told. */
function forksSoFar(): number {
  return Number(/^processes (\d+)$/m.exec(readProcFile('/proc/stat'))?.[1] ?? 0)
}

function readProcFile(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch (error) {
    if (isHidden(error)) return ''
    throw error
  }
}

function linuxEntry(pid: number): ProcessEntry | undefined {
  const stat = statLine(pid)
  if (stat === undefined) return undefined
  // The name in brackets may hold spaces and brackets itself; fields count from behind it (state is field 3 of proc(5)).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const state = fields[0]
  if (state === undefined || state === 'Z' || state === 'X') return undefined
  return {
    pid,
    parent: Number(fields[1]),
    group: Number(fields[2]),
    started: fields[19] ?? '',
    cpuMs: (Number(fields[11]) + Number(fields[12])) * clockTickMs,
  }
}

/** As `readProc`, for the one that is read of every process: half the time. */
function statLine(pid: number): string | undefined {
  let file: number | undefined
  try {
    file = openSync(`/proc/${pid}/stat`, 'r')
    return line.toString('latin1', 0, readSync(file, line, 0, line.length, 0))
  } catch (error) {
    if (isHidden(error)) return undefined
    throw error
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** 52 numbers and a name. */
const line = Buffer.allocUnsafe(2048)

/** USER_HZ is 100 on every Linux that Node runs on. */
const clockTickMs = 10

/** `undefined`: gone, or not ours to read. */
export function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch (error) {
    if (isHidden(error)) return undefined
    throw error
  }
}

function isHidden(error: unknown): boolean {
  return ['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(faultCode(error))
}

// --- macOS ------------------------------------------------------------------------------------------------------

const psColumns = 'pid=,ppid=,pgid=,state=,time=,lstart='

export function psTable(output: string): ProcessEntry[] {
  const line =
    /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(?:(\d+)-)?(?:(\d+):)?(\d+):([\d.]+)\s+(\w{3}\s+\w{3}\s+\d+\s+[\d:]{8}\s+\d{4})/
  const entries: ProcessEntry[] = []
  for (const text of output.split('\n')) {
    const match = line.exec(text)
    if (match === null || (match[4] ?? '').startsWith('Z')) continue
    const [days, hours, minutes, seconds] = match.slice(5, 9).map((part) => Number(part ?? 0))
    const cpuMs = (((days ?? 0) * 24 + (hours ?? 0)) * 60 + (minutes ?? 0)) * 60_000 + (seconds ?? 0) * 1000
    entries.push({
      pid: Number(match[1]),
      parent: Number(match[2]),
      group: Number(match[3]),
      started: match[9] ?? '',
      cpuMs,
    })
  }
  return entries
}

/** `ps -E` appends the environment to the command, words apart by blanks. */
export function markedInPs(output: string, wanted: readonly string[]): number[] {
  return output
    .split('\n')
    .map((text) => text.trim().split(/\s+/))
    .filter((words) => hasAll(words, wanted))
    .map((words) => Number(words[0]))
}

function runPs(args: readonly string[]): string {
  try {
    return execFileSync('ps', args, {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C' },
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  } catch (error) {
    // `ps -p` exits 1 when there is no such process.
    if (error instanceof Error && 'status' in error && error.status === 1) return ''
    throw error
  }
}
