// One command from its arguments to its exit code.
import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { CommanderError } from '@commander-js/extra-typings'
import { RalphError } from '../../core/error.ts'
import type { App } from '../app.ts'
import type { Io } from '../io.ts'
import type { Context } from './context.ts'
import { buildProgram } from './program.ts'

export interface Surroundings {
  readonly io: Io
  readonly version: string
  readonly loadApp: (io: Io) => Promise<App>
}

export async function run(
  words: readonly string[],
  { io: given, version, loadApp }: Surroundings,
): Promise<number> {
  let exitCode = 0
  const { argv: typed, folder } = folderOf(words.length === 1 && isVersion(words[0]) ? ['--version'] : words)
  const isPlain = typed[0] === '--no-tui'
  const argv = isPlain ? typed.slice(1) : typed
  const { own, passThrough } = split(argv)
  const env = isPlain ? { ...given.env, RALPH_NO_TUI: 'true' } : given.env
  const io = folder === undefined && !isPlain ? given : within(given, folder ?? '.', env)
  const context: Context = {
    io,
    app: () => loadApp(io),
    passThrough,
    readerGone: readerGone(io),
    exitWith: (code) => {
      exitCode = code
    },
    run: (next, env) => run(next, { io: { ...given, env }, version, loadApp }),
  }
  const program = buildProgram(context, version, argv[0])
  try {
    if (folder !== undefined) refuseNoFolder(io.cwd)
    if (argv.length === 0) {
      await home(context, program.helpInformation(), isPlain)
    } else await program.parseAsync(isUnknown(program, argv[0]) ? [argv[0]] : own, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    const { reportFailure } = await import('./failure.ts')
    return reportFailure(error, { io, json: wantsJson(argv), command: argv[0] ?? '' })
  }
}

/**
 * `ralph` alone: on a terminal the screens, or where those cannot be the changes and what to type next; in a pipe the help text and exit 2,
 * unless plain lines were asked for.
 */
async function home(context: Context, help: string, wantsLines: boolean): Promise<void> {
  const { io, app, exitWith } = context
  const { stdout, stderr, env } = io
  const isPipe = stdout.isTTY !== true
  if (isPipe && !wantsLines) {
    stdout.write(help)
    exitWith(2)
    return
  }
  const [
    own,
    { paintFor },
    { homeText },
    { legible },
    { RalphError },
    { mayOpenTui, openTui },
    { standGuard },
  ] = await Promise.all([
    app(),
    import('../io.ts'),
    import('../print/list.ts'),
    import('../vocabulary.ts'),
    import('../../core/error.ts'),
    import('./tui.ts'),
    import('./guard.ts'),
  ])
  const guard = mayOpenTui(io) ? standGuard(env) : undefined
  const listed = own.observe.list().catch((error: unknown) => {
    if (error instanceof RalphError && isElsewhere.has(error.code)) return error
    throw error
  })
  // What is wrong with the queue, too.
  const queued =
    guard &&
    own.observe.queue().catch((error: unknown) => {
      if (error instanceof RalphError) return undefined
      throw error
    })
  // What is wrong with the settings is for those commands to say that use them.
  const wishes = own.observe.settings({}).then(
    ({ config }) => ({ isPlain: config.no_tui, isSilent: config.notify === false }),
    () => ({ isPlain: false, isSilent: false }),
  )
  // The screens are loaded while git looks for the repository.
  const [list, { isPlain, isSilent }, queue] = await Promise.all([
    listed,
    wishes,
    queued,
    // Where the folder is gone they cannot be, and the list says so.
    guard && import('../tui/start.tsx').catch(() => undefined),
  ])
  if (!(list instanceof RalphError) && guard !== undefined && !isPlain) {
    const { clientOf } = await import('./client.ts')
    const entry = { at: 'select', list, ...(queue !== undefined && { queue }) } as const
    exitWith(await openTui(io, clientOf(context, own), entry, { guard, isSilent }))
  } else if (list instanceof RalphError) {
    const { folded } = await import('../print/layout.ts')
    const why = `${list.message}\n${folded(list.hint, stdout.columns, '  ')}\n`
    if (isPipe) stdout.write(help)
    if (isPipe) stderr.write(why)
    else stdout.write(`${why}all commands: ralph --help\n`)
    exitWith(2)
  } else
    stdout.write(
      `${legible(homeText(list, { paint: paintFor(stdout, env), columns: stdout.columns }), env)}\n`,
    )
}

/** Not where ralph can work: whoever types `ralph` there wants to know what it is. */
const isElsewhere: ReadonlySet<string> = new Set(['not_a_repository', 'openspec_missing'])

/** Commander answers `--help` after a word that it does not know with everybody's help, as if there were such a command. */
function isUnknown({ commands }: ReturnType<typeof buildProgram>, word = ''): word is string {
  if (word.startsWith('-')) return false
  return !commands.some((command) => command.name() === word || command.aliases().includes(word))
}

function isVersion(word: string | undefined): boolean {
  return word === '-v' || word === '-V' || word === 'version'
}

/** `-C <dir>`, as git has it, may stand anywhere before `--`; the last of several counts from the one before. */
function folderOf(words: readonly string[]): { argv: readonly string[]; folder?: string } {
  const end = words.indexOf('--')
  const at = words.indexOf('-C')
  const value = words[at + 1]
  if (at < 0 || value === undefined || (end >= 0 && at + 1 >= end)) return { argv: words }
  const { argv, folder } = folderOf([...words.slice(0, at), ...words.slice(at + 2)])
  return { argv, folder: folder === undefined ? value : join(value, folder) }
}

/** Looking at stdin opens it: not copied. */
function within(io: Io, folder: string, env: Io['env']): Io {
  return {
    env,
    get cwd() {
      return resolve(io.cwd, folder)
    },
    get stdin() {
      return io.stdin
    },
    stdout: io.stdout,
    stderr: io.stderr,
  }
}

function refuseNoFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return
  throw new RalphError('usage', `There is no folder ${folder}`, {
    hint: 'Nothing was touched. -C needs the folder to work in: ralph -C <dir> status',
  })
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
