// A pause that is asked for from another process: a file is there, or it is not.
import { existsSync, rmSync, writeFileSync } from 'node:fs'

const lookMs = 500

export function isPaused(path: string): boolean {
  return existsSync(path)
}

export function setPaused(path: string, isWanted: boolean): void {
  if (isWanted) writeFileSync(path, '', { mode: 0o600 })
  else rmSync(path, { force: true })
}

/** Tells at each look; a loop that waits for nothing else is kept alive by it. Returns what ends it. */
export function watchPaused(path: string, tell: (isWanted: boolean) => void): () => void {
  const timer = setInterval(() => tell(isPaused(path)), lookMs)
  return () => clearInterval(timer)
}
