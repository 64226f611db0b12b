// Scripts that a loop in a work tree of its own would look for in vain: known before the tree is of use to anybody.
import { existsSync, statSync } from 'node:fs'
import { join, normalize } from 'node:path'
import type { Git } from '../adapters/git/git.ts'
import { RalphError } from '../core/error.ts'

/** Exit 2. `tree`: the loop's own, where it is there already. */
export async function refuseUncommitted(
  git: Git,
  {
    agent,
    gates,
    tree,
    brought,
  }: {
    readonly agent: string | undefined
    readonly gates: readonly string[]
    readonly tree?: string
    /** A folder that comes along, committed or not. */
    readonly brought: string
  },
): Promise<void> {
  const isIn = (script: string): boolean =>
    tree === undefined ? join(git.worktree, script).startsWith(`${brought}/`) : existsSync(join(tree, script))
  const named = [
    ...(agent === undefined ? [] : [{ command: agent, states: /^(\?\?|!!|A)/ }]),
    // What git ignores may be what an earlier gate makes, as node_modules is.
    ...gates.map((command) => ({ command, states: /^(\?\?|A)/ })),
  ]
  for (const { command, states } of named) {
    const word = scriptOf(command)
    const script = normalize(word)
    if (word === '' || script.startsWith('..') || isIn(script)) continue
    if (statSync(join(git.worktree, script), { throwIfNoEntry: false })?.isFile() !== true) continue
    const asked = ['status', '--porcelain', '--ignored', '--untracked-files=all', '--', script]
    if (!states.test((await git.run(asked, { accept: [128] })).out)) continue
    throw new RalphError('config', `${word} is not committed, so the loop's work tree does not have it.`, {
      hint: 'Commit it, or give its absolute path.',
    })
  }
}

/** `./agent.sh`, `scripts/check`, and the file in `sh check.sh`; empty where only a shell could tell. */
function scriptOf(command: string): string {
  const [first = '', second = ''] = command.trim().split(/\s+/)
  const word = interpreters.has(first) ? second : first.includes('/') ? first : ''
  return /^[\w.][\w.+@/-]*$/.test(word) ? word : ''
}

const interpreters: ReadonlySet<string> = new Set(['sh', 'bash', 'zsh', 'node', 'python', 'python3'])
