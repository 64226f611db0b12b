// Reads a part of a JSON-lines file in bounded memory; a line that is cut, invalid or no object is passed over.
import { open } from 'node:fs/promises'
import { asObject } from './usage-record.ts'
import type { JsonObject } from './usage-record.ts'

const chunkBytes = 1024 * 1024
/** Far above any record with figures; a longer line is a pasted file or an image. */
const maxLineBytes = 64 * 1024 * 1024

export interface LineRange {
  readonly from: number
  readonly to: number
  /** Parsing is what costs: only lines that contain one of these are parsed. */
  readonly having: readonly string[]
}

/** Calls `take` for each object with the byte where its line starts; `take` returns false to stop. */
export async function readJsonLines(
  path: string,
  range: LineRange,
  take: (line: JsonObject, at: number) => boolean,
): Promise<void> {
  const file = await open(path, 'r')
  try {
    let rest: Buffer = Buffer.alloc(0)
    let at = range.from
    let position = range.from
    let isTooLong = false
    for (;;) {
      const wanted = Math.min(chunkBytes, range.to - position)
      const { bytesRead, buffer } = await file.read(
        Buffer.allocUnsafe(Math.max(wanted, 0)),
        0,
        wanted,
        position,
      )
      position += bytesRead
      const chunk = buffer.subarray(0, bytesRead)
      const isEnd = bytesRead === 0
      const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      let start = 0
      for (let end = data.indexOf(10, start); end !== -1; end = data.indexOf(10, start)) {
        const object = isTooLong ? undefined : parse(data.subarray(start, end), range.having)
        isTooLong = false
        if (object !== undefined && !take(object, at)) return
        at += end - start + 1
        start = end + 1
      }
      rest = data.subarray(start)
      if (isEnd) {
        // A last line without its LF may be whole all the same: the agent was ended right after it.
        const object = isTooLong ? undefined : parse(rest, range.having)
        if (object !== undefined) take(object, at)
        return
      }
      if (rest.length > maxLineBytes) {
        at += rest.length
        rest = Buffer.alloc(0)
        isTooLong = true
      }
    }
  } finally {
    await file.close()
  }
}

function parse(line: Buffer, having: readonly string[]): JsonObject | undefined {
  if (!having.some((word) => line.includes(word))) return undefined
  try {
    return asObject(JSON.parse(line.toString('utf8')))
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
