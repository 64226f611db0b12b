// The plan of an OpenSpec change as the engine sees it: read, prompted, guarded, judged, put back and ticked.
import { isDoneMark, setBoxes } from '../../core/box.ts'
import { RalphError } from '../../core/error.ts'
import type { Absence } from '../../core/ownership.ts'
import { storyPrompt } from '../../core/prompt.ts'
import { handedTasks, indexBoxes, locate } from '../../core/tasks-locate.ts'
import { descendants, type PlanBox } from '../../core/tasks-story.ts'
import { parseTasks, type ReadPlan } from '../../core/tasks.ts'
import type { PromptRequest, SpecSource } from '../../ports.ts'
import { changeDirOf } from './changes.ts'
import { promptContext, type ContextDeps } from './context.ts'
import { realpath } from '../files/now.ts'
import { lstatIfThere } from '../files/whole.ts'
import { replaceWhole } from './files.ts'
import { findGuarded, readBlob, readGuard, takeGuard, type GuardPlaces } from './guard.ts'
import { addLearning } from './learnings.ts'
import { addedTasks, watchPlan, judgeAgent } from './judge.ts'
import { taskPattern } from './project.ts'
import { restoreAll, stays } from './restore.ts'
import { restoreRules } from './rules.ts'
import { planOf, readTracked, trackedFiles, type TrackedFile } from './tracked.ts'

export interface SourceDeps extends ContextDeps {
  /** Ralph's private folder for the guarded bytes. */
  readonly guardDir: string
  /** Of the files with the boxes, as the run began; what the schema says now where it is not known. */
  readonly pattern?: string
  /** In a repair: who may have changed the plan since the loop died. */
  readonly absence?: () => Absence | undefined
}

export function openspecSource(deps: SourceDeps): SpecSource {
  const changeDir = changeDirOf(deps.root, deps.change)
  const places = { root: deps.root, changeDir, guardDir: deps.guardDir, env: deps.env }
  // Resolved once, when the run begins: an agent that edits the schema must not point the loop at another plan.
  let resolving = deps.pattern === undefined ? undefined : Promise.resolve(deps.pattern)
  const pattern = (): Promise<string> => (resolving ??= taskPattern(deps.root, changeDir, deps.env))
  const files = async (): Promise<readonly TrackedFile[]> => {
    const found = await trackedFiles(changeDir, await pattern(), deps.worktree)
    if (found.length > 0) return found
    throw new RalphError('spec_unreadable', `There is no tasks.md in ${changeDir} nor in ${deps.worktree}`, {
      hint: 'Bring it back from git, or run the loop with `--done manual`.',
    })
  }
  const read = async (): Promise<ReadPlan> => {
    const tracked = await files()
    return planOf(await readTracked(tracked), tracked.map(({ path }) => path).join(', '))
  }
  return {
    read,
    prompt: async (request) => promptFor(deps, await read(), await files(), request),
    ...guarding(deps, places, pattern, files),
    judge: async (storyId) => judgeAgent(places, await pattern(), storyId),
    putBack: async () => {
      const isRestored = await restoreGuarded(deps, places)
      return isRestored && deps.absence?.() !== undefined ? untick(places, await files()) : []
    },
    tick: async (storyId) => tickStory(places, await files(), storyId),
  }
}

/** What a plan with stories and one without have in common. */
export function guarding(
  deps: SourceDeps,
  places: GuardPlaces,
  pattern: () => Promise<string>,
  files: () => Promise<readonly TrackedFile[]>,
): Pick<SpecSource, 'guard' | 'watch' | 'added' | 'learn'> {
  return {
    guard: async () => takeGuard(places, await files()),
    watch: async () => watchPlan(places, await pattern(), await files()),
    added: () => addedTasks(places),
    learn: (text) => addLearning(deps.learningsPath, text),
  }
}

/** False where nothing was guarded. */
export async function restoreGuarded(deps: SourceDeps, places: GuardPlaces): Promise<boolean> {
  const guarded = await readGuard(places)
  if (guarded === undefined) return false
  const staying = stays(deps.absence?.())
  await restoreAll(deps.guardDir, guarded, places.changeDir, staying)
  await restoreRules(places, guarded, staying)
  return true
}

async function promptFor(
  deps: SourceDeps,
  plan: ReadPlan,
  files: readonly TrackedFile[],
  request: PromptRequest,
): Promise<string> {
  const story = plan.stories.find((each) => each.id === request.storyId)
  if (story === undefined) throw noStory(request.storyId, plan)
  const { attempt, attempts, previousFailure, feedback, offersClaims = false } = request
  return storyPrompt({
    ...(await promptContext(deps, files)),
    plan,
    story,
    attempt,
    attempts,
    ...(previousFailure !== undefined && { previousFailure }),
    ...(feedback !== undefined && { feedback }),
    offersClaims,
  })
}

function noStory(storyId: string, plan: ReadPlan): RalphError {
  return new RalphError('usage', `There is no story "${storyId}"`, {
    hint: `There are: ${plan.stories.map((each) => each.id).join(', ')}.`,
  })
}

/** Ticks what the agent was asked to do, as of the guard: boxes it added meanwhile, or was not given, are not waved through. */
async function tickStory(
  places: GuardPlaces,
  files: readonly TrackedFile[],
  storyId: string,
): Promise<number> {
  const set = await setAll(places, files, true, (asked, now) => {
    const story = asked.stories.find((each) => each.id === storyId)
    if (story === undefined) throw noStory(storyId, asked)
    const wanted = new Set(handedTasks(story))
    const [from, into] = [indexBoxes(asked.boxes), indexBoxes(now.boxes)]
    const found = new Set<PlanBox>()
    for (const box of asked.boxes) {
      if (!wanted.has(box.task)) continue
      const located = locate(box, from, into)
      if (located.kind !== 'found') throw ambiguous(box, located.kind === 'ambiguous' ? located.lines : [])
      if (located.box.task.state === 'open') found.add(located.box)
    }
    return withoutUnfinishedParents(now, found)
  })
  return set.reduce((sum, { lines }) => sum + lines.length, 0)
}

/**
 * After a repair the user's own plan may have stayed, and in it what a dead attempt has ticked: nobody can tell, and a tick too many
 * would make a story done that is not. Boxes that were open when the attempt began are open again.
 */
async function untick(places: GuardPlaces, files: readonly TrackedFile[]): Promise<string[]> {
  const set = await setAll(places, files, false, (asked, now) => {
    const [from, into] = [indexBoxes(asked.boxes), indexBoxes(now.boxes)]
    return asked.boxes.flatMap((box) => {
      const located = locate(box, from, into)
      if (box.task.state !== 'open' || located.kind !== 'found' || located.box.task.state !== 'done')
        return []
      return [located.box]
    })
  })
  return set.map(
    ({ file, lines }) =>
      `${file} is yours, but its boxes may have been ticked by the attempt that died; open again: line ${lines.join(', ')}`,
  )
}

interface SetBoxes {
  readonly file: string
  readonly lines: readonly number[]
}

/** Those of the plan as it is now; chosen anew where somebody saves it meanwhile. */
async function setAll(
  places: GuardPlaces,
  files: readonly TrackedFile[],
  isDone: boolean,
  choose: (asked: ReadPlan, now: ReadPlan) => readonly PlanBox[],
): Promise<SetBoxes[]> {
  const contents = await readTracked(files)
  const now = parseTasks(contents)
  const boxes = choose(await askedPlan(places, now), now)
  const set: SetBoxes[] = []
  for (const { file, bytes } of contents) {
    const lines = new Set(boxes.filter((box) => box.task.file === file).map((box) => box.task.line))
    const path = files.find((each) => each.file === file)?.path
    if (lines.size === 0 || path === undefined) continue
    const after = Buffer.from(setBoxes(bytes, lines, isDone))
    assertOnlySet(file, bytes, after, lines, isDone)
    const real = await realpath(path)
    const mode = ((await lstatIfThere(real))?.mode ?? 0o644) & 0o7777
    if (!(await replaceWhole(places.guardDir, real, bytes, after, mode)))
      return [...set, ...(await setAll(places, files, isDone, choose))]
    set.push({ file, lines: [...lines] })
  }
  return set
}

async function askedPlan(places: GuardPlaces, now: ReadPlan): Promise<ReadPlan> {
  const guarded = await readGuard(places)
  if (guarded === undefined) return now
  const files = await Promise.all(
    guarded.tracked.map(async ({ file, real }) => {
      const entry = findGuarded(guarded, real)
      if (entry === undefined) throw new Error(`the guard lacks ${real}`)
      return { file, text: (await readBlob(places.guardDir, entry.hash)).toString('utf8') }
    }),
  )
  return parseTasks(files)
}

/** A parent's box is the sum of its children: it waits for those that are open or a person's. */
function withoutUnfinishedParents(plan: ReadPlan, found: ReadonlySet<PlanBox>): readonly PlanBox[] {
  const tasks = plan.boxes.map((box) => box.task)
  return plan.boxes.filter((box, index) => {
    if (!found.has(box)) return false
    const below = descendants(tasks, index).flatMap((child) => plan.boxes[child] ?? [])
    return below.every((child) => found.has(child) || !['open', 'human'].includes(child.task.state))
  })
}

function ambiguous({ task, description }: PlanBox, lines: readonly number[]): RalphError {
  const where =
    lines.length === 0 ? 'is no longer in the file' : `could be any of the lines ${lines.join(', ')}`
  return new RalphError('box_ambiguous', `The box of "${description}" (${task.file}:${task.line}) ${where}`, {
    hint: 'No box was touched and the work is in the files. Tick it by hand, then run `ralph resume`.',
  })
}

/** The last line of defence: a plan in which anything else has changed is not written. */
function assertOnlySet(
  file: string,
  before: Buffer,
  after: Buffer,
  lines: ReadonlySet<number>,
  isDone: boolean,
): void {
  const [old, now] = [before, after].map(
    (bytes) => parseTasks([{ file, text: bytes.toString('utf8') }]).boxes,
  )
  const isRight = (box: PlanBox, index: number): boolean => {
    const other = now?.[index]
    if (other === undefined || other.task.line !== box.task.line || other.description !== box.description)
      return false
    return lines.has(box.task.line) ? isDoneMark(other.mark) === isDone : other.mark === box.mark
  }
  if (old?.length !== now?.length || old?.every(isRight) !== true)
    throw new Error('setting boxes would have changed more than its boxes')
}
