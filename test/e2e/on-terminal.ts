// The built program on a pseudo terminal, by itself or in a shell, with its plain lines; on its full screen: screen.ts.
import type { IPty } from '@lydell/node-pty'
import { onTestFinished } from 'vitest'
import { shellOn } from '../pty.ts'
import { program } from './harness.ts'
import type { Scratch } from './harness.ts'

interface OnTerminal {
  raw(): string
  until(wanted: (raw: string) => boolean): Promise<void>
  type(keys: string): void
  /** As when its window is closed. */
  close(): void
  /** No code where it was killed. */
  readonly exited: Promise<{ exitCode: number | undefined }>
}

export function onTerminal(at: Scratch, args: readonly string[], cwd = at.repo, cols = 100): OnTerminal {
  const words = [process.execPath, program, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
  return open(at, words.join(' '), { cwd, cols })
}

/** A shell on the terminal, as a user has one: what the program leaves behind is seen by what the shell says after it. */
export function shellOnTerminal(at: Scratch, command: string): OnTerminal {
  return open(at, command, { cwd: at.repo, cols: 100 })
}

function open(at: Scratch, command: string, { cwd, cols }: { cwd: string; cols: number }): OnTerminal {
  const env = Object.fromEntries(
    Object.entries({ RALPH_NO_TUI: 'true', ...at.env, TERM: 'xterm-256color', PS1: '' }).filter(
      ([, value]) => value !== undefined,
    ),
  ) as Record<string, string>
  const { pty, ended } = shellOn(at.root, `${command}\ncode=$?`, { cols, rows: 30, cwd, env })
  let raw = ''
  let hasEnded = false
  const watchers = new Set<() => void>()
  pty.onData((data) => {
    raw += data
    for (const look of watchers) look()
  })
  const exited = ended.then((exitCode) => {
    hasEnded = true
    raw = raw.replace(/ended with \d+\r\n$/, '')
    return { exitCode }
  })
  onTestFinished(() => {
    if (!hasEnded) pty.kill('SIGKILL')
  })
  return {
    raw: () => raw,
    until: (wanted) =>
      new Promise((done, fail) => {
        const look = (): void => {
          if (!wanted(raw)) return
          watchers.delete(look)
          done()
        }
        watchers.add(look)
        exited.then(() => fail(new Error(`ended before it was seen\n${raw}`)), fail)
        look()
      }),
    type: (keys) => pty.write(keys),
    // The types hide it.
    close: () => (pty as IPty & { destroy(): void }).destroy(),
    exited,
  }
}
