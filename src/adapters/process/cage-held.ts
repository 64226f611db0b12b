// A cage that is made before its agent is due, and held at a gate: a small shell in it waits for one line, and without that ends. See docs/decisions/0017.
import { spawn, type ChildProcess } from 'node:child_process'
import { setImmediate, setTimeout as delay } from 'node:timers/promises'
import { Socket } from 'node:net'
import { isAsMade } from '../../core/cage-mounted.ts'
import { once } from '../../core/once.ts'
import { statusFd, type Expected } from './cage.ts'
import { openChannels, type Channels, type ChannelsOptions } from './channels.ts'
import { coveredFrom, statusOf, type Enclosure, type Heard } from './enclosure.ts'
import { faultCode } from './fault.ts'
import { isName, quoted } from '../../core/shell-word.ts'
import { birthOf, gone, readProc, type Birth } from './table.ts'

export interface Held {
  readonly channels: Channels
  readonly expected: Expected
  readonly heard: Heard
  readonly birth: Birth
  /** The command begins in it. Undefined: this cage is not the one that it needs, and has ended. */
  begin(within: Enclosure, input: string): Promise<ChildProcess | undefined>
  /** Unless something has begun in it: nothing is left of it. */
  end(): Promise<void>
}

/** `marker`: by which a recovery finds it. Undefined where it cannot be held. */
export async function holdCage(
  expected: Expected,
  marker: NodeJS.ProcessEnv,
  wanted: Omit<ChannelsOptions, 'isLate'>,
): Promise<Held | undefined> {
  const channels = await openChannels({ ...wanted, isLate: true })
  const env = { ...expected.env, ...marker }
  let child: ChildProcess
  try {
    child = spawn(expected.file, [...expected.making, '/bin/sh', '-c', gate], {
      cwd: expected.cwd,
      env,
      detached: true,
      stdio: [...channels.stdio, 'pipe', expected.filter ?? 'ignore', 'pipe', ...coveredFrom(gateFd + 1)],
    })
  } catch {
    channels.discard()
    return undefined
  }
  const { pid } = child
  const stdio: readonly unknown[] = child.stdio
  const [status, way] = [stdio[statusFd], stdio[gateFd]]
  const over = new Promise<false>((resolve) => {
    child.once('error', () => resolve(false))
    child.once('exit', () => resolve(false))
  })
  if (pid === undefined || !(way instanceof Socket) || !(status instanceof Socket)) {
    channels.discard()
    return undefined
  }
  channels.handOver()
  const heard = statusOf(child)
  const birth = birthOf(pid)
  way.on('error', () => undefined)
  const isReached = new Promise<true>((resolve) => way.once('data', () => resolve(true)))
  // One that is held keeps nobody from ending.
  const parts = [child, status, way]
  for (const part of parts) part.unref()
  let isBegun = false
  const end = once(async (): Promise<void> => {
    if (isBegun) return
    for (const part of parts) part.ref()
    way.destroy()
    try {
      process.kill(-pid, 'SIGKILL')
    } catch (error) {
      if (faultCode(error) !== 'ESRCH') throw error
    }
    await Promise.race([over, delay(longestMs)])
    if (heard.holder !== undefined) await gone(heard.holder, longestMs)
    channels.discard()
  })
  const isRight = async ({ making }: Enclosure): Promise<boolean> => {
    const isOther =
      making.length !== expected.making.length || making.some((w, n) => w !== expected.making[n])
    if (isOther || !(await Promise.race([isReached, over, delay(longestMs, false)]))) return false
    // Both were told, by two ways.
    if (heard.holder === undefined) await setImmediate()
    return isAsMade(making, readProc(heard.holder ?? 0, 'mountinfo') ?? '')
  }
  return {
    channels,
    expected,
    heard,
    birth,
    async begin(within, input) {
      for (const part of parts) part.ref()
      const line = lineOf(env, within)
      if (line === undefined || !(await isRight(within))) {
        await end()
        return undefined
      }
      isBegun = true
      channels.give(input)
      way.end(line)
      return child
    },
    end,
  }
}

const gateFd = 5

/** Bytes go to it one by one; and a line that is cut off, because ralph is dead, is none. */
const gate = `printf . >&${gateFd} && IFS= read -r go <&${gateFd} && eval "$go"; exit 125`
const longestBytes = 16_384
const longestMs = 1000

/** What is another one than when the cage was made. Undefined where a shell would not hand it on as it is. */
function lineOf(own: NodeJS.ProcessEnv, { args, making, env }: Enclosure): string | undefined {
  const names = [...new Set([...Object.keys(own), ...Object.keys(env)])].filter((name) => name !== 'PWD')
  if (!names.every(isName)) return undefined
  const gone = names.filter((name) => env[name] === undefined)
  const other = names.filter((name) => env[name] !== undefined && env[name] !== own[name])
  const words = [
    ...(gone.length > 0 ? [`unset ${gone.join(' ')};`] : []),
    ...(other.length > 0
      ? [`export ${other.map((name) => `${name}=${quoted(env[name] ?? '')}`).join(' ')};`]
      : []),
    'exec',
    ...args.slice(making.length).map(quoted),
    `${gateFd}<&-`,
  ]
  const line = words.join(' ')
  return line.includes('\n') || Buffer.byteLength(line) > longestBytes ? undefined : `${line}\n`
}
