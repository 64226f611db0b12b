// How an agent put both sides of a conflict together, judged by what is in git: markers, a side that was dropped, tests that were changed.
import type { Conflict } from '../../core/queue.ts'
import { shown, type Git } from './git.ts'
import { isAncestor, treeChanges } from './tree.ts'

/** One sentence for each thing that is wrong with `tip`; none where it may land. */
export async function judgeResolution(git: Git, conflict: Conflict, tip: string): Promise<readonly string[]> {
  const { base, tip: before, marked, paths } = conflict
  if (!(await isAncestor(git, base, tip))) return ['what landed is not part of the branch any more']
  const marks = await git.run(
    [
      'grep',
      '-l',
      '-z',
      '-I',
      '-E',
      '^(<{7}|>{7}|\\|{7}) ',
      tip,
      '--',
      ...paths.map((path) => `:(top,literal)${path}`),
    ],
    { accept: [1], env: { GIT_LITERAL_PATHSPECS: '0' } },
  )
  const withMarks = marks.out
    .split('\0')
    .filter((item) => item !== '')
    .map((item) => item.slice(tip.length + 1))
  const [now, landed, own] = await Promise.all([
    blobs(git, tip, paths),
    blobs(git, base, paths),
    blobs(git, before, paths),
  ])
  const dropped = (conflict.said === undefined ? paths : [])
    .filter((path) => !withMarks.includes(path))
    .flatMap((path) => {
      if (now.get(path) === landed.get(path)) return [`in ${shown(path)} nothing of this change is left`]
      return now.get(path) === own.get(path) ? [`in ${shown(path)} nothing of what landed is left`] : []
    })
  const isConflicted = new Set(paths)
  const tests = (await treeChanges(git, marked, tip))
    .filter(({ path, from }) => from !== undefined && isTest(path) && !isConflicted.has(path))
    .map(
      ({ path, to }) =>
        `the test ${shown(path)} was ${to === undefined ? 'deleted' : 'changed'}, and it had no conflict`,
    )
  return [...withMarks.map((path) => `${shown(path)} has conflict markers`), ...dropped, ...tests]
}

async function blobs(
  git: Git,
  commit: string,
  paths: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const entries = await git.list(['ls-tree', '-r', '-z', '--full-tree', commit])
  const wanted = new Set(paths)
  const found = entries.map(
    (entry) => [entry.slice(entry.indexOf('\t') + 1), entry.slice(0, entry.indexOf('\t'))] as const,
  )
  return new Map(found.filter(([path]) => wanted.has(path)))
}

/** By the names that test runners look for. */
function isTest(path: string): boolean {
  return /(^|\/)(tests?|__tests__|spec)\/|[._-](test|spec)\.[^/]+$|(^|\/)test_[^/]+$|_test\.[^/]+$/i.test(
    path,
  )
}
