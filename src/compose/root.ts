// Which folder holds the project's `openspec/`.
import { findRoot } from '../adapters/openspec/changes.ts'
import type { Site } from './site.ts'

/** The openspec program is asked only where a store has to be resolved. */
export async function findRootOf(site: Site): Promise<string> {
  return findRoot(site.cwd, async () => {
    const { findCli } = await import('../adapters/openspec/cli.ts')
    const { agentsTree } = await import('./cage.ts')
    return (await findCli({ from: site.cwd, env: site.env, notIn: agentsTree(site) })).cli
  })
}
