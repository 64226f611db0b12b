// Cuts a stream of bytes into lines at LF and nowhere else: multibyte borders, CRLF and U+2028 in JSON stay whole.

export interface LineSplitter {
  feed(chunk: Buffer): void
  /** Hands out a last line that has no line break. */
  end(): void
}

/** A line beyond `maxBytes` is not kept: `onTooLong` gets its size instead, and the lines after it come as usual. */
export function lineSplitter(
  maxBytes: number,
  onLine: (line: Buffer) => void,
  onTooLong: (bytes: number) => void,
): LineSplitter {
  let pieces: Buffer[] = []
  let length = 0

  const keep = (piece: Buffer): void => {
    length += piece.length
    if (length <= maxBytes) pieces.push(piece)
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
      for (let end = chunk.indexOf(lf); end !== -1; end = chunk.indexOf(lf, start)) {
        if (length === 0 && end - start <= maxBytes) onLine(withoutCr(chunk.subarray(start, end)))
        else {
          keep(chunk.subarray(start, end))
          hand()
        }
        start = end + 1
      }
      if (start < chunk.length) keep(chunk.subarray(start))
    },
    end() {
      hand()
    },
  }
}

const lf = 10
const cr = 13

function withoutCr(line: Buffer): Buffer {
  return line.at(-1) === cr ? line.subarray(0, -1) : line
}
