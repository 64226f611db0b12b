// Cuts a stream of bytes into lines at LF and nowhere else: multibyte borders, CRLF and U+2028 in JSON stay whole.

export interface LineSplitter {
  /** The chunk may be lent; so are the lines handed out. */
  feed(chunk: Buffer): void
  /** Hands out a last line that has no line break. */
  end(): void
}

/**
 * A line beyond `maxBytes` is not kept: `onTooLong` gets its size instead, and the lines after it come as usual.
 * A line of which `isIdle` says so is passed over, without even being gathered. It sees where the line begins and what has come of it,
 * and must not say so where more of the line could change that.
 */
export function lineSplitter(
  maxBytes: number,
  onLine: (line: Buffer) => void,
  onTooLong: (bytes: number) => void,
  isIdle: (chunk: Buffer, start: number) => boolean = () => false,
): LineSplitter {
  let pieces: Buffer[] = []
  let length = 0
  let isIgnoring = false

  const keep = (piece: Buffer): void => {
    length += piece.length
    if (length <= maxBytes) pieces.push(Buffer.from(piece))
    else pieces = []
  }
  const hand = (): void => {
    const [first] = pieces
    if (length > maxBytes) onTooLong(length)
    else if (first !== undefined) onLine(withoutCr(pieces.length === 1 ? first : Buffer.concat(pieces)))
    pieces = []
    length = 0
  }

  return {
    feed(chunk) {
      let start = 0
      while (start < chunk.length) {
        isIgnoring ||= length === 0 && isIdle(chunk, start)
        const end = chunk.indexOf(lf, start)
        if (end === -1) {
          if (!isIgnoring) keep(chunk.subarray(start))
          return
        }
        if (isIgnoring) isIgnoring = false
        else if (length === 0 && end - start <= maxBytes) onLine(withoutCr(chunk.subarray(start, end)))
        else {
          keep(chunk.subarray(start, end))
          hand()
        }
        start = end + 1
      }
    },
    end() {
      hand()
    },
  }
}

const lf = 10
const cr = 13

function withoutCr(line: Buffer): Buffer {
  return line[line.length - 1] === cr ? line.subarray(0, -1) : line
}
