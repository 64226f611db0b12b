// The process while a loop runs in it: its signals, its terminal and whoever reads its stdout drive the loop's handle.
import { closeSync, openSync, readFileSync, readlinkSync } from 'node:fs'
import { devNull } from 'node:os'
import { basename } from 'node:path'
import { isatty } from 'node:tty'
import { isFull } from '../../core/disk.ts'
import { signalExits } from '../../core/outcome.ts'
import type { LoopHandle } from '../app.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type Signal = (typeof signals)[number]

/** The first signal stops the loop in order, the next one at once. Returns a function that takes the handlers away again. */
export function driveBySignals(
  loop: LoopHandle,
  readerGone: AbortSignal,
  tellKilled: () => void,
): () => void {
  let first: Signal | undefined
  const onSignal = (signal: Signal): void => {
    if (first === undefined || loop.isAsking) {
      first = signal
      loop.stop(signal)
      return
    }
    // A terminal that closes says so twice: the kernel and the shell both send it.
    if (signal === 'SIGHUP' && first === 'SIGHUP') return
    try {
      loop.kill()
      tellKilled()
    } finally {
      // Whatever could not be written: a second signal ends it.
      process.exit(signalExits[signal])
    }
  }
  const onBug = (error: unknown): void => loop.fail(error)
  const onGone = (): void => {
    // A log on a full disk is no reader that went away.
    if (isFull(readerGone.reason)) loop.fail(readerGone.reason)
    else loop.stop(isBroken(readerGone.reason) ? 'unread' : 'SIGHUP')
  }
  // Never taken away again: without any handler Node would end at a HUP.
  const isDeaf = isUnderNohup(process.env)
  if (isDeaf) process.on('SIGHUP', () => undefined)
  const heard = signals.filter((signal) => signal !== 'SIGHUP' || !isDeaf)
  for (const signal of heard) process.on(signal, onSignal)
  outliveTerminal()
  process.on('uncaughtException', onBug)
  process.on('unhandledRejection', onBug)
  readerGone.addEventListener('abort', onGone, { once: true })
  return () => {
    for (const signal of heard) process.off(signal, onSignal)
    process.off('uncaughtException', onBug)
    process.off('unhandledRejection', onBug)
    readerGone.removeEventListener('abort', onGone)
  }
}

/** Before there is a loop. Returns a function that takes the handlers away again. */
export function onStop(stop: (signal: Signal) => void): () => void {
  for (const signal of signals) process.on(signal, stop)
  return () => {
    for (const signal of signals) process.off(signal, stop)
  }
}

/** A pipe; a terminal that is closed says EIO. */
function isBroken(reason: unknown): boolean {
  return reason instanceof Error && 'code' in reason && reason.code === 'EPIPE'
}

/** Node takes every signal back when it starts, so the system no longer tells that HUP was to be ignored. */
function isUnderNohup(env: NodeJS.ProcessEnv): boolean {
  // Most shells name there what they were asked to start.
  return basename(env['_'] ?? '') === 'nohup' || hasInputOfNohup()
}

/** In a terminal's place nohup opens /dev/null for writing only; nobody else makes such a stdin. */
function hasInputOfNohup(): boolean {
  try {
    const isWriteOnly = /^flags:\s*\d*1$/m.test(readFileSync('/proc/self/fdinfo/0', 'utf8'))
    return isWriteOnly && readlinkSync('/proc/self/fd/0') === '/dev/null'
  } catch {
    // Only Linux has these files.
    return false
  }
}

/** Lets go of a terminal that is gone: at its end Node sets each terminal back as it was, and aborts where it cannot. */
function outliveTerminal(): void {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd))
  process.once('exit', () => {
    for (const fd of terminals) {
      if (isatty(fd)) continue
      closeSync(fd)
      // Takes the number that is free now; Node leaves alone what was opened anew.
      openSync(devNull, 'r+')
    }
  })
}
