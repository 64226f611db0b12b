// The plan of a change as it lies in the user's checkout, beside the one that its loop worked from.
import { firstNames } from '../core/first-names.ts'
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { readNow } from '../adapters/files/now.ts'
import { shown, type Git } from '../adapters/git/git.ts'
import { safeToType } from '../adapters/git/landing/safe-to-type.ts'
import { loopTree } from '../adapters/git/start/worktrees.ts'
import { isAncestor } from '../adapters/git/tree/tree.ts'
import { changeDirOf } from '../adapters/openspec/changes.ts'
import { readBox } from '../core/box.ts'
import { shellWord } from '../core/shell-word.ts'
import { hasMerge } from '../core/story.ts'
import type { Unfit } from '../engine/queue-ports.ts'
import { planNow } from './plan-now.ts'
import type { KnownRun, Site } from './site.ts'

/** Work of somebody's that is not on the branch, or a plan that is not the one the loop worked from; undefined where all is well. */
export async function whyUnfit({ git }: Site, { change, state }: KnownRun): Promise<Unfit | undefined> {
  if (state.phase === 'idle' || state.home === undefined) return undefined
  const tree = await loopTree(git, change)
  if (tree !== undefined) {
    const { out } = await git.at(tree).run(['status', '--porcelain', '-z', '--no-renames'])
    const paths = out.split('\0').flatMap((entry) => (entry === '' ? [] : [shown(entry.slice(3))]))
    if (paths.length > 0)
      return { refused: `${tree.worktree} has files that are not committed: ${firstNames(paths)}` }
  }
  const { initial } = state.git
  const folder = relative(state.worktree, changeDirOf(state.root, change))
  if (initial === undefined || folder.startsWith('..')) return undefined
  if (!existsSync(join(git.worktree, folder)))
    return {
      refused: `its plan ${folder} is not in your checkout any more`,
      hint: `If you have archived it, or it is not to land: ralph queue remove ${change}. Else bring the plan back, then: ralph queue retry ${change}`,
    }
  const [fromLoop, fromStart] = await changedSince(git, folder, [`refs/heads/ralph/${change}`, initial])
  // What is as the loop has it was brought by an earlier landing.
  const edited = (fromStart ?? []).filter((path) => fromLoop?.includes(path) === true)
  return edited.length === 0
    ? undefined
    : {
        refused: `you have changed its plan since its loop began (${edited.map(shown).join(', ')}): git diff ${initial.slice(0, 12)} -- ${folder}`,
      }
}

/** Of the plan in what would land: a tick was taken back, a story was added, or the loop was to run some stories only. */
export async function whyOpen(
  site: Site,
  { change, state }: KnownRun,
  { root, base, tip }: { readonly root: string; readonly base: string; readonly tip: string },
): Promise<Unfit | undefined> {
  if (state.settings?.done_criteria !== 'tasks' && !hasMerge(state.stories)) return undefined
  const { open = 0, total = 0 } = (await planNow(site, change, root)) ?? {}
  if (open === 0) return undefined
  const at = (await loopTree(site.git, change))?.worktree
  const go = at === undefined ? [await safeToType(site.git, `git switch ralph/${change}`)] : []
  // A story that came on the target is not in the plan that its loop would read.
  const bring = (await isAncestor(site.git, base, tip))
    ? []
    : [
        await safeToType(
          site.git,
          `git${at === undefined ? '' : ` -C ${shellWord(at)}`} merge ${base.slice(0, 12)}`,
        ),
      ]
  const then = at === undefined ? `git switch -; ralph land ${change}` : `ralph queue retry ${change}`
  return {
    refused: `it is not done: ${open} of ${total} stories ${open === 1 ? 'is' : 'are'} open in the plan that would land`,
    hint: `Run what is open: ${[...go, ...bring, `ralph resume ${change}`].join('; ')}; then: ${then}`,
  }
}

/** For each commit: the files of a folder of the checkout that are other than there, ticks apart. */
export async function changedSince(
  git: Git,
  folder: string,
  commits: readonly string[],
): Promise<readonly (readonly string[])[]> {
  const listed = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', folder]
  const there = (await git.list(listed)).filter((path) => existsSync(join(git.worktree, shown(path))))
  // Whether git knows them there or not: whoever has just written a plan has seldom committed it.
  const hashes =
    there.length === 0
      ? []
      : (await git.line(['hash-object', '--', ...there.map((path) => shown(path))])).split('\n')
  const now = new Map(there.map((path, at) => [path, hashes[at]]))
  // A loop that resolves a conflict begins with the boxes that the first one has ticked.
  const isSameButTicks = async (path: string, then: string): Promise<boolean> =>
    unticked(shown((await git.run(['cat-file', 'blob', then])).out)) ===
    unticked(readNow(join(git.worktree, shown(path)), 'utf8'))
  const differing = async (from: string): Promise<readonly string[]> => {
    const entries = await git.list(['ls-tree', '-r', '-z', '--full-tree', from, '--', folder])
    const held = new Map(
      entries.map((entry) => [entry.slice(entry.indexOf('\t') + 1), entry.split(/[ \t]/)[2]] as const),
    )
    const paths: string[] = []
    for (const path of new Set([...held.keys(), ...now.keys()])) {
      const [then, today] = [held.get(path), now.get(path)]
      if (
        then === today ||
        (then && today && path.endsWith('/tasks.md') && (await isSameButTicks(path, then)))
      )
        continue
      paths.push(path)
    }
    return paths
  }
  return await Promise.all(commits.map(differing))
}

function unticked(text: string): string {
  return text
    .split('\n')
    .map((line) => {
      const box = readBox(line)
      return box === undefined ? line : `${line.slice(0, box.open)}${line.slice(box.close)}`
    })
    .join('\n')
}
