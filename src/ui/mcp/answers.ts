// How a tool answers: words for whoever reads, the same as data, and an error of ralph's as an answer with its hint.
import type { CallToolResult } from '@modelcontextprotocol/server'
import { RalphError } from '../../core/error.ts'
import { clean } from '../print/text.ts'

export function answer(text: string, data: object): CallToolResult {
  return { content: [{ type: 'text', text: clean(text) }], structuredContent: { ...data } }
}

export function refusal(message: string, hint = ''): CallToolResult {
  const text = hint === '' ? message : `${message}\n${hint}`
  return { content: [{ type: 'text', text: clean(text) }], isError: true }
}

/** What a user can mend is said; what is a bug is said as one, and goes on to whoever hears of bugs. */
export async function orRefusal(
  work: () => Promise<CallToolResult>,
  onBug: (error: unknown) => void,
): Promise<CallToolResult> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof RalphError) return refusal(error.message, error.hint)
    onBug(error)
    return refusal(`ralph failed: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** The end of a text that comes in pieces: as many lines as are wanted, and never more bytes than a client can hold. */
export function lastLines(most: number): {
  readonly feed: (bytes: Uint8Array) => void
  readonly end: () => { readonly text: string; readonly isCut: boolean }
} {
  let kept = Buffer.alloc(0)
  let isCut = false
  return {
    feed(bytes) {
      kept = Buffer.concat([kept, bytes])
      // Rarely: else each piece would be copied with all before it.
      if (kept.length <= 2 * mostBytes) return
      kept = kept.subarray(kept.length - mostBytes)
      isCut = true
    },
    end() {
      if (kept.length > mostBytes) isCut = true
      const lines = kept
        .subarray(Math.max(0, kept.length - mostBytes))
        .toString('utf8')
        .split('\n')
      const ending = lines.at(-1) === '' ? 1 : 0
      const wanted = lines.slice(-(most + ending))
      return { text: wanted.join('\n'), isCut: isCut || wanted.length < lines.length }
    },
  }
}

const mostBytes = 128 * 1024

/** The beginning of a text, in whole lines. */
export function firstBytes(text: string): { readonly text: string; readonly isCut: boolean } {
  if (text.length <= mostBytes) return { text, isCut: false }
  return { text: text.slice(0, text.lastIndexOf('\n', mostBytes) + 1 || mostBytes), isCut: true }
}
