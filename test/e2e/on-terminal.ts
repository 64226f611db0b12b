// The built program on a pseudo terminal, without a shell around it.
import { spawn } from '@lydell/node-pty'
import { onTestFinished } from 'vitest'
import { program } from './harness.ts'
import type { Scratch } from './harness.ts'

interface OnTerminal {
  raw(): string
  until(wanted: (raw: string) => boolean): Promise<void>
  type(keys: string): void
  readonly exited: Promise<{ exitCode: number }>
}

export function onTerminal(at: Scratch, args: readonly string[], cwd = at.repo): OnTerminal {
  const env = Object.fromEntries(
    Object.entries({ ...at.env, TERM: 'xterm-256color' }).filter(([, value]) => value !== undefined),
  ) as Record<string, string>
  const pty = spawn(process.execPath, [program, ...args], { cols: 100, rows: 30, cwd, env })
  let raw = ''
  let hasEnded = false
  const watchers = new Set<() => void>()
  pty.onData((data) => {
    raw += data
    for (const look of watchers) look()
  })
  const exited = new Promise<{ exitCode: number }>((done) => {
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
    exited,
  }
}
