// Which run a command means when no change is named: the one that runs, the one of this work tree, or the latest.
import { readRef } from '../adapters/git/refs/refs.ts'
import { RalphError } from '../core/error.ts'
import { nearest } from '../core/nearest.ts'
import { isKnown, isRunning, knownRun, knownRuns } from './site.ts'
import type { Knowing, KnownRun, Site } from './site.ts'

export async function chooseRun(
  site: Site,
  change: string | undefined,
  prefer: 'running' | 'any',
  known: Knowing = (name) => knownRun(site, name),
): Promise<KnownRun | undefined> {
  if (change !== undefined) {
    const run = isSafeName(change) ? await known(change) : undefined
    if (run !== undefined && isKnown(run)) return run
    const planned = await plannedNames(site)
    if (planned.includes(change)) return undefined
    const names = [...new Set([...(await knownRuns(site)).map((run) => run.change), ...planned])]
    const near = nearest(change, names)
    throw new RalphError('change_not_found', `There is no change and no run called "${change}".`, {
      hint: near === undefined ? `Known here: ${names.join(', ') || 'none yet'}.` : `Did you mean ${near}?`,
    })
  }
  const runs = await knownRuns(site, known)
  const running = runs.filter(isRunning)
  if (prefer === 'running' && running.length > 1) {
    const here = running.find((run) => run.state.worktree === site.git.worktree)
    if (here !== undefined) return here
    throw new RalphError(
      'change_ambiguous',
      `Several loops are running: ${running.map((run) => run.change).join(', ')}.`,
      { hint: 'Name the one you mean.' },
    )
  }
  return running[0] ?? runs.find((run) => run.state.worktree === site.git.worktree) ?? runs[0]
}

/** For a deed that is not taken back: never the latest of several. */
export async function onlyRun(site: Site, form: string): Promise<string | undefined> {
  const runs = await knownRuns(site)
  if (runs.length <= 1) return runs[0]?.change
  throw new RalphError(
    'change_ambiguous',
    `Which change? There are ${runs.map((run) => run.change).join(', ')}.`,
    { hint: `Nothing was touched. Name the one you mean: ${form}` },
  )
}

export async function requireRun(site: Site, change: string | undefined, known?: Knowing): Promise<KnownRun> {
  const run = await chooseRun(site, change, 'any', known)
  if (run !== undefined) {
    if (run.damage !== undefined) site.warn(`${run.damage} This shows what came before that line.`)
    return run
  }
  throw new RalphError(
    'change_not_found',
    change === undefined
      ? 'No loop has run in this repository.'
      : `No loop of ${change} has run in this repository.`,
    {
      hint: (await hasBranch(site, change))
        ? `The branch ralph/${change} of an earlier run is still there. Start over (its commits are archived): ralph loop ${change} --fresh`
        : 'Start one: ralph loop. What there is: ralph list',
    },
  )
}

/** After a fresh start that was killed before its first record, or without the record of its run. */
async function hasBranch({ git }: Site, change: string | undefined): Promise<boolean> {
  return change !== undefined && (await readRef(git, `refs/heads/ralph/${change}`)) !== undefined
}

/** The name becomes a path in the private folder. */
function isSafeName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/\\\0]/.test(name)
}

/** Changes that exist, whether a loop ever ran for them or not. */
async function plannedNames(site: Site): Promise<readonly string[]> {
  const { findRoot, listChanges } = await import('../adapters/openspec/changes.ts')
  try {
    return (await listChanges(await findRoot(site.cwd), site.env)).map((planned) => planned.name)
  } catch (error) {
    if (error instanceof RalphError) return []
    throw error
  }
}
