// What a child reads from and writes to. Node would give it sockets, and Linux opens no socket by name: `cat /dev/stdin` and `tee /dev/stderr` would fail.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer, Socket, type ConnectOpts, type SocketConstructorOpts } from 'node:net'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { launch } from './launcher.ts'
import { makeTemp, removeTemp } from './temp.ts'

export interface ChannelsOptions {
  /** Names the folder that is there while the channels are made. */
  readonly runId: string
  /** All that stdin says; `undefined`: stdin stays open, to be written to. */
  readonly input: string | undefined
  /** Not all: the rest is given later. */
  readonly isLate?: boolean
  /** A pipe can be opened by name (`> /dev/stdout`), but holds so little that a flood takes twice as long. */
  readonly stdout: 'pipe' | 'socket'
}

export interface Channels {
  /** Of the child: stdin, stdout, stderr. */
  readonly stdio: (number | Socket | 'pipe' | 'ignore')[]
  /** The rest of the input, before the child reads. */
  give(input: string): void
  /** Once the child has copies of its own: else its output would never end. */
  handOver(): void
  /** For a child that could not be started, or has begun nothing. */
  discard(): void
  /** What holds the child's output, as /proc names it; none where that is not known. */
  readonly streams: readonly string[]
  /** The chunks are lent: after the call their bytes change. */
  listen(child: ChildProcess, onOutput: OnChunk, onErrorOutput: OnChunk): Output
}

export interface Output {
  /** Whether nobody can write any more, and everything is read. */
  readonly isOver: boolean
  /** Resolves then. */
  readonly over: Promise<unknown>
  /** The child waits when its streams are full. */
  pause(): void
  resume(): void
  close(): void
}

type OnChunk = (chunk: Buffer) => void

export async function openChannels(options: ChannelsOptions): Promise<Channels> {
  const own = process.platform === 'linux' ? await ownChannels(options) : undefined
  return own ?? nodeChannels(options.input)
}

/** Nothing of it stays on disk: the open ends live on. `undefined` where there is no room, or no `mkfifo`. */
async function ownChannels({
  runId,
  input,
  isLate = false,
  stdout,
}: ChannelsOptions): Promise<Channels | undefined> {
  const outlets: Outlet[] = []
  let dir: string | undefined
  let prompt: number | undefined
  let late: number | undefined
  const give = (text: string): void => {
    if (late === undefined) return
    writeFileSync(late, text)
    closeSync(late)
    late = undefined
  }
  let isHandedOver = false
  const handOver = (): void => {
    if (isHandedOver) return
    isHandedOver = true
    if (prompt !== undefined) closeSync(prompt)
    for (const outlet of outlets) outlet.closeFar()
  }
  const discard = (): void => {
    handOver()
    give('')
    for (const outlet of outlets.splice(0)) outlet.discard()
  }
  try {
    dir = makeTemp(runId, process.env)
    // By their names they are found in /proc, and the folder may serve again.
    const [file, out] = [join(dir, 'in'), join(dir, `out-${(named += 1)}`)]
    const wanted = stdout === 'pipe' ? 2 : 1
    if (stdout === 'socket') outlets.push(await socketPair(out))
    if (pipes.length < wanted) pipes.push(...(await makePipes(dir)))
    outlets.push(...pipes.splice(0, wanted))
    if (input !== undefined && (isLate || input !== '')) {
      writeFileSync(file, input, { mode: 0o600 })
      prompt = openSync(file, 'r')
      if (isLate) late = openSync(file, 'a')
    }
    const stdin = input === undefined ? 'pipe' : (prompt ?? 'ignore')
    return {
      stdio: [stdin, ...outlets.map(({ far }) => far)],
      streams: outlets.map(({ name }) => name),
      give,
      handOver,
      discard,
      listen(child, ...hearers) {
        // A program may end before it has read its input.
        child.stdin?.on('error', ignore)
        return outputOf(outlets.map((outlet, i) => outlet.listen(hearers[i] ?? ignore)))
      },
    }
  } catch {
    discard()
    return undefined
  } finally {
    if (dir !== undefined) await removeTemp(dir)
  }
}

function nodeChannels(input: string | undefined): Channels {
  return {
    stdio: [input === '' ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    streams: [],
    give: () => undefined,
    handOver: () => undefined,
    discard: () => undefined,
    listen(child, onOutput, onErrorOutput) {
      // A program may end before it has read its input.
      child.stdin?.on('error', ignore)
      if (input !== undefined) child.stdin?.end(input)
      child.stdout?.on('data', onOutput)
      child.stderr?.on('data', onErrorOutput)
      return outputOf([child.stdout, child.stderr].filter((stream) => stream !== null))
    },
  }
}

/** One of the child's streams: the far end is the child's, the near one ralph's. */
interface Outlet {
  readonly far: number | Socket
  /** Of the far end, in /proc. */
  readonly name: string
  closeFar(): void
  listen(onChunk: OnChunk): Socket
  discard(): void
}

/** Pipes with nobody at them: only `mkfifo` can make one, so one call of it makes some for later. */
const pipes: Outlet[] = []
let named = 0

async function makePipes(dir: string): Promise<Outlet[]> {
  const paths = Array.from({ length: 16 }, () => join(dir, `pipe-${(named += 1)}`))
  const made = await launch('mkfifo', ['-m', '600', ...paths], { cwd: dir, timeoutMs: 9000 })
  if (made.exitCode !== 0) throw new Error(made.stderr)
  return paths.map(pipe)
}

function pipe(path: string): Outlet {
  const near = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const far = openSync(path, constants.O_WRONLY)
  return {
    far,
    // Its folder is gone before the child begins.
    name: `${path} (deleted)`,
    closeFar: () => closeSync(far),
    listen(onChunk) {
      const room = roomOf(pipeBytes)
      // `net.connect` hands its `onread` to this same constructor; the types have it only there.
      const options: SocketConstructorOpts & ConnectOpts = {
        fd: near,
        readable: true,
        writable: false,
        onread: readingInto(room, () => onChunk),
      }
      return new Socket(options).once('close', () => spare.push(room)).resume()
    },
    discard: () => closeSync(near),
  }
}

/** What Node makes for a child itself, but for the reading into one buffer. */
async function socketPair(path: string): Promise<Outlet> {
  const server = createServer({ pauseOnConnect: true })
  let hear: OnChunk = ignore
  try {
    server.listen(path)
    await once(server, 'listening')
    const accepted = once(server, 'connection')
    const room = roomOf(socketBytes)
    const near = connect({ path, onread: readingInto(room, () => hear) }).pause()
    near.once('close', () => spare.push(room))
    const [far] = (await accepted) as [Socket]
    near.on('error', () => near.destroy())
    return {
      far,
      name: `socket:[${inodeOf(path)}]`,
      closeFar: () => void far.destroy(),
      listen(onChunk) {
        hear = onChunk
        return near.resume()
      },
      discard: () => void near.destroy(),
    }
  } finally {
    server.close()
  }
}

/** The connected socket of that path; the one that listens has another state. */
function inodeOf(path: string): string {
  const sockets = readFileSync('/proc/net/unix', 'utf8')
  const line = sockets.split('\n').find((text) => text.endsWith(` ${path}`) && / 03 +\d+ /.test(text))
  return / 03 +(\d+) /.exec(line ?? '')?.[1] ?? ''
}

/** The same memory again and again: a fresh buffer for each 64 KiB costs more than all the rest of a flood. */
function readingInto(buffer: Buffer, hearer: () => OnChunk): NonNullable<ConnectOpts['onread']> {
  return {
    buffer,
    callback(bytes) {
      hearer()(buffer.subarray(0, bytes))
      return true
    },
  }
}

/** Of streams that are closed: each story needs some, and would leave them to be collected. */
const spare: Buffer[] = []

function roomOf(size: number): Buffer {
  const at = spare.findIndex(({ length }) => length === size)
  return spare.splice(at, at === -1 ? 0 : 1)[0] ?? Buffer.allocUnsafeSlow(size)
}

/** What they hold, by Linux's defaults. */
const pipeBytes = 65_536
const socketBytes = 212_992

function outputOf(streams: readonly Readable[]): Output {
  return {
    get isOver() {
      return streams.every((stream) => stream.readableEnded || stream.destroyed)
    },
    over: Promise.all(streams.map(endOf)),
    pause: () => streams.forEach((stream) => stream.pause()),
    resume: () => streams.forEach((stream) => stream.resume()),
    close: () => streams.forEach((stream) => stream.destroy()),
  }
}

function endOf(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    stream.once('end', resolve)
    stream.once('close', resolve)
  })
}

function ignore(): void {}
