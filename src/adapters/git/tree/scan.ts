// One look at the work tree: what differs from an index, what is new, what is ignored, which folders are empty.
import type { Git } from '../git.ts'
import { emptyFolders } from './files.ts'
import { findUnseen } from './unseen.ts'
import { lookThrough } from './racy-entries.ts'

export interface Scan {
  /** Tracked paths whose file differs from the index (content, mode, type, intent to add). */
  readonly changed: readonly string[]
  readonly deleted: readonly string[]
  /** Not tracked, not ignored. A path that ends in `/` is a repository of its own. */
  readonly untracked: readonly string[]
  /** As the rules match: a folder that is ignored as a whole ends in `/` and is not looked into. */
  readonly ignored: readonly string[]
  /** Paths whose index entry differs from HEAD. */
  readonly staged: readonly string[]
  readonly unmerged: readonly string[]
  /** There was something that git could not look at. */
  readonly isBlind: boolean
}

export async function scanTree(git: Git, options: { index?: string; ignored?: boolean } = {}): Promise<Scan> {
  // What is uncommitted in a submodule is looked at there; here it counts where its HEAD is.
  const flags = ['--porcelain=v1', '-z', '--untracked-files=all', '--no-renames', '--ignore-submodules=dirty']
  const ignored = options.ignored === true ? ['--ignored=matching'] : []
  const { out, said } = await lookThrough(git, options.index, (index) =>
    git.run(['status', ...flags, ...ignored], { ...(index !== undefined && { index }) }),
  )
  const records = out.split('\0').filter((record) => record !== '')
  const scan = { changed: [], deleted: [], untracked: [], ignored: [], staged: [], unmerged: [] } as Record<
    Exclude<keyof Scan, 'isBlind'>,
    string[]
  >
  const root = Buffer.byteLength(git.worktree) + 1
  for (const record of records) {
    const state = record.slice(0, 2)
    const path = record.slice(3)
    // Beyond the longest path: see unseen.ts.
    if (state === '??' && root + path.length > 4_095) continue
    if (state === '??') scan.untracked.push(path)
    else if (state === '!!') scan.ignored.push(path)
    else if (unmergedStates.has(state)) scan.unmerged.push(path)
    else {
      if (state[1] === 'D') scan.deleted.push(path)
      else if (state[1] !== ' ') scan.changed.push(path)
      if (state[0] !== ' ') scan.staged.push(path)
    }
  }
  return { ...scan, isBlind: said.includes('Permission denied') }
}

/** Folders that hold nothing: git knows none of them, so a revert has to. The index must not name files that are gone. */
export async function scanEmptyFolders(
  git: Git,
  index?: string,
  { empty } = findUnseen(git),
): Promise<string[]> {
  // Which of them are ignored only git knows.
  if (empty.length === 0) return []
  const others = await git.list(['ls-files', '--others', '--directory', '--exclude-standard', '-z'], {
    ...(index !== undefined && { index }),
  })
  return await emptyFolders(
    git.worktree,
    others.filter((path) => path.endsWith('/')),
  )
}

/** Paths that ralph neither saves nor removes, whatever git thinks of them. */
export function exempt(globs: readonly string[], ignored: readonly string[]): (path: string) => boolean {
  const files = new Set(ignored.filter((path) => !path.endsWith('/')))
  const folders = new Set(ignored.filter((path) => path.endsWith('/')))
  const patterns = globs.map((glob) => new RegExp(`^${glob.split('*').map(escaped).join('[^/]*')}$`))
  return (path) => {
    if (files.has(path) || folders.has(path)) return true
    if (patterns.some((pattern) => pattern.test(path))) return true
    if (folders.size === 0) return false
    for (let cut = path.indexOf('/'); cut >= 0; cut = path.indexOf('/', cut + 1)) {
      if (folders.has(path.slice(0, cut + 1))) return true
    }
    return false
  }
}

/** What common tools make again by themselves. */
export function isCache(path: string): boolean {
  return /(^|\/)(node_modules|__pycache__|\.(pytest|mypy|ruff)_cache)(\/|$)/.test(path)
}

/** What package managers and builds fill: nobody's work, and dear to do without. */
export function isInstalled(path: string): boolean {
  return /(^|\/)(\.?venv|vendor|target|bower_components|Pods|_build|deps|\.(gradle|tox|nox|bundle|yarn|terraform|direnv|eggs))(\/|$)/.test(
    path,
  )
}

const unmergedStates = new Set(['DD', 'AU', 'UD', 'UA', 'DU', 'AA', 'UU'])

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
