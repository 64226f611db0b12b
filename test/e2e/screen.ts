// The built program's full screen on a headless terminal: what is on it, what is typed, and what is left of it at the end.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { IPty } from '@lydell/node-pty'
import xterm from '@xterm/headless'
import { onTestFinished } from 'vitest'
import { withEmoji } from '../../scripts/emoji-cells.ts'
import { shellOn } from '../pty.ts'
import { program, type Scratch } from './harness.ts'

export interface Screen {
  /** What is on it now, row by row. */
  text(): string
  /** Resolves as soon as the screen is as wanted; the test's own time limit says when it never is. */
  until(wanted: string | RegExp | ((text: string) => boolean)): Promise<string>
  /** The character in one cell. */
  cell(row: number, column: number): string
  type(keys: string): void
  resize(columns: number, rows: number): void
  /** Every byte so far. */
  raw(): string
  /** What is not as it was before the program; empty where all is. */
  changed(): readonly string[]
  /** To the program itself, not to the shell around it. */
  kill(signal: NodeJS.Signals): void
  /** As when its window is closed. */
  close(): void
  readonly pid: number
  /** Resolves when the shell has the terminal back. */
  readonly ended: Promise<Left>
}

interface Left {
  /** None where the shell was killed. */
  readonly code: number | undefined
  /** What stands on the terminal, and scrolled off it. */
  readonly text: string
  /** What is not as it was before; empty where all is. */
  readonly changed: readonly string[]
}

interface ScreenOptions {
  readonly columns?: number
  readonly rows?: number
  readonly env?: NodeJS.ProcessEnv
  /** The shell has jobs: the program can be stopped, and goes on with the next line that is typed. */
  readonly hasJobs?: true
}

const patienceMs = 60_000

/** It begins with the rows of the last one being erased, from below. */
const beforePicture = /(?<!\u001B\[1A)(?=\u001B\[2K)/

/** As a user has it: in a shell, which says what the program left behind. */
export function onScreen(at: Scratch, args: readonly string[], options: ScreenOptions = {}): Screen {
  const { columns = 100, rows = 30, env: more, hasJobs } = options
  const words = [process.execPath, program, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
  const modes = join(at.root, `stty-${randomUUID()}`)
  // Its size is the test's to change.
  const look = "stty -a | sed 's/rows [0-9]*; columns [0-9]*//'"
  // Somebody else puts them back after a kill -9: it may take a moment, and is looked at again.
  const compare = `tries=0
until ${look} | cmp -s - '${modes}'; do
  tries=$((tries + 1))
  if [ $code -ne 137 ] || [ $tries -gt 100 ]; then echo "stty changed"; break; fi
  sleep 0.1
done`
  const jobs = `while [ $code -eq 148 ]; do
${compare}
echo "stopped with $code"
read -r line
fg
code=$?
done`
  const command = `${hasJobs ? 'set -m' : ''}
echo "before the program"
${look} > '${modes}'
sh -c 'echo pid $$; exec "$@"' sh ${words.join(' ')}
code=$?
${hasJobs ? jobs : ''}
${compare}`
  const env = Object.fromEntries(
    Object.entries({ ...at.env, TERM: 'xterm-256color', PS1: '', ...more }).filter(
      ([, value]) => value !== undefined,
    ),
  ) as Record<string, string>
  const terminal = withEmoji(
    new xterm.Terminal({ cols: columns, rows, scrollback: 2000, allowProposedApi: true }),
  )
  const { pty, ended } = shellOn(at.root, command, { cols: columns, rows, cwd: at.repo, env })
  let raw = ''
  const watchers = new Set<() => void>()
  const looked = (): void => {
    for (const look of watchers) look()
  }
  pty.onData((data) => {
    raw += data
    // A slow reader gets several pictures at once: each is looked at, also one that did not stay.
    for (const picture of data.split(beforePicture)) terminal.write(picture, looked)
  })
  // What was written last is on the screen by then.
  const exited = ended.then(async (code) => {
    await new Promise<void>((done) => terminal.write('', done))
    return code
  })
  let hasEnded = false
  void exited.then(() => {
    hasEnded = true
  })
  onTestFinished(() => {
    if (!hasEnded) pty.kill('SIGKILL')
    terminal.dispose()
  })
  const linesOf = (from: number, to: number): string =>
    Array.from({ length: to - from }, (_, row) =>
      terminal.buffer.active.getLine(from + row)?.translateToString(true),
    ).join('\n')
  const text = (): string => {
    const { baseY } = terminal.buffer.active
    return linesOf(baseY, baseY + terminal.rows)
  }
  const pidOf = (): number => {
    const [, pid] = /pid (\d+)/.exec(raw) ?? []
    if (pid === undefined) throw new Error('the program has not begun')
    return Number(pid)
  }
  const changed = (): readonly string[] =>
    changedIn(terminal, raw, linesOf(0, terminal.buffer.active.length).trimEnd())
  return {
    text,
    raw: () => raw,
    changed,
    cell: (row, column) =>
      terminal.buffer.active
        .getLine(terminal.buffer.active.baseY + row)
        ?.getCell(column)
        ?.getChars() ?? '',
    until: (wanted) =>
      new Promise((done, fail) => {
        const isSo = typeof wanted === 'function' ? wanted : (now: string) => matches(now, wanted)
        const look = (): void => {
          if (!isSo(text())) return
          watchers.delete(look)
          clearTimeout(patience)
          done(text())
        }
        // Less than a test has: what is there instead tells more than that it took too long.
        const patience = setTimeout(
          () => fail(new Error(`not seen: ${String(wanted)}\n${text()}`)),
          patienceMs,
        )
        watchers.add(look)
        exited.then(() => {
          look()
          clearTimeout(patience)
          fail(
            new Error(
              `ended before it was seen: ${String(wanted)}\n${linesOf(0, terminal.buffer.active.length)}`,
            ),
          )
        }, fail)
        look()
      }),
    type: (keys) => pty.write(keys),
    resize(cols, height) {
      terminal.resize(cols, height)
      pty.resize(cols, height)
    },
    kill: (signal) => void process.kill(pidOf(), signal),
    // The types hide it.
    close: () => (pty as IPty & { destroy(): void }).destroy(),
    get pid() {
      return pidOf()
    },
    ended: exited.then((code) => {
      const whole = linesOf(0, terminal.buffer.active.length).trimEnd()
      return { code, text: whole, changed: changed() }
    }),
  }
}

function matches(text: string, wanted: string | RegExp): boolean {
  return typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)
}

function changedIn({ buffer, modes }: xterm.Terminal, raw: string, whole: string): readonly string[] {
  return [
    ...(buffer.active.type === 'normal' ? [] : ['the alternate screen']),
    ...(modes.mouseTrackingMode === 'none' ? [] : ['the mouse']),
    ...(modes.bracketedPasteMode ? ['pastes'] : []),
    ...(raw.lastIndexOf('\u001B[?25l') > raw.lastIndexOf('\u001B[?25h') ? ['the cursor'] : []),
    ...(whole.includes('stty changed') ? ['the line discipline'] : []),
    ...(whole.includes('before the program') ? [] : ['what stood there before']),
  ]
}
