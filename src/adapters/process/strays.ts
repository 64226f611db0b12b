// Finds what of a run neither marker nor parent tells any more: by the stream that it holds, by the folder that it stands in. Linux only.
import { readdirSync, readlinkSync } from 'node:fs'
import { processTable, readProc, type ProcessEntry } from './table.ts'

/** Those that have one of these open, each named as /proc names it. */
export function holdersOf(streams: readonly string[]): ProcessEntry[] {
  if (streams.length === 0) return []
  return others().filter(({ pid }) => openOf(pid).some((name) => streams.includes(name)))
}

/** Orphans in the folder that are younger than that start and whose environment was cleared. They need not be the run's: only to be told. */
export function strangersIn(
  folder: string,
  started: string,
  table?: readonly ProcessEntry[],
): ProcessEntry[] {
  if (process.platform !== 'linux' || started === '') return []
  return others(table).filter((entry) => {
    if (Number(entry.started) < Number(started) || !isReaper(entry.parent)) return false
    const cwd = linkOf(`/proc/${entry.pid}/cwd`)
    return (cwd === folder || cwd.startsWith(`${folder}/`)) && hasClearedEnvironment(entry.pid)
  })
}

/** Orphans of this user, younger than that start, that let nobody look into them: one of them may hold a stream unseen. */
export function hiddenSince(started: string): ProcessEntry[] {
  if (process.platform !== 'linux' || started === '') return []
  return others().filter(
    ({ pid, parent, started: own }) =>
      Number(own) >= Number(started) &&
      isReaper(parent) &&
      readProc(pid, 'environ') === undefined &&
      new RegExp(`^Uid:\\s+${process.getuid?.()}\\s`, 'm').test(readProc(pid, 'status') ?? ''),
  )
}

/** Without the kernel's own threads. */
function others(table: readonly ProcessEntry[] = processTable()): ProcessEntry[] {
  return table.filter(({ pid, parent }) => pid !== process.pid && parent !== 2)
}

function isReaper(pid: number): boolean {
  return pid === 1 || readProc(pid, 'comm')?.trim() === 'systemd'
}

function hasClearedEnvironment(pid: number): boolean {
  const environment = readProc(pid, 'environ')
  return environment !== undefined && !/(?:^|\0)HOME=/.test(environment)
}

function openOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`))
  } catch {
    // Gone, or another user's.
    return []
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
