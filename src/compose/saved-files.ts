// What a checkpoint changed, told with it: the files by name, and the tests among them that are gone.
import { named, type Git } from '../adapters/git/git.ts'
import { textsAt } from '../adapters/git/tree/texts.ts'
import { treeChanges } from '../adapters/git/tree/tree.ts'
import { lostTests } from '../core/lost-tests.ts'
import { isTest } from '../core/resolution.ts'
import type { Checkpoints, SavedCheckpoint } from '../ports.ts'
import type { CheckpointWish } from './checkpoints.ts'
import type { Site } from './site.ts'

/** A story that has ticked its boxes and done nothing else is told as one that changed nothing. */
export function tellingFiles(
  { git }: Site,
  checkpoints: Checkpoints,
  { change, stream }: Pick<CheckpointWish, 'change' | 'stream'>,
): Checkpoints {
  const isPlan = (path: string): boolean =>
    path === 'tasks.md' || `/${path}`.endsWith(`/openspec/changes/${change}/tasks.md`)
  return {
    ...checkpoints,
    async save(...args) {
      const before = stream.state.git.checkpoint
      const saved = await checkpoints.save(...args)
      if (before === undefined || !saved.changed || saved.refused !== undefined) return saved
      const changes = (await treeChanges(git, before, saved.commit)).filter(({ path }) => !isPlan(path))
      if (changes.length === 0) return { ...saved, only_plan: true }
      return {
        ...saved,
        files: changes.map(fileOf),
        changedTests: changes.flatMap(({ path, from, to }) =>
          from !== undefined && to !== undefined && isTest(path) ? [named(path)] : [],
        ),
        lostTests: await lostIn(git, before, saved.commit, changes),
      }
    },
  }
}

type Change = Awaited<ReturnType<typeof treeChanges>>[number]

function fileOf({ path, to }: Change): NonNullable<SavedCheckpoint['files']>[number] {
  return { path: named(path), isDeleted: to === undefined }
}

/** What is only new takes nothing away, and is not read. */
async function lostIn(
  git: Git,
  before: string,
  now: string,
  changes: readonly Change[],
): Promise<readonly string[]> {
  const tests = changes.filter(({ path }) => isTest(path))
  if (tests.every(({ from }) => from === undefined)) return []
  const isText = (mode: string | undefined): boolean => mode?.startsWith('100') === true
  const texts = await textsAt(
    git,
    tests.flatMap(({ path, from, to }) => [
      ...(isText(from) ? [`${before}:${path}`] : []),
      ...(isText(to) ? [`${now}:${path}`] : []),
    ]),
  )
  return lostTests(
    tests.map(({ path }) => ({
      path: named(path),
      before: texts.get(`${before}:${path}`),
      now: texts.get(`${now}:${path}`),
    })),
  )
}
