// A stream of the process that is opened when somebody needs it: Node takes as long for that as most looks take for all the rest.
import { fstatSync, writeSync } from 'node:fs'
import type { Output } from '../io.ts'

export type LateOutput = Output & Pick<NodeJS.WriteStream, 'errored'>

/**
 * Listens to its errors without opening it. `isShort`: what is written is little, and nobody does anything beside it; then it goes
 * straight to a file or a pipe, and the stream is opened for what these do not take at once, with whatever is wrong with them.
 */
export function lateOutput(fd: number, open: () => LateOutput, isShort: boolean): LateOutput {
  const listeners: ((error: Error) => void)[] = []
  const isPlain = isShort && !isTerminal(fd)
  let stream: LateOutput | undefined
  const opened = (): LateOutput => {
    if (stream !== undefined) return stream
    stream = open()
    for (const listener of listeners) stream.on('error', listener)
    return stream
  }
  const own: Partial<Record<string | symbol, unknown>> = {
    on(name: string, listener: (error: Error) => void) {
      if (stream === undefined && name === 'error') listeners.push(listener)
      else opened().on(name, listener)
      return late
    },
    ...(isPlain && {
      isTTY: undefined,
      columns: undefined,
      rows: undefined,
      errored: null,
      write(text: string | Uint8Array, ...rest: []) {
        const bytes = Buffer.from(text as string)
        const left = bytes.subarray(written(fd, bytes))
        const [done] = rest as (() => void)[]
        if (left.length > 0) return opened().write(left, ...rest)
        done?.()
        return true
      },
    }),
  }
  const late = new Proxy({} as LateOutput, {
    get(_, name) {
      if (stream === undefined && name in own) return own[name]
      const value: unknown = Reflect.get(opened(), name)
      return typeof value === 'function' ? value.bind(stream) : value
    },
  })
  return late
}

/** Or may be one, which has a width. */
function isTerminal(fd: number): boolean {
  try {
    const file = fstatSync(fd)
    return file.isCharacterDevice() && file.rdev !== nullDevice
  } catch {
    return true
  }
}

/** So many bytes were taken, all but for an error. */
function written(fd: number, bytes: Buffer): number {
  let done = 0
  try {
    while (done < bytes.length) done += writeSync(fd, bytes, done)
  } catch {
    // Whatever it is, the stream meets it as well and tells it as streams do.
  }
  return done
}

/** `/dev/null` of Linux. */
const nullDevice = 259
