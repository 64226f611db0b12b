// The few settings of the repository that decide what git sees of the work tree.
import { readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { restingMark } from '../../files/whole.ts'
import { conversionKeys, globalFiles, type Conversions } from '../tree/conversions.ts'
import type { Git } from '../git.ts'

export interface Settings {
  /** Where the user's own list of ignored files lies, as configured; undefined when it is in its usual place. */
  readonly excludesFile: string | undefined
  /** Off: git does not look at executable bits. */
  readonly fileMode: boolean
  /** Off: git writes a symbolic link as a plain file. */
  readonly links: boolean
  /** `core.hooksPath` as the user's git sees it. */
  readonly hooksPath: string | undefined
  /** `include.path`, all of them. */
  readonly included: readonly string[]
  readonly conversions: Conversions
  readonly isSparse: boolean
}

export async function readSettings(git: Git): Promise<Settings> {
  const pairs = (await allSettings(git)).map(({ key, value }): [string, string] => [key, value])
  const isConversion = new RegExp(`^(${conversionKeys})$`)
  const last = (key: string): string | undefined => pairs.findLast(([name]) => name === key)?.[1]
  return {
    excludesFile: last('core.excludesfile') || undefined,
    // The last one is ralph's own, for its own commands.
    hooksPath: pairs.filter(([name]) => name === 'core.hookspath').at(-2)?.[1] || undefined,
    included: pairs.filter(([name]) => name === 'include.path').map(([, value]) => value),
    conversions: pairs.filter(([key]) => isConversion.test(key)),
    isSparse: /^(true|yes|on|1)$/i.test(last('core.sparsecheckout') ?? ''),
    fileMode: !/^(false|no|off|0)$/i.test(last('core.filemode') ?? ''),
    links: !/^(false|no|off|0)$/i.test(last('core.symlinks') ?? ''),
  }
}

interface Setting {
  /** `command` is ralph's own. */
  readonly scope: string
  readonly key: string
  /** In bytes (latin1). */
  readonly value: string
  /** Empty where it is from none. */
  readonly file: string
}

/** In the order in which they count. Git is asked again only when one of the files that it reads has other bytes. */
export async function allSettings(git: Git): Promise<readonly Setting[]> {
  const env = git.env()
  const insisted = Object.entries(env).filter(([name]) => name.startsWith('GIT_CONFIG_'))
  const known = read.get(git)
  const mark = (files: readonly string[]): string =>
    JSON.stringify([insisted, ...files.map((file) => [file, bytesIn(file)])])
  if (known !== undefined && mark(known.files) === known.mark) return known.settings
  const usual = usualFiles(git, env)
  const before = mark(usual)
  const fields = await git.list(['config', '-z', '--list', '--show-scope', '--show-origin'])
  const settings: Setting[] = []
  const files = new Set(usual)
  for (let at = 0; at + 2 < fields.length; at += 3) {
    const [scope = '', origin = '', entry = ''] = fields.slice(at, at + 3)
    const cut = `${entry}\n`.indexOf('\n')
    const file = origin.startsWith('file:') ? resolve(git.worktree, textIn(origin.slice(5))) : ''
    const setting = { scope, key: entry.slice(0, cut), value: entry.slice(cut + 1), file }
    settings.push(setting)
    if (file === '') continue
    files.add(file)
    // One that is not there yet counts from the moment in which it is.
    if (/^include(if\..*)?\.path$/.test(setting.key))
      files.add(resolve(dirname(file), atHome(textIn(setting.value), env)))
  }
  // A file may be included on one branch alone.
  if (settings.some(({ key }) => key.startsWith('includeif.onbranch:'))) files.add(join(git.gitDir, 'HEAD'))
  // Of what was written meanwhile nobody knows whether it was read.
  if (mark(usual) === before) read.set(git, { settings, files: [...files], mark: mark([...files]) })
  return settings
}

const read = new WeakMap<Git, { settings: readonly Setting[]; files: readonly string[]; mark: string }>()

function usualFiles(git: Git, env: NodeJS.ProcessEnv): string[] {
  return [
    env['GIT_CONFIG_SYSTEM'] ?? '/etc/gitconfig',
    ...globalFiles(env),
    join(git.gitCommonDir, 'config'),
    join(git.gitDir, 'config.worktree'),
  ]
}

function bytesIn(file: string): string {
  try {
    const stats = statSync(file, { bigint: true, throwIfNoEntry: false })
    if (stats?.isFile() !== true) return ''
    const mark = restingMark(stats)
    const known = resting.get(file)
    if (mark !== '' && known?.mark === mark) return known.bytes
    const bytes = readFileSync(file, 'latin1')
    if (mark !== '') resting.set(file, { mark, bytes })
    return bytes
  } catch {
    // Not there, or not ralph's to read: git says what it needs of it.
    return ''
  }
}

/** What was read of files that rest: they are asked for seven times in each story. */
const resting = new Map<string, { readonly mark: string; readonly bytes: string }>()

function textIn(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

/** As git reads a path in a setting. */
export function atHome(path: string, env: NodeJS.ProcessEnv): string {
  return path.startsWith('~/') ? join(env['HOME'] ?? '/', path.slice(2)) : path
}
