// Where a branch of this repository would be pushed to.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ifThereNow } from '../../files/whole.ts'
import { shown, type Git } from '../git.ts'
import { allSettings } from './settings.ts'

/** `origin`, or the first there is; undefined where there is none. */
export async function remoteOf(git: Git): Promise<string | undefined> {
  if (await hasNone(git)) return undefined
  const names = (await git.line(['remote'])).split('\n').filter((name) => name !== '')
  const remote = names.includes('origin') ? 'origin' : names[0]
  return remote === undefined ? undefined : shown(remote)
}

/** As the settings have it, and the two folders from before there were such settings. */
async function hasNone(git: Git): Promise<boolean> {
  const folders = ['remotes', 'branches'].map((name) => join(git.gitCommonDir, name))
  const settings = await allSettings(git)
  return (
    !settings.some(({ key }) => key.startsWith('remote.')) &&
    folders.every((folder) => (ifThereNow(() => readdirSync(folder)) ?? []).length === 0)
  )
}
