// Reads a change's documents for the prompt, fresh from disk: proposal, design, further artifacts, deltas, and the specs in force.
import { isAbsolute, join, relative } from 'node:path'
import { parseSpec, type Spec } from '../../core/deltas.ts'
import type { CurrentRequirement, PromptDocument } from '../../core/prompt-documents.ts'
import { isMissing, readIfThere } from '../files/whole.ts'
import { findFiles } from './glob.ts'

/** Root-relative where that is shorter and stays inside; the agent works in the work tree's root. */
export function shownPath(worktree: string, path: string): string {
  const inside = relative(worktree, path)
  return inside === '' || inside.startsWith('..') || isAbsolute(inside) ? path : inside
}

/** Every document at the top of the change folder except the tasks: custom schemas have names of their own. */
export async function readDocuments(
  changeDir: string,
  worktree: string,
  taskFiles: readonly string[],
): Promise<readonly PromptDocument[]> {
  const names = await existing(findFiles(changeDir, '*.md'))
  const order = { proposal: 0, design: 1, other: 2 }
  const documents: PromptDocument[] = []
  for (const name of names) {
    const path = join(changeDir, name)
    const kind = name === 'proposal.md' ? 'proposal' : name === 'design.md' ? 'design' : 'other'
    const bytes = taskFiles.includes(path) ? undefined : await readIfThere(path)
    if (bytes !== undefined)
      documents.push({ kind, path: shownPath(worktree, path), text: bytes.toString('utf8') })
  }
  return documents.sort((a, b) => order[a.kind] - order[b.kind])
}

export async function readDeltas(changeDir: string, worktree: string): Promise<readonly Spec[]> {
  return readSpecs(join(changeDir, 'specs'), worktree)
}

/** The present text of what the change modifies. */
export async function readCurrent(
  root: string,
  worktree: string,
  deltas: readonly Spec[],
): Promise<readonly CurrentRequirement[]> {
  const found: CurrentRequirement[] = []
  for (const { capability, requirements } of deltas) {
    const modified = new Set(
      requirements.filter((each) => each.kind === 'MODIFIED').map((each) => each.name.trim()),
    )
    if (modified.size === 0) continue
    const file = join(root, 'openspec', 'specs', capability, 'spec.md')
    const path = shownPath(worktree, file)
    const spec = parseSpec(capability, path, (await readIfThere(file))?.toString('utf8') ?? '')
    const current = spec.requirements.filter((each) => modified.has(each.name.trim()))
    found.push(...current.map(({ name, text }) => ({ capability, name, path, text })))
  }
  return found
}

async function readSpecs(folder: string, worktree: string): Promise<readonly Spec[]> {
  const specs: Spec[] = []
  for (const name of await existing(findFiles(folder, '**/spec.md'))) {
    const bytes = await readIfThere(join(folder, name))
    const capability = name.slice(0, -'/spec.md'.length)
    if (bytes !== undefined)
      specs.push(parseSpec(capability, shownPath(worktree, join(folder, name)), bytes.toString('utf8')))
  }
  return specs
}

async function existing(files: Promise<readonly string[]>): Promise<readonly string[]> {
  return files.catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })
}
