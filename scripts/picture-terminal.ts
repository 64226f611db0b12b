// A program on a pseudo terminal of any size, with what its screen shows.
import { spawn } from '@lydell/node-pty'
import xterm from '@xterm/headless'
import { withEmoji } from './emoji-cells.ts'

export interface Shown {
  /** The screen as it is now, for whoever draws it. */
  readonly terminal: InstanceType<typeof xterm.Terminal>
  text(): string
  /** Resolves when the screen says so and has come to rest; rejects with what it says instead. */
  until(wanted: string | RegExp): Promise<void>
  type(keys: string): void
  resize(columns: number, rows: number): Promise<void>
  readonly exited: Promise<number>
  kill(): void
}

const restMs = 120
const longestMs = 240_000

export function shown(
  command: readonly string[],
  { cwd, env, columns, rows }: { cwd: string; env: Record<string, string>; columns: number; rows: number },
): Shown {
  const [file = '', ...args] = command
  const pty = spawn(file, args, { cols: columns, rows, cwd, env })
  const terminal = withEmoji(
    new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, scrollback: 0 }),
  )
  const watchers = new Set<() => void>()
  let changedAtMs = performance.now()
  pty.onData((data) => {
    changedAtMs = performance.now()
    terminal.write(data, () => {
      for (const look of watchers) look()
    })
  })
  const text = (): string => {
    const { active } = terminal.buffer
    return Array.from(
      { length: terminal.rows },
      (_, y) => active.getLine(active.viewportY + y)?.translateToString(true) ?? '',
    ).join('\n')
  }
  const exited = new Promise<number>((resolve) => {
    pty.onExit(({ exitCode }) => resolve(exitCode))
  })
  const until = (wanted: string | RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const is = (): boolean => {
        const now = text()
        return typeof wanted === 'string' ? now.includes(wanted) : wanted.test(now)
      }
      const done = (work: () => void): void => {
        watchers.delete(look)
        clearTimeout(late)
        clearInterval(resting)
        work()
      }
      // A picture in the middle of a write would be half of one and half of the next.
      const look = (): void => {
        if (is() && performance.now() - changedAtMs >= restMs) done(resolve)
      }
      const resting = setInterval(look, 20)
      const late = setTimeout(
        () => done(() => reject(new Error(`the screen never said ${String(wanted)}:\n${text()}`))),
        longestMs,
      )
      watchers.add(look)
      look()
    })
  return {
    terminal,
    text,
    until,
    type: (keys) => pty.write(keys),
    async resize(toColumns, toRows) {
      changedAtMs = performance.now()
      terminal.resize(toColumns, toRows)
      pty.resize(toColumns, toRows)
      await until(/\S/)
    },
    exited,
    kill: () => pty.kill('SIGKILL'),
  }
}
