// The last bytes of an output, whatever its size: joining a whole run would pass the limit of a string.

export interface Tail {
  /** The chunk may be lent. */
  feed(chunk: Buffer): void
  text(): string
}

export function boundedTail(maxBytes: number): Tail {
  let chunks: Buffer[] = []
  let length = 0
  return {
    feed(chunk) {
      chunks.push(Buffer.from(chunk.subarray(-maxBytes)))
      length += Math.min(chunk.length, maxBytes)
      if (length > 2 * maxBytes) {
        const kept = Buffer.from(Buffer.concat(chunks).subarray(-maxBytes))
        chunks = [kept]
        length = kept.length
      }
    },
    text() {
      // A cut may fall inside a character; its rest would decode to replacement marks.
      const bytes = Buffer.concat(chunks).subarray(-maxBytes)
      let start = 0
      while (start < 4 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++
      return bytes.subarray(start).toString('utf8')
    },
  }
}
