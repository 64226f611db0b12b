// A checkout follows what landed: only by a fast-forward, and only where nothing uncommitted is lost by it.
import { lstatSync, readFileSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { shown, type Git } from '../git.ts'

interface Followed {
  /** Files in the way; empty: it has followed. */
  readonly inTheWay: readonly string[]
  /** Git's own words, where it names no file. */
  readonly said: string
  /** Plans of the user's that no commit of theirs has, each with the commit of its loop that has the same bytes. */
  readonly plans: readonly { readonly path: string; readonly at: string }[]
}

export async function followLanded(git: Git, landed: string): Promise<Followed> {
  const first = await fastForward(git, landed)
  if (first.isDone) return { inTheWay: [], said: '', plans: [] }
  const plans = await takenPlans(git, first.inTheWay)
  const isAll = plans.length > 0 && plans.length === first.inTheWay.length
  if (!isAll) return { ...first, plans: [] }
  const bytes = plans.map(({ path }) => readFileSync(join(git.worktree, path)))
  for (const { path } of plans) await rm(join(git.worktree, path))
  const second = await fastForward(git, landed)
  if (second.isDone) return { inTheWay: [], said: '', plans }
  for (const [at, { path }] of plans.entries()) {
    await mkdir(dirname(join(git.worktree, path)), { recursive: true })
    await writeFile(join(git.worktree, path), bytes[at] ?? '')
  }
  return { ...second, plans: [] }
}

async function fastForward(
  git: Git,
  landed: string,
): Promise<{ readonly isDone: boolean; readonly inTheWay: readonly string[]; readonly said: string }> {
  const { code, said } = await git.run(
    ['merge', '--ff-only', '--no-autostash', '--quiet', '--no-overwrite-ignore', landed],
    { accept: [1, 128] },
  )
  const inTheWay = said.split('\n').flatMap((line) => (line.startsWith('\t') ? [line.slice(1)] : []))
  return { isDone: code === 0, inTheWay, said: said.trim() }
}

/** A loop has begun with exactly these bytes, so that they are on a ref of it: what landed is the same plan, with its boxes ticked. */
async function takenPlans(git: Git, paths: readonly string[]): Promise<Followed['plans']> {
  const plans: { path: string; at: string }[] = []
  for (const path of paths) {
    const change = /^(?:.*\/)?openspec\/changes\/([^/]+)\/./.exec(path)?.[1]
    const found = lstatSync(join(git.worktree, path), { throwIfNoEntry: false })
    if (change === undefined || found?.isFile() !== true) continue
    if ((await git.line(['ls-files', '--', path])) !== '') continue
    const hash = await git.line(['hash-object', '--', join(git.worktree, path)])
    const log = await git.line([
      'log',
      '--format=%H',
      `--find-object=${hash}`,
      `--glob=refs/ralph/${change}`,
      '--',
      path,
    ])
    // The oldest of them has brought it.
    const at = shown(log).split('\n').at(-1) ?? ''
    const isThere =
      at !== '' &&
      (
        await git.run(['rev-parse', '--verify', '--quiet', `${at}:${path}`], { accept: [1, 128] })
      ).out.trim() === hash
    if (isThere) plans.push({ path, at })
  }
  return plans
}
