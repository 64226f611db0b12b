// Room for an index of megabytes, used again and again: what is new each time is garbage that V8 collects with all the rest of its heap.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** Whoever has it alone may write to it, until it is given back. */
export function borrow(bytes: number): Buffer {
  const at = spares.findIndex(({ byteLength }) => byteLength >= bytes)
  const [room = new ArrayBuffer(bytes + slackBytes)] = at < 0 ? [] : spares.splice(at, 1)
  return Buffer.from(room, 0, bytes)
}

/** Nobody looks at it any more. */
export function giveBack({ buffer }: Buffer): void {
  if (!(buffer instanceof ArrayBuffer) || buffer.byteLength < smallBytes || spares.includes(buffer)) return
  // The smallest goes: the others may do for all.
  spares.push(buffer)
  spares.sort((one, other) => other.byteLength - one.byteLength).splice(most)
}

/** A whole file, borrowed. */
export function borrowFile(file: string): Buffer {
  const handle = openSync(file, 'r')
  try {
    const bytes = borrow(fstatSync(handle).size)
    let length = 0
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(handle, bytes, length, bytes.length - length, length)
    return bytes.subarray(0, length)
  } finally {
    closeSync(handle)
  }
}

const spares: ArrayBuffer[] = []
const most = 2

/** So that it does for the next one, which has a few entries more. */
const slackBytes = 64 * 1024

/** Below this it is cheap, and may share its room with others. */
const smallBytes = 1024 * 1024
