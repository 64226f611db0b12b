// Which folder holds the project's `openspec/`.
import { join, relative } from 'node:path'
import { findRoot } from '../adapters/openspec/changes.ts'
import type { StartedState } from '../core/state.ts'
import type { Site } from './site.ts'

/** The openspec program is asked only where a store has to be resolved. */
export async function findRootOf(site: Site): Promise<string> {
  return findRoot(site.cwd, async () => {
    const { findCli } = await import('../adapters/openspec/cli.ts')
    const { agentsTree } = await import('./cage.ts')
    return (await findCli({ from: site.cwd, env: site.env, notIn: agentsTree(site) })).cli
  })
}

/** That of a run, also where the repository has been moved since. */
export function rootOf(site: Site, { worktree, root }: StartedState): string {
  const inside = relative(worktree, root)
  return inside.startsWith('..') ? root : join(site.git.worktree, inside)
}
