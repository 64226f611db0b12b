// The calls of `node:fs/promises` for small files, done at once: their way through Node's threads takes twenty times as long as the calls themselves.
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  fsync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  type Stats,
} from 'node:fs'
import type promises from 'node:fs/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { again, RalphError } from '../../core/error.ts'

type Promises = typeof promises

/** How many calls come one after the other: signals and readers are heard in between. */
const together = 500
let called = 0

function now(call: (...args: never[]) => unknown) {
  return async (...args: unknown[]): Promise<unknown> => {
    called += 1
    if (called % together === 0) await turn()
    return (call as (...all: unknown[]) => unknown)(...args)
  }
}

export const access = now(accessSync) as Promises['access']
export const chmod = now(chmodSync) as Promises['chmod']
export const copyFile = now(copyFileSync) as Promises['copyFile']
export const link = now(linkSync) as Promises['link']
export const lstat = now(lstatSync) as ((
  path: string,
  how: { throwIfNoEntry: false },
) => Promise<Stats | undefined>) &
  Promises['lstat']
export const mkdir = now(mkdirSync) as Promises['mkdir']
export const readFile = now(readNow) as Promises['readFile']
export const readdir = now(readdirSync) as Promises['readdir']
export const readlink = now(readlinkSync) as Promises['readlink']
export const realpath = now(realpathSync.native) as Promises['realpath']
export const rename = now(renameSync) as Promises['rename']
export const rm = now(rmSync) as Promises['rm']
export const stat = now(statSync) as Promises['stat']
export const symlink = now(symlinkSync) as Promises['symlink']
export const unlink = now(unlinkSync) as Promises['unlink']
export const utimes = now(utimesSync) as Promises['utimes']
export const writeFile = now(writeFileSync) as Promises['writeFile']

/** `rm` with `force`, of one file: half the work. */
export const drop = now((path: string) => {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}) as Promises['unlink']

/** What makes a file; its folder is made only where it is missing, which is seldom. */
export function inFolder<T>(folder: string | Buffer, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    mkdirSync(folder, { recursive: true })
    return work()
  }
}

/** Waits for the disk, so not at once: meanwhile others are heard. */
export const sync: (file: number) => Promise<void> = promisify(fsync)

/** Of a file that others can write: a pipe or a device in its place would be read for ever. */
export function readNow(path: string | Buffer): Buffer
export function readNow(path: string | Buffer, encoding: 'utf8' | 'latin1'): string
export function readNow(path: string | Buffer, encoding?: 'utf8' | 'latin1'): string | Buffer {
  const file = openRegular(path, constants.O_RDONLY)
  try {
    return readFileSync(file, encoding)
  } finally {
    closeSync(file)
  }
}

/** Never waits for somebody at the other end of a pipe. */
export function openRegular(path: string | Buffer, flags: number, mode?: number): number {
  let file: number
  try {
    file = openSync(path, flags | constants.O_NONBLOCK, mode)
  } catch (error) {
    // A socket, a pipe that nobody reads; a folder that was to be written.
    if (['ENXIO', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw notRegular(path)
    throw error
  }
  if (fstatSync(file).isFile()) return file
  closeSync(file)
  throw notRegular(path)
}

function notRegular(path: string | Buffer): RalphError {
  const stats = statSync(path, { throwIfNoEntry: false })
  const kind =
    stats?.isDirectory() === true
      ? 'a folder'
      : stats?.isFIFO() === true
        ? 'a pipe'
        : stats?.isSocket() === true
          ? 'a socket'
          : 'a device'
  return new RalphError('disk', `${path.toString()} is ${kind}, not a file.`, {
    hint: `Something has put it there: move it away, then ${again}.`,
    exitCode: 2,
  })
}

/** As `Promise.all`, but what fails waits for the others: a file must not be closed while it is synced. */
export async function whole(all: readonly Promise<unknown>[]): Promise<void> {
  const ended = await Promise.allSettled(all)
  const failed = ended.find((each) => each.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
