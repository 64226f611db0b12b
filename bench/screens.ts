// The screens on a terminal: a flood that is followed in them beside one in plain lines, and how soon they are there.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { spawn } from '@lydell/node-pty'
import { writePlan, type Bed, type Samples } from './bed.ts'
import { writeFlood } from './loops.ts'
import { commitRepository, highWaterMb, othersSince, shuffled, ticks, type Sample } from './measure.ts'
import { program } from './peer-programs.ts'

interface Watching {
  /** Resolves to the time at which the program has printed this, since the last key. */
  until(words: string): Promise<number>
  type(keys: string): number
  /** When each picture was drawn. */
  readonly drawnMs: readonly number[]
  readonly exited: Promise<{ readonly code: number; readonly atMs: number; readonly peakMb: number }>
}

/** Ink ends the removal of the last picture with it, once for each. */
const pictureBegins = '\u001B[G'
const longestMs = 120_000

function onTerminal(
  args: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Watching {
  const { NO_COLOR: _, CI: __, ...rest } = env
  const pty = spawn(process.execPath, [...args], {
    cols: 120,
    rows: 40,
    cwd,
    env: { ...rest, TERM: 'xterm-256color', LANG: 'C.UTF-8' },
  })
  const drawnMs: number[] = []
  let said = ''
  const waiting = new Set<() => void>()
  pty.onData((data) => {
    const now = performance.now()
    for (let at = data.indexOf(pictureBegins); at !== -1; at = data.indexOf(pictureBegins, at + 1))
      drawnMs.push(now)
    // Nobody waits for what was said so long ago.
    said = (said + data).slice(-100_000)
    for (const look of waiting) look()
  })
  let peakMb = 0
  const looking = setInterval(() => {
    peakMb = Math.max(peakMb, highWaterMb(pty.pid))
  }, 20)
  const late = setTimeout(() => pty.kill('SIGKILL'), longestMs)
  const exited = new Promise<Awaited<Watching['exited']>>((resolve) => {
    pty.onExit(({ exitCode: code }) => {
      clearInterval(looking)
      clearTimeout(late)
      resolve({ code, atMs: performance.now(), peakMb })
    })
  })
  return {
    until: (words) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (!said.includes(words)) return
          waiting.delete(look)
          resolve(performance.now())
        }
        waiting.add(look)
        look()
        void exited.then(() => reject(new Error(`ended before it said ${words}: ${said.slice(-2000)}`)))
      }),
    type(keys) {
      said = ''
      pty.write(keys)
      return performance.now()
    },
    drawnMs,
    exited,
  }
}

export async function screenFlood(bed: Bed): Promise<Samples> {
  const { rounds, megabytes } = bed.size
  const samples: Record<string, { floor: Sample[]; ralph: Sample[] }> = {}
  const add = (row: string, who: 'floor' | 'ralph', sample: Sample): void => {
    ;(samples[row] ??= { floor: [], ralph: [] })[who].push(sample)
  }
  const path = join(bed.root, 'flood.ndjson')
  writeFlood(path, megabytes)
  for (let round = 0; round < Math.ceil(rounds / 2); round += 1) {
    for (const who of shuffled(['floor', 'ralph'] as const)) {
      const place = bed.place(1, 'floods')
      const burnt = ticks()
      if (who === 'floor') {
        const beganMs = performance.now()
        const plain = onTerminal(
          [program, 'loop', 'demo', '--agent', 'claude', '--no-tui', '--on-complete', 'keep'],
          place,
        )
        const { code, atMs } = await plain.exited
        if (code !== 0) throw new Error(`the loop in plain lines ended with ${code}`)
        add('screens', 'floor', { value: atMs - beganMs, others: othersSince(burnt) })
      } else {
        const { ms, keyMs, drawn, peakMb } = await inScreens(place)
        const others = othersSince(burnt)
        add('screens', 'ralph', { value: ms, others })
        add('screens-key', 'ralph', { value: keyMs, others })
        add('screens-renders', 'ralph', { value: drawn, others })
        add('screens-memory', 'ralph', { value: peakMb, others })
      }
      bed.turns()
      rmSync(place.cwd, { recursive: true })
    }
  }
  rmSync(path)
  return Object.fromEntries(
    Object.entries(samples).map(([row, { floor, ralph }]) => [
      row,
      floor.length === 0 ? { ralph } : { floor, ralph },
    ]),
  )
}

/** Between two keys: there is a whole second without one. */
const betweenKeysMs = 1500
const firstKeyMs = 300
/** More than the question is left unanswered for. */
const unreadMs = 1000

async function inScreens(place: {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}): Promise<{ ms: number; keyMs: number; drawn: number; peakMb: number }> {
  const beganMs = performance.now()
  const screens = onTerminal([program, 'loop', 'demo', '--agent', 'claude'], place)
  let endedMs = 0
  const ended = screens.until('What should happen').then((atMs) => {
    endedMs = atMs
  })
  await Promise.race([screens.until('Write src/answer.ts'), ended])
  const keys: { readonly pressedMs: number; readonly tookMs: number }[] = []
  while (endedMs === 0) {
    // A quiet machine is through with all of it in little more than a second.
    await Promise.race([delay(keys.length === 0 ? firstKeyMs : betweenKeysMs), ended])
    if (endedMs > 0) break
    const [key, answer] = keys.length % 2 === 0 ? ['5', '[Log]'] : ['1', '[Agent]']
    const atMs = screens.type(key)
    await Promise.race([
      ended,
      screens.until(answer).then((seenMs) => keys.push({ pressedMs: atMs, tookMs: seenMs - atMs })),
    ])
  }
  // What is typed before anybody can have read the question is no answer to it.
  let isAnswered = false
  while (!isAnswered) {
    screens.type('\u001B')
    await Promise.race([
      delay(unreadMs),
      screens.until('[Summary]').then(() => {
        isAnswered = true
      }),
    ])
  }
  screens.type('q')
  const { peakMb } = await screens.exited
  const drawn = screens.drawnMs
    .filter((atMs) => atMs > beganMs && atMs < endedMs)
    .filter((atMs) => !keys.some((key) => key.pressedMs > atMs - 200 && key.pressedMs < atMs + 1000))
    .map((atMs) => screens.drawnMs.filter((other) => other >= atMs && other < atMs + 1000).length)
  const keyMs = Math.max(...keys.map(({ tookMs }) => tookMs))
  if (keys.length === 0 || drawn.length === 0) throw new Error('the flood was over before a key was pressed')
  return { ms: endedMs - beganMs, keyMs, drawn: Math.max(...drawn), peakMb }
}

/** The list of changes is what people wait for; the first picture, which says that it is read, comes before. */
export async function firstPicture(bed: Bed): Promise<Samples> {
  const cwd = join(bed.root, 'first-picture')
  mkdirSync(cwd)
  writePlan(cwd, 'demo', 5)
  commitRepository(cwd)
  const empty = join(bed.root, 'empty.cjs')
  writeFileSync(empty, '')
  const [floor, ralph]: [Sample[], Sample[]] = [[], []]
  for (let round = 0; round < bed.size.looks; round += 1) {
    for (const who of shuffled(['floor', 'ralph'] as const)) {
      const burnt = ticks()
      const beganMs = performance.now()
      const on = onTerminal([who === 'floor' ? empty : program], { cwd, env: bed.env })
      if (who === 'floor') {
        const { atMs } = await on.exited
        floor.push({ value: atMs - beganMs, others: othersSince(burnt) })
      } else {
        const atMs = await on.until('0/5 stories')
        on.type('q')
        await on.exited
        ralph.push({ value: atMs - beganMs, others: othersSince(burnt) })
      }
    }
  }
  return { 'screens-first': { floor, ralph } }
}
