// What a branch that is kept still waits for: a push, a pull request; and what its user would publish or leave behind.
import { readRef } from '../adapters/git/refs/refs.ts'
import { remoteOf } from '../adapters/git/formats/remote.ts'
import { named } from '../adapters/git/git.ts'
import type { Git } from '../adapters/git/git.ts'
import type { KeptBranch } from '../ui/app.ts'

/** `said`: what the finish said of it. */
export async function keptBranch(
  git: Git,
  branch: string,
  said: string,
  isHere: boolean,
): Promise<KeptBranch> {
  const [remote, tip, edits] = await Promise.all([
    remoteOf(git),
    readRef(git, `refs/heads/${branch}`),
    isHere ? editsIn(git) : [],
  ])
  const pushed = remote === undefined ? undefined : await readRef(git, `refs/remotes/${remote}/${branch}`)
  const [, own] = /and a push publishes them: (.*?); `ralph finish /.exec(said) ?? []
  return {
    ...(remote !== undefined && { remote }),
    ...(pushed !== undefined && pushed === tip && { is_pushed: true as const }),
    ...(own !== undefined && { own }),
    ...(edits.length > 0 && { edits }),
  }
}

async function editsIn(git: Git): Promise<string[]> {
  const asked = ['status', '--porcelain', '-z', '--no-renames', '--ignore-submodules=dirty']
  const { out, code } = await git.run(asked, { accept: [128] })
  return code === 0 ? out.split('\0').flatMap((line) => (line === '' ? [] : [named(line.slice(3))])) : []
}
