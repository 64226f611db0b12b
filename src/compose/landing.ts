// The landing of one change on its target: merge, set-up, archive, gates on exactly what lands, and the move of the ref.
// Long because it is one list, what the queue asks of a landing, and its longest part, `build`, is one walk: each step needs the one before.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { queuePaths } from '../adapters/files/queue-files.ts'
import { readAuthor } from '../adapters/git/formats/author.ts'
import { shown, type Git } from '../adapters/git/git.ts'
import {
  carryHome,
  hasLandedOn,
  isIn,
  landedByGit,
  landedRef,
  landingBase,
  markedCommit,
  mergeCommits,
  mergeSince,
  moveLanded,
  notLandedOn,
  startOf,
  targetRefs,
  wasIn,
  whyNoTarget,
} from '../adapters/git/landing/landing.ts'
import {
  closeScratchTree,
  commitScratch,
  enterTree,
  openScratchTree,
  resetScratch,
  setUpPaths,
  strayPaths,
  takeOnly,
} from '../adapters/git/landing/scratch.ts'
import { beforeGate, holdGone, putBackOnto } from '../adapters/git/landing/put-back.ts'
import { hasWritten } from '../adapters/git/refs/ledger.ts'
import { closeRefs, refusedRef } from '../adapters/git/refs/watch.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import { judgeResolution, markersLeft } from '../adapters/git/landing/resolution.ts'
import { isAncestor, treeOf } from '../adapters/git/tree/tree.ts'
import { loopTree } from '../adapters/git/start/worktrees.ts'
import { pathMatcher } from '../adapters/openspec/glob.ts'
import { shellGates } from '../adapters/process/gates.ts'
import { reapByMarker } from '../adapters/process/reap.ts'
import type { Landing } from '../engine/queue-ports.ts'
import { RalphError } from '../core/error.ts'
import type { SetUpDone } from '../core/event.ts'
import { bothChanged, slotVariables } from '../core/queue-due.ts'
import type { Limits } from '../core/resource-limits.ts'
import type { Caging } from './cage.ts'
import { squashText } from './finish.ts'
import { archive } from './landing-archive.ts'
import { leavingNoWayOut } from '../adapters/git/guard/ways-out.ts'
import { setUp } from './set-up.ts'
import type { SetUp } from './set-up.ts'
import { whyOwn } from './own-files.ts'
import { whyOpen, whyUnfit } from './plan-files.ts'
import { isAsLeft, logOfLanding } from './queue-entry.ts'
import { isRunning, knownRun, knownRuns } from './site.ts'
import type { Site } from './site.ts'

export interface LandingOptions {
  readonly land: 'squash' | 'merge'
  readonly setUp: SetUp
  readonly onSetUp: (change: string, done: SetUpDone) => void
  /** What went from the user's refs while a gate ran. */
  readonly onHeld: (change: string, told: readonly string[]) => void
  /** What makes generated files anew, by path or glob; as the user has it, whatever a change makes of ralph.yaml. */
  readonly regenerate: Readonly<Record<string, string>>
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
    /** What it runs on: no ref is to have that yet. */
    commit?: string,
  ): ReturnType<ReturnType<typeof shellGates>['check']> => {
    mkdirSync(queuePaths(git.gitCommonDir).logs, { recursive: true, mode: 0o700 })
    const mark = { RALPH_CHANGE: change, RALPH_RUN_ID: landingMark(git.gitCommonDir) }
    const closed = await closeRefs(tree, site.env, closedBy(git))
    const env = { ...mark, ...slotVariables(0), ...closed }
    const { gates: cage } = options.caging(tree, change)
    const { timeoutMs, limits } = options
    const kept = { ...(cage !== undefined && { cage }), ...(limits !== undefined && { limits }) }
    const gates = shellGates({
      cwd: tree.worktree,
      env: site.env,
      timeoutMs,
      hasOwnTemp: true,
      ...kept,
    })
    const before = await beforeGate(git)
    const result = await leavingNoWayOut(tree, () => gates.check(command, env, stop, logOf(change)))
    const moved = commit === undefined ? '' : await putBackOnto(git, commit, before.refs)
    const held = await holdGone(git, change, before)
    if (held.length > 0) options.onHeld(change, held)
    if (moved !== '')
      return { ...result, outcome: 'failed', outputTail: moved, failure: { what: moved, message: [] } }
    const refused = result.outcome === 'failed' ? refusedRef(result.outputTail) : undefined
    return refused === undefined ? result : { ...result, failure: { what: refused, message: [] } }
  }
  const logOf = (change: string): string => logOfLanding(git.gitCommonDir, change)
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
      runIn(tree, command, change, stop, commit),
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
      const { outcome, outputTail } = await runIn(there, command, change, stop)
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
    return state.settings?.gates ?? []
  }

  return {
    async refs(target) {
      const { own, landed } = await targetRefs(git, target)
      return { own, landed, isHome: landed !== undefined && (await isAncestor(git, landed, own)) }
    },
    whyNoTarget: (target) => whyNoTarget(git, target),
    base: (target, refs) => landingBase(git, target, refs),
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
    async came(base, own) {
      const log = await git.line(['log', '--format=%h (%s)', `${base}..${own}`])
      return shown(log)
        .split('\n')
        .filter((line) => line !== '')
    },
    async landedAs(change, base, tip) {
      const found = (await landedByGit(git, [base])).find((each) => each.change === change)
      return found?.tip === tip ? found.commit : undefined
    },
    async squashedAs(change, base) {
      const run = await knownRun(site, change)
      const { commit } = run.recall('loop.finished').at(-1) ?? {}
      const { lastCheckpoint: tip } = run.state.git
      if (run.state.status !== 'done' || commit === undefined || tip === undefined) return undefined
      return (await isAncestor(git, commit, base)) ? { commit, tip } : undefined
    },
    notLanded: (target, commits, refs) => notLandedOn(git, target, commits, refs),
    async build(change, { base, tip, generated, isAtRef }, stop) {
      const own = await whyOwn(site, await knownRun(site, change), base)
      if (own !== undefined) return own
      const lost = await lostStart(site, change, base, tip)
      const merge = (): ReturnType<typeof mergeCommits> =>
        lost === undefined ? mergeCommits(git, base, tip) : mergeSince(git, lost, base, tip)
      const merged = await merge().catch((error: unknown) => {
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
      const unfit = others.length > 0 ? undefined : await whyUnfit(site, await knownRun(site, change))
      if (unfit !== undefined) return unfit
      scratch = undefined
      const there = await at(base, change, stop)
      if (there === 'stopped' || 'refused' in there) return there
      // While the set-up ran, somebody's `git gc` may have thrown away what no ref holds.
      await enterTree(there, (await merge()).tree, { base, paths: inGenerated })
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
      const open = await whyOpen(site, run, { root: place, base, tip })
      // Before it is archived, and here: the folder of its loop may be gone.
      const message = await squashText(run, undefined, place)
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
          refused: `${bothChanged(markers)}; no merge of both was accepted: conflict markers are left`,
          hint: `Merge both sides on ralph/${change} and commit there, then: ralph queue retry ${change}`,
        }
      const isNothing = (await treeOf(git, commit)) === (await treeOf(git, base))
      const saved = run.state.git.lastCheckpoint
      if (isNothing && saved !== undefined && !(await isHeld(git, saved, { base, tip })))
        return {
          refused: `its branch has nothing to land; its work is in refs/ralph/${change}/checkpoint`,
          hint: `Bring it back on ralph/${change}: git merge refs/ralph/${change}/checkpoint; then: ralph queue retry ${change}`,
        }
      if (open !== undefined) return open
      return {
        commit: isNothing && isAtRef ? base : commit,
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
      const result = await runIn(there, command, change, stop, commit)
      if (!existsSync(join(there.worktree, '.git'))) {
        scratch = undefined
        const outputTail = `${there.worktree} was removed while it ran`
        return { outcome: 'could_not_run', outputTail, durationMs: 0, changed: [] }
      }
      return { ...result, changed: await strayPaths(there, commit, isSetUp) }
    },
    land: (target, commit, onto) => moveLanded(git, target, commit, onto),
    carryHome: (target, landed, from) => carryHome(git, target, landed, from),
    async close() {
      await closeScratchTree(git)
      rmSync(closedBy(git), { recursive: true, force: true })
      scratch = undefined
    },
  }
}

function closedBy({ gitCommonDir }: Git): string {
  return join(queuePaths(gitCommonDir).root, 'closed-refs')
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
export function landingMark(gitCommonDir: string): string {
  return `landing-${createHash('sha256').update(gitCommonDir).digest('hex').slice(0, 16)}`
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? ''
}
