// The lines of a file that somebody else is writing: each once, in constant memory, from where the last look ended.
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'

export interface GrowingFile {
  /** Bytes that the lines so far take up. */
  readonly offset: number
  /** Of the line that was given last. */
  readonly lineNumber: number
  /** How often the file itself was looked at. */
  readonly looks: number
  /** The next line takes another look. */
  readonly isSpent: boolean
  /** The next whole line; undefined while there is none. Half a line is read again: its writer may take it back. */
  next(): Promise<string | undefined>
  close(): Promise<void>
}

/** Opened so, a pipe that somebody put in its place is empty instead of a wait for ever. */
export function openToRead(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_NONBLOCK)
}

const chunkBytes = 64 * 1024
const lf = 0x0a

/** `isWhole` may say of the last line that it only lacks its line feed. */
export function growingFile(file: FileHandle, isWhole: (rest: string) => boolean = () => false): GrowingFile {
  const memory = Buffer.allocUnsafe(chunkBytes)
  let chunk = memory.subarray(0, 0)
  let at = 0
  let offset = 0
  let lineNumber = 0
  let looks = 0
  let seenSize = -1
  let isInLine = false

  /** More lines, or what there is of one. */
  const look = async (): Promise<string> => {
    looks += 1
    chunk = memory.subarray(0, 0)
    at = 0
    const { size } = await file.stat()
    if (size <= offset || size === seenSize) return ''
    for (let bytes = chunkBytes; ; bytes *= 4) {
      const room = bytes === chunkBytes ? memory : Buffer.allocUnsafe(bytes)
      const { bytesRead } = await file.read(room, 0, bytes, offset)
      const read = room.subarray(0, bytesRead)
      if (read.includes(lf)) {
        chunk = read
        return ''
      }
      if (bytesRead < bytes) {
        seenSize = size
        return read.toString('utf8')
      }
    }
  }
  const given = (line: string, bytes: number): string => {
    offset += bytes
    if (!isInLine) lineNumber += 1
    return line
  }
  return {
    get offset() {
      return offset
    },
    get lineNumber() {
      return lineNumber
    },
    get looks() {
      return looks
    },
    get isSpent() {
      return !chunk.includes(lf, at)
    },
    async next() {
      const rest = chunk.includes(lf, at) ? '' : await look()
      const end = chunk.indexOf(lf, at)
      if (end < 0) {
        if (rest === '' || !isWhole(rest)) return undefined
        const line = given(rest, Buffer.byteLength(rest))
        isInLine = true
        return line
      }
      const line = given(chunk.toString('utf8', at, end), end + 1 - at)
      isInLine = false
      at = end + 1
      return line
    },
    close: () => file.close(),
  }
}
