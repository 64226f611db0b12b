// The change that a loop is about: found, opened, and ready to be read as a plan.
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { changeDirOf, readTitle, refuseBadName, resolveChange } from '../adapters/openspec/changes.ts'
import { findCli } from '../adapters/openspec/cli.ts'
import type { OpenSpecCli } from '../adapters/openspec/cli.ts'
import { checkBy } from '../adapters/openspec/check.ts'
import type { Check } from '../adapters/openspec/check.ts'
import { ensureLearnings } from '../adapters/openspec/learnings.ts'
import { manualSource } from '../adapters/openspec/manual.ts'
import { taskPattern } from '../adapters/openspec/project.ts'
import { openspecSource } from '../adapters/openspec/source.ts'
import { doneCriteria } from '../adapters/openspec/tracked.ts'
import type { Config } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import type { Absence } from '../core/ownership.ts'
import type { Plan } from '../core/story.ts'
import type { Stream } from '../engine/stream.ts'
import type { SpecSource } from '../ports.ts'
import { agentsTree } from './cage.ts'
import { findRootOf } from './root.ts'
import { pathsOf } from './site.ts'
import type { Site } from './site.ts'
import { hasQueue } from './queue-known.ts'

export interface OpenedChange {
  readonly name: string
  readonly root: string
  readonly title: string
  readonly doneCriteria: 'tasks' | 'manual'
  /** As shown to people: relative to the work tree where it lies inside; empty in manual mode. */
  readonly tasksFile: string
  /** Of the files with the boxes, in the change folder. */
  readonly tasksPattern: string
  readonly plan: Plan
  readonly spec: SpecSource
  readonly warnings: readonly string[]
  readonly cli: OpenSpecCli | undefined
  /** By that program. */
  readonly check: Check | undefined
}

/** Where the plan of a run is, as it began; settings of the run like the others. */
export interface RunPlan {
  readonly root?: string
  readonly pattern?: string
}

/** The openspec program gets no longer than this at the start, whatever git is allowed. */
const mostSeconds = 30

/** A repository without OpenSpec still has its `tasks.md` or a task in words: then the name is the user's own. */
export async function changeFolder(
  site: Site,
  name: string | undefined,
): Promise<{ name: string; root: string; folder: string }> {
  const root = await findRootOf(site).catch((error: unknown) => {
    if (error instanceof RalphError && error.code === 'openspec_missing' && name !== undefined)
      return undefined
    throw error
  })
  if (root === undefined) {
    refuseBadName(name ?? '')
    return { name: name ?? '', root: site.git.worktree, folder: changeDirOf(site.git.worktree, name ?? '') }
  }
  const found = await resolveChange(root, name, site.env)
  return { name: found, root, folder: changeDirOf(root, found) }
}

export async function openChange(
  site: Site,
  wanted: string | undefined,
  config: Pick<Config, 'done' | 'task' | 'command_timeout' | 'prompt_append' | 'sandbox'>,
  started: RunPlan = {},
): Promise<OpenedChange> {
  const { name, root, folder } = await changeFolder(site, wanted)
  if (started.root !== undefined && started.root !== root) throw otherPlace(name, root, started.root)
  const patternNow = await taskPattern(root, folder, site.env)
  const pattern = started.pattern ?? patternNow
  const found = await doneCriteria(folder, pattern, site.git.worktree)
  const criteria = config.done ?? found.criteria
  if (criteria === 'tasks' && found.tasksFile === '') {
    throw new RalphError('no_tasks', `There is no tasks.md in ${folder}, nor in ${site.git.worktree}.`, {
      hint: 'Write one or bring it back from git, or say what to do in words: --done manual --task "…"',
    })
  }
  const title = await readTitle(root, name)
  const { prompt_append: append } = config
  const wish = {
    name,
    root,
    doneCriteria: criteria,
    task: config.task ?? title,
    pattern,
    ...(append !== undefined && { append }),
  }
  const spec = specFor(site, wish)
  // A plan that cannot be read is said first.
  const plan = await spec.read()
  const timeoutMs = Math.min(mostSeconds, config.command_timeout) * 1000
  const { cli, note, isAbsent } = existsSync(folder)
    ? await findCli({ from: root, env: site.env, timeoutMs, notIn: agentsTree(site, config.sandbox) })
    : { cli: undefined, note: '', isAbsent: true }
  return {
    name,
    root,
    title,
    doneCriteria: criteria,
    tasksFile: criteria === 'tasks' ? shownPath(site, found.tasksFile) : '',
    tasksPattern: pattern,
    plan,
    spec,
    cli,
    check: cli === undefined ? undefined : checkBy(cli, root, name),
    warnings: [
      config.done === undefined ? found.warning : '',
      pattern === patternNow
        ? ''
        : `the plan of this run is ${pattern}, as when it began; OpenSpec's files (openspec/config.yaml, the schema) now say ${patternNow}. To continue with that one: ralph resume ${name} --accept-config`,
      // Optional, so it is no news at each start that it is not there; `doctor` says it.
      isAbsent ? '' : note,
      ...plan.lints.map((lint) => `${lint.file}:${lint.line} ${lint.message}`),
    ].filter((warning) => warning !== ''),
  }
}

function otherPlace(name: string, now: string, before: string): RalphError {
  return new RalphError('config', `The run of ${name} began with the plan in ${changeDirOf(before, name)}.`, {
    hint: `Nothing was touched. Here it would be the one in ${changeDirOf(now, name)}. Go to ${before} and type the command again; to continue with the other plan: ralph resume ${name} --accept-config`,
  })
}

/** A change for which there is no plan: without `--done` its loop is a manual one. */
export async function isUnplanned(
  site: Site,
  name: string,
  folder: string,
): Promise<{ readonly title: string; readonly tasksFile: string } | undefined> {
  const { root } = await changeFolder(site, name)
  const found = await doneCriteria(folder, await taskPattern(root, folder, site.env), site.git.worktree)
  if (found.criteria === 'tasks') return undefined
  refuseUnknownName(name, folder)
  return { title: await readTitle(root, name), tasksFile: shownPath(site, join(folder, 'tasks.md')) }
}

/** Where there is no openspec/ any name is one of the user's own: a misspelt one too, and its agent would be paid for. */
export function refuseUnknownName(name: string, folder: string): void {
  if (existsSync(folder)) return
  throw new RalphError('change_not_found', `There is no change "${name}": no ${folder}, and no tasks.md.`, {
    hint: `Nothing was touched. Write its plan, openspec/changes/${name}/tasks.md: a line \`## 1. A story\`, below it \`- [ ] 1.1 A task\`. Or say what to do in words: ralph loop ${name} --task "…"`,
  })
}

/** What the openspec program has to say: for the user to know, not for the loop to wait for. */
export async function checked({ check, plan }: OpenedChange): Promise<readonly string[]> {
  if (check === undefined) return []
  const [count, validation] = await Promise.all([check.count(plan.tasksTotal), check.validate()])
  const errors = (validation?.issues ?? []).filter((issue) => !issue.startsWith('WARNING'))
  return [count, ...errors.map((issue) => `openspec validate: ${issue}`)].filter((line) => line !== '')
}

/** The openspec program is asked when the first agent is at work, and waited for at the end of a plan that is done. */
export function checkBeside(change: OpenedChange, stream: Stream): () => Promise<void> {
  let asked: Promise<void> | undefined
  let isOver = false
  const ask = async (): Promise<void> => {
    for (const message of await checked(change)) {
      if (!isOver) await stream.tell({ type: 'warning', code: 'start', message })
    }
  }
  stream.follow([
    (event) => {
      isOver ||= event.type === 'complete'
      // What hinders it, the loop meets itself where it matters.
      if (event.type === 'agent.started') asked ??= ask().catch(() => undefined)
    },
  ])
  return () => (asked ??= ask())
}

/** For `--require-valid`. */
export async function refuseInvalid({ name, cli, check }: OpenedChange): Promise<void> {
  const validation = await check?.validate()
  if (validation === undefined) {
    const why = cli === undefined ? 'is not installed' : 'gave no answer'
    throw new RalphError('config', `${name} could not be validated: the openspec program ${why}`, {
      hint: 'Nothing was touched. Install @fission-ai/openspec (see ralph doctor), or start without --require-valid.',
    })
  }
  if (!validation.valid) {
    throw new RalphError('config', `${name} is not valid:\n${validation.issues.join('\n')}`, {
      hint: `Fix it (openspec validate ${name}), or start without --require-valid.`,
    })
  }
}

export interface SpecWish {
  readonly name: string
  readonly root: string
  readonly doneCriteria: 'tasks' | 'manual'
  readonly task: string
  readonly pattern?: string
  /** Added to every prompt. */
  readonly append?: string
  /** For a repair. */
  readonly absence?: () => Absence | undefined
}

export function specFor(site: Site, wish: SpecWish): SpecSource {
  const paths = pathsOf(site, wish.name)
  const deps = {
    worktree: site.git.worktree,
    root: wish.root,
    change: wish.name,
    guardDir: paths.guard,
    learningsPath: paths.learnings,
    env: site.env,
    ...(wish.pattern !== undefined && { pattern: wish.pattern }),
    ...(wish.append !== undefined && { append: wish.append }),
    ...(wish.absence !== undefined && { absence: wish.absence }),
  }
  const source =
    wish.doneCriteria === 'manual'
      ? manualSource({
          ...deps,
          task: wish.task,
          inConflict: () => inConflict(site, wish.name),
          isMerge: () => isMerge(site, wish.name),
        })
      : openspecSource(deps)
  return {
    ...source,
    // The agent is told where to write: the file has to be there when it looks.
    async guard() {
      await ensureLearnings(paths.learnings)
      await source.guard()
    },
  }
}

/** Where no queue ever ran nothing is loaded. */
async function inConflict({ git }: Site, change: string): Promise<readonly string[]> {
  if (!hasQueue(git)) return []
  const { pathsInConflict } = await import('./queue-entry.ts')
  return pathsInConflict(git.gitCommonDir, change).map((path) => join(git.worktree, path))
}

async function isMerge({ git }: Site, change: string): Promise<boolean> {
  return hasQueue(git) && (await import('./queue-entry.ts')).isUnmerged(git.gitCommonDir, change)
}

function shownPath(site: Site, path: string): string {
  const inside = relative(site.git.worktree, path)
  return inside.startsWith('..') ? path : inside
}

export function refuseUnknownStories(change: OpenedChange, wanted: readonly string[]): void {
  const known = change.plan.stories.map((story) => story.id)
  const unknown = wanted.find((id) => !known.includes(id))
  if (unknown === undefined) return
  throw new RalphError('usage', `${change.name} has no story ${unknown}.`, {
    hint: `Its stories: ${known.join(', ')}. See: ralph show ${change.name}`,
  })
}
