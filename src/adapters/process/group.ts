// Runs one program in a process group of its own, without a terminal, so that nothing of it is alive when its end is told.
// Long because start, limits and end of a group share its state: what one begins another has to take back.
import { spawn, type ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import type { Held } from './cage-held.ts'
import { openChannels, type Channels, type ChannelsOptions, type Output } from './channels.ts'
import { enclose, type Enclosure, type EnclosureOptions, type Heard } from './enclosure.ts'
import { watchIdle } from './idle.ts'
import { findAlive, killLadder, reap, stopLadder, sweepLadder, type Quarry } from './reap.ts'
import { holdersOf } from './strays.ts'
import { birthOf, gone, processTable, type Birth, type Marker, type ProcessEntry } from './table.ts'

export interface GroupOptions extends EnclosureOptions {
  /** Goes to stdin: an argument would be seen in `ps` and fails at 128 KiB. */
  readonly input: string
  /** For programs that are talked to: stdin stays open after `input`. */
  readonly keepsInput?: boolean
  /** A socket where much may be printed; a pipe for the user's own shell lines, which may open it by name. */
  readonly stdout: ChannelsOptions['stdout']
  readonly marker: Marker
  /** A cage that waits for it. */
  readonly held?: Held | undefined
  /** What it put into the background lives on when it has ended by itself: a sound, a message on the screen. */
  readonly mayLeave?: boolean
  readonly timeoutMs: number
  /** 0 = off. */
  readonly idleTimeoutMs: number
  /** From the first signal to KILL. */
  readonly graceMs: number
  /** What to write to stdin before the first signal, for programs that can be asked to stop; empty: nothing. */
  farewell?(): string
  /** Asked after each output: until it resolves nothing more is read, and no time of the program's passes. Undefined: go on. */
  room?(): Promise<void> | undefined
  /** The chunk is lent: what is kept of it must be copied. */
  onOutput(chunk: Buffer): void
  onErrorOutput(chunk: Buffer): void
}

/** Why ralph ended it; recorded before the first signal goes out, because some agents answer a signal with success. */
type EndCause = 'timeout' | 'idle' | 'stopped' | 'budget' | 'turn_over' | 'hopeless' | 'limits'

export interface GroupEnd {
  readonly exitCode?: number
  readonly signal?: NodeJS.Signals
  readonly cause?: EndCause
  /** Processes that were still there when the leader had ended by itself, and were ended. */
  readonly leftBehind: number
  readonly survivors: number[]
  /** Somebody who cannot be found has its output open still. */
  readonly isHeld?: true
  /** Its cage could not be made: it has not run, and stderr says why. */
  readonly hasNoCage?: true
  /** Files outside of its cage's work that came while it ran, and that later runs obey. */
  readonly came?: readonly string[]
  /** Limits that it has reached, as the user wrote them. */
  readonly reached?: readonly string[]
}

export interface Group {
  readonly pid: number
  readonly cause: EndCause | undefined
  /** Who was alive at its end, where nobody had to be ended; those that are older than the leader may be left out. */
  readonly table: readonly ProcessEntry[] | undefined
  write(text: string): void
  /** None of its time passes until this resolves. */
  wait(until: Promise<unknown>): void
  closeInput(): void
  /** The first cause stands. */
  end(cause: EndCause): void
  /** Never rejects. */
  readonly ended: Promise<GroupEnd>
}

/** Throws what `spawn` says when the program cannot be started (ENOENT, E2BIG …); nothing runs then, and what is held is left to whoever holds it. */
export async function startGroup(options: GroupOptions): Promise<Group> {
  const { enclosure: entered, child, channels, heard, birth } = await started(options)
  const { hold: held, isCaged, endsWhole } = entered
  const pid = child.pid ?? 0
  const known = new Map<number, string>()
  const quarry: Quarry = {
    marker: options.marker,
    group: pid,
    known,
    since: birth,
    ...(isCaged && { isCaged }),
  }
  let cause: EndCause | undefined
  let table: readonly ProcessEntry[] | undefined
  let climbing: Promise<number[]> | undefined
  let climbed = (): void => undefined
  const ladderClimbed = new Promise<void>((resolve) => {
    climbed = resolve
  })
  let lastOutput = performance.now()
  const exit = exitOf(child)
  let isHolding = false
  /** How much has to end before its time goes on. */
  let waits = 0
  /** What is left of a program that ends or is ended is little, and read whatever else waits. */
  let isLeaving = false
  let leave = (): void => undefined
  const leaving = new Promise<void>((resolve) => {
    leave = (): void => {
      isLeaving = true
      resolve()
    }
  })
  void exit.then(() => leave())
  const wait = async (until: Promise<unknown>): Promise<void> => {
    waits += 1
    patience.stop()
    await Promise.race([until, leaving]).catch(() => undefined)
    waits -= 1
    lastOutput = performance.now()
    if (!isLeaving && waits === 0) patience.start()
  }
  const hold = (room: Promise<void>): void => {
    isHolding = true
    output.pause()
    void wait(room).then(() => {
      isHolding = false
      output.resume()
    })
  }

  const output = channels.listen(
    child,
    (chunk) => {
      lastOutput = performance.now()
      options.onOutput(chunk)
      if (isLeaving || isHolding) return
      const room = options.room?.()
      if (room !== undefined) hold(room)
    },
    (chunk) => {
      lastOutput = performance.now()
      held?.hear(chunk)
      options.onErrorOutput(chunk)
    },
  )
  if (options.keepsInput === true) child.stdin?.write(options.input)

  const end = (why: EndCause): void => {
    if (cause !== undefined) return
    cause = why
    leave()
    const farewell = options.farewell?.() ?? ''
    if (farewell !== '') child.stdin?.write(farewell)
    // What takes the machine has no time to be kind.
    const ladder = why === 'limits' ? killLadder : stopLadder(options.graceMs)
    climbing = reap(quarry, farewell === '' ? ladder : [{ waitMs: farewellMs }, ...ladder]).finally(climbed)
  }
  const patience = stopwatch(options.timeoutMs, () => end('timeout'))
  const stopIdle = watchIdle(
    {
      quarry,
      idleTimeoutMs: options.idleTimeoutMs,
      lastOutput: () => (waits > 0 ? performance.now() : lastOutput),
    },
    () => end('idle'),
  )

  const stopLooking = held?.watch(quarry, () => end('limits'))

  const settle = async (): Promise<GroupEnd> => {
    // A process that not even KILL ends never exits: the ladder's end counts then.
    await Promise.race([exit, ladderClimbed.then(() => delay(unkillableMs))])
    patience.stop()
    stopIdle()
    stopLooking?.()
    if (climbing === undefined)
      await drained({ output, lastOutput: () => lastOutput, quietMs: 250, longestMs: 1000 })
    // What is left in a cage ends with it, a moment later: to look for it meanwhile would be a look in vain.
    const isLooked = climbing === undefined && (endsWhole || options.mayLeave !== true)
    const isSwept = isLooked && !endsWhole
    if (isLooked && heard.holder !== undefined) await gone(heard.holder, 1000)
    const around = isLooked ? processTable(birth) : []
    const left = isLooked ? findAlive(quarry, around).length : 0
    let leftBehind = isSwept ? left : 0
    if (isLooked && left === 0) table = around
    if (left > 0) climbing = reap(quarry, [...(endsWhole ? [{ waitMs: 1000 }] : []), ...sweepLadder])
    let survivors = await (climbing ?? [])
    if (!output.isOver && survivors.length === 0 && options.mayLeave !== true) {
      // Only what the program started can have its streams, whatever became of its environment.
      const holders = holdersOf(channels.streams)
      for (const holder of holders) known.set(holder.pid, holder.started)
      if (isSwept) leftBehind += holders.length
      if (holders.length > 0) survivors = await reap(quarry, sweepLadder)
    }
    // All writers are dead: what is left in the pipe is finite, and its end certain unless a survivor holds it.
    const quietMs = survivors.length > 0 ? 100 : 1000
    await drained({ output, lastOutput: () => lastOutput, quietMs, longestMs: 60_000 })
    const isHeld = !output.isOver && survivors.length === 0
    child.stdin?.destroy()
    output.close()
    const { exitCode, signalCode } = child
    const hasNoCage = exitCode !== null && cause === undefined && !(await heard.hasRun())
    const { came, reached } = await entered.leave(child)
    return {
      ...(exitCode !== null && { exitCode }),
      ...(signalCode !== null && { signal: signalCode }),
      ...(cause !== undefined && { cause }),
      leftBehind,
      survivors,
      ...(isHeld && { isHeld }),
      ...(hasNoCage && { hasNoCage }),
      ...(reached.length > 0 && { reached }),
      ...(came.length > 0 && { came }),
    }
  }

  return {
    pid,
    get cause() {
      return cause
    },
    get table() {
      return table
    },
    write: (text) => void child.stdin?.write(text),
    wait: (until) => void wait(until),
    closeInput: () => void child.stdin?.end(),
    end,
    ended: settle(),
  }
}

interface Started {
  readonly enclosure: Enclosure
  readonly child: ChildProcess
  readonly channels: Channels
  readonly heard: Heard
  readonly birth: Birth
}

async function started(options: GroupOptions): Promise<Started> {
  const { held, marker, keepsInput, input, stdout } = options
  const open = (): Promise<Channels> =>
    openChannels({
      runId: marker['RALPH_RUN_ID'] ?? '',
      input: keepsInput === true ? undefined : input,
      stdout,
    })
  let channels = held?.channels ?? (await open())
  let enclosure: Enclosure | undefined
  try {
    enclosure = enclose(options)
    const waiting = await held?.begin(enclosure, input)
    if (held !== undefined && waiting !== undefined) return { enclosure, child: waiting, ...held }
    if (held !== undefined) channels = await open()
    const child = spawn(enclosure.file, enclosure.args, {
      cwd: options.cwd,
      env: enclosure.env,
      // A session of its own: no terminal to read keys from, and Ctrl-C reaches ralph alone.
      detached: true,
      stdio: [...channels.stdio, ...enclosure.stdio],
    })
    await spawned(child)
    channels.handOver()
    return { enclosure, child, channels, heard: enclosure.hear(child), birth: birthOf(child.pid ?? 0) }
  } catch (error) {
    channels.discard()
    await enclosure?.leave()
    throw error
  }
}

/** `setTimeout` fires at once for longer ones. */
const longestTimerMs = 2 ** 31 - 1
const unkillableMs = 500
const farewellMs = 500

/** Runs from the start; what passes while it is stopped does not count. */
function stopwatch(ms: number, onOver: () => void): { start(): void; stop(): void } {
  let leftMs = ms
  let began = 0
  let timer: NodeJS.Timeout | undefined
  const start = (): void => {
    began = performance.now()
    timer = setTimeout(onOver, Math.min(leftMs, longestTimerMs))
  }
  start()
  return {
    start,
    stop() {
      if (timer === undefined) return
      clearTimeout(timer)
      timer = undefined
      leftMs = Math.max(0, leftMs - (performance.now() - began))
    },
  }
}

function spawned(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
}

/** `exit`, not `close`: a grandchild that holds stdout would keep `close` away for ever. */
function exitOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve()
    else child.once('exit', () => resolve())
  })
}

interface Draining {
  readonly output: Output
  /** Monotonic. */
  lastOutput(): number
  readonly quietMs: number
  readonly longestMs: number
}

async function drained(what: Draining): Promise<void> {
  const began = performance.now()
  while (!what.output.isOver) {
    const now = performance.now()
    if (now - began >= what.longestMs || now - Math.max(began, what.lastOutput()) >= what.quietMs) return
    await Promise.race([what.output.over, delay(5)])
  }
}
