// After an attempt or a gate: compares the change with its guarded bytes, lets stand what may be done to it, and undoes the rest.
import { basename, join } from 'node:path'
import { joinLines, setBox, splitLines } from '../../core/box.ts'
import { judgeTasks, type TasksJudgement } from '../../core/tasks-judge.ts'
import { parseTasks } from '../../core/tasks.ts'
import type { WatchedPlan, SpecJudgement } from '../../ports.ts'
import { chmod, readFile } from '../files/now.ts'
import { lstatIfThere } from '../files/whole.ts'
import { replaceWhole } from './files.ts'
import {
  copyPlan,
  findGuarded,
  isPlanPath,
  readBlob,
  readGuard,
  type FileEntry,
  type Guarded,
  type GuardPlaces,
} from './guard.ts'
import {
  ifItWasYou,
  ifItWasYours,
  keepAside,
  removeExtras,
  renamedTo,
  restoreLinks,
  restoreTree,
  setAside,
  takeOutOfArchive,
} from './restore.ts'
import { restoreRules } from './rules.ts'
import { trackedFiles, type TrackedFile } from './tracked.ts'

interface TrackedNow {
  readonly file: string
  readonly real: string
  readonly entry: FileEntry
  readonly before: Buffer
  /** Undefined when it is gone or cannot be read. */
  readonly after: Buffer | undefined
}

/** `storyId` undefined: a manual loop, in which every open box is the agent's. */
export async function judgeAgent(
  places: GuardPlaces,
  pattern: string,
  storyId: string | undefined,
): Promise<SpecJudgement> {
  const guarded = await readGuard(places)
  if (guarded === undefined) throw new Error('judge without guard')
  return judgeChange(places, pattern, { guarded, storyId, who: 'the agent' })
}

/** Not on disk as a guard: after a crash the attempt is undone, gates and all. */
export async function watchPlan(
  places: GuardPlaces,
  pattern: string,
  tracked: readonly TrackedFile[],
): Promise<WatchedPlan> {
  const guarded = await copyPlan(places, tracked)
  return async (gate) => {
    const who = `the gate \`${gate}\``
    const { putBack, added, lost } = await judgeChange(places, pattern, { guarded, storyId: '', who })
    return { putBack: putBack.map((sentence) => `${who}: ${sentence}`), ...(added && { added }), lost }
  }
}

/**
 * Before a revert: what was added to the plan while the attempt ran, by nobody knows whom. What resolves puts it into the plan again once
 * that is back if there are open tasks in it, since a task that is dropped would make the plan look done; else it says where it is kept.
 */
export async function addedTasks(places: GuardPlaces): Promise<() => Promise<string[]>> {
  const guarded = await readGuard(places)
  const tracked = guarded === undefined ? [] : await readTrackedNow(places.guardDir, guarded)
  const whole = tracked.filter((each) => lostSentence(each, '').length === 0)
  const textsOf = (pick: 'before' | 'after'): { file: string; text: string }[] =>
    whole.map((each) => ({ file: each.file, text: (each[pick] ?? each.before).toString('utf8') }))
  const judgement = judgeTasks(textsOf('before'), textsOf('after'), '')
  const grown = whole
    .filter((each) => addedSentence(each, judgement).length > 0)
    .map((each) => {
      // With the headings and the prose that came along: a task belongs to its story.
      const bytes = mergedBytes(each, judgement)
      const open = (text: Uint8Array): number =>
        parseTasks([{ file: each.file, text: new TextDecoder().decode(text) }]).boxes.filter(
          ({ task }) => task.state === 'open' || task.state === 'human',
        ).length
      return { ...each, bytes, count: open(bytes) - open(each.before) }
    })
  return async () => {
    const told: string[] = []
    for (const { file, real, entry, before, bytes, count } of grown) {
      if (!(await readFile(real).catch(() => undefined))?.equals(before)) continue
      if (count > 0 && (await replaceWhole(places.guardDir, real, before, bytes, entry.mode))) {
        const tasks = count === 1 ? 'a task was' : `${count} tasks were`
        told.push(
          `${tasks} added to ${file} while the attempt ran, by you or by the agent; it stays in the plan`,
        )
      } else {
        const aside = await keepAside(places.guardDir, basename(real), bytes)
        told.push(
          `lines were added to ${file} while the attempt ran, and went with it${await ifItWasYours(places.guardDir, aside, real, before)}`,
        )
      }
    }
    return told
  }
}

interface Suspect {
  /** What stood before it. */
  readonly guarded: Guarded
  readonly storyId: string | undefined
  readonly who: string
}

async function judgeChange(
  places: GuardPlaces,
  pattern: string,
  { guarded, storyId, who }: Suspect,
): Promise<SpecJudgement> {
  const { guardDir, changeDir } = places
  const putBack = await undoMove(guardDir, guarded, changeDir)
  const change = basename(changeDir)
  const renamed = await renamedTo(changeDir, guarded)
  if (renamed !== '')
    putBack.push(
      `the folder of the change was renamed to ${renamed}, by you or by ${who}; ${change} is restored. If it was you, rename it between two runs: ralph stop ${change}, and then ralph loop ${renamed}`,
    )
  await restoreLinks(guardDir, guarded)
  for (const tree of guarded.trees) await restoreTree(guardDir, tree, () => false)
  const { tracked, judgement, lost, told } = await judgeTracked(guardDir, { guarded, storyId, who }, renamed)
  putBack.push(...told)
  putBack.push(...(await restorePlan(places, pattern, guarded)), ...(await restoreRules(places, guarded)))
  const added = lost === undefined ? tracked.flatMap((each) => addedSentence(each, judgement)) : []
  const { ticked, stillOpen, notAsked } = judgement
  return { putBack, ...(added.length > 0 && { added }), lost, ticked, stillOpen, notAsked }
}

interface JudgedFiles {
  readonly tracked: readonly TrackedNow[]
  readonly judgement: TasksJudgement
  readonly lost: string | undefined
  readonly told: readonly string[]
}

/** The files with the boxes, as they are now; judged anew where somebody saves one meanwhile. */
async function judgeTracked(guardDir: string, suspect: Suspect, renamed: string): Promise<JudgedFiles> {
  const { guarded, storyId, who } = suspect
  const tracked = await readTrackedNow(guardDir, guarded)
  const lost =
    renamed === ''
      ? tracked.flatMap((each) => lostSentence(each, who)).join('; ') || undefined
      : `the folder of the change was renamed to ${renamed} while ${who} ran; it is restored`
  const texts = (pick: (each: TrackedNow) => Buffer | undefined): { file: string; text: string }[] =>
    tracked.map((each) => ({ file: each.file, text: (pick(each) ?? each.before).toString('utf8') }))
  // A lost plan says nothing about what was done: all of it counts as untouched.
  const judgement = judgeTasks(
    texts((each) => each.before),
    texts((each) => (lost === undefined ? each.after : each.before)),
    storyId,
  )
  const told = [...judgement.putBack]
  for (const each of tracked) {
    const aside = await writeJudged(guardDir, each, lost === undefined ? judgement : undefined)
    if (aside === undefined) {
      const anew = await judgeTracked(guardDir, suspect, renamed)
      return { ...anew, lost: lost ?? anew.lost, told: [...new Set([...told, ...anew.told])] }
    }
    // Boxes alone: each is named already, and the command would be longer than to set them by hand.
    if (aside !== '' && (lost !== undefined || (judgement.putBack.length > 0 && !isOnlyBoxes(each))))
      told.push(
        `what was in ${each.file} is kept${await ifItWasYours(guardDir, aside, each.real, each.before)}`,
      )
  }
  return { tracked, judgement, lost, told }
}

async function undoMove(guardDir: string, guarded: Guarded, changeDir: string): Promise<string[]> {
  const name = await takeOutOfArchive(guardDir, guarded, changeDir)
  if (name === '') return []
  const sentences = [`the change was moved to archive/${name}; it is back in its place`]
  if (guarded.specs === undefined) return sentences
  const restored = await restoreTree(guardDir, guarded.specs)
  const removed = await removeExtras(guardDir, guarded.specs, () => true)
  if (restored.length + removed.length > 0)
    sentences.push('openspec/specs was changed by archiving; put back')
  return sentences
}

async function readTrackedNow(guardDir: string, guarded: Guarded): Promise<readonly TrackedNow[]> {
  const found: TrackedNow[] = []
  for (const { file, real } of guarded.tracked) {
    const entry = findGuarded(guarded, real)
    if (entry === undefined) throw new Error(`the guard lacks ${real}`)
    const after = await readFile(real).catch(() => undefined)
    found.push({ file, real, entry, before: await readBlob(guardDir, entry.hash), after })
  }
  return found
}

/** Somebody else may have done it meanwhile. */
function lostSentence({ file, before, after }: TrackedNow, who: string): string[] {
  const when = `while ${who} ran; it is restored`
  if (after === undefined) return [`${file} was deleted, moved or made unreadable ${when}`]
  const hasBoxes = (bytes: Buffer): boolean =>
    parseTasks([{ file, text: bytes.toString('utf8') }]).tasksTotal > 0
  if (!hasBoxes(before) || hasBoxes(after)) return []
  const isEmpty = after.toString('utf8').trim() === ''
  return [isEmpty ? `${file} was emptied ${when}` : `every box was taken out of ${file} ${when}`]
}

function isOnlyBoxes({ before, after }: TrackedNow): boolean {
  const [then, now] = [before, after].map((bytes) => bytes?.toString('latin1').replace(/\[[ xX]\]/g, '[]'))
  return then === now
}

/** Where what stood there is kept; empty when nothing was replaced, undefined where somebody has saved it since the look. */
async function writeJudged(
  guardDir: string,
  now: TrackedNow,
  judgement: TasksJudgement | undefined,
): Promise<string | undefined> {
  const { real, entry, before, after } = now
  const bytes = judgement === undefined ? before : mergedBytes(now, judgement)
  const stats = await lstatIfThere(real)
  if (stats?.isFile() === true && after !== undefined && Buffer.compare(after, bytes) === 0) {
    if ((stats.mode & 0o7777) !== entry.mode) await chmod(real, entry.mode)
    return ''
  }
  if (stats?.isFile() === true) await chmod(real, entry.mode)
  const isSeen = stats?.isFile() === true && after !== undefined
  const aside = isSeen
    ? await keepAside(guardDir, basename(real), after)
    : stats === undefined
      ? ''
      : await setAside(guardDir, real)
  const isIn = await replaceWhole(guardDir, real, isSeen ? after : undefined, bytes, entry.mode)
  return isIn ? aside : undefined
}

/** They may be notes or new tasks, and every later prompt reads them. */
function addedSentence({ file, after }: TrackedNow, { merged }: TasksJudgement): string[] {
  const lines = splitLines(after ?? new Uint8Array())
  const added = (merged.get(file) ?? []).filter(({ from }) => from === 'after')
  const sizes = added.map(({ line }) => lines[line - 1]?.length ?? 0).filter((size) => size > 0)
  if (sizes.length === 0) return []
  const bytes = sizes.reduce((sum, size) => sum + size + 1, 0)
  return [
    `${sizes.length} ${sizes.length === 1 ? 'line was' : 'lines were'} added to ${file} (${bytes} bytes)`,
  ]
}

function mergedBytes(
  { file, before, after }: TrackedNow,
  judgement: Pick<TasksJudgement, 'merged'>,
): Uint8Array {
  const lines = { before: splitLines(before), after: splitLines(after ?? before) }
  const merged = (judgement.merged.get(file) ?? []).map(({ from, line, tick }) => {
    const bytes = lines[from][line - 1] ?? new Uint8Array()
    return tick ? setBox(bytes, true) : bytes
  })
  return joinLines(merged)
}

/** Proposal, design, specs and the like: any edit goes back, any new one is taken out. Other files are the agent's. */
async function restorePlan(places: GuardPlaces, pattern: string, guarded: Guarded): Promise<string[]> {
  const { guardDir, changeDir, mayEdit } = places
  const sentences: string[] = []
  const tracked = new Set(guarded.tracked.map((each) => each.real))
  for (const [index, tree] of guarded.trees.entries()) {
    const isChange = index === 0
    const isWanted = (path: string): boolean =>
      !tracked.has(path === '' ? tree.base : join(tree.base, path)) &&
      (!isChange || (isPlanPath(path) && mayEdit?.has(join(changeDir, path)) !== true))
    const isPlan = new Set(tree.entries.flatMap((each) => (each.kind === 'folder' ? [] : [each.path])))
    for (const { path, aside, isRemoved } of await restoreTree(guardDir, tree, isWanted)) {
      if (isPlan.has(path))
        sentences.push(
          `${path || tree.base} was ${isRemoved === true ? 'removed' : 'changed'}; put back${ifItWasYou(aside, join(tree.base, path))}`,
        )
    }
    const now = isChange ? await trackedFiles(changeDir, pattern) : []
    const isNew = (path: string): boolean =>
      isWanted(path) && (!isChange || isPlanPath(path) || now.some(({ file }) => file === path))
    for (const { path, aside } of await removeExtras(guardDir, tree, isNew))
      sentences.push(`${path} was added to the plan; taken out${ifItWasYou(aside, join(tree.base, path))}`)
  }
  return sentences
}
