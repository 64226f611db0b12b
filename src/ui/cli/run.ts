// One command from its arguments to its exit code.
import { CommanderError } from '@commander-js/extra-typings'
import type { App } from '../app.ts'
import type { Io } from '../io.ts'
import type { Context } from './context.ts'
import { buildProgram } from './program.ts'

export interface Surroundings {
  readonly io: Io
  readonly version: string
  readonly loadApp: (io: Io) => Promise<App>
}

export async function run(argv: readonly string[], { io, version, loadApp }: Surroundings): Promise<number> {
  let exitCode = 0
  const { own, passThrough } = split(argv)
  const context: Context = {
    io,
    app: () => loadApp(io),
    passThrough,
    readerGone: readerGone(io),
    exitWith: (code) => {
      exitCode = code
    },
  }
  const program = buildProgram(context, version, argv[0])
  try {
    if (argv.length === 0) {
      await home(context, program.helpInformation())
    } else await program.parseAsync(isUnknown(program, argv[0]) ? [argv[0]] : own, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    const { reportFailure } = await import('./failure.ts')
    return reportFailure(error, { io, json: wantsJson(argv), command: argv[0] ?? '' })
  }
}

/** `ralph` alone: on a terminal the changes and what to type next; in a pipe the help text and exit 2. */
async function home({ io: { stdout, env }, app, exitWith }: Context, help: string): Promise<void> {
  if (stdout.isTTY !== true) {
    stdout.write(help)
    exitWith(2)
    return
  }
  const [{ observe }, { paintFor }, { homeText }, { legible }] = await Promise.all([
    app(),
    import('../io.ts'),
    import('../print/list.ts'),
    import('../vocabulary.ts'),
  ])
  stdout.write(`${legible(homeText(await observe.list(), paintFor(stdout, env)), env)}\n`)
}

/** Commander answers `--help` after a word that it does not know with everybody's help, as if there were such a command. */
function isUnknown({ commands }: ReturnType<typeof buildProgram>, word = ''): word is string {
  if (word.startsWith('-')) return false
  return !commands.some((command) => command.name() === word || command.aliases().includes(word))
}

const runners = new Set(['loop', 'run', 'resume'])

/** What follows `--` belongs to the agent; commander would take the first of it for the change's name. */
function split(argv: readonly string[]): {
  own: readonly string[]
  passThrough: readonly string[] | undefined
} {
  const dashes = argv.indexOf('--')
  if (dashes < 0 || !runners.has(argv[0] ?? '')) return { own: argv, passThrough: undefined }
  return { own: argv.slice(0, dashes), passThrough: argv.slice(dashes + 1) }
}

/** A loop's stdout holds events and nothing else: its errors go to stderr only. */
function wantsJson(argv: readonly string[]): boolean {
  if (runners.has(argv[0] ?? '')) return false
  return (
    argv.includes('--json') || argv.includes('--format=json') || argv[argv.indexOf('--format') + 1] === 'json'
  )
}

/** `ralph list | head -1`: a reader that went away is no error of ours. Nobody reads stderr: nothing to stop for. */
function readerGone({ stdout, stderr }: Io): AbortSignal {
  const gone = new AbortController()
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (!isGone(error) && !isCutOff(error)) throw error
    gone.abort(error)
  })
  stderr.on('error', (error: NodeJS.ErrnoException) => {
    if (!isGone(error) && !isCutOff(error)) throw error
  })
  return gone.signal
}

/** EIO: the terminal itself was closed. */
function isGone({ code }: NodeJS.ErrnoException): boolean {
  return code === 'EPIPE' || code === 'EIO' || code === 'ERR_STREAM_DESTROYED'
}

/** What is printed goes to a file on a full disk. */
export function isCutOff({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ENOSPC' || code === 'EDQUOT'
}
