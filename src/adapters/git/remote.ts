// Where a branch of this repository would be pushed to.
import { shown, type Git } from './git.ts'

/** `origin`, or the first there is; undefined where there is none. */
export async function remoteOf(git: Git): Promise<string | undefined> {
  const names = (await git.line(['remote'])).split('\n').filter((name) => name !== '')
  const remote = names.includes('origin') ? 'origin' : names[0]
  return remote === undefined ? undefined : shown(remote)
}
