// The plan of a change moves to the archive, and its specs into those of the project, in the tree that lands.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { changeDirOf } from '../adapters/openspec/changes.ts'
import { findCli } from '../adapters/openspec/cli.ts'
import { findFiles } from '../adapters/openspec/glob.ts'
import { agentsTree } from './cage.ts'
import type { Site } from './site.ts'

/** Here and never in a loop: the specs of one change are merged after those of the other. */
export async function archive(
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
