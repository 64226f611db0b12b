// A new work tree made ready: files of the user's that git does not hold, and what the set-up command makes, or has made before.
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { copyAll } from '../adapters/files/copy.ts'
import type { Git } from '../adapters/git/git.ts'
import { leavingNoWayOut } from '../adapters/git/guard/ways-out.ts'
import type { Config } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import type { SetUpDone } from '../core/event.ts'
import type { GateResult } from '../ports.ts'

export type SetUp = Pick<Config, 'setup' | 'setup_cache' | 'worktree_copy' | 'worktree_link'>

/** What there is to say of it; `failed`: how the command ended, where it has not passed. */
export async function setUp(
  home: Git,
  tree: Git,
  wish: SetUp,
  run: (command: string) => Promise<GateResult>,
): Promise<{ readonly done?: SetUpDone; readonly failed?: GateResult }> {
  for (const path of wish.worktree_copy) await bring(home, tree, 'worktree_copy', path, copyAll)
  for (const path of wish.worktree_link) {
    await bring(home, tree, 'worktree_link', path, (from, to) => symlink(from, to))
    const seen = await tree.list(['ls-files', '-z', '--others', '--exclude-standard', '--', path])
    if (seen.length > 0)
      throw new RalphError('config', `worktree_link names ${path}, and git does not ignore a link there.`, {
        hint: 'It would land. Name it in .gitignore without a slash at its end, or use worktree_copy.',
      })
  }
  const { setup: command } = wish
  if (command === undefined) return {}
  const before = new Set(await others(tree))
  const kept = wish.setup_cache.length === 0 ? undefined : await keptAt(home, tree, command, wish.setup_cache)
  const began = performance.now()
  if (kept !== undefined && existsSync(kept)) {
    await copyAll(kept, tree.worktree)
    return { done: { command, duration_ms: Math.round(performance.now() - began), cached: true } }
  }
  const result = await leavingNoWayOut(tree, () => run(command))
  if (result.outcome !== 'passed') return { failed: result }
  if (kept !== undefined)
    await keep(
      tree,
      kept,
      (await others(tree)).filter((path) => !before.has(path)),
    )
  return { done: { command, duration_ms: result.durationMs, cached: false } }
}

async function bring(
  { worktree: home }: Git,
  { worktree: tree }: Git,
  setting: string,
  path: string,
  how: (from: string, to: string) => Promise<void>,
): Promise<void> {
  const from = resolve(home, path)
  const inside = relative(home, from)
  if (inside === '' || inside.startsWith('..') || !existsSync(from))
    throw new RalphError('config', `${setting} names ${path}, which is not in ${home}.`, {
      hint: 'Nothing was touched. Name files of this repository, relative to its root.',
    })
  if (/^\.git(\/|$)/i.test(inside))
    throw new RalphError('config', `${setting} names ${path}, which is git's own.`, {
      hint: 'The new work tree has its own .git. Name files that git does not hold.',
    })
  await mkdir(dirname(join(tree, inside)), { recursive: true })
  await how(from, join(tree, inside))
}

/** Files and whole folders that are in no commit. */
async function others(tree: Git): Promise<readonly string[]> {
  return await tree.list(['ls-files', '-z', '--others', '--directory'])
}

/** By the command and by what decides what it makes: only the user knows which files these are. */
async function keptAt(home: Git, tree: Git, command: string, files: readonly string[]): Promise<string> {
  const sum = createHash('sha256').update(command)
  for (const path of files) {
    const file = join(tree.worktree, path)
    sum.update(`\0${path}\0`).update(existsSync(file) ? await readFile(file) : 'none')
  }
  return join(home.gitCommonDir, 'ralph', 'set-ups', sum.digest('hex').slice(0, 16))
}

/** The one before it stays for trees that are behind; what is older goes. */
async function keep(tree: Git, kept: string, paths: readonly string[]): Promise<void> {
  const folder = dirname(kept)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const half = `${kept}.${randomUUID()}`
  await mkdir(half)
  for (const path of paths) {
    await mkdir(dirname(join(half, path)), { recursive: true })
    await copyAll(join(tree.worktree, path), join(half, path))
  }
  // Another loop may have been quicker with the same.
  await rename(half, kept).catch(() => rm(half, { recursive: true, force: true }))
  const names = (await readdir(folder)).filter((name) => !kept.endsWith(name))
  for (const name of names.slice(1)) await rm(join(folder, name), { recursive: true, force: true })
}
