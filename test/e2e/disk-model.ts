// A disk as a power cut may leave it: what each call wrote, and which of it a sync had made durable by then.
//
// The rules are those of ext4 with its defaults, at its least helpful:
// - Names (create, link, rename, remove, make a folder) and truncations become durable together and in order, with the next sync of
//   anything, or at any time before. git itself counts on that: it never syncs a folder.
// - Bytes become durable by a sync of their own file; until then it is as long as at its last sync, so a new file is empty.
// - A file that replaces another by a rename, or that was emptied and written anew, is never found empty: its bytes go out before its
//   name (`auto_da_alloc`). git counts on that, too: it syncs neither HEAD nor an index.
// - git's batch mode writes the bytes of each object out (`sync_file_range`) and syncs one other file (`bulk_fsync_…`) for all of them.
//   As its documentation says of `core.fsyncMethod=batch`, that sync counts for them all.
import { createHash } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Call } from './disk-trace.ts'

interface File {
  /** When it was written last: files are made in this order, for ralph goes by their times. */
  changed: number
  readonly kind: 'file' | 'link'
  mode: number
  bytes: Buffer
  /** As of its last sync. */
  synced: Buffer
  /** How short it has been since. */
  shortest: number
  isWrittenOut: boolean
  /** Its bytes are durable with the names. */
  isReplacement: boolean
}

interface Folder {
  readonly kind: 'folder'
  names: Map<string, Entry>
  synced: Map<string, Entry>
}

type Entry = File | Folder

/** A disk that may be found, as path and content. */
export type Image = ReadonlyMap<string, ImageEntry>

interface ImageEntry {
  readonly kind: Entry['kind']
  readonly mode: number
  readonly bytes: Buffer
  readonly changed: number
}

export interface Cut {
  /** Which sync, from 1, before or after it, and what was there of what it had not reached. */
  readonly name: string
  readonly image: Image
  /** Which kinds of files were written and are not as they were: gone, back, or cut off. */
  readonly lost: readonly string[]
}

/** What is found: names and bytes as synced, what was under way torn in half, names that are ahead of their bytes, everything. */
const kinds = ['synced', 'torn', 'names only', 'names and half', 'all'] as const

/** Every image that a cut before or after a sync may leave, each once. */
export function cutsOf(
  root: string,
  before: Image,
  calls: readonly Call[],
): { cuts: Cut[]; syncs: number; last: Image } {
  const disk = new Disk(root, before)
  const seen = new Set<string>()
  const cuts: Cut[] = []
  let syncs = 0
  const look = (when: string): void => {
    const whole = disk.image('all')
    for (const kind of kinds) {
      const image = disk.image(kind)
      const mark = markOf(image)
      if (seen.has(mark)) continue
      seen.add(mark)
      cuts.push({ name: `${when}: ${kind}`, image, lost: lostIn(image, whole) })
    }
  }
  // Calls of several threads overlap: what changes while a sync runs may be too late for it.
  const steps = calls.flatMap((call) => {
    const path = disk.syncedBy(call)
    if (path === undefined) return [{ at: call.ended, run: () => disk.perform(call) }]
    syncs += 1
    const name = `sync ${syncs}, of ${path || 'the root'}`
    let done = (): void => undefined
    const begin = (): void => {
      look(`before ${name}`)
      done = disk.beginSync(path)
    }
    const end = (): void => {
      done()
      look(`after ${name}`)
    }
    return [
      { at: call.began, run: begin },
      { at: call.ended + 0.5, run: end },
    ]
  })
  for (const { run } of steps.toSorted((one, other) => one.at - other.at)) run()
  look('at the end')
  return { cuts, syncs, last: disk.image('all') }
}

class Disk {
  readonly #root: string
  readonly #top: Folder = { kind: 'folder', names: new Map(), synced: new Map() }
  readonly #open = new Map<string, { readonly file: File; at: number; readonly appends: boolean }>()
  readonly #paths = new Map<string, string>()
  #clock = 0
  #named = 0

  constructor(root: string, before: Image) {
    this.#root = root
    for (const [path, { kind, mode, bytes }] of before) {
      const entry: Entry =
        kind === 'folder'
          ? { kind, names: new Map(), synced: new Map() }
          : {
              kind,
              mode,
              bytes,
              changed: 0,
              synced: bytes,
              shortest: bytes.length,
              isWrittenOut: false,
              isReplacement: false,
            }
      this.#put(path, entry)
    }
    this.beginSync('')()
  }

  /** From the root; undefined where it is no sync, or one of something else. */
  syncedBy({ name, args: [first = ''] }: Call): string | undefined {
    return name === 'fsync' || name === 'fdatasync' ? this.#inside(pathOf(first)) : undefined
  }

  /** What is returned makes durable what is there now. */
  beginSync(path: string): () => void {
    const file = this.#file(path)
    const isBulk = path.includes('/bulk_fsync_')
    const all = [...this.#files()]
    const synced = all.filter((each) => each === file || each.isReplacement || (isBulk && each.isWrittenOut))
    const bytes = synced.map((each) => [each, each.bytes] as const)
    const shortened = all.filter((each) => !synced.includes(each) && each.shortest < each.synced.length)
    const lengths = shortened.map((each) => [each, each.shortest] as const)
    const names = [...this.#folders()].map((folder) => [folder, new Map(folder.names)] as const)
    this.#clock += 1
    const begun = this.#clock
    return () => {
      // Another that began later was done first.
      const isLate = begun < this.#named
      for (const [each, then] of bytes) {
        if (isLate && each !== file) continue
        each.synced = then
        each.shortest = Math.min(then.length, each.bytes.length)
        if (each.bytes === then) each.isReplacement = false
      }
      if (isLate) return
      this.#named = begun
      for (const [folder, then] of names) folder.synced = then
      for (const [each, length] of lengths) each.synced = each.synced.subarray(0, length)
    }
  }

  perform({ name, args, result, process }: Call): void {
    const [first = '', second = '', third = '', fourth = ''] = args
    switch (name) {
      case 'open':
      case 'creat':
      case 'openat': {
        const flags = name === 'openat' ? third : name === 'creat' ? 'O_CREAT|O_TRUNC' : second
        const mode = Number.parseInt((name === 'openat' ? fourth : third) || '0', 8)
        this.#opened(process, result, flags, mode)
        return
      }
      case 'write':
      case 'pwrite64':
        this.#write(
          process,
          first,
          textOf(second),
          Number(result),
          name === 'write' ? undefined : Number(fourth),
        )
        return
      case 'writev': {
        const parts = args.filter((arg) => arg.includes('iov_base=')).map((arg) => textOf(arg))
        this.#write(process, first, parts.join(''), Number(result))
        return
      }
      case 'lseek': {
        const open = this.#open.get(`${process} ${fdOf(first)}`)
        if (open !== undefined) open.at = Number(result)
        return
      }
      case 'copy_file_range': {
        const from = this.#fileOf(pathOf(first))
        const to = pathOf(third)
        if (this.#fileOf(to) === undefined) return undefined
        const at =
          this.#open.get(`${process} from ${fdOf(first)}`)?.at ?? Number(/\d+/.exec(second)?.[0] ?? 0)
        if (from === undefined) throw new Error(`a copy from elsewhere to ${to}`)
        this.#write(process, third, from.bytes.toString('latin1', at, at + Number(result)), Number(result))
        return
      }
      case 'ioctl':
        if (second.startsWith('FICLONE') || second.startsWith('BTRFS_IOC_CLONE')) {
          const from = this.#fileOf(pathOf(third))
          const to = this.#fileOf(pathOf(first))
          if (to !== undefined && from !== undefined) to.bytes = from.bytes
        }
        return
      case 'truncate':
      case 'ftruncate': {
        const file = this.#fileOf(name === 'truncate' ? this.#path(process, textOf(first)) : pathOf(first))
        if (file !== undefined) cutTo(file, Number(second))
        return
      }
      case 'chmod':
      case 'fchmod': {
        const file = this.#fileOf(name === 'chmod' ? this.#path(process, textOf(first)) : pathOf(first))
        if (file !== undefined) file.mode = Number.parseInt(second, 8)
        return
      }
      case 'rename':
        this.#move(this.#path(process, textOf(first)), this.#path(process, textOf(second)))
        return
      case 'link': {
        const [from, to] = [this.#path(process, textOf(first)), this.#path(process, textOf(second))]
        const entry = this.#entry(from)
        if (entry !== undefined) this.#put(to, entry)
        return
      }
      case 'symlink': {
        const bytes = Buffer.from(textOf(first), 'latin1')
        const path = this.#path(process, textOf(second))
        this.#put(path, {
          kind: 'link',
          mode: 0,
          changed: 0,
          bytes,
          synced: bytes,
          shortest: bytes.length,
          isWrittenOut: true,
          isReplacement: false,
        })
        return
      }
      case 'mkdir':
        this.#put(this.#path(process, textOf(first)), { kind: 'folder', names: new Map(), synced: new Map() })
        return
      case 'unlink':
      case 'rmdir':
        this.#remove(this.#path(process, textOf(first)))
        return
      case 'unlinkat':
      case 'mkdirat':
      case 'renameat':
      case 'renameat2':
      case 'linkat':
      case 'symlinkat':
      case 'mknod':
      case 'mknodat':
      case 'fallocate':
      case 'sendfile':
      case 'pwritev':
      case 'pwritev2':
      case 'syncfs':
      case 'sync':
      case 'fchmodat':
        this.#other(name, args, process)
        return
      case 'sync_file_range': {
        const file = this.#fileOf(pathOf(first))
        if (file !== undefined) file.isWrittenOut = true
        return
      }
      case 'fsync':
      case 'fdatasync':
        return
      default:
        throw new Error(`a call that nobody knows: ${name}`)
    }
  }

  image(kind: (typeof kinds)[number]): Image {
    const found = new Map<string, ImageEntry>()
    const isAhead = kind === 'all' || kind.startsWith('names')
    const add = (folder: Folder, prefix: string): void => {
      for (const [name, entry] of isAhead ? folder.names : folder.synced) {
        const path = prefix === '' ? name : `${prefix}/${name}`
        if (entry.kind === 'folder') {
          found.set(path, { kind: 'folder', mode: 0, bytes: Buffer.alloc(0), changed: 0 })
          add(entry, path)
        } else found.set(path, { ...entry, bytes: foundBytes(entry, kind) })
      }
    }
    add(this.#top, '')
    return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  *#folders(folder = this.#top): Generator<Folder> {
    yield folder
    for (const entry of folder.names.values()) if (entry.kind === 'folder') yield* this.#folders(entry)
  }

  *#files(folder = this.#top): Generator<File> {
    for (const entry of folder.names.values()) {
      if (entry.kind === 'folder') yield* this.#files(entry)
      else yield entry
    }
  }

  #opened(process: string, result: string, flags: string, mode: number): void {
    const path = pathOf(result)
    const fd = fdOf(result)
    this.#open.delete(`${process} ${fd}`)
    this.#paths.set(`${process} ${fd}`, path)
    const inside = this.#inside(path)
    if (inside === undefined || !/O_WRONLY|O_RDWR|O_CREAT/.test(flags)) return
    let file = this.#file(inside)
    if (file === undefined) {
      const none = Buffer.alloc(0)
      file = {
        kind: 'file',
        mode: mode & 0o7777 & ~0o022,
        changed: 0,
        bytes: none,
        synced: none,
        shortest: 0,
        isWrittenOut: false,
        isReplacement: false,
      }
      this.#put(inside, file)
      this.#touch(file)
    }
    if (flags.includes('O_TRUNC')) {
      if (file.bytes.length > 0) file.isReplacement = true
      cutTo(file, 0)
    }
    this.#open.set(`${process} ${fd}`, { file, at: 0, appends: flags.includes('O_APPEND') })
  }

  #write(process: string, fd: string, text: string, length: number, place?: number): void {
    const file = this.#fileOf(pathOf(fd))
    if (file === undefined) return
    const bytes = Buffer.from(text, 'latin1').subarray(0, length)
    if (bytes.length !== length)
      throw new Error(`only ${bytes.length} of ${length} bytes of ${pathOf(fd)} are known`)
    const open = this.#open.get(`${process} ${fdOf(fd)}`)
    const known = open?.file === file && !open.appends ? open : undefined
    // A descriptor that was handed down, as a shell does for `>`: it goes on at the end.
    const at = place ?? known?.at ?? file.bytes.length
    const gap = Buffer.alloc(Math.max(0, at - file.bytes.length))
    file.bytes = Buffer.concat([file.bytes.subarray(0, at), gap, bytes, file.bytes.subarray(at + length)])
    file.isWrittenOut = false
    this.#touch(file)
    if (known !== undefined && place === undefined) known.at = at + length
  }

  #touch(file: File): void {
    this.#clock += 1
    file.changed = this.#clock
  }

  #move(from: string, to: string): void {
    const entry = this.#entry(from)
    if (entry === undefined) return
    const before = this.#entry(to)
    if (entry.kind === 'file' && before !== undefined && before !== entry) entry.isReplacement = true
    this.#remove(from)
    this.#put(to, entry)
  }

  /** Calls that take a folder's descriptor, and those that nobody here makes. */
  #other(name: string, args: readonly string[], process: string): void {
    const [folder = '', path = ''] = args
    const place = this.#path(process, textOf(path), pathOf(folder))
    if (name === 'unlinkat') this.#remove(place)
    else if (this.#inside(path.startsWith('"') ? place : pathOf(folder)) !== undefined || name === 'sync')
      throw new Error(`a call that is not modelled: ${name}(${args.join(', ')})`)
  }

  /** Absolute; `/proc/self/fd/7/name` is below what the process has open as 7. */
  #path(process: string, path: string, folder = ''): string {
    const [, fd, rest] = /^\/proc\/self\/fd\/(\d+)(\/.*)?$/.exec(path) ?? []
    if (fd !== undefined) return `${this.#paths.get(`${process} ${fd}`) ?? ''}${rest ?? ''}`
    return path.startsWith('/') ? path : join(folder || this.#root, path)
  }

  #inside(path: string): string | undefined {
    if (path === this.#root) return ''
    return path.startsWith(`${this.#root}/`) ? path.slice(this.#root.length + 1) : undefined
  }

  #fileOf(path: string): File | undefined {
    const inside = this.#inside(path)
    return inside === undefined ? undefined : this.#file(inside)
  }

  #file(inside: string): File | undefined {
    const entry = this.#lookup(inside)
    return entry === undefined || entry.kind === 'folder' ? undefined : entry
  }

  #entry(path: string): Entry | undefined {
    const inside = this.#inside(path)
    return inside === undefined ? undefined : this.#lookup(inside)
  }

  #lookup(inside: string): Entry | undefined {
    let at: Entry | undefined = this.#top
    for (const name of inside.split('/').filter((part) => part !== ''))
      at = at?.kind === 'folder' ? at.names.get(name) : undefined
    return at
  }

  /** `path` absolute, or from the root. */
  #put(path: string, entry: Entry): void {
    if (path.startsWith('/') && this.#inside(path) === undefined) return
    const [folder, name] = this.#place(path)
    if (folder === undefined) throw new Error(`${path} has no folder`)
    folder.names.set(name, entry)
  }

  #remove(path: string): void {
    if (path.startsWith('/') && this.#inside(path) === undefined) return
    const [folder, name] = this.#place(path)
    folder?.names.delete(name)
  }

  #place(path: string): [Folder | undefined, string] {
    const inside = path.startsWith('/') ? (this.#inside(path) ?? '') : path
    const cut = inside.lastIndexOf('/')
    const folder = this.#lookup(inside.slice(0, Math.max(0, cut)))
    return [folder?.kind === 'folder' ? folder : undefined, inside.slice(cut + 1)]
  }
}

function lostIn(image: Image, whole: Image): string[] {
  const lost = [...whole].flatMap(([path, { bytes }]) => {
    const found = image.get(path)?.bytes
    if (found?.equals(bytes) === true) return []
    const how = found === undefined ? 'gone' : found.length === 0 ? 'empty' : 'torn'
    return [`${how} ${path.replace(/objects\/..\/|objdir-bulk-fsync-\w+|[0-9a-f]{12,}|\d+/g, '*')}`]
  })
  return [...new Set(lost)]
}

function cutTo(file: File, length: number): void {
  const more = Buffer.alloc(Math.max(0, length - file.bytes.length))
  file.bytes = Buffer.concat([file.bytes.subarray(0, length), more])
  file.shortest = Math.min(file.shortest, length)
}

function foundBytes(file: File, kind: (typeof kinds)[number]): Buffer {
  if (kind === 'all' || file.kind === 'link') return file.bytes
  const isAhead = kind === 'names only' || kind === 'names and half'
  const { bytes } = file
  if (isAhead && file.isReplacement) return bytes
  const synced = isAhead ? file.synced.subarray(0, file.shortest) : file.synced
  if (kind === 'synced' || kind === 'names only' || bytes.equals(synced)) return synced
  const isLonger = bytes.subarray(0, synced.length).equals(synced)
  return bytes.subarray(
    0,
    isLonger ? Math.ceil((synced.length + bytes.length) / 2) : Math.ceil(bytes.length / 2),
  )
}

/** `"text"`, or the text of an iovec. */
function textOf(arg: string): string {
  return /"(.*)"/s.exec(arg)?.[1] ?? ''
}

/** `7</path>`. */
function pathOf(arg: string): string {
  return /^(?:\d+|AT_FDCWD)<(.*?)>(?:\(deleted\))?$/s.exec(arg)?.[1] ?? ''
}

function fdOf(arg: string): string {
  return /^\d+/.exec(arg)?.[0] ?? ''
}

function markOf(image: Image): string {
  const hash = createHash('sha1')
  for (const [path, { kind, bytes }] of image)
    hash.update(`${path}\0${kind}\0${bytes.length}\0`).update(bytes)
  return hash.digest('hex')
}

export function readImage(root: string): Image {
  const found = new Map<string, ImageEntry>()
  const add = (folder: string): void => {
    for (const name of readdirSync(join(root, folder)).toSorted()) {
      const path = folder === '' ? name : `${folder}/${name}`
      const place = join(root, path)
      const stats = lstatSync(place)
      if (stats.isDirectory()) {
        found.set(path, { kind: 'folder', mode: 0, bytes: Buffer.alloc(0), changed: 0 })
        add(path)
      } else if (stats.isSymbolicLink())
        found.set(path, { kind: 'link', mode: 0, bytes: Buffer.from(readlinkSync(place)), changed: 0 })
      else
        found.set(path, { kind: 'file', mode: stats.mode & 0o7777, bytes: readFileSync(place), changed: 0 })
    }
  }
  add('')
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
}

export function writeImage(root: string, image: Image): void {
  mkdirSync(root)
  for (const [path, { kind }] of image) if (kind === 'folder') mkdirSync(join(root, path))
  const files = [...image].filter(([, { kind }]) => kind !== 'folder')
  for (const [path, { kind, mode, bytes }] of files.toSorted(([, a], [, b]) => a.changed - b.changed)) {
    const place = join(root, path)
    if (kind === 'link') symlinkSync(bytes.toString(), place)
    else writeFileSync(place, bytes, { mode })
  }
}
