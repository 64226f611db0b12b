// The terminal's title and its bell, as bytes (contract 10); written by the terminal's printer only.
import type { LoopEvent } from '../../core/event.ts'
import { oneLine } from './text.ts'

/** The title stack: a loop that ends without a status gives the user's own title back. */
export const pushTitle = '\u001B[22;0t'
export const popTitle = '\u001B[23;0t'

export function titleOf(event: LoopEvent): string | undefined {
  const change = oneLine(event.change_id)
  if (event.type === 'iteration.started')
    return `Ralph: ${change} [${String(event.n)}/${String(event.max_iterations)}]`
  // A question at the end may wait for hours among many windows.
  if (event.type === 'choice.needed' || event.type === 'complete') return `Ralph: ${change} [${event.status}]`
  return undefined
}

export function titleBytes(title: string): string {
  return `\u001B]0;${title}\u0007`
}

/** OSC 9 for terminals with notifications, a bell for the others. */
export function attention(message: string): string {
  return `\u001B]9;${oneLine(message)}\u0007\u0007`
}
