// Writes `.claude/loop-state.json` whole and atomically.
import { closeSync, constants, existsSync, openSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { RalphError } from '../../core/error.ts'
import { ownFields } from '../../core/shape.ts'
import type { StateFile } from '../../core/state-file.ts'
import { folderWatch } from './identity.ts'
import { chmod, lstat, mkdir, readFile, readdir, realpath, rename, rm, stat } from './now.ts'
import { parseState } from './state-reader.ts'
import { isLeftover, writeDurably, writeNow } from './whole.ts'

export interface StateFileWriter {
  /** Foreign fields of the file that was there are kept in every write. */
  write(state: StateFile): Promise<void>
  /** For an exit that cannot wait. */
  writeNow(state: StateFile): void
}

/**
 * Prepares the place: sweeps stray temporary files, keeps an earlier run's file and a corrupt or foreign one under another name.
 * Returns the writer and, for the user, what was put aside; `tell` hears the same of what comes in its place later.
 */
export async function openStateFile(
  path: string,
  archiveDir: string,
  changeId: string,
  tell: (note: string) => void = () => undefined,
): Promise<{ writer: StateFileWriter; note: string }> {
  await sweep(path)
  const { foreign, note } = await takeOver(path, archiveDir, changeId)
  let wasWritten = false
  const folder = dirname(path)
  const tree = dirname(folder)
  let real = await realpath(folder).catch(() => undefined)
  const isReplaced = folderWatch(tree)
  const wasLink = (await lstat(folder).catch(() => undefined))?.isSymbolicLink() === true
  const body = (state: StateFile): string => `${JSON.stringify({ ...foreign, ...state }, null, 2)}\n`
  const writeWhole = async (state: StateFile): Promise<void> => {
    // A work tree that was deleted under the loop is not made again.
    const held = openSync(tree, constants.O_RDONLY | constants.O_DIRECTORY)
    try {
      // Nor is one that somebody puts in the place of the loop's own written to.
      if (!isReplaced(held)) await writeInto(placeOf(held, tree), state)
    } finally {
      closeSync(held)
    }
  }
  const writeInto = async (inTree: string, state: StateFile): Promise<void> => {
    const own = join(inTree, basename(folder))
    const stats = await lstat(own).catch(() => undefined)
    // A link of the user's own is theirs; one that comes later would have ralph write where it leads to.
    if (stats !== undefined && !stats.isDirectory() && !(wasLink && isFolder(own))) {
      const end = `.backup-${Date.now()}`
      await rename(own, `${own}${end}`)
      tell(
        `${folder}, the folder of ralph's state file, was replaced by a file; that is kept as ${folder}${end}`,
      )
    }
    if (!existsSync(own)) await mkdir(own)
    // In this very folder, whatever comes in its place meanwhile.
    const held = openSync(
      wasLink ? await realpath(own) : own,
      constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW,
    )
    try {
      const place = placeOf(held, own)
      const now = await realpath(place)
      // A link of the user's leads elsewhere now: what lies there is not ralph's to write over.
      if (real !== undefined && now !== real) {
        const taken = await takeOver(join(now, basename(path)), archiveDir, changeId)
        if (taken.note !== '') tell(`${folder} leads to ${now} now, and ${taken.note}`)
      }
      real = now
      if (isFolder(join(now, basename(path)))) tell(await putAside(join(now, basename(path))))
      const how = { rights: { mode: 0o644 }, isCache: true, makesNoFolder: true } as const
      await writeDurably(join(place, basename(path)), body(state), how)
    } finally {
      closeSync(held)
    }
  }
  return {
    note,
    writer: {
      async write(state) {
        for (let triesLeft = wasWritten ? 20 : 0; ; triesLeft--)
          try {
            await writeWhole(state)
            break
          } catch (error) {
            const { code = '' } = error as NodeJS.ErrnoException
            // It could be written before, so it is the agent who closes the folder, takes it away, or puts a link in its place, and maybe again.
            if (
              triesLeft === 0 ||
              !['EACCES', 'EEXIST', 'ENOENT', 'ELOOP', 'ENOTDIR', 'EISDIR'].includes(code)
            )
              throw error
            if (code === 'EACCES') await openFolders([tree, folder])
          }
        wasWritten = true
      },
      writeNow: (state) => {
        if (!isReplaced() && (real === undefined || realpathSync(folder) === real))
          writeNow(path, body(state), 0o644)
      },
    },
  }
}

/** What is open, whatever stands at its path by now. */
function placeOf(held: number, path: string): string {
  return existsSync('/proc/self/fd') ? `/proc/self/fd/${held}` : path
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    // What is wrong above it is told by whoever opens it.
    return false
  }
}

/** What can be parsed cannot always be written: that goes by the stack, and a foreign field may be nested deeper. */
function canBeWritten(state: StateFile): boolean {
  try {
    return JSON.stringify(state) !== ''
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

async function openFolders(folders: readonly string[]): Promise<void> {
  for (const folder of folders) await chmod(folder, ((await stat(folder)).mode & 0o7777) | 0o700)
}

/** SIGKILL in mid-write leaves a temporary file behind. */
async function sweep(path: string): Promise<void> {
  for (const name of await readdir(dirname(path)).catch(() => []))
    if (isLeftover(name, basename(path))) await rm(join(dirname(path), name), { force: true })
}

async function putAside(path: string): Promise<string> {
  const backup = `${path}.backup-${Date.now()}`
  await rename(path, backup)
  return `${path} was not a state file of ralph's; it is kept as ${backup}`
}

async function takeOver(
  path: string,
  archiveDir: string,
  changeId: string,
): Promise<{ foreign: Record<string, unknown>; note: string }> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { foreign: {}, note: '' }
    if (isFolder(path)) return { foreign: {}, note: await putAside(path) }
    // Maybe before the first event of all: there need be no run yet that could be resumed.
    throw new RalphError('disk', `The state file cannot be read: ${(error as Error).message}`, {
      hint: 'Nothing was touched. `.claude` must be a folder, and the file in it readable; fix that, then type the same command again.',
      exitCode: 2,
      cause: error,
    })
  }
  const state = await parseState(text)
  if (state === undefined || !canBeWritten(state)) {
    return { foreign: {}, note: await putAside(path) }
  }
  const foreign = Object.fromEntries(Object.entries(state).filter(([key]) => !ownFields.includes(key)))
  if (state.change_id === changeId) return { foreign, note: '' }
  const archived = join(archiveDir, `loop-state.${state.change_id}.${Date.now()}.json`)
  await mkdir(archiveDir, { recursive: true, mode: 0o700 })
  await writeDurably(archived, text, { rights: { mode: 0o644 } })
  return { foreign, note: '' }
}
