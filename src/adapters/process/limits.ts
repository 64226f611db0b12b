// How much an agent or a gate may take of the machine: a control group where one can be made, the limits of its shell, and a look now and then for the rest.
import { mkdirSync, readFileSync, readdirSync, rmdirSync, statfsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sized, type Limits } from '../../core/resource-limits.ts'
import { findAlive, type Quarry } from './reap.ts'
import { readProc } from './table.ts'

type Kind = 'memory' | 'processes' | 'file size' | 'disk'

export interface Hold {
  /** What stands before everything else. */
  readonly outer: readonly string[]
  /** What stands before the command, inside its cage. */
  readonly inner: readonly string[]
  /** Looks now and then for what nothing else holds; returns how to stop. */
  watch(quarry: Quarry, onReached: () => void): () => void
  /** What it complains of may be a limit. */
  hear(complaint: Buffer): void
  /** Once nothing of it is alive: what was reached, in words. */
  release(end?: {
    readonly exitCode: number | null
    readonly signal: NodeJS.Signals | null
  }): readonly string[]
}

interface HowToHold {
  readonly isCaged: boolean
  readonly name: string
  /** On the disks that it may write. */
  readonly folders: readonly string[]
}

export function holdTo(limits: Limits, { isCaged, name, folders }: HowToHold): Hold {
  const group = openControlGroup(limits, name)
  const lost = limits.diskBytes === undefined ? (): number => 0 : measureDisks(folders)
  const reached = new Set<Kind>()
  const heard = new Set<Kind>()
  return {
    outer: group === undefined ? [] : ['/bin/sh', '-c', joinGroup, 'sh', ...group.files, ''],
    inner: ['/bin/sh', '-c', shellLimits(limits, isCaged), 'sh'],
    watch(quarry, onReached) {
      const { memoryBytes, processes, diskBytes } = limits
      const looksAtAll = memoryBytes !== undefined || processes !== undefined
      const look = (): void => {
        const used = looksAtAll ? useOf(quarry) : { memory: 0, processes: 0 }
        if (used.memory > (memoryBytes ?? Infinity)) reached.add('memory')
        if (used.processes > (processes ?? Infinity)) reached.add('processes')
        if (lost() > (diskBytes ?? Infinity)) reached.add('disk')
        if (reached.size > 0) onReached()
      }
      if (!looksAtAll && diskBytes === undefined) return () => undefined
      const timer = setInterval(look, lookMs)
      return () => clearInterval(timer)
    },
    hear(chunk) {
      const text = chunk.toString('latin1')
      for (const [kind, words, isSet] of complaints(limits)) if (isSet && words.test(text)) heard.add(kind)
    },
    release(end) {
      for (const kind of group?.close() ?? []) reached.add(kind)
      if (limits.fileBytes !== undefined && (end?.signal === 'SIGXFSZ' || end?.exitCode === 128 + 25))
        reached.add('file size')
      // One that ended well has found another way.
      if (end?.exitCode !== 0) for (const kind of heard) reached.add(kind)
      return [...reached].map((kind) => wordsOf(kind, limits))
    },
  }
}

const lookMs = 200

/** How programs say what the limits of a shell come to. */
function complaints(limits: Limits): readonly (readonly [Kind, RegExp, boolean])[] {
  return [
    ['file size', /File too large|EFBIG|File size limit exceeded/i, limits.fileBytes !== undefined],
    [
      'memory',
      /Cannot allocate memory|ENOMEM|MemoryError|bad_alloc|out of memory|allocation failed/i,
      limits.memoryBytes !== undefined,
    ],
    [
      'processes',
      /Cannot fork|fork: retry|Resource temporarily unavailable|EAGAIN/i,
      limits.processes !== undefined,
    ],
  ]
}

/** Each file up to the empty word takes the process in. */
const joinGroup = 'while [ -n "$1" ]; do echo $$ > "$1"; shift; done 2>/dev/null; shift; exec "$@"'

/** Where one is not possible (a lower one holds already, another system) the next still is. */
function shellLimits({ memoryBytes, processes, fileBytes }: Limits, isCaged: boolean): string {
  const all = [
    ...(fileBytes === undefined ? [] : [`ulimit -f ${Math.ceil(fileBytes / 512)}`]),
    ...(memoryBytes === undefined ? [] : [`ulimit -d ${Math.ceil(memoryBytes / 1024)}`]),
    // bash and dash have different letters for it. It counts all of the user's, but in a cage only what is in there; root is not bound.
    ...(processes === undefined ? [] : [nproc(processes + (isCaged ? 2 : threadsOfUser()))]),
    'exec "$@"',
  ]
  return all.join('\n')
}

function nproc(most: number): string {
  return `(ulimit -u ${most}) 2>/dev/null && ulimit -u ${most} || ulimit -p ${most} 2>/dev/null`
}

function threadsOfUser(): number {
  const uid = process.getuid?.() ?? 0
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0)
    .map((pid) => readProc(pid, 'status') ?? '')
    .filter((status) => new RegExp(`^Uid:\\s+${uid}\\s`, 'm').test(status))
    .reduce((sum, status) => sum + numberIn(status, 'Threads'), 0)
}

function useOf(quarry: Quarry): { memory: number; processes: number } {
  const used = { memory: 0, processes: 0 }
  let [shared, inFiles] = [0, 0]
  for (const { pid, parent } of findAlive(quarry)) {
    // Those that hold a cage are not the agent's.
    if (quarry.isCaged === true && (pid === quarry.group || parent === quarry.group)) continue
    const status = readProc(pid, 'status') ?? ''
    used.processes += numberIn(status, 'Threads')
    used.memory += numberIn(status, 'RssAnon') * 1024
    shared += numberIn(status, 'RssShmem') * 1024
    inFiles ||= quarry.isCaged === true ? filesInMemory(pid) : 0
  }
  return { ...used, memory: used.memory + Math.max(shared, inFiles) }
}

/** Of a cage's own /dev/shm: they are nobody's memory while nobody maps them. */
function filesInMemory(pid: number): number {
  try {
    const { blocks, bfree, bsize } = statfsSync(`/proc/${pid}/root/dev/shm`)
    return (blocks - bfree) * bsize
  } catch {
    return 0
  }
}

function numberIn(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
}

/**
 * What the one of these disks that has lost most has lost since now, by whomever: no limit of the kernel's counts the files of one program. A file
 * counts for 4 KB at least, so that empty ones do not use up all that a disk can have.
 */
function measureDisks(folders: readonly string[]): () => number {
  const before = folders.map((folder) => ({ folder, free: freeOf(folder) }))
  return () => Math.max(0, ...before.map(({ folder, free }) => lostSince(free, freeOf(folder))))
}

interface Free {
  readonly bytes: number
  readonly files: number
}

function lostSince(before: Free | undefined, now: Free | undefined): number {
  if (before === undefined || now === undefined) return 0
  return Math.max(before.bytes - now.bytes, (before.files - now.files) * 4096)
}

/** Undefined where it is not there, or gone meanwhile. */
function freeOf(folder: string): Free | undefined {
  try {
    const { bfree, bsize, ffree } = statfsSync(folder)
    return { bytes: bfree * bsize, files: ffree }
  } catch {
    return undefined
  }
}

function wordsOf(kind: Kind, { memoryBytes, processes, fileBytes, diskBytes }: Limits): string {
  if (kind === 'memory') return `--max-memory ${sized(memoryBytes ?? 0)}`
  if (kind === 'processes') return `--max-processes ${processes ?? 0}`
  if (kind === 'disk') return `--max-disk ${sized(diskBytes ?? 0)}`
  return `--max-file-size ${sized(fileBytes ?? 0)}`
}

// --- control groups ---------------------------------------------------------------------------------------------

interface ControlGroup {
  /** Where a process writes its number to belong to it. */
  readonly files: readonly string[]
  /** What was reached. */
  close(): readonly Kind[]
}

/** One of version 2 for both, or one of version 1 for the processes; undefined where none can be made here. */
function openControlGroup({ memoryBytes, processes }: Limits, name: string): ControlGroup | undefined {
  const own = readText('/proc/self/cgroup').split('\n')
  const mounts = readText('/proc/self/mounts').split('\n')
  const wanted = [
    ...(memoryBytes === undefined ? [] : [['memory.max', String(memoryBytes)] as const]),
    ...(processes === undefined ? [] : [['pids.max', String(processes)] as const]),
  ]
  if (wanted.length === 0) return undefined
  const place = (line: RegExp, type: RegExp): string | undefined => {
    const path = own.map((text) => line.exec(text)?.[1]).find((found) => found !== undefined)
    const mount = mounts.map((text) => type.exec(text)?.[1]).find((found) => found !== undefined)
    return path === undefined || mount === undefined ? undefined : join(mount, path)
  }
  const second = place(/^0::(.*)$/, /^\S+ (\S+) cgroup2 /)
  const first = place(/^\d+:pids:(.*)$/, /^\S+ (\S+) cgroup \S*\bpids\b/)
  // A group with processes of its own can have none below it that is limited; one beside it can be.
  const bases = second === undefined ? [] : [dirname(second), second]
  for (const base of bases) {
    const group = tryGroup(join(base, name), wanted)
    if (group !== undefined) return group
  }
  const pids = wanted.filter(([file]) => file === 'pids.max')
  return first === undefined || pids.length === 0 ? undefined : tryGroup(join(first, name), pids)
}

function tryGroup(folder: string, limits: readonly (readonly [string, string])[]): ControlGroup | undefined {
  try {
    mkdirSync(folder)
  } catch {
    return undefined
  }
  try {
    // A controller that is not there has no such file, and none can be made.
    for (const [file, value] of limits) writeFileSync(join(folder, file), value, { flag: 'r+' })
  } catch {
    remove(folder)
    return undefined
  }
  return {
    files: [join(folder, 'cgroup.procs')],
    close() {
      const refused = Number(/^max (\d+)/m.exec(readText(join(folder, 'pids.events')))?.[1] ?? 0)
      const killed = Number(/^oom_kill (\d+)/m.exec(readText(join(folder, 'memory.events')))?.[1] ?? 0)
      remove(folder)
      return [...(refused > 0 ? ['processes' as const] : []), ...(killed > 0 ? ['memory' as const] : [])]
    },
  }
}

function remove(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // Somebody is in it still: it is empty of limits that matter to others, and goes with the next start of the machine.
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
