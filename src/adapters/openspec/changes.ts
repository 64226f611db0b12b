// Finds the OpenSpec root, its changes, and the one that the user means.
import { constants, type Dirent } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import * as z from 'zod'
import { RalphError } from '../../core/error.ts'
import { nearest } from '../../core/nearest.ts'
import { storyStatus } from '../../core/story.ts'
import { readHeading } from '../../core/tasks-lines.ts'
import type { ChangeSummary } from '../../core/change.ts'
import { parseTasks } from '../../core/tasks.ts'
import type { OpenSpecCli } from './cli.ts'
import { access, readdir, stat } from '../files/now.ts'
import { isMissing, readIfThere } from '../files/whole.ts'
import { archivedNames } from './guard.ts'
import { readProject, taskPattern } from './project.ts'
import { readTracked, trackedFiles } from './tracked.ts'

/** The folder that holds `openspec/`: the nearest one upward, or the store that the project's config names; only then is `findProgram` called. */
export async function findRoot(
  cwd: string,
  findProgram: () => Promise<OpenSpecCli | undefined> = () => Promise.resolve(undefined),
): Promise<string> {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const spec = join(folder, 'openspec')
    if ((await isFolder(join(spec, 'changes'))) || (await isFolder(join(spec, 'specs')))) return folder
    if (await isFolder(spec)) {
      const { store } = await readProject(folder)
      if (store !== '') return storeRoot(folder, store, await findProgram())
    }
    if (dirname(folder) === folder) break
  }
  throw new RalphError('openspec_missing', `There is no openspec/ folder in ${resolve(cwd)} or above it`, {
    hint: 'Nothing was touched. Go to your project, or write a plan there, openspec/changes/<name>/tasks.md: a line `## 1. A story`, below it `- [ ] 1.1 A task`.',
  })
}

export function changeDirOf(root: string, change: string): string {
  return join(root, 'openspec', 'changes', change)
}

export async function listChanges(root: string, env: NodeJS.ProcessEnv): Promise<readonly ChangeSummary[]> {
  const names = await changeNames(root)
  return Promise.all(names.map((name) => summariseChange(root, name, env)))
}

/** The change of that name, or the only one there is. */
export async function resolveChange(
  root: string,
  name: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  if (name !== undefined) {
    refuseBadName(name)
    const names = await changeNames(root)
    if (names.includes(name)) return await refuseClosed(root, name)
    throw notFound(root, name, names, await archivedNames(changeDirOf(root, name)))
  }
  const changes = await listChanges(root, env)
  const open = changes.filter((each) => each.tasks_total === 0 || each.tasks_done < each.tasks_total)
  const [only, ...others] = open.length > 0 ? open : changes
  if (only === undefined) throw notFound(root, '', [], [])
  if (others.length === 0) {
    refuseBadName(only.name)
    return await refuseClosed(root, only.name)
  }
  const names = [only, ...others].map((each) => each.name)
  // One without tasks is asked for as a whole: no good first try.
  const example = open.find((each) => each.tasks_total > 0) ?? only
  const [message, hint] =
    open.length > 0
      ? [
          `There are ${names.length} open changes`,
          `Name the one you mean, e.g. \`ralph loop ${example.name}\`.`,
        ]
      : [
          `No task is open in any of the ${names.length} changes`,
          'Name the one you mean. What there is: ralph list',
        ]
  throw new RalphError('change_ambiguous', `${message}: ${names.join(', ')}`, { hint })
}

async function refuseClosed(root: string, name: string): Promise<string> {
  const folder = changeDirOf(root, name)
  await access(folder, constants.R_OK | constants.X_OK).catch((error: unknown) => {
    throw toldUnreadable(error, folder)
  })
  return name
}

const mostBytes = 200

/** A change's name becomes a branch, a ref and a folder: what git or the file system would refuse is refused here. */
export function refuseBadName(name: string): void {
  const bytes = Buffer.byteLength(name)
  if (bytes > mostBytes) {
    throw new RalphError('bad_name', `"${name.slice(0, 40)}…" is too long for the name of a change`, {
      hint: `It becomes a git branch, a ref and a folder: at most ${mostBytes} bytes, and it has ${bytes}. Rename the change folder.`,
    })
  }
  const isBad =
    name === '' || name === '@' || /[\u0000-\u0020\u007f~^:?*[\\/]|\.\.|@\{|^[-.]|\.$|\.lock$/.test(name)
  if (!isBad && name !== 'archive') return
  throw new RalphError('bad_name', `${JSON.stringify(name)} cannot be the name of a change`, {
    hint: 'It becomes a git branch (ralph/<change>): no blanks, slashes, dots in a row, or any of ~ ^ : ? * [ \\, and no dash in front.',
  })
}

/** The proposal's heading without its label, else the name. */
export async function readTitle(root: string, change: string): Promise<string> {
  const proposal = join(changeDirOf(root, change), 'proposal.md')
  const bytes = await readIfThere(proposal).catch((error: unknown) => {
    throw toldUnreadable(error, proposal)
  })
  const text = bytes?.toString('utf8') ?? ''
  const first = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map(readHeading)
    .find((heading) => heading?.level === 1)
  const title = (first?.title ?? '').replace(/^(?:change(?: proposal)?|proposal)\s*[:—–-]\s*/i, '').trim()
  return title === '' || /^(?:change|proposal|why)$/i.test(title) ? change : title
}

export async function summariseChange(
  root: string,
  name: string,
  env: NodeJS.ProcessEnv,
): Promise<ChangeSummary> {
  const changeDir = changeDirOf(root, name)
  let title = name
  const none = { stories_done: 0, stories_total: 0, stories_open: 0, tasks_done: 0, tasks_total: 0 }
  try {
    title = await readTitle(root, name)
    const files = await trackedFiles(changeDir, await taskPattern(root, changeDir, env))
    const plan = parseTasks(await readTracked(files))
    return {
      name,
      title,
      stories_done: plan.stories.filter((story) => storyStatus(story) === 'done').length,
      stories_total: plan.stories.length,
      stories_open: plan.stories.filter((story) => storyStatus(story) === 'open').length,
      tasks_done: plan.tasksDone,
      tasks_total: plan.tasksTotal,
      problem: files.length === 0 ? 'no tasks.md' : '',
    }
  } catch (error) {
    // One broken change must not hide the others.
    const { message } = toldUnreadable(error, changeDir)
    return { name, title, ...none, problem: message }
  }
}

/** What is left for a person, and where they tick it. */
export async function humanTasks(
  root: string,
  name: string,
  env: NodeJS.ProcessEnv,
  worktree: string,
): Promise<readonly { readonly text: string; readonly path: string; readonly line: number }[]> {
  const changeDir = changeDirOf(root, name)
  const files = await trackedFiles(changeDir, await taskPattern(root, changeDir, env), worktree)
  const pathOf = new Map(files.map(({ file, path }) => [file, path]))
  return parseTasks(await readTracked(files))
    .stories.flatMap(({ tasks }) => tasks)
    .filter(({ state }) => state === 'human')
    .map(({ text, file, line }) => ({ text, path: pathOf.get(file) ?? file, line }))
}

/** What the file system refuses is the user's to mend; anything else is a bug, and thrown. */
function toldUnreadable(error: unknown, path: string): RalphError {
  if (error instanceof RalphError) return error
  const { code, message } = error as NodeJS.ErrnoException
  if (code !== 'EACCES' && code !== 'EPERM') throw error
  return new RalphError('spec_unreadable', `${path} cannot be read: ${message}`, {
    hint: `Nothing was touched. Give yourself access (chmod -R u+rwX ${path}, or sudo chown -R "$USER" ${path} if it is another user's), then type the command again.`,
    cause: error,
  })
}

async function changeNames(root: string): Promise<readonly string[]> {
  const folder = join(root, 'openspec', 'changes')
  let entries: Dirent[]
  try {
    entries = await readdir(folder, { withFileTypes: true })
  } catch (error) {
    if (isMissing(error)) return []
    throw toldUnreadable(error, folder)
  }
  const names: string[] = []
  for (const entry of entries) {
    if (entry.name === 'archive' || entry.name.startsWith('.')) continue
    if (entry.isDirectory() || (entry.isSymbolicLink() && (await isFolder(join(folder, entry.name)))))
      names.push(entry.name)
  }
  return names.sort()
}

function notFound(
  root: string,
  name: string,
  names: readonly string[],
  archived: readonly string[],
): RalphError {
  const where = join(root, 'openspec', 'changes')
  const close = nearest(name, names)
  const old =
    name === '' ? undefined : archived.find((each) => each.replace(/^\d{4}-\d{2}-\d{2}-/, '') === name)
  const archive = old === undefined ? '' : `It is archived as ${old}.`
  const known = names.length === 0 ? `There are none in ${where}.` : `There are: ${names.join(', ')}.`
  const message = name === '' ? `There is no change in ${where}` : `There is no change "${name}" in ${where}`
  return new RalphError('change_not_found', message, {
    hint: [
      archive,
      close === undefined ? '' : `Did you mean ${close}?`,
      known,
      // Where there are others, it is more often one of them than a new one.
      name === '' || names.length > 0 || old !== undefined
        ? ''
        : `A new one begins with its folder: mkdir -p ${join(where, name)}`,
    ]
      .filter((part) => part !== '')
      .join(' '),
  })
}

/** A store is registered per machine; only the installed program knows where it is. */
async function storeRoot(folder: string, store: string, cli: OpenSpecCli | undefined): Promise<string> {
  const answer = await cli?.run(['list', '--json'], folder)
  const found = z.looseObject({ root: z.looseObject({ path: z.string() }) }).safeParse(answer?.json)
  if (found.success) return found.data.root.path
  const why = answer?.ok === false ? answer.message : 'the openspec program is not installed'
  throw new RalphError('openspec_missing', `The plans of ${folder} are in the store "${store}", and ${why}`, {
    hint: 'Nothing was touched. Install @fission-ai/openspec and register the store, or run ralph in the store itself.',
  })
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory()
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (isMissing(error) || code === 'ELOOP' || code === 'EACCES') return false
    throw error
  }
}
