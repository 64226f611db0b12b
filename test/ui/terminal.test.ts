// A loop on a real (pseudo) terminal: the live line, the title, the question, and what is left behind.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { spawn } from '@lydell/node-pty'
import type { IPty } from '@lydell/node-pty'
import xterm from '@xterm/headless'
import { build } from 'esbuild'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

let folder: string
let child: string
let pty: IPty | undefined

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ralph-terminal-'))
  child = join(folder, 'child.mjs')
  await build({
    entryPoints: [fileURLToPath(new URL('terminal-child.ts', import.meta.url))],
    outfile: child,
    bundle: true,
    format: 'esm',
    platform: 'node',
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
  })
})
afterAll(() => rm(folder, { recursive: true, force: true }))
afterEach(() => {
  pty?.kill('SIGKILL')
  pty = undefined
})

interface Screen {
  readonly raw: () => string
  readonly lines: () => readonly string[]
  /** Resolves as soon as the screen is as wanted; the test's own time limit says when it never is. */
  readonly until: (wanted: (lines: readonly string[]) => boolean) => Promise<readonly string[]>
  readonly step: () => void
  readonly resize: (columns: number) => void
  readonly exited: Promise<void>
}

function open(columns = 80, env: Readonly<Record<string, string>> = {}): Screen {
  const rows = 30
  const terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
  const running = spawn(process.execPath, [child], {
    cols: columns,
    rows,
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', TERM: 'xterm-256color', NO_COLOR: '1', ...env },
  })
  pty = running
  let raw = ''
  const watchers = new Set<() => void>()
  const lines = (): string[] => {
    const buffer = terminal.buffer.active
    return Array.from(
      { length: buffer.length },
      (_, row) => buffer.getLine(row)?.translateToString(true) ?? '',
    )
  }
  running.onData((data) => {
    raw += data
    terminal.write(data, () => watchers.forEach((watch) => watch()))
  })
  const exited = new Promise<void>((resolve) => {
    running.onExit(() => terminal.write('', resolve))
  })
  return {
    raw: () => raw,
    lines,
    until: (wanted) =>
      new Promise((resolve) => {
        const watch = (): void => {
          const seen = lines()
          if (!wanted(seen)) return
          watchers.delete(watch)
          resolve(seen)
        }
        watchers.add(watch)
        watch()
      }),
    step: () => running.kill('SIGUSR2'),
    resize: (next) => {
      running.resize(next, rows)
      terminal.resize(next, rows)
    },
    exited,
  }
}

const spinning = (line: string): boolean => /^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] /.test(line)
const answer = (text: string): void => pty?.write(text)

/** One step at a time: two equal signals at once arrive as one. */
async function toQuestion(screen: Screen): Promise<void> {
  await screen.until((lines) => lines.some(spinning))
  screen.step()
  await screen.until((lines) => lines.some((line) => line.includes('saved 1a2b3c4')))
  screen.step()
  await screen.until((lines) => lines.some((line) => line.includes('[keep]')))
}

describe('on a terminal', () => {
  it('one live line at the bottom shows story, attempt, elapsed, tokens and the last tool, and is gone afterwards', async () => {
    const screen = open()
    const seen = await screen.until((lines) =>
      lines.some((line) => spinning(line) && line.includes('9.3k tokens')),
    )
    const live = seen.filter(spinning)
    expect(live).toHaveLength(1)
    expect(live[0]).toMatch(/^. 1\/2 Model · #1 · \d+ s · 9\.3k tokens · Edit src\/a\.ts$/)
    await toQuestion(screen)
    expect(screen.lines().filter(spinning)).toEqual([])
    answer('later\n')
    await screen.exited
    expect(screen.lines().filter(spinning)).toEqual([])
    expect(screen.lines()).toContain('chose later')
    expect(screen.lines().join('\n')).toMatch(
      /\n {2}↺ undone, 2 files: mynote\.md, src\/a\.ts +1m 04s .*\n {4}kept as #1: ralph diff 1 add-login\n/,
    )
  })

  it('R11: made narrower, the live line still is one line and leaves nothing behind', async () => {
    // Two frames on their way to a screen that is narrower meanwhile would wrap twice; at one a second none is.
    const screen = open(100, { FRAME_MS: '1000' })
    await screen.until((lines) => lines.some((line) => spinning(line) && line.includes('9.3k tokens')))
    screen.resize(40)
    await screen.until((lines) => lines.some((line) => spinning(line) && line.length < 40))
    screen.step()
    // The live line stands below what is saved for a moment; what a narrower screen left of it would stay.
    const isLive = (line: string): boolean => line.includes('· #1 ·') || line.includes('9.3k tokens')
    await screen.until((lines) => lines.some((line) => line.includes('saved 1a2b3c4')) && !lines.some(isLive))
  })

  it('contract 10: the title is set exactly, without control characters, and stays', async () => {
    const screen = open()
    await toQuestion(screen)
    answer('\n')
    await screen.exited
    const raw = screen.raw()
    const done = '\u001B]0;Ralph: add-login [done]\u0007'
    expect(raw.match(/\u001B\]0;[^\u0007]*\u0007|\u001B\[2[23];0t/g)).toEqual([
      '\u001B[22;0t',
      '\u001B]0;Ralph: add-login [1/8]\u0007',
      done,
      '\u001B[23;0t',
      done,
    ])
    expect(screen.lines()).toContain('chose keep')
    expect(raw).not.toContain('\u001B[?25l')
  })

  it('the question says by branch names what each answer does, asks again after nonsense, and takes words', async () => {
    const screen = open()
    await toQuestion(screen)
    const text = screen.lines().join('\n')
    expect(text).toContain('cleanup   all changes on main, uncommitted; the branch ralph/add-login')
    expect(text).toContain('keep      stay on ralph/add-login with its commits\n')
    answer('delete everything\n')
    await screen.until((lines) => lines.some((line) => line.includes('please type c, s, k or l')))
    answer('cleanup\n')
    await screen.exited
    expect(screen.lines()).toContain('chose cleanup')
  })

  it('R11: Ctrl-C at the question touches nothing and leaves a sane terminal', async () => {
    const screen = open()
    await toQuestion(screen)
    answer('\u0003')
    await screen.exited
    expect(screen.lines()).toContain('chose later')
    expect(screen.raw().endsWith('chose later\r\n')).toBe(true)
  })
})
