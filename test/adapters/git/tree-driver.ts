// Makes the loop's own work tree in a process of its own, so that it can be killed at any git command.
import { join } from 'node:path'
import { gitIn } from '../../../src/adapters/git/git.ts'
import { clearStart } from '../../../src/adapters/git/start/started-tree.ts'
import { addWorktree, type LoopTree } from '../../../src/adapters/git/start/worktrees.ts'

export async function makeTree(dir: string, env: NodeJS.ProcessEnv): Promise<LoopTree & { left: string }> {
  const gitDir = join(dir, '.git')
  const git = gitIn({ worktree: dir, gitDir, gitCommonDir: gitDir }, { timeoutMs: 30_000, env })
  const left = await clearStart(git, 'demo', '')
  return { ...(await addWorktree(git, { change: 'demo', changeFolder: 'openspec/changes/demo' })), left }
}

const [dir] = process.argv.slice(2)
if (process.env['RALPH_TREE_DRIVER'] === '1' && dir) void makeTree(dir, process.env)
