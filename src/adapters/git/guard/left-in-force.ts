// Read-only: what a dead attempt has left of settings, hooks and info/ that git obeys until a repair puts it back.
import { join } from 'node:path'
import { settleGitSettings, shownSetting } from '../../../core/ownership.ts'
import { listFile } from '../formats/config-file.ts'
import { onDisk } from '../tree/files.ts'
import { named } from '../git.ts'
import { findGuarded, isSameFile, isSettingsFile } from './guarded-files.ts'
import { loadSnapshot } from '../revert/snapshot.ts'
import type { Store } from '../store.ts'

export async function leftInForce({ git, folder }: Pick<Store, 'git' | 'folder'>): Promise<string[]> {
  const snapshot = await loadSnapshot({ folder })
  const before = snapshot?.guarded
  if (snapshot === undefined || before === undefined) return []
  const now = findGuarded(git, snapshot.hooks_path)
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])]
  const changed = names.filter((name) => !isSameFile(before[name], now[name]))
  const told = changed.map(async (name): Promise<string[]> => {
    const sha = before[name]?.sha ?? ''
    if (!isSettingsFile(name)) return [`.git/${named(name)}`]
    const place = onDisk(git.gitCommonDir, name).toString('utf8')
    const old = sha === '' ? [] : await listFile({ git }, join(folder, 'guarded', sha))
    const fresh = now[name] === undefined ? [] : await listFile({ git }, place)
    if (old === undefined || fresh === undefined) return [`.git/${named(name)}`]
    const { undone } = settleGitSettings(old, fresh)
    return undone.map((change) => `.git/${named(name)} (${shownSetting(change.key, change.now)})`)
  })
  return (await Promise.all(told)).flat()
}
