// The landing of one change on its target: merge, set-up, archive, gates on exactly what lands, and the move of the ref.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { queuePaths } from '../adapters/files/queue-files.ts'
import { readAuthor } from '../adapters/git/formats/author.ts'
import { shown, type Git } from '../adapters/git/git.ts'
import {
  carryHome,
  closeScratchTree,
  commitScratch,
  enterTree,
  hasLandedOn,
  isIn,
  landedRef,
  landingBase,
  markedCommit,
  mergeCommits,
  mergeSince,
  moveLanded,
  notLandedOn,
  openScratchTree,
  resetScratch,
  setUpPaths,
  startOf,
  strayPaths,
  takeOnly,
  targetRefs,
  wasIn,
  whyNoTarget,
} from '../adapters/git/landing/landing.ts'
import { hasWritten } from '../adapters/git/refs/ledger.ts'
import { compareRefs, moveRefs, readRef, refsUnder, shortName } from '../adapters/git/refs/refs.ts'
import { judgeResolution, markersLeft } from '../adapters/git/landing/resolution.ts'
import { isAncestor, treeOf } from '../adapters/git/tree/tree.ts'
import { loopTree } from '../adapters/git/start/worktrees.ts'
import { changeDirOf } from '../adapters/openspec/changes.ts'
import { findFiles, pathMatcher } from '../adapters/openspec/glob.ts'
import { findCli } from '../adapters/openspec/cli.ts'
import { shellGates } from '../adapters/process/gates.ts'
import { reapByMarker } from '../adapters/process/reap.ts'
import type { Landing } from '../engine/queue.ts'
import { readBox } from '../core/box.ts'
import { RalphError } from '../core/error.ts'
import type { SetUpDone } from '../core/event.ts'
import { slotVariables } from '../core/queue-due.ts'
import type { Limits } from '../core/resource-limits.ts'
import { agentsTree, type Caging } from './cage.ts'
import { squashText } from './finish.ts'
import { setUp } from './set-up.ts'
import type { SetUp } from './set-up.ts'
import { isAsLeft } from './queue-entry.ts'
import { isRunning, knownRun, knownRuns } from './site.ts'
import type { KnownRun, Site } from './site.ts'

export interface LandingOptions {
  readonly land: 'squash' | 'merge'
  readonly setUp: SetUp
  readonly onSetUp: (change: string, done: SetUpDone) => void
  /** What makes generated files anew, by path or glob; as the user has it, whatever a change makes of ralph.yaml. */
  readonly regenerate: Readonly<Record<string, string>>
  /** Besides those that a change's own loop had. */
  readonly gates: readonly string[]
  /** For one gate, and for the set-up. */
  readonly timeoutMs: number
  readonly caging: Caging
  readonly limits: Limits | undefined
}

export function landingOf(site: Site, options: LandingOptions): Landing {
  const { git } = site
  let scratch: Git | undefined
  let isSetUp: (path: string) => boolean = () => false
  const runIn = async (
    tree: Git,
    command: string,
    change: string,
    stop: AbortSignal,
    log: string,
  ): ReturnType<ReturnType<typeof shellGates>['check']> => {
    mkdirSync(queuePaths(git.gitCommonDir).logs, { recursive: true, mode: 0o700 })
    const mark = { RALPH_CHANGE: change, RALPH_RUN_ID: landingMark(git.gitCommonDir) }
    const env = { ...mark, ...slotVariables(0) }
    const { gates: cage } = options.caging(tree, change)
    const { timeoutMs, limits } = options
    const kept = { ...(cage !== undefined && { cage }), ...(limits !== undefined && { limits }) }
    return await shellGates({ cwd: tree.worktree, env: site.env, timeoutMs, ...kept }).check(
      command,
      env,
      stop,
      log,
    )
  }
  const logOf = (change: string): string => join(queuePaths(git.gitCommonDir).logs, `${change}.log`)
  /** The scratch tree at this commit, set up. */
  const at = async (
    commit: string,
    change: string,
    stop: AbortSignal,
  ): Promise<Git | { readonly refused: string } | 'stopped'> => {
    if (scratch !== undefined) {
      await resetScratch(scratch, commit)
      return scratch
    }
    // A gate that a killed queue left running would write into the next tree.
    await reapByMarker(landingMark(git.gitCommonDir))
    const tree = await openScratchTree(git, commit)
    scratch = tree
    isSetUp = () => false
    const { done, failed } = await setUp(git, tree, options.setUp, (command) =>
      runIn(tree, command, change, stop, logOf(change)),
    )
    // Only what git ignores stays of it: nothing else is to land.
    await resetScratch(tree, commit)
    isSetUp = await setUpPaths(tree)
    if (done !== undefined) options.onSetUp(change, done)
    if (failed === undefined) return tree
    scratch = undefined
    if (failed.outcome === 'stopped') return 'stopped'
    return { refused: `the set-up \`${options.setUp.setup ?? ''}\` failed: ${lastLine(failed.outputTail)}` }
  }
  /** Only files that some command of `regenerate` is for: whatever else it does is undone. */
  const makeAnew = async (
    there: Git,
    commands: readonly string[],
    change: string,
    stop: AbortSignal,
  ): Promise<
    | 'stopped'
    | {
        readonly tree: string
        readonly failed?: { readonly command: string; readonly line: string }
      }
  > => {
    const before = await there.line(['write-tree'])
    const commandsFor = await generators(options.regenerate)
    for (const command of commands) {
      const { outcome, outputTail } = await runIn(there, command, change, stop, logOf(change))
      if (outcome === 'stopped') return outcome
      if (outcome === 'passed') continue
      await takeOnly(there, before, () => false)
      return { tree: before, failed: { command, line: lastLine(outputTail) } }
    }
    if (commands.length === 0) return { tree: before }
    return { tree: await takeOnly(there, before, (path) => commandsFor([path]).length > 0) }
  }
  const gatesOf = async (change: string): Promise<readonly string[]> => {
    const { state } = await knownRun(site, change)
    return [...new Set([...(state.settings?.gates ?? []), ...options.gates])]
  }

  return {
    async refs(target) {
      const { own, landed } = await targetRefs(git, target)
      return { own, landed, isHome: landed !== undefined && (await isAncestor(git, landed, own)) }
    },
    whyNoTarget: (target) => whyNoTarget(git, target),
    base: (target) => landingBase(git, target),
    isHome: (target, commit) => isIn(git, commit, `refs/heads/${target}`),
    wasHome: (target, commit) => wasIn(git, target, commit),
    logOf,
    tip: (change) => readRef(git, `refs/heads/ralph/${change}`),
    isThere: async (commit) => (await git.run(['cat-file', '-e', commit], { accept: [1, 128] })).code === 0,
    unfit: async (change) => await whyUnfit(site, await knownRun(site, change)),
    has: (target, commit) => hasLandedOn(git, target, commit),
    async movedBy(target, to) {
      const running = (await knownRuns(site)).filter(isRunning)
      return running.find(({ change }) => hasWritten(git, change, landedRef(target), to))?.change
    },
    notLanded: (target, commits) => notLandedOn(git, target, commits),
    async build(change, { base, tip, generated, isAtRef }, stop) {
      const lost = await lostStart(site, change, base, tip)
      const merging = lost === undefined ? mergeCommits(git, base, tip) : mergeSince(git, lost, base, tip)
      const merged = await merging.catch((error: unknown) => {
        if (error instanceof RalphError) return { refused: `git cannot merge it: ${error.message}` }
        throw error
      })
      if ('refused' in merged) return merged
      const { tree, conflicts } = merged
      const commandsFor = await generators(options.regenerate)
      const inGenerated = conflicts.filter((path) => commandsFor([path]).length > 0)
      const others = conflicts.filter((path) => !inGenerated.includes(path))
      // Nobody's agent is asked: both sides with markers would hold what was taken off the target.
      if (lost !== undefined && others.length > 0)
        return await notSince(site, change, { lost, base, paths: others })
      const toMake = [...new Set([...generated, ...inGenerated])]
      if (others.length > 0 && inGenerated.length === 0)
        return { conflicts, marked: await markedCommit(git, tree, tip, base), generated }
      const unfit = others.length > 0 ? '' : await whyUnfit(site, await knownRun(site, change))
      if (unfit !== '') return { refused: unfit }
      scratch = undefined
      const there = await at(base, change, stop)
      if (there === 'stopped' || 'refused' in there) return there
      await enterTree(there, tree, { base, paths: inGenerated })
      const made = await makeAnew(there, commandsFor(toMake), change, stop)
      if (made === 'stopped') return made
      // With markers in other files it may fail; it runs again when an agent has resolved those.
      if (others.length > 0)
        return { conflicts: others, marked: await markedCommit(git, made.tree, tip, base), generated: toMake }
      if (made.failed !== undefined)
        return {
          refused: `\`${made.failed.command}\`, which regenerates ${toMake.join(', ')}, failed: ${made.failed.line}`,
          hint: `Its output: ${logOf(change)}. Fix it, then: ralph queue retry ${change}`,
        }
      const run = await knownRun(site, change)
      const { root, worktree } = run.state
      const place = root === undefined ? there.worktree : join(there.worktree, relative(worktree, root))
      const archived = await archive(site, place, change)
      if ('outdated' in archived && lost !== undefined)
        return { refused: `openspec archive refuses it: ${archived.outdated}` }
      if ('outdated' in archived)
        return {
          conflicts: archived.specs.map((path) => relative(there.worktree, path)),
          marked: await markedCommit(git, made.tree, tip, base),
          said: archived.outdated,
          generated: toMake,
        }
      if ('refused' in archived) return archived
      const moved = ['changes/archive', 'specs'].map((folder) =>
        relative(there.worktree, join(place, 'openspec', folder)),
      )
      const message = await squashText(run, undefined)
      const parents = options.land === 'merge' && lost === undefined ? [base, tip] : [base]
      const author = await readAuthor(git, site.env)
      const trailers = `Ralph-Run: ${run.state.runId ?? ''}\nRalph-Tip: ${tip}`
      const commit = await commitScratch(there, parents, `${message}\n${trailers}`, author, {
        folders: moved,
        isSetUp,
      })
      const markers = await markersLeft(git, { base, tip, commit })
      if (markers.length > 0)
        return {
          refused: `git’s conflict markers are in ${markers.join(', ')}`,
          hint: `Merge both sides on ralph/${change} and commit there, then: ralph queue retry ${change}`,
        }
      const isNothing = (await treeOf(git, commit)) === (await treeOf(git, base))
      const saved = run.state.git.lastCheckpoint
      if (isNothing && saved !== undefined && !(await isHeld(git, saved, { base, tip })))
        return {
          refused: `its branch has nothing to land; its work is in refs/ralph/${change}/checkpoint`,
          hint: `Bring it back on ralph/${change}: git merge refs/ralph/${change}/checkpoint; then: ralph queue retry ${change}`,
        }
      return {
        commit: isNothing && isAtRef ? base : commit,
        gates: await gatesOf(change),
        notes: archived.notes,
        regenerated: toMake,
      }
    },
    async judge(change, conflict) {
      const tip = await readRef(git, `refs/heads/ralph/${change}`)
      if (tip === undefined) return { problems: ['its branch is gone'], beside: [] }
      return { ...(await judgeResolution(git, conflict, tip)), tip }
    },
    async isLeft(change, marked) {
      return await isAsLeft(git, await knownRun(site, change), marked)
    },
    gates: gatesOf,
    async gate(change, command, commit, stop, isFresh) {
      if (isFresh) scratch = undefined
      const there = await at(commit, change, stop)
      if (there === 'stopped') return { outcome: 'stopped', outputTail: '', durationMs: 0, changed: [] }
      if ('refused' in there)
        return { outcome: 'could_not_run', outputTail: there.refused, durationMs: 0, changed: [] }
      const before = await refsUnder(git, branchRefs)
      const result = await runIn(there, command, change, stop, logOf(change))
      const moved = await putBackOnto(git, commit, before)
      if (moved.length > 0)
        return {
          ...result,
          outcome: 'failed',
          outputTail: `it moved ${moved.map(shortName).join(', ')} to what it was to check; ${moved.length === 1 ? 'that is' : 'they are'} back`,
          changed: [],
        }
      if (!existsSync(join(there.worktree, '.git'))) {
        scratch = undefined
        const outputTail = `${there.worktree} was removed while it ran`
        return { outcome: 'could_not_run', outputTail, durationMs: 0, changed: [] }
      }
      return { ...result, changed: await strayPaths(there, commit, isSetUp) }
    },
    land: (target, commit, onto) => moveLanded(git, target, commit, onto),
    carryHome: (target, from) => carryHome(git, target, from),
    async close() {
      await closeScratchTree(git)
      scratch = undefined
    },
  }
}

const branchRefs = ['refs/heads', 'refs/ralph-landed']

/** Until it lands, only ralph and its gates know of a candidate: a branch that has it now was moved there by a gate. Names of those that are back. */
async function putBackOnto(
  git: Git,
  candidate: string,
  before: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  if (Object.values(before).includes(candidate)) return []
  const { moved, created } = compareRefs(before, await refsUnder(git, branchRefs, true))
  const back: string[] = []
  for (const { name, from, to } of [...moved, ...created.map((ref) => ({ ...ref, from: undefined }))]) {
    if (to !== candidate && !(await isAncestor(git, candidate, to))) continue
    await moveRefs(git, 'a gate moved it', [
      from === undefined ? `delete ${name} ${to}` : `update ${name} ${from} ${to}`,
    ])
    back.push(name)
  }
  return back.toSorted()
}

/** What the change began from, where that is not in what it lands on: somebody has set the target back or rewritten it since. */
async function lostStart(site: Site, change: string, base: string, tip: string): Promise<string | undefined> {
  const { initial } = (await knownRun(site, change)).state.git
  const start = initial === undefined ? undefined : await startOf(site.git, initial, tip)
  return start === undefined || (await isAncestor(site.git, start, base)) ? undefined : start
}

async function notSince(
  { git }: Site,
  change: string,
  { lost, base, paths }: { readonly lost: string; readonly base: string; readonly paths: readonly string[] },
): Promise<{ readonly refused: string; readonly hint: string }> {
  const at = (await loopTree(git, change))?.worktree
  const typed = at === undefined ? 'git' : `git -C ${at}`
  return {
    refused: `it began at ${lost.slice(0, 12)}, which was taken off its target since, and what it did builds on that in ${paths.map(shown).join(', ')}`,
    hint: `Rebase it onto what is there now: ${typed} rebase --onto ${base.slice(0, 12)} ${lost.slice(0, 12)} ralph/${change}; then: ralph queue retry ${change}`,
  }
}

/** Whether what a loop saved is on its branch, or adds nothing to where it would land. */
async function isHeld(
  git: Git,
  saved: string,
  { base, tip }: { readonly base: string; readonly tip: string },
): Promise<boolean> {
  if (await isAncestor(git, saved, tip)) return true
  const { tree, conflicts } = await mergeCommits(git, base, saved)
  return conflicts.length === 0 && tree === (await treeOf(git, base))
}

/** The commands for these paths, each once, in the order of the setting. */
async function generators(
  regenerate: Readonly<Record<string, string>>,
): Promise<(paths: readonly string[]) => readonly string[]> {
  const rules = await Promise.all(
    Object.entries(regenerate).map(async ([pattern, command]) => ({
      command,
      isFor: await pathMatcher(pattern),
    })),
  )
  return (paths) => [...new Set(rules.flatMap(({ command, isFor }) => (paths.some(isFor) ? [command] : [])))]
}

/** By this what the gates of a landing start is known, also after a crash; one landing at a time in a repository. */
function landingMark(gitCommonDir: string): string {
  return `landing-${createHash('sha256').update(gitCommonDir).digest('hex').slice(0, 16)}`
}

/** Work of somebody's that is not on the branch, or a plan that is not the one the loop worked from; empty where all is well. */
async function whyUnfit({ git }: Site, { change, state }: KnownRun): Promise<string> {
  if (state.phase === 'idle' || state.home === undefined) return ''
  const tree = await loopTree(git, change)
  if (tree !== undefined) {
    const { out } = await git.at(tree).run(['status', '--porcelain', '-z', '--no-renames'])
    const paths = out.split('\0').flatMap((entry) => (entry === '' ? [] : [shown(entry.slice(3))]))
    if (paths.length > 0)
      return `${tree.worktree} has files that are not committed: ${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ` and ${paths.length - 5} more` : ''}`
  }
  const { initial } = state.git
  const folder = relative(state.worktree, changeDirOf(state.root, change))
  if (initial === undefined || folder.startsWith('..')) return ''
  if (!existsSync(join(git.worktree, folder))) return `its plan ${folder} is not in your checkout any more`
  const listed = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', folder]
  const there = (await git.list(listed)).filter((path) => existsSync(join(git.worktree, shown(path))))
  // Whether git knows them there or not: whoever has just written a plan has seldom committed it.
  const hashes =
    there.length === 0
      ? []
      : (await git.line(['hash-object', '--', ...there.map((path) => shown(path))])).split('\n')
  const now = new Map(there.map((path, at) => [path, hashes[at]]))
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
  // A loop that resolves a conflict begins with the boxes that the first one has ticked.
  const isSameButTicks = async (path: string, then: string): Promise<boolean> =>
    unticked(shown((await git.run(['cat-file', 'blob', then])).out)) ===
    unticked(readFileSync(join(git.worktree, shown(path)), 'utf8'))
  const fromLoop = new Set(await differing(`refs/heads/ralph/${change}`))
  // What is as the loop has it was brought by an earlier landing.
  const edited = (await differing(initial)).filter((path) => fromLoop.has(path))
  return edited.length === 0
    ? ''
    : `you have changed its plan since its loop began (${edited.map(shown).join(', ')}): git diff ${initial.slice(0, 12)} -- ${folder}`
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

/** Here and never in a loop: the specs of one change are merged after those of the other. */
async function archive(
  site: Site,
  root: string,
  change: string,
): Promise<
  | { readonly notes: readonly string[] }
  | { readonly refused: string }
  /** The specs have scenarios by now that its plan would drop. */
  | { readonly outdated: string; readonly specs: readonly string[] }
> {
  if (!existsSync(changeDirOf(root, change))) return { notes: [] }
  const { cli, note } = await findCli({ from: site.git.worktree, env: site.env, notIn: agentsTree(site) })
  if (cli === undefined) return { notes: [`${change} is not archived: ${note}`] }
  const answer = await cli.run(['archive', change, '--json', '-y'], root)
  if (answer.ok) return { notes: [] }
  const isOutdated = /not present in the modified block|refresh the change spec/i.test(answer.message)
  if (isOutdated) {
    const folder = join(changeDirOf(root, change), 'specs')
    const files = await findFiles(folder, '**/spec.md')
    return { outdated: answer.message, specs: files.map((file) => join(folder, file)) }
  }
  return {
    refused: `openspec archive refuses it: ${answer.message}${answer.fix === '' ? '' : ` (${answer.fix})`}`,
  }
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? ''
}
