// Of the `git restore` commands that were named to a user: what is left of each, so that one typed today takes nothing of theirs away.
import { readlinkSync } from 'node:fs'
import { resolve } from 'node:path'
import { named, type Git } from '../adapters/git/git.ts'
import { refsUnder } from '../adapters/git/refs/refs.ts'
import { lstatNow, onDisk } from '../adapters/git/tree/files.ts'
import type { GoneFile } from '../core/event.ts'
import { firstNames } from '../core/first-names.ts'

interface Restore {
  /** The command without its files. */
  readonly start: string
  readonly folder: string
  readonly source: string
  readonly files: readonly { readonly word: string; readonly path: string }[]
}

/** Without those that the user has brought back, or written anew, since. `left`: the commit that a revert leaves. */
export async function stillGone(
  git: Git,
  gone: readonly GoneFile[],
  left: string | undefined,
): Promise<GoneFile[]> {
  const is = await Promise.all(
    gone.map(async ({ restore }) => {
      const command = commandIn(git, restore)
      return command === undefined || (await openFiles(git, command, left)).length > 0
    }),
  )
  return gone.filter((_, at) => is[at])
}

/** What a repair undid, as it is told now: undefined once its user has it back, or has files of their own there. */
export async function stillUndone(
  git: Git,
  change: string,
  message: string,
  left: string | undefined,
): Promise<string | undefined> {
  const command = commandIn(git, message)
  if (command === undefined) return message
  const { start, source, files } = command
  const refs = await refsUnder(git, [`refs/ralph/${change}/attempts`, `refs/ralph/${change}/restored`])
  const held = Object.keys(refs).find((ref) => ref.includes('/attempts/') && refs[ref]?.startsWith(source))
  if (held !== undefined && refs[held.replace('/attempts/', '/restored/')] !== undefined) return undefined
  const open = await openFiles(git, command, left)
  if (open.length === 0) return undefined
  if (open.length === files.length) return message
  const line = (some: Restore['files']): string => `${start}${some.map(({ word }) => word).join(' ')}`
  const names = (some: Restore['files']): string =>
    firstNames(
      some.map(({ path }) => named(path)),
      some.length,
    )
  return message.replace(line(files), () => line(open)).replace(names(files), () => names(open))
}

/** Undefined where there is none, or not as ralph spells it. */
function commandIn(git: Git, text: string): Restore | undefined {
  const found = /(git(?: -C ((?:'[^']*'|\\'|[^\s'\\])+))? restore --source[= ](\S+) -- )(.+)$/.exec(text)
  const [, start = '', at, source = '', words = ''] = found ?? []
  const folder = resolve(git.worktree, at === undefined ? '.' : pathOf(at))
  const spelled = words.match(/\$'[^']*'|(?:'[^']*'|\\')+|[^\s'\\]+/g) ?? []
  if (found === null || spelled.join(' ') !== words) return undefined
  const files = spelled.map((word) => ({ word, path: pathOf(word) }))
  return { start, folder, source, files }
}

/** Of a word as `shellName` and `topPath` spell it: one char per byte. */
function pathOf(word: string): string {
  const path = word.startsWith("$'")
    ? word
        .slice(2, -1)
        .replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
    : Buffer.from(word.replace(/'([^']*)'|\\'/g, (_, inside?: string) => inside ?? "'")).toString('latin1')
  return path.replace(/^:(?:\/|\(top,literal\))/, '')
}

/** Those that are missing, or as ralph has left them: all others are the user's by now, or back with them. */
async function openFiles(
  git: Git,
  { folder, source, files }: Restore,
  left: string | undefined,
): Promise<Restore['files']> {
  const is = await Promise.all(
    files.map(async ({ path }) => {
      const stat = lstatNow(folder, path)
      if (stat === undefined) return !hasFileAbove(folder, path)
      if (!stat.isFile() && !stat.isSymbolicLink()) return false
      const now = await hashHere(git, folder, path, stat.isSymbolicLink())
      const [was, ...known] = await Promise.all(
        [source, 'HEAD', ...(left === undefined ? [] : [left])].map((commit) =>
          hashIn(git, folder, commit, path),
        ),
      )
      return now !== was && known.includes(now)
    }),
  )
  return files.filter((_, at) => is[at])
}

/** Git removes one that stands where a folder has to be. */
function hasFileAbove(folder: string, path: string): boolean {
  const parts = path.split('/')
  return parts.some(
    (_, at) => at > 0 && lstatNow(folder, parts.slice(0, at).join('/'))?.isDirectory() === false,
  )
}

async function hashHere(git: Git, folder: string, path: string, isLink: boolean): Promise<string> {
  if (!isLink) return (await git.run(['hash-object', '--', path], { inside: folder })).out.trim()
  const input = readlinkSync(onDisk(folder, path), { encoding: 'buffer' })
  return (await git.run(['hash-object', '--stdin'], { inside: folder, input })).out.trim()
}

async function hashIn(git: Git, folder: string, commit: string, path: string): Promise<string> {
  const asked = ['rev-parse', '--verify', '--quiet', `${commit}:${path}`]
  return (await git.run(asked, { inside: folder, accept: [1, 128] })).out.trim()
}
