// What a program did to a folder, call by call, as strace saw it: nothing has to be built or preloaded, and git and the agent are seen, too.
import { readFileSync } from 'node:fs'

export interface Call {
  readonly name: string
  /** As strace prints them, with strings and the paths of descriptors decoded (latin1). */
  readonly args: readonly string[]
  readonly result: string
  /** Where it began and where it ended: threads overlap. */
  readonly began: number
  readonly ended: number
  /** The process, whichever of its threads it was. */
  readonly process: string
}

export const straceFlags = [
  '-f',
  '--seccomp-bpf',
  '-y',
  '-xx',
  '-s',
  '100000000',
  '-e',
  'signal=none',
  '-e',
  'trace=open,creat,openat,write,pwrite64,writev,pwritev,pwritev2,lseek,ftruncate,truncate,fallocate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,mknod,mknodat,rmdir,symlink,symlinkat,chmod,fchmod,fchmodat,fsync,fdatasync,sync,syncfs,sync_file_range,copy_file_range,sendfile,ioctl,clone,clone3,fork,vfork',
] as const

/** The calls that succeeded, in the order in which they ended. */
export function readTrace(file: string): Call[] {
  const calls: Call[] = []
  const open = new Map<string, { readonly text: string; readonly began: number }>()
  const leaders = new Map<string, string>()
  for (const [at, line] of readFileSync(file, 'latin1').split('\n').entries()) {
    const [, pid = '', rest = ''] = /^(\d+) +(.*)$/s.exec(line) ?? []
    if (rest.endsWith(' <unfinished ...>')) {
      open.set(pid, { text: rest.slice(0, -' <unfinished ...>'.length), began: at })
      continue
    }
    const [, tail] = /^<\.\.\. \w+ resumed>(.*)$/s.exec(rest) ?? []
    const start = tail === undefined ? { text: '', began: at } : open.get(pid)
    open.delete(pid)
    const [, name, list, result = ''] =
      /^(\w+)\((.*)\)\s+= (.*)$/s.exec(`${start?.text ?? ''}${tail ?? rest}`) ?? []
    if (name === undefined || list === undefined || start === undefined || result.startsWith('-1')) continue
    const process = leaders.get(pid) ?? pid
    if (/^(clone3?|v?fork)$/.test(name)) {
      if (list.includes('CLONE_THREAD')) leaders.set(result, process)
      continue
    }
    calls.push({ name, args: split(list), result: decode(result), began: start.began, ended: at, process })
  }
  return calls
}

/** Strings and paths are all in hex: no comma in them is one. */
function split(list: string): string[] {
  return list.split(', ').map(decode)
}

function decode(text: string): string {
  return text.replace(/(?:\\x[0-9a-f]{2})+/g, (hex) =>
    Buffer.from(hex.replaceAll('\\x', ''), 'hex').toString('latin1'),
  )
}
