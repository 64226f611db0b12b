// Commands of git that ralph names: a switch and a merge write over an ignored file without a word, so one that lies in the way is kept.
import { join, resolve } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import { shellName } from '../attempt/lost-files.ts'
import type { Git } from '../git.ts'
import { takenPlaces } from './apply.ts'
import { lstatNow } from '../tree/files.ts'
import { orEmpty, treeChanges } from '../tree/tree.ts'

/** The text as it is, but where a file lies in the way: a switch that refuses by itself, a merge that puts it aside first. */
export async function safeToType(git: Git, text: string): Promise<string> {
  const parts: string[] = []
  let at = 0
  for (const {
    0: command,
    1: start = '',
    2: folder,
    3: verb,
    4: how = '',
    5: to = '',
    index,
  } of text.matchAll(going)) {
    const worktree = folder === undefined ? git.worktree : resolve(git.worktree, bare(folder))
    const taken = await inTheWay(git, worktree, bare(to))
    const place = (path: string): string =>
      git.typed === 'git' && folder === undefined ? path : join(worktree, path)
    // A merge heeds --no-overwrite-ignore only where it is a fast-forward.
    const safe =
      verb === 'switch'
        ? `${start} switch --no-overwrite-ignore ${how}${to}`
        : `${taken.map((path) => `mv -n ${shellName(place(path))} ${shellName(place(free(worktree, path)))} && `).join('')}${command}`
    parts.push(text.slice(at, index), taken.length === 0 ? command : safe)
    at = index + command.length
  }
  return parts.join('') + text.slice(at)
}

/** Whatever is thrown, with a hint that is safe to type. */
export async function hintingSafely<T>(git: Git, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof RalphError) error.hint = await safeToType(git, error.hint)
    throw error
  }
}

/** `git switch main`, `git -C there switch --detach 1234abc`, `git merge --squash ralph/a`; never `switch -c`, which stays where it is. */
const going =
  /\b(git(?: -C ('[^']*'|[^\s'`]+))?) (switch|merge) ((?:--(?:detach|squash|no-commit) )*)((?!-)(?:'[^']*'|[^\s'`;,)]*[^\s'`;,).]))/g

function bare(word: string): string {
  return word.replaceAll("'", '')
}

async function inTheWay(git: Git, worktree: string, to: string): Promise<string[]> {
  const treeOf = async (name: string): Promise<string> => {
    const asked = ['rev-parse', '--verify', '--quiet', `${name}^{tree}`]
    return (await git.run(asked, { inside: worktree, accept: [1, 128] })).out.trim()
  }
  if (lstatNow(worktree, '')?.isDirectory() !== true) return []
  const [from, tree] = await Promise.all([treeOf('HEAD'), treeOf(to)])
  if (tree === '') return []
  const changes = await treeChanges(git, await orEmpty(git, from === '' ? undefined : from), tree)
  return takenPlaces({ ...git, worktree }, changes)
}

function free(worktree: string, path: string): string {
  let name = `${path}.mine`
  for (let n = 2; lstatNow(worktree, name) !== undefined; n += 1) name = `${path}.mine${n}`
  return name
}
