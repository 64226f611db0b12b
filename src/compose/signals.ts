// The process's own signals while a loop runs: the first stops it in order, the next one at once.
import type { Loop } from '../engine/run.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }

/**
 * `force` ends what the agent has running, without waiting; the journal lets the next command put the rest in order.
 * Returns a function that takes the handlers away again.
 */
export function handleSignals(loop: Loop, force: () => void): () => void {
  let asked = false
  const onSignal = (signal: (typeof signals)[number]): void => {
    if (!asked || loop.state.phase === 'choosing') {
      asked = true
      loop.stop(signal)
      return
    }
    force()
    process.exit(exitCodes[signal])
  }
  const onBug = (error: unknown): void => loop.fail(error)
  for (const signal of signals) process.on(signal, onSignal)
  process.on('uncaughtException', onBug)
  process.on('unhandledRejection', onBug)
  return () => {
    for (const signal of signals) process.off(signal, onSignal)
    process.off('uncaughtException', onBug)
    process.off('unhandledRejection', onBug)
  }
}
