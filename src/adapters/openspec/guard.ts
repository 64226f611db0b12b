// The durable copy of the plan's bytes, taken before each spawn: what the agent did to them can be compared and undone, git or not.
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import * as z from 'zod'
import { once } from '../../core/once.ts'
import { RalphError } from '../../core/error.ts'
import { mkdir, readdir, readFile, readlink, realpath, rm, stat, sync } from '../files/now.ts'
import {
  fileMark,
  ifThere,
  isAbsent,
  isMissing,
  lstatIfThere,
  readIfThere,
  readRecord,
  syncFolder,
} from '../files/whole.ts'
import { writeWhole } from './files.ts'
import { schemaFiles, taskPattern } from './project.ts'
import type { TrackedFile } from './tracked.ts'
import { readTree, treeEntrySchema, type TreeEntry } from './tree.ts'

const guardedTreeSchema = once(() => z.object({ base: z.string(), entries: z.array(treeEntrySchema()) }))
const guardedSchema = once(() =>
  z.object({
    version: z.literal(1),
    /** Whose guard it is: one taken in another work tree says nothing about this one. */
    changeDir: z.string(),
    /** Links on the way to the change folder. */
    links: z.array(z.object({ path: z.string(), target: z.string() })),
    /** The change folder, and whatever its links lead to outside of it. */
    trees: z.array(guardedTreeSchema()),
    /** The specs in force: only `openspec archive` changes them, so they go back only with a move into archive/. */
    specs: guardedTreeSchema().optional(),
    archived: z.array(z.string()),
    /** The files with the boxes; `real` is where their bytes lie, links resolved. */
    tracked: z.array(z.object({ file: z.string(), path: z.string(), real: z.string() })),
    /** What says which those are, and what it says; no entries: it was not there. */
    rules: z.object({ pattern: z.string(), trees: z.array(guardedTreeSchema()) }).optional(),
  }),
)
export type GuardedTree = z.infer<ReturnType<typeof guardedTreeSchema>>
export type Guarded = z.infer<ReturnType<typeof guardedSchema>>
export type FileEntry = Extract<TreeEntry, { kind: 'file' }>

export interface GuardPlaces {
  readonly root: string
  readonly changeDir: string
  readonly guardDir: string
  readonly env: NodeJS.ProcessEnv
  /** Files of the plan that the agent was asked to edit. */
  readonly mayEdit?: ReadonlySet<string>
}

export async function takeGuard(places: GuardPlaces, tracked: readonly TrackedFile[]): Promise<void> {
  const { guardDir } = places
  const guarded = await copyPlan(places, tracked)
  // The manifest last: until it is there the old guard holds, whose blobs are still there too.
  await writeWhole(manifestOf(guardDir), Buffer.from(JSON.stringify(guarded)), 0o600, () =>
    syncFolder(blobsOf(guardDir)),
  )
  await prune(guardDir, guarded)
}

/**
 * The plan as it is now, its bytes among the guard's until the next one is taken.
 * A change folder that is not there (the plan is the work tree's own tasks.md) is kept as such: empty.
 */
export async function copyPlan(places: GuardPlaces, tracked: readonly TrackedFile[]): Promise<Guarded> {
  const { root, changeDir, guardDir } = places
  await mkdir(blobsOf(guardDir), { recursive: true })
  const hasFolder = await leadsSomewhere(changeDir)
  const trees: GuardedTree[] = hasFolder ? [] : [{ base: changeDir, entries: [] }]
  const queue = [...(hasFolder ? [changeDir] : []), ...tracked.map((each) => each.path)]
  for (const next of queue) {
    const base = await realpath(next)
    if (trees.some((tree) => isInside(tree.base, base))) continue
    const tree = await copyTree(base, guardDir)
    trees.push(tree)
    // Only links that carry a part of the plan are followed: another one may lead to half a disk.
    for (const { kind, path } of tree.entries) {
      if (kind === 'link' && isPlanPath(path) && (await leadsSomewhere(join(base, path))))
        queue.push(join(base, path))
    }
  }
  const specsDir = join(root, 'openspec', 'specs')
  const specs = (await leadsSomewhere(specsDir))
    ? await copyTree(await realpath(specsDir), guardDir)
    : undefined
  return {
    version: 1,
    changeDir,
    links: await linksTo([join(root, 'openspec'), dirname(changeDir), changeDir]),
    trees,
    archived: await archivedNames(changeDir),
    tracked: await Promise.all(tracked.map(async (each) => ({ ...each, real: await realpath(each.path) }))),
    rules: await copyRules(places),
    ...(specs && { specs }),
  }
}

/** `.openspec.yaml` of the change is guarded with its folder. */
async function copyRules({ root, changeDir, guardDir, env }: GuardPlaces): Promise<Guarded['rules']> {
  const schemas = await schemaFiles(root, changeDir, env)
  const paths = [
    ...['config.yaml', 'config.yml'].map((name) => join(root, 'openspec', name)),
    // With their folders: a link in the place of one leads to another schema.
    ...schemas.flatMap((path) => [dirname(dirname(path)), dirname(path), path]),
  ]
  const trees: GuardedTree[] = []
  for (const path of paths) {
    const stats = await lstatIfThere(path)
    if (stats === undefined) trees.push({ base: path, entries: [] })
    else if (stats.isDirectory())
      trees.push({ base: path, entries: [{ kind: 'folder', path: '', mode: stats.mode & 0o7777 }] })
    else trees.push(await copyTree(path, guardDir))
    if (stats?.isSymbolicLink() === true && isRuleFile(path) && (await leadsSomewhere(path)))
      trees.push(await copyTree(await realpath(path), guardDir))
  }
  return { pattern: await taskPattern(root, changeDir, env), trees }
}

export function isRuleFile(path: string): boolean {
  return /\.ya?ml$/.test(path)
}

/** The parts of a change folder that are the plan, and thus not the agent's to edit. */
export function isPlanPath(path: string): boolean {
  return /^(?:tasks\.md|proposal\.md|design\.md|\.openspec\.yaml|specs(?:\/.*)?)$/s.test(path)
}

async function linksTo(steps: readonly string[]): Promise<Guarded['links']> {
  const links: Guarded['links'] = []
  for (const path of steps) {
    if ((await lstatIfThere(path))?.isSymbolicLink() === true)
      links.push({ path, target: await readlink(path) })
  }
  return links
}

/** Undefined before the first guard of this change in this place. */
export async function readGuard({ guardDir, changeDir }: GuardPlaces): Promise<Guarded | undefined> {
  const file = manifestOf(guardDir)
  const mark = fileMark(file)
  if (mark === '' || read?.mark !== mark) {
    const guarded = await readRecord(file, guardedSchema())
    read = guarded && { mark, guarded }
  }
  return read?.guarded.changeDir === changeDir ? read.guarded : undefined
}

/** The last one: it is asked for several times in each story. */
let read: { readonly mark: string; readonly guarded: Guarded } | undefined

export async function readBlob(guardDir: string, hash: string): Promise<Buffer> {
  return readFile(join(blobsOf(guardDir), hash))
}

/** The file's entry, found by its real path; undefined where no such file was guarded. */
export function findGuarded(guarded: Guarded, real: string): FileEntry | undefined {
  for (const { base, entries } of guarded.trees) {
    if (!isInside(base, real)) continue
    const entry = entries.find((each) => each.path === relative(base, real))
    if (entry?.kind === 'file') return entry
  }
  return undefined
}

/** Names in archive/; a change that turns up there during an attempt was moved by the agent. */
export async function archivedNames(changeDir: string): Promise<string[]> {
  const archive = join(dirname(changeDir), 'archive')
  return isAbsent(archive) ? [] : ((await ifThere(readdir(archive))) ?? []).sort()
}

function isInside(base: string, path: string): boolean {
  return path === base || path.startsWith(`${base}/`)
}

async function copyTree(base: string, guardDir: string): Promise<GuardedTree> {
  const entries: TreeEntry[] = []
  const unreadable = (error: unknown): never => {
    throw new RalphError('spec_unreadable', `${base} cannot be copied whole: ${(error as Error).message}`, {
      hint: 'No agent was started: what cannot be copied could not be brought back. Make it readable, then run the command again.',
      cause: error,
    })
  }
  const tree = readTree(base)[Symbol.asyncIterator]()
  for (;;) {
    const next = await tree.next().catch(unreadable)
    if (next.done === true) return { base, entries }
    const { entry, bytes } = next.value
    entries.push(entry)
    if (entry.kind === 'file' && bytes !== undefined) await keepBlob(guardDir, entry.hash, bytes)
  }
}

/** Named by its hash, so an unchanged file costs no write; a torn one, left by a crash, is written again. */
async function keepBlob(guardDir: string, hash: string, bytes: Buffer): Promise<void> {
  const path = join(blobsOf(guardDir), hash)
  if ((await readIfThere(path))?.equals(bytes) === true) return
  const handle = openSync(path, 'w', 0o600)
  try {
    writeFileSync(handle, bytes)
    await sync(handle)
  } finally {
    closeSync(handle)
  }
}

async function prune(guardDir: string, guarded: Guarded): Promise<void> {
  const { specs, rules } = guarded
  const trees = [...guarded.trees, ...(specs === undefined ? [] : [specs]), ...(rules?.trees ?? [])]
  const used = new Set(
    trees.flatMap(({ entries }) => entries.map((each) => (each.kind === 'file' ? each.hash : ''))),
  )
  for (const name of await readdir(blobsOf(guardDir)))
    if (!used.has(name)) await rm(join(blobsOf(guardDir), name))
}

async function leadsSomewhere(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (isMissing(error) || (error as NodeJS.ErrnoException).code === 'ELOOP') return false
    throw error
  }
}

function blobsOf(guardDir: string): string {
  return join(guardDir, 'blobs')
}

function manifestOf(guardDir: string): string {
  return join(guardDir, 'manifest.json')
}
