// Opens the terminal UI: the alternate screen, keys, mouse and size, pictures at most ten times a second; and gives the terminal back as it was.
import * as ink from 'ink'
import { Box, Text } from 'ink'
import { paintFor, type Io } from '../io.ts'
import { isTalk } from '../../core/cursor.ts'
import { attention, popTitle, pushTitle, titleBytes, titleOf } from '../print/title.ts'
import { legible } from '../vocabulary.ts'
import type { Client } from './client.ts'
import { drawn, penFor } from './draw.ts'
import { effectsOf } from './effects.ts'
import type { Size } from './frame.ts'
import type { Act, Input } from './inputs.ts'
import { keysOf } from './keys.ts'
import { isRunning } from './loop-model.ts'
import { clearBytes, enterBytes, leaveBytes } from '../print/modes.ts'
import { opened, update, view, type Entry, type Model } from './view-model.ts'
import { memo, type ReactElement } from 'react'

export interface Terminal extends Pick<Io, 'stdin' | 'stdout' | 'env'> {
  /** `notify: false`: no bell. */
  readonly isSilent: boolean
  /** Stops this process until the shell lets it go on; `resumed` is to be called then. */
  readonly suspend: () => void
  /** Whoever gives it back where this process cannot. */
  readonly guard: (where: 'in' | 'out') => void
}

export interface Tui {
  /** Resolves when the user has left; rejects where the UI itself failed. The terminal is as it was by then. */
  readonly left: Promise<Left>
  /** Gives the terminal back at once: for whoever ends the process. */
  readonly leave: () => void
  /** By a signal. */
  readonly end: (exitCode: number) => void
  /** Gives the terminal back and stops, until the shell lets it go on. */
  readonly suspend: () => void
  readonly resumed: () => void
  /** Something has happened in this process. */
  readonly hear: (input: Input) => void
}

interface Left {
  readonly exitCode: number
  /** To be said on the terminal. */
  readonly words: readonly string[]
}

const drawMs = 100
const tickMs = 250

interface RawInput {
  setRawMode?: (isRaw: boolean) => void
}

export async function startTui(client: Client, entry: Entry, terminal: Terminal): Promise<Tui> {
  // In the built program: see scripts/ink.mjs.
  await (ink as { readonly loaded?: Promise<void> }).loaded
  const { stdin, stdout, env } = terminal
  const pen = penFor(env)
  const sizeNow = (): Size => ({ columns: stdout.columns ?? 80, rows: stdout.rows ?? 24 })
  const sheet = { paint: paintFor(stdout, env), columns: stdout.columns }
  const world = { size: sizeNow(), nowMs: client.now(), place: client.place }
  let { model, acts } = opened(entry, world, sheet)
  let resolve: (left: Left) => void
  let reject: (error: unknown) => void
  const left = new Promise<Left>((yes, no) => {
    resolve = yes
    reject = no
  })
  let isOpen = true
  let isIn = false
  let rest = ''
  let drawTimer: NodeJS.Timeout | undefined
  let drawnAtMs = 0

  const picture = () => <Screen rows={drawn(view(model), pen)} />
  const enter = (): void => {
    isIn = true
    // After a stop from outside the shell has changed it, and Node takes it for raw still.
    ;(stdin as RawInput).setRawMode?.(false)
    ;(stdin as RawInput).setRawMode?.(true)
    stdin.resume()
    stdout.write(enterBytes)
    terminal.guard('in')
  }
  const leave = (): void => {
    if (!isIn) return
    isIn = false
    stdout.write(leaveBytes)
    ;(stdin as RawInput).setRawMode?.(false)
    stdin.pause()
    terminal.guard('out')
  }
  stdout.write(pushTitle)
  enter()
  const shown = ink.render(picture(), {
    stdout: stdout as NodeJS.WriteStream,
    stdin: stdin as NodeJS.ReadStream,
    exitOnCtrlC: false,
    patchConsole: false,
  })

  const close = (): Promise<void> => {
    isOpen = false
    clearTimeout(drawTimer)
    clearInterval(ticking)
    stdin.off('data', onData)
    stdout.off('resize', onResize)
    const settled = effects.close()
    shown.unmount()
    leave()
    stdout.write(popTitle)
    return settled
  }
  const fail = (error: unknown): void => {
    if (!isOpen) return
    void close()
    reject(error)
  }
  /** What is thrown here would end the process with the terminal as it is. */
  const guarded = (work: () => void): void => {
    if (!isOpen) return
    try {
      work()
    } catch (error) {
      fail(error)
    }
  }
  const draw = (): void => {
    clearTimeout(drawTimer)
    drawTimer = undefined
    if (!isIn) return
    drawnAtMs = performance.now()
    shown.rerender(picture())
  }
  const drawSoon = (): void => {
    const waitMs = drawMs - (performance.now() - drawnAtMs)
    if (waitMs <= 0) draw()
    else drawTimer ??= setTimeout(() => guarded(draw), waitMs)
  }
  const redraw = (): void => {
    shown.clear()
    stdout.write(clearBytes)
    draw()
  }
  const suspend = (): void => {
    if (!isIn) return
    shown.clear()
    leave()
    if (model.at === 'loop' && model.loop !== undefined && isRunning(model.loop))
      stdout.write('The loop goes on; fg brings the screens back.\n')
    terminal.suspend()
  }
  const perform = (act: Act): void => {
    if (act.do === 'quit') {
      const words = act.words.map((word) => legible(word, env))
      void close().then(() => resolve({ exitCode: act.exitCode, words }))
    } else if (act.do === 'suspend') suspend()
    else if (act.do === 'redraw') redraw()
    else effects.perform(act)
  }
  const take = (input: Input): void => {
    const before = model
    ;({ model, acts } = update(model, input))
    tellTitle(input, before, model)
    for (const act of acts) perform(act)
  }
  const tellTitle = (input: Input, before: Model, after: Model): void => {
    if (input.type !== 'told') return
    const last = input.records.findLast((told) => told.type === 'event' && !isTalk(told.event))
    const title = last?.type === 'event' ? titleOf(last.event) : undefined
    if (title !== undefined) stdout.write(titleBytes(title))
    const isNews = before.at === 'loop' && after.at === 'ending' && !terminal.isSilent
    if (isNews) stdout.write(attention(`ralph ${input.change}: ${after.ending?.loop.complete?.status ?? ''}`))
  }
  const hear = (input: Input): void =>
    guarded(() => {
      take(input)
      drawSoon()
    })
  const effects = effectsOf(client, hear, fail)
  const onData = (bytes: Buffer | string): void =>
    guarded(() => {
      const typed = keysOf(rest + bytes.toString())
      rest = typed.rest
      for (const key of typed.keys) {
        take({ type: 'tick', nowMs: client.now() })
        take({ type: 'key', key })
        if (!isOpen) return
      }
      if (typed.keys.length > 0) draw()
    })
  const onResize = (): void =>
    guarded(() => {
      take({ type: 'resize', size: sizeNow() })
      redraw()
    })
  const ticking = setInterval(() => hear({ type: 'tick', nowMs: client.now() }), tickMs)
  stdin.on('data', onData)
  stdout.on('resize', onResize)
  guarded(() => {
    for (const act of acts) perform(act)
  })
  return {
    left,
    leave,
    end: (exitCode) =>
      guarded(() => {
        void close()
        resolve({ exitCode, words: [] })
      }),
    suspend: () => guarded(suspend),
    hear,
    resumed: () =>
      guarded(() => {
        enter()
        take({ type: 'resize', size: sizeNow() })
        redraw()
      }),
  }
}

/** Most rows stay as they are from one picture to the next. */
const Row = memo(function Row({ text }: { readonly text: string }): ReactElement {
  // A row without a character would have no height.
  return <Text wrap="truncate-end">{text === '' ? ' ' : text}</Text>
})

export function Screen({ rows }: { readonly rows: readonly string[] }): ReactElement {
  return (
    <Box flexDirection="column">
      {rows.map((text, at) => (
        // A row is its place.
        <Row key={at} text={text} />
      ))}
    </Box>
  )
}
