// What git makes of a file on its way in and out (filters, line ends, encodings, ident): whose settings count, and which paths it concerns.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isAbsent } from '../../files/whole.ts'
import { lstatNow } from './files.ts'
import { named, type Git } from '../git.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { joined } from './tree.ts'

/** Settings by key, as git lists them; a driver that appears later is not among them. */
export type Conversions = readonly (readonly [key: string, value: string])[]

export const conversionKeys = 'filter\\..*|core\\.(autocrlf|eol|attributesfile)'

/**
 * ralph's own git uses the conversions of the run's start: a filter that an agent installs for all repositories, or changes there,
 * has no say in what is saved and restored. Costs no process while the user's own configuration is as it was.
 */
export async function insistOnConversions(store: Store, snapshot: Snapshot): Promise<string[]> {
  const { git } = store
  const start = snapshot.conversions
  const mark = globalSettings(store)
  if (start === undefined || (mark !== undefined && mark === snapshot.global_settings)) return []
  const asked = ['config', '-z', '--show-scope', '--get-regexp', `^(${conversionKeys})$`]
  const fields = (await git.run(asked, { accept: [1] })).out.split('\0')
  const now: [string, string][] = []
  for (let at = 0; at + 1 < fields.length; at += 2) {
    // What ralph says itself, for its own commands.
    if (fields[at] === 'command') continue
    const [key = '', ...value] = (fields[at + 1] ?? '').split('\n')
    now.push([key, value.join('\n')])
  }
  const before = new Map(start)
  const after = new Map(now)
  const changed = [...after].filter(([key, value]) => before.get(key) !== value).map(([key]) => key)
  const gone = [...before].filter(([key]) => !after.has(key)).map(([key]) => key)
  git.insist([...changed, ...gone].map((key) => [key, before.get(key) ?? absent(store, key)]))
  const isTold = told.get(git) === changed.join()
  told.set(git, changed.join())
  return changed.length === 0 || isTold
    ? []
    : [
        `${changed.map(named).join(', ')} appeared or changed in your own git configuration during the attempt; it is left as it is, and ralph continues with what was there at the start`,
      ]
}

/** Once is enough: it goes on to differ in every attempt after. */
const told = new WeakMap<Git, string>()

/** As if it were not set. An empty command is no command. */
function absent(store: Store, key: string): string {
  if (key === 'core.attributesfile') return usualAttributes(store)
  if (key === 'core.eol') return 'native'
  return key === 'core.autocrlf' || key.endsWith('.required') ? 'false' : ''
}

/** Where git looks for the user's own configuration. */
export function globalFiles(env: NodeJS.ProcessEnv): string[] {
  const own = env['GIT_CONFIG_GLOBAL']
  return own === undefined ? [join(homeOf(env), '.gitconfig'), join(configHome(env), 'git', 'config')] : [own]
}

/** A mark of the user's own configuration; what it includes may be anywhere, so then it never counts as unchanged. */
export function globalSettings({ env = process.env }: Pick<Store, 'env'>): string | undefined {
  const text = globalFiles(env)
    .map((file) => readNow(file))
    .join('\0')
  return /^\s*\[include/im.test(text) ? undefined : createHash('sha256').update(text).digest('hex')
}

/** Whether any conversion may concern a path of these folders: asked of the file system alone. */
export function mayConvert(
  store: Pick<Store, 'git' | 'env'>,
  conversions: Conversions,
  folders: readonly string[],
): boolean {
  const autocrlf = conversions.findLast(([key]) => key === 'core.autocrlf')?.[1] ?? 'false'
  if (!/^(false|no|off|0)$/i.test(autocrlf)) return true
  const { git } = store
  const file = conversions.findLast(([key]) => key === 'core.attributesfile')?.[1] ?? usualAttributes(store)
  const shared = [join(git.gitCommonDir, 'info', 'attributes'), '/etc/gitattributes']
  if (file.startsWith('~') || [...shared, file].some((each) => readNow(each).trim() !== '')) return true
  const own = ['', ...folders.map((folder) => `${folder}/`)]
  return own.some((folder) => lstatNow(git.worktree, `${folder}.gitattributes`) !== undefined)
}

/** Those of the paths that git may convert, with what it says of each. */
export async function convertedPaths(
  git: Git,
  conversions: Conversions,
  paths: readonly string[],
): Promise<Map<string, string>> {
  if (paths.length === 0) return new Map()
  const isCrlf = conversions.some(([key]) => key === 'core.autocrlf')
  const asked = ['check-attr', '-z', '--stdin', ...attributes]
  const fields = (await git.run(asked, { input: joined(paths) })).out.split('\0')
  const said = new Map<string, string[]>()
  for (let at = 0; at + 2 < fields.length; at += 3) {
    const [path = '', , value = ''] = fields.slice(at, at + 3)
    said.set(path, [...(said.get(path) ?? []), value])
  }
  const found = new Map<string, string>()
  for (const [path, values] of said) {
    const isNamed = values.some((value) => value !== 'unspecified' && value !== 'unset')
    if (isNamed || isCrlf) found.set(path, values.join(' '))
  }
  return found
}

/** `filter` comes first: see `isLargeFile`. */
const attributes = ['filter', 'ident', 'working-tree-encoding', 'text', 'eol', 'crlf']

/** Empty where it has none. */
export function encodingOf(how: string): string {
  const encoding = how.split(' ')[attributes.indexOf('working-tree-encoding')] ?? ''
  return ['unspecified', 'unset', 'set'].includes(encoding) ? '' : encoding
}

/** Large-file storage gives back what it took, and must not be asked for gigabytes to prove it. */
export function isLargeFile(how: string): boolean {
  return how.startsWith('lfs ')
}

function usualAttributes({ env = process.env }: Pick<Store, 'env'>): string {
  return join(configHome(env), 'git', 'attributes')
}

function configHome(env: NodeJS.ProcessEnv): string {
  return env['XDG_CONFIG_HOME'] || join(homeOf(env), '.config')
}

function homeOf(env: NodeJS.ProcessEnv): string {
  return env['HOME'] ?? '/'
}

function readNow(file: string): string {
  try {
    return isAbsent(file) ? '' : readFileSync(file, 'latin1')
  } catch {
    // Not there, or not ralph's to read: git says what it needs of it.
    return ''
  }
}
