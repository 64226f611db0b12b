// The few settings of the repository that decide what git sees of the work tree.
import { conversionKeys, type Conversions } from './conversions.ts'
import type { Git } from './git.ts'

export interface Settings {
  /** Where the user's own list of ignored files lies, as configured; empty when it is in its usual place. */
  readonly excludesFile: string
  /** Off: git does not look at executable bits. */
  readonly fileMode: boolean
  /** `core.hooksPath` as the user's git sees it, empty where it is not set. */
  readonly hooksPath: string
  /** `include.path`, all of them. */
  readonly included: readonly string[]
  readonly conversions: Conversions
  readonly isSparse: boolean
}

export async function readSettings(git: Git): Promise<Settings> {
  const own = 'core\\.(excludesfile|filemode|hookspath|sparsecheckout)|include\\.path'
  const asked = ['config', '-z', '--get-regexp', `^(${own}|${conversionKeys})$`]
  const { out } = await git.run(asked, { accept: [1] })
  const entries = out.split('\0').filter((entry) => entry !== '')
  const pairs = entries.map((entry): [string, string] => {
    const [key = '', ...value] = entry.split('\n')
    return [key, value.join('\n')]
  })
  const isConversion = new RegExp(`^(${conversionKeys})$`)
  const last = (key: string): string | undefined => pairs.findLast(([name]) => name === key)?.[1]
  return {
    excludesFile: last('core.excludesfile') ?? '',
    // The last one is ralph's own, for its own commands.
    hooksPath: pairs.filter(([name]) => name === 'core.hookspath').at(-2)?.[1] ?? '',
    included: pairs.filter(([name]) => name === 'include.path').map(([, value]) => value),
    conversions: pairs.filter(([key]) => isConversion.test(key)),
    isSparse: /^(true|yes|on|1)$/i.test(last('core.sparsecheckout') ?? ''),
    fileMode: !/^(false|no|off|0)$/i.test(last('core.filemode') ?? ''),
  }
}
