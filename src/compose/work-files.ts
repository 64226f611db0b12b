// Which files of a run are whose: those that an attempt's checkpoint changed, and those that people did between two attempts.
import { shown, type Git } from '../adapters/git/git.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import { gateTimes, workSteps, workTypes } from '../core/hand-work.ts'
import type { HandWork, Step, WorkSteps } from '../core/hand-work.ts'
import { keepsWork } from '../core/report.ts'
import type { RunWork } from '../core/report.ts'
import { hasMerge, mergeStory } from '../core/story.ts'
import type { LandedWork } from '../ui/app.ts'
import type { KnownRun } from './site.ts'

/** By name: whether it is gone by the last of its checkpoints. */
type Names = Map<string, boolean>

async function workFiles(
  git: Git,
  { recall, state }: Pick<KnownRun, 'recall' | 'state'>,
): Promise<Required<Pick<RunWork, 'files' | 'deleted' | 'by_hand'>>> {
  const { attempts, hands } = workSteps(recall(...workTypes))
  const found = new Map<string, Names>()
  for (const step of attempts) {
    const story = state.iterations.find(({ n }) => n === step.n)?.story_id
    if (story !== undefined) found.set(story, await namesIn(git, [step], found.get(story)))
  }
  const listed = (list: (names: Names) => readonly string[]): Map<string, readonly string[]> =>
    new Map([...found].map(([story, names]) => [story, list(names)]))
  return { files: listed(allOf), deleted: listed(goneOf), by_hand: await told(git, hands) }
}

export async function runWork(
  git: Git,
  { recall, state }: Pick<KnownRun, 'recall' | 'state'>,
): Promise<RunWork> {
  return {
    iterations: state.iterations,
    gates_ms: gateTimes(recall('gate.ended', 'iteration.ended')),
    programs: programsOf(recall),
    ...(await workFiles(git, { recall, state })),
  }
}

/** Each loop of a run may have been given another. */
function programsOf(recall: KnownRun['recall']): ReadonlyMap<number, string> {
  const found = new Map<number, string>()
  let program: string | undefined
  for (const event of recall('loop.started', 'iteration.started')) {
    if (event.type === 'loop.started') program = event.agent_program
    else if (program !== undefined) found.set(event.n, program)
  }
  return found
}

/** Without the files of the attempts: of most runs nothing is asked of git. */
export async function handWork(git: Git, { recall }: Pick<KnownRun, 'recall'>): Promise<readonly HandWork[]> {
  return told(git, workSteps(recall(...workTypes)).hands)
}

/** Of a merge that has landed, and that no attempt of its run made: what somebody committed since its last checkpoint. */
export async function mergedByHand(
  git: Git,
  { change, state }: KnownRun,
  { commit }: LandedWork,
): Promise<readonly HandWork[]> {
  const { lastCheckpoint: from } = state.git
  const last = state.iterations.at(-1)
  const to = await readRef(git, `refs/heads/ralph/${change}`)
  const isAgents =
    to === undefined
      ? last === undefined || (keepsWork[last.verdict] && last.verdict !== 'refused')
      : to === from
  if (from === undefined || isAgents || !hasMerge(state.stories)) return []
  // The queue lands nothing that its gates have not passed.
  const checked = { gates: 'passed', reason: '', gates_ms: 0 } as const
  const hand = { time: state.updatedAt ?? '', after: last?.n ?? 0, story_ids: [mergeStory], checked }
  return told(git, [{ ...hand, commit: to ?? commit, steps: to === undefined ? [] : [{ from, to }] }])
}

/** A checkpoint of which git finds nothing changed is no work, unless it was judged. */
async function told(git: Git, hands: WorkSteps['hands']): Promise<readonly HandWork[]> {
  const all = await Promise.all(
    hands.map(async ({ steps, ...hand }): Promise<HandWork> => {
      const names = await namesIn(git, steps)
      const deleted = goneOf(names)
      return { ...hand, files: allOf(names), ...(deleted.length > 0 && { deleted }) }
    }),
  )
  return all.filter(({ checked, files }) => checked !== undefined || files.length > 0)
}

/** One that git has no more tells nothing. */
async function namesIn(git: Git, steps: readonly Step[], names: Names = new Map()): Promise<Names> {
  for (const { from, to } of steps) {
    const asked = ['diff', '--name-status', '--no-renames', '-z', '--no-ext-diff', from, to]
    const { out, code } = await git.run(asked, { accept: [128] })
    if (code !== 0) continue
    for (const [, how = '', name = ''] of out.matchAll(/([A-Z])\0([^\0]+)\0/g))
      names.set(shown(name), how === 'D')
  }
  return names
}

function allOf(names: Names): readonly string[] {
  return [...names.keys()].toSorted()
}

function goneOf(names: Names): readonly string[] {
  return [...names].flatMap(([name, isGone]) => (isGone ? [name] : [])).toSorted()
}
