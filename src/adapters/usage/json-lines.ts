// Reads a part of a JSON-lines file in bounded memory; a line that is cut, invalid or no object is passed over.
import { open } from 'node:fs/promises'
import { readJson } from '../../core/json.ts'
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
    const line = new OpenLine(range)
    for (let position = range.from; position < range.to;) {
      const wanted = Math.min(chunkBytes, range.to - position)
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, position)
      // Shorter than it was when its size was looked at.
      if (bytesRead === 0) break
      position += bytesRead
      const chunk = buffer.subarray(0, bytesRead)
      let start = 0
      for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
        line.add(chunk.subarray(start, end))
        if (!line.end(take)) return
        start = end + 1
      }
      line.add(chunk.subarray(start))
    }
    // A last line without its LF may be whole all the same: the agent was ended right after it.
    line.end(take)
  } finally {
    await file.close()
  }
}

/** The line being read, in the pieces it came in. */
class OpenLine {
  #pieces: Buffer[] = []
  #bytes = 0
  #at: number
  readonly #having: readonly string[]

  constructor({ from, having }: LineRange) {
    this.#at = from
    this.#having = having
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#bytes > maxLineBytes) this.#pieces = []
    else if (piece.length > 0) this.#pieces.push(piece)
  }

  end(take: (line: JsonObject, at: number) => boolean): boolean {
    const [first] = this.#pieces
    const whole = this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces)
    const at = this.#at
    const object = whole === undefined || this.#bytes > maxLineBytes ? undefined : parse(whole, this.#having)
    this.#at += this.#bytes + 1
    this.#pieces = []
    this.#bytes = 0
    return object === undefined || take(object, at)
  }
}

function parse(line: Buffer, having: readonly string[]): JsonObject | undefined {
  return having.some((word) => line.includes(word)) ? asObject(readJson(line.toString('utf8'))) : undefined
}
