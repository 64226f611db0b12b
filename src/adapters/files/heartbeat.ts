// The last sign of life of a loop: the time of a file that it touches twice a second, so that a later look knows when it died.
import { statSync, utimesSync, writeFileSync } from 'node:fs'

const beatMs = 500

/** Touches the file until it is told to stop, and then once more. Never synced to disk, and no reason for the process to stay. */
export function startBeating(path: string): () => void {
  const beat = (): void => {
    try {
      utimesSync(path, new Date(), new Date())
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') makeFile(path)
      // A disk that takes no sign any more has its own way to end a loop.
    }
  }
  beat()
  const timer = setInterval(beat, beatMs)
  timer.unref()
  return () => {
    clearInterval(timer)
    beat()
  }
}

/** Epoch ms; the latest of the files that are there, 0 when none is. */
export function lastSign(...paths: readonly string[]): number {
  return Math.max(0, ...paths.map((path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0))
}

function makeFile(path: string): void {
  try {
    writeFileSync(path, '', { mode: 0o600 })
  } catch (error) {
    // The folder is gone with its work tree, or closed: the loop is told so by what it writes there itself.
    if ((error as NodeJS.ErrnoException).errno === undefined) throw error
  }
}
