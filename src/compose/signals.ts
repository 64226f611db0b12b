// The process's own signals while a loop runs: the first stops it in order, the next one at once.
import type { Loop } from '../engine/run.ts'
import { outliveTerminal } from './hang-up.ts'
import { isUnderNohup } from './nohup.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }

/**
 * `force` ends what the agent has running, without waiting; the journal lets the next command put the rest in order.
 * Returns a function that takes the handlers away again.
 */
export function handleSignals(loop: Loop, force: () => void): () => void {
  let first: (typeof signals)[number] | undefined
  const onSignal = (signal: (typeof signals)[number]): void => {
    if (first === undefined || loop.state.phase === 'choosing') {
      first = signal
      loop.stop(signal)
      return
    }
    // A terminal that closes says so twice: the kernel and the shell both send it.
    if (signal === 'SIGHUP' && first === 'SIGHUP') return
    try {
      force()
    } finally {
      // Whatever could not be written: a second signal ends it.
      process.exit(exitCodes[signal])
    }
  }
  const onBug = (error: unknown): void => loop.fail(error)
  // Never taken away again: without any handler Node would end at a HUP.
  const isDeaf = isUnderNohup(process.env)
  if (isDeaf) process.on('SIGHUP', () => undefined)
  const heard = signals.filter((signal) => signal !== 'SIGHUP' || !isDeaf)
  for (const signal of heard) process.on(signal, onSignal)
  outliveTerminal()
  process.on('uncaughtException', onBug)
  process.on('unhandledRejection', onBug)
  return () => {
    for (const signal of heard) process.off(signal, onSignal)
    process.off('uncaughtException', onBug)
    process.off('unhandledRejection', onBug)
  }
}
