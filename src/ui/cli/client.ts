// How the terminal UI works with loops: it looks and asks by way of the App, and starts a loop as a process of its own.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { constants, homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { App } from '../app.ts'
import type { Io } from '../io.ts'
import type { Client, StartRequest } from '../tui/client.ts'
import type { FromLoop, FromStarter } from './attended.ts'
import type { Context } from './context.ts'
import { aloneFlag, attendedFlag, givenWords } from './loop-options.ts'

export function clientOf({ io }: Pick<Context, 'io'>, app: App): Client {
  return {
    ...app,
    place: io.cwd.startsWith(`${homedir()}/`) ? `~${io.cwd.slice(homedir().length)}` : io.cwd,
    env: io.env,
    now: () => Date.now(),
    start: (request) =>
      // As a word of a command line it would be an option; no change is called so.
      request.change?.startsWith('-') === true
        ? Promise.resolve({
            refused: `error: There is no change called ${request.change}.\n  Nothing was touched. \`ralph list\` shows all changes.`,
            exitCode: 2,
          })
        : startApart(io, request),
  }
}

/**
 * A session of its own: what ends this process, its terminal too, does not reach it. What it says goes into a file, which is read only
 * where it ended before it began: a pipe would break with this process.
 */
async function startApart({ cwd, env }: Io, request: StartRequest): ReturnType<Client['start']> {
  const folder = mkdtempSync(join(tmpdir(), 'ralph-start-'))
  const said = join(folder, 'stderr')
  const stderr = openSync(said, 'w', 0o600)
  try {
    const loop = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', ...wordsOf(request)], {
      cwd,
      env: { ...env, ...request.env },
      detached: true,
      stdio: ['ignore', 'ignore', stderr, 'ipc'],
    })
    const { began, exitCode } = await untilBegun(loop, request)
    if (began === undefined) return { refused: readFileSync(said, 'utf8').trimEnd(), exitCode }
    if (loop.connected) loop.disconnect()
    loop.unref()
    return { change: began, said: readFileSync(said, 'utf8').trimEnd() }
  } finally {
    closeSync(stderr)
    rmSync(folder, { recursive: true, force: true })
  }
}

const signals = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const

/** Until then it is as one with this process: what is to end this one, ends it. */
function untilBegun(
  loop: ChildProcess,
  { confirm = () => Promise.resolve(true) }: StartRequest,
): Promise<{ readonly began?: string; readonly exitCode: number }> {
  const enders = signals.map((signal) => [signal, (): boolean => loop.kill(signal)] as const)
  for (const [signal, end] of enders) process.on(signal, end)
  return new Promise<{ readonly began?: string; readonly exitCode: number }>((resolve, reject) => {
    loop.once('error', reject)
    loop.once('exit', (code, signal) =>
      resolve({ exitCode: code ?? 128 + (signal === null ? 0 : constants.signals[signal]) }),
    )
    loop.on('message', (message) => {
      const told = message as FromLoop
      if ('began' in told) resolve({ began: told.began, exitCode: 0 })
      else
        confirm(told.confirm).then((agrees) => {
          const answer: FromStarter = { agrees }
          // Where it has ended meanwhile its exit tells.
          loop.send(answer, () => undefined)
        }, reject)
    })
  }).finally(() => {
    for (const [signal, end] of enders) process.off(signal, end)
    loop.removeAllListeners()
  })
}

function wordsOf({ how, change, flags, feedback, acceptsConfig, isAlone }: StartRequest): readonly string[] {
  const { agent_args: rest, ...options } = flags
  return [
    how,
    ...(change === undefined ? [] : [change]),
    // As one word: a value may look like a flag.
    ...givenWords(options).map(([flag, value]) => (value === undefined ? flag : `${flag}=${value}`)),
    ...(feedback === undefined ? [] : [`--feedback=${feedback}`]),
    ...(acceptsConfig === true ? ['--accept-config'] : []),
    ...(options.no_tui === true ? [] : ['--no-tui']),
    isAlone === true ? aloneFlag : attendedFlag,
    ...(Array.isArray(rest) && rest.length > 0 ? ['--', ...rest.map(String)] : []),
  ]
}
