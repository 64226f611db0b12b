// The built program on a pseudo terminal, by itself or in a shell, with its plain lines; on its full screen: screen.ts.
import { spawn, type IPty } from '@lydell/node-pty'
import { onTestFinished } from 'vitest'
import { program } from './harness.ts'
import type { Scratch } from './harness.ts'

interface OnTerminal {
  raw(): string
  until(wanted: (raw: string) => boolean): Promise<void>
  type(keys: string): void
  kill(signal: string): void
  /** As when its window is closed. */
  close(): void
  readonly exited: Promise<{ exitCode: number; signal?: number | undefined }>
}

export function onTerminal(at: Scratch, args: readonly string[], cwd = at.repo, cols = 100): OnTerminal {
  return open(at, process.execPath, [program, ...args], { cwd, cols })
}

/** A shell on the terminal, as a user has one: what the program leaves behind is seen by what the shell says after it. */
export function shellOnTerminal(at: Scratch, command: string): OnTerminal {
  // As an interactive shell does: a Ctrl-C is for the program, the shell goes on after it.
  return open(at, 'sh', ['-c', `trap : INT; ${command}`], { cwd: at.repo, cols: 100 })
}

function open(
  at: Scratch,
  file: string,
  args: string[],
  { cwd, cols }: { cwd: string; cols: number },
): OnTerminal {
  const env = Object.fromEntries(
    Object.entries({ RALPH_NO_TUI: 'true', ...at.env, TERM: 'xterm-256color', PS1: '' }).filter(
      ([, value]) => value !== undefined,
    ),
  ) as Record<string, string>
  const pty = spawn(file, args, { cols, rows: 30, cwd, env })
  let raw = ''
  let hasEnded = false
  const watchers = new Set<() => void>()
  pty.onData((data) => {
    raw += data
    for (const look of watchers) look()
  })
  const exited = new Promise<Awaited<OnTerminal['exited']>>((done) => {
    pty.onExit((end) => {
      hasEnded = true
      done(end)
    })
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
    kill: (signal) => pty.kill(signal),
    // The types hide it.
    close: () => (pty as IPty & { destroy(): void }).destroy(),
    exited,
  }
}
