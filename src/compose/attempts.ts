// attempts, diff and restore: every attempt is kept under a ref, until the user says otherwise.
// Long because what is brought back and what is shown of an attempt are found, and refused, in the same way.
import { firstNames } from '../core/first-names.ts'
import { resolve } from 'node:path'
import { diffAttempt, diffCommits, listAttempts, listEarlier } from '../adapters/git/attempt/attempts.ts'
import type { SavedAs } from '../adapters/git/attempt/attempts.ts'
import { bringBack, writeAttempt } from '../adapters/git/attempt/bring-back.ts'
import { named } from '../adapters/git/git.ts'
import { RalphError } from '../core/error.ts'
import type { IterationRecord } from '../core/event.ts'
import { startMessage } from '../core/git-facts.ts'
import { keepsWork } from '../core/report.ts'
import type { AttemptDiff, AttemptList, Control, DiffRequest, Said } from '../ui/app.ts'
import { hiddenPaths } from './checkpoints.ts'
import { requireRun } from './choose.ts'
import { earlierRun, earlierRuns, pastState, runsBefore } from './earlier.ts'
import { iterationsOf } from './reports.ts'
import { shellWord } from '../core/shell-word.ts'
import { openRun } from './open-run.ts'
import { needsRepair } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { landedHere } from './whereabouts.ts'
import { handWork } from './work-files.ts'

export async function attemptsOf(site: Site, change: string | undefined): Promise<AttemptList> {
  const run = await requireRun(site, change)
  const [refs, iterations] = await Promise.all([listAttempts(site.git, run.change), iterationsOf(site, run)])
  const byHand = await handWork(site.git, run)
  const same = unchangedIn(run)
  const attempts = refs.flatMap(({ n, ref, commit }) => {
    const iteration = iterations.find((each) => each.n === n)
    const changed = !same.has(n)
    if (iteration !== undefined) return [{ ...summary(iteration), ref, commit, changed }]
    return run.damage === undefined ? [] : [{ n, ...unread, ref, commit, changed }]
  })
  return {
    change_id: run.change,
    stories: run.state.stories,
    attempts,
    ...(byHand.length > 0 && { by_hand: byHand }),
    earlier: await earlierOf(site, run),
  }
}

/** The attempts that left everything as they found it. */
function unchangedIn({ recall }: KnownRun): ReadonlySet<number> {
  return new Set(recall('attempt.kept').flatMap(({ n, changed }) => (changed ? [] : [n])))
}

async function earlierOf(site: Site, run: KnownRun): Promise<AttemptList['earlier']> {
  const refs = await listEarlier(site.git, run.change)
  if (refs.length === 0) return []
  const runs = await earlierRuns(site, run)
  const records = new Map(
    await Promise.all(
      // Its refs are there, whatever of its journal can be read.
      runs.map(
        async (past) => [past.name, await pastState(run, past).then((state) => state.iterations)] as const,
      ),
    ),
  )
  return refs.map((ref) => {
    const record = records.get(ref.run)?.find((iteration) => iteration.n === ref.n)
    const number = runs.find((past) => past.name === ref.run)?.number ?? 0
    return { ...(record !== undefined && summary(record)), ...ref, run_number: number }
  })
}

/** It is kept, and its record is in a part of the journal that cannot be read. */
const unread = { story_id: '?', attempt: 0, verdict: 'error', reason: 'its record cannot be read' } as const

function summary({ n, story_id, attempt, verdict, reason }: IterationRecord) {
  return { n, story_id, attempt, verdict, reason }
}

export async function diffOf(site: Site, request: DiffRequest): Promise<AttemptDiff> {
  const run = await requireRun(site, request.change)
  const { form } = request
  if (request.other !== undefined) throw await noNumber(site, run, request.other)
  const shared = { change_id: run.change, pager: await pagerOf(site) }
  if (request.isAll === true) {
    const landed = needsRepair(run) ? undefined : await landedHere(site, run)
    const spans =
      landed === undefined ? await allOf(site, run) : [[`${landed.commit}^`, landed.commit] as const]
    const patches = await Promise.all(spans.map(([base, tip]) => diffCommits(site.git, base, tip, form)))
    const patch = Buffer.concat(patches).toString('utf8')
    const what =
      landed === undefined
        ? 'everything that the run has saved since its start'
        : `everything that landed on ${landed.target} as ${landed.commit.slice(0, 7)}`
    return { ...shared, what, patch }
  }
  if (request.run !== undefined) return { ...shared, ...(await diffEarlier(site, run, request)) }
  const n = request.n ?? lastAttempt(run)
  await refuseUnkept(site, run, n)
  for (const message of theirsIn(run, n)) site.warn(`in this attempt, too: ${message}`)
  const patch = (await diffAttempt(site.git, run.change, n, savedAs(run, n), form)).toString('utf8')
  return { ...shared, n, what: whatWas(run.state, n), patch }
}

/** `2.1`, or a story's name: the attempts of that story, else those of all. */
async function noNumber(site: Site, { change, state }: KnownRun, typed: string): Promise<RalphError> {
  const kept = new Set((await listAttempts(site.git, change)).map(({ n }) => n))
  const isOf = (id: string): boolean =>
    typed.replace('#', '') === id || typed.replace('#', '').startsWith(`${id}.`)
  const story = state.stories.find(({ id }) => isOf(id))
  const attempts = state.iterations.filter(
    ({ n, story_id: id }) => kept.has(n) && (story === undefined || story.id === id),
  )
  const shown = attempts.slice(-mostNamed)
  const list = shown.map(({ n, verdict }) => `#${n} (${verdict.replaceAll('_', ' ')})`).join(', ')
  const whose = story === undefined ? change : `story ${story.id} of ${change}`
  const says = shown.length === 0 ? `no attempt of ${whose} is kept` : `the attempts of ${whose} are ${list}`
  const [last] = shown.toReversed()
  return new RalphError('attempt_not_found', `${typed} is not the number of an attempt: ${says}.`, {
    hint:
      last === undefined
        ? `What is kept: ralph attempts ${change}`
        : `See one: ralph diff ${last.n} ${change}. All of them: ralph attempts ${change}`,
  })
}

const mostNamed = 6

/** What a user wants to see who names none: the last that went wrong and had changed anything. */
function lastAttempt(run: KnownRun): number {
  const { change, state } = run
  const same = unchangedIn(run)
  const kept = state.iterations.filter((iteration) => iteration.attempt_ref !== undefined)
  const failed = kept.filter((iteration) => !keepsWork[iteration.verdict])
  const found = failed.findLast(({ n }) => !same.has(n)) ?? failed.at(-1) ?? kept.at(-1)
  if (found !== undefined) return found.n
  throw new RalphError('attempt_not_found', `No attempt of ${change} is kept.`, {
    hint: `Where it stands: ralph status ${change}`,
  })
}

async function diffEarlier(
  site: Site,
  run: KnownRun,
  { n, run: number = 0, form }: DiffRequest,
): Promise<Pick<AttemptDiff, 'n' | 'what' | 'patch'>> {
  const past = await earlierRun(site, run, number)
  const refs = (await listEarlier(site.git, run.change)).filter((ref) => ref.run === past.name)
  const found = n === undefined ? refs.at(-1) : refs.find((ref) => ref.n === n)
  if (found === undefined) {
    throw new RalphError('attempt_not_found', `Run ${number} of ${run.change} has no attempt #${n ?? ''}`, {
      hint: `What is kept: ralph attempts ${run.change}`,
    })
  }
  const what = `run ${number}, ${whatWas(await pastState(run, past), found.n)}`
  const patch = (await diffCommits(site.git, found.base, found.commit, form)).toString('utf8')
  return { n: found.n, what, patch }
}

/** With the runs that a merge of the queue's goes on with. */
async function allOf(site: Site, run: KnownRun): Promise<ReturnType<typeof wholeOf>> {
  const before = await runsBefore(site, run)
  const runs = before.map(({ past }) => ({ change: run.change, recall: past.recall, state: past }))
  return [...runs, run].flatMap(wholeOf)
}

/** From each tree that the run began with to its last checkpoint: what was committed between a cleanup and a resume is the user's. */
function wholeOf({
  change,
  recall,
  state,
}: Pick<KnownRun, 'change' | 'recall' | 'state'>): readonly (readonly [base: string, tip: string])[] {
  const saved = recall('checkpoint.saved')
  const { lastCheckpoint } = state.git
  if (saved.length === 0 || lastCheckpoint === undefined)
    throw new RalphError('attempt_not_found', `The run of ${change} has saved nothing yet.`, {
      hint: `Where it stands: ralph status ${change}`,
    })
  const starts = saved.flatMap(({ n, message, commit }, at) =>
    at === 0 || (n === undefined && message === startMessage) ? [{ at, commit }] : [],
  )
  return starts.map(({ commit }, index) => {
    const next = starts[index + 1]
    return [commit, (next && saved[next.at - 1]?.commit) ?? lastCheckpoint]
  })
}

function whatWas({ iterations, stories }: KnownRun['state'], n: number): string {
  const record = iterations.find((iteration) => iteration.n === n)
  if (record === undefined) return ''
  const title = stories.find((story) => story.id === record.story_id)?.title ?? ''
  return `story ${title.startsWith(record.story_id) ? title : `${record.story_id} ${title}`.trimEnd()}: ${record.verdict.replaceAll('_', ' ')}`
}

async function pagerOf({ git }: Site): Promise<string> {
  return git.line(['config', '--global', '--get', 'core.pager'], { accept: [1, 128] })
}

/** A dead attempt is kept with what its user has changed since: that was told when it was kept. */
function theirsIn({ recall }: KnownRun, n: number): string[] {
  const events = recall('attempt.kept', 'checkpoint.reverted', 'warning')
  const kept = events.findLastIndex((event) => event.type === 'attempt.kept' && event.n === n)
  const since = kept === -1 ? [] : events.slice(kept)
  const settled = since.findIndex((event) => event.type === 'checkpoint.reverted')
  return since
    .slice(0, Math.max(0, settled))
    .flatMap((event) =>
      event.type === 'warning' && /^(undone_)?after_death$/.test(event.code) ? [event.message] : [],
    )
}

export async function restoreTo(
  site: Site,
  { change, n, to }: Parameters<Control['restore']>[0],
): Promise<Said> {
  const run = await requireRun(site, change)
  await refuseUnkept(site, run, n)
  const data = { change_id: run.change, n, to: to ?? site.git.worktree }
  if (to !== undefined) {
    const folder = resolve(site.cwd, to)
    await writeAttempt(site.git, run.change, n, folder, savedAs(run, n))
    return {
      message: `What #${n} of ${run.change} had left is in ${folder} now; your work tree is as it was.`,
      data,
    }
  }
  const { paths, late, undo } = await inThisTree(site, run.change, n, (held) => {
    const saved = savedAs(held, n)
    const options = { protectedPaths: hiddenPaths, cwd: site.cwd, ...(saved !== undefined && { saved }) }
    return bringBack(site.git, run.change, n, options)
  })
  const names = paths.map(named)
  if (late.length > 0)
    throw new RalphError(
      'git_failed',
      `What #${n} of ${run.change} had changed is not all in the work tree: ${late.join('; ')}`,
      {
        hint:
          names.length === 0
            ? 'Nothing else had to be written.'
            : [`The rest is there, uncommitted: ${firstNames(names, mostNames)}`, ...undoing(undo)].join(
                '\n',
              ),
      },
    )
  return {
    message: broughtBack(run.change, n, names, undo),
    data: { ...data, paths: names, undo },
  }
}

function broughtBack(change: string, n: number, names: readonly string[], undo: readonly string[]): string {
  if (names.length === 0)
    return `Everything that #${n} of ${change} had changed is in the work tree already; nothing was touched.`
  return [
    `What #${n} of ${change} had changed is in the work tree now, uncommitted: ${firstNames(names, mostNames)}`,
    ...undoing(undo),
  ].join('\n')
}

function undoing(undo: readonly string[]): string[] {
  return undo.map((command) => `  undo: ${command}`)
}

const mostNames = 20

/** The checkpoint that it became, if it did: the boxes are settled only there. */
function savedAs({ recall, state }: KnownRun, n: number): SavedAs | undefined {
  const saved = recall('checkpoint.saved').findLast((event) => event.n === n)
  return saved === undefined ? undefined : { commit: saved.commit, tasksFile: state.tasksFile ?? '' }
}

/** An attempt that is not under its ref: where it is, if anywhere. */
async function refuseUnkept(site: Site, run: KnownRun, n: number): Promise<void> {
  const { change, state } = run
  const refs = await listAttempts(site.git, change)
  if (refs.some((ref) => ref.n === n)) return
  if (needsRepair(run) && n === (state.unsettled ?? state.current)?.n) {
    const base = (state.git.lastCheckpoint ?? 'HEAD').slice(0, 12)
    const { worktree = site.asked } = state
    const there = worktree === site.asked ? 'git' : `git -C ${shellWord(worktree)}`
    throw new RalphError(
      'attempt_not_found',
      `Attempt ${n} of ${change} is not kept yet: its loop died, and what it left is in ${state.worktree}.`,
      {
        hint: `See it there: ${there} diff ${base}, and ${there} status for new files. It is kept as attempt ${n} by: ralph resume ${change}, or ralph finish ${change} --keep`,
      },
    )
  }
  const earlier = (await listEarlier(site.git, change)).findLast((ref) => ref.n === n)
  if (earlier === undefined) return
  const number = (await earlierRuns(site, run)).find((past) => past.name === earlier.run)?.number ?? 1
  throw new RalphError(
    'attempt_not_found',
    `#${n} of ${change} is one of an earlier run, of ${earlier.run}.`,
    {
      hint: `See it: ralph diff ${n} ${change} --run ${number}. Bring a file of it back: git restore --source=${earlier.ref} -- :/PATH`,
    },
  )
}

/** With both locks: a loop of any change in this work tree would take what is brought back for its agent's. */
async function inThisTree<T>(
  site: Site,
  change: string,
  n: number,
  work: (run: KnownRun) => Promise<T>,
): Promise<T> {
  const aside = `Bring the attempt into a folder instead: ralph restore ${n} ${change} --to ${shellWord(`${site.git.worktree}-${change}-${n}`)}`
  return openRun(site, change, { purpose: 'repair' }, async (held) => {
    if (needsRepair(held.run)) {
      throw new RalphError('repository_state', `The loop of ${change} died, and is not repaired yet.`, {
        hint: `Nothing was touched. First: ralph resume ${change}, or ralph finish ${change} --keep. ${aside}`,
      })
    }
    await held.enter(site)
    return await work(held.run)
  }).catch(refused(aside))
}

function refused(hint: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof RalphError) || error.code !== 'locked') throw error
    throw new RalphError('locked', error.message, { hint, cause: error })
  }
}
