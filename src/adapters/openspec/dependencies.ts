// Which change waits for which: what a change says of itself, and changes that rewrite the same requirement.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { RalphError } from '../../core/error.ts'
import { once } from '../../core/once.ts'
import { readNow } from '../files/now.ts'
import { ifThereNow } from '../files/whole.ts'
import { changeDirOf } from './changes.ts'

const names = z.union([z.string().transform((name) => [name]), z.array(z.string())]).optional()
const schema = once(() => z.looseObject({ depends_on: names, dependsOn: names }))

/** `depends_on` (or `dependsOn`) of its `.openspec.yaml`. */
export async function saidDependencies(root: string, change: string): Promise<readonly string[]> {
  const path = join(changeDirOf(root, change), '.openspec.yaml')
  const text = ifThereNow(() => readNow(path, 'utf8'))
  if (text === undefined) return []
  const { parse } = await import('./yaml.ts')
  const found = schema().safeParse(parseOr(parse, text, path) ?? {})
  if (!found.success)
    throw new RalphError('spec_unreadable', `depends_on in ${path} is not a list of changes.`, {
      hint: 'Nothing was touched. For example: depends_on: [add-login]',
    })
  return [...new Set([...(found.data.depends_on ?? []), ...(found.data.dependsOn ?? [])])]
}

/** YAML that cannot be read is not the same as one that names nobody. Where it does not speak of it, who reads the rest of it complains. */
function parseOr(parse: (text: string) => unknown, text: string, path: string): unknown {
  try {
    return parse(text)
  } catch {
    if (!/depends_?on/i.test(text)) return undefined
    throw new RalphError(
      'spec_unreadable',
      `${path} is no YAML that can be read, and it names dependencies.`,
      {
        hint: 'Nothing was touched. For example: depends_on: [add-login]',
      },
    )
  }
}

/** Requirements that the change rewrites, removes or renames, each with its capability: two such changes are not independent. */
export function rewrittenRequirements(root: string, change: string): readonly string[] {
  const specs = join(changeDirOf(root, change), 'specs')
  return (ifThereNow(() => readdirSync(specs)) ?? []).flatMap((capability) => {
    const text = ifThereNow(() => readNow(join(specs, capability, 'spec.md'), 'utf8')) ?? ''
    let isRewritten = false
    return text.split('\n').flatMap((line) => {
      const [, heading] = /^## +(.+?) *$/.exec(line) ?? []
      if (heading !== undefined) isRewritten = /^(?:MODIFIED|REMOVED|RENAMED) Requirements$/i.test(heading)
      const [, name] = /^### +Requirement: *(.+?) *$/.exec(line) ?? []
      return isRewritten && name !== undefined ? [`${capability}: ${name}`] : []
    })
  })
}
