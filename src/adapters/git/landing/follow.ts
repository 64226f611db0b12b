// A checkout follows what landed: only by a fast-forward, and only where nothing uncommitted is lost by it.
import { lstatSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { shellWord } from '../../../core/shell-word.ts'
import { shown, type Git } from '../git.ts'

interface Followed {
  /** Files in the way; empty: it has followed. */
  readonly inTheWay: readonly string[]
  /** Git's own words, where it names no file. */
  readonly said: string
  /** Plans of the user's that no commit of theirs has, each with the commit of its loop that has the same bytes. */
  readonly plans: readonly Taken[]
}

interface Taken {
  readonly path: string
  readonly at: string
  /** What landed has it in its archive. */
  readonly isArchived?: true
}

export async function followLanded(git: Git, landed: string): Promise<Followed> {
  const before = await git.line(['rev-parse', 'HEAD'])
  const followed = await follow(git, landed)
  if (followed.inTheWay.length > 0 || followed.said !== '') return followed
  const archived = await takeArchived(git, `${before}..${landed}`)
  return { ...followed, plans: [...followed.plans, ...archived] }
}

async function follow(git: Git, landed: string): Promise<Followed> {
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

/** A plan that nobody had committed stays where git has nothing to delete: it would look like a change that is open. */
async function takeArchived(git: Git, range: string): Promise<readonly Taken[]> {
  const log = await git.line(['log', '--format=%(trailers:key=Ralph-Change,valueonly,separator=%x0A)', range])
  const others = (await git.list(['ls-files', '-z', '--others', '--exclude-standard'])).map((path) =>
    shown(path),
  )
  const folders = new Map<string, string[]>()
  const landed = new Set(shown(log).split('\n'))
  for (const path of others) {
    const [, folder = '', change] = planFile.exec(path) ?? []
    if (change !== undefined && landed.has(change))
      folders.set(folder, [...(folders.get(folder) ?? []), path])
  }
  const taken: Taken[] = []
  for (const [folder, files] of folders) {
    if ((await git.line(['ls-files', '--', folder])) !== '') continue
    const plans = await takenPlans(git, files)
    // One that was edited since is another plan.
    if (plans.length < files.length) continue
    for (const { path } of plans) {
      await rm(join(git.worktree, path))
      removeEmpty(dirname(join(git.worktree, path)))
    }
    taken.push(...plans.map((plan) => ({ ...plan, isArchived: true as const })))
  }
  return taken
}

/** Its folder and its change. */
const planFile = /^((?:.*\/)?openspec\/changes\/([^/]+))\/./

function removeEmpty(folder: string): void {
  if (basename(folder) === 'changes' || readdirSync(folder).length > 0) return
  rmdirSync(folder)
  removeEmpty(dirname(folder))
}

/**
 * What to type. What git does not track is moved: a stash does not come back over a file that landed, and takes no repository.
 */
export async function outOfTheWay(git: Git, paths: readonly string[]): Promise<string> {
  const tracked: string[] = []
  const others: string[] = []
  for (const path of paths)
    ((await git.line(['ls-files', '--', `:(top,literal)${path}`])) === '' ? others : tracked).push(path)
  const place = (path: string): string => (git.typed === 'git' ? path : join(git.worktree, path))
  const moves = others.map(
    (path) => `mv -n ${shellWord(shown(place(path)))} ${shellWord(shown(`${place(path)}.mine`))}`,
  )
  const stash = `${git.typed} stash push -- ${tracked.map((path) => shellWord(shown(path))).join(' ')}`
  const commands = [...moves, ...(tracked.length > 0 ? [stash] : [])].join(' && ')
  const back = tracked.length > 0 ? `, and ${git.typed} stash pop brings back what was stashed` : ''
  return `Nothing was touched. Put it aside: ${commands}; then type the command again${back}.`
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
    const change = planFile.exec(path)?.[2]
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
