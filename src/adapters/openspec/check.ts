// What the installed openspec program thinks of a change: how many tasks it counts, and whether it calls the change valid.
// Each answer takes the better part of a second, so it is asked beside the work, and again only when the files have changed.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import * as z from 'zod'
import { once } from '../../core/once.ts'
import { lstatIfThere } from '../files/whole.ts'
import { changeDirOf } from './changes.ts'
import { isAtLeast, type OpenSpecCli } from './cli.ts'
import { readTree } from './tree.ts'

export interface Check {
  /** Undefined when the program gives no answer: "could not be checked" is neither valid nor invalid. */
  validate(): Promise<Validation | undefined>
  /** One line for the user where the program counts other tasks, or gives no answer; else empty. */
  count(ours: number): Promise<string>
  /** Nobody waits for an answer any more. */
  stop(): void
}

interface Validation {
  readonly valid: boolean
  /** `ERROR tasks.md:20 …`, worst first. */
  readonly issues: readonly string[]
}

type Ask = (...args: string[]) => ReturnType<OpenSpecCli['run']>

export function checkBy(cli: OpenSpecCli, root: string, change: string): Check {
  const stopped = new AbortController()
  const ask: Ask = (...args) => cli.run([...args, '--json'], root, stopped.signal)
  let known: { readonly mark: string; readonly answer: Promise<Validation | undefined> } | undefined
  return {
    async validate() {
      const mark = await markOf(root, change)
      if (mark !== '' && known?.mark === mark) return await known.answer
      known = { mark, answer: validateChange(ask, change) }
      const answer = await known.answer
      // Written meanwhile: what it has read, nobody knows.
      if (mark !== (await markOf(root, change))) known = undefined
      return answer
    },
    async count(ours) {
      const { total, note } = await countTasks(ask, cli.version, change)
      return total === undefined || total === ours
        ? note
        : `openspec counts ${total} tasks, ralph ${ours}: see ralph show ${change}`
    },
    stop: () => stopped.abort(),
  }
}

/** Of all that the validation reads; a box that was ticked makes no difference. Empty where a link leads elsewhere. */
async function markOf(root: string, change: string): Promise<string> {
  const folder = join(root, 'openspec')
  const hash = createHash('sha256')
  for (const base of [changeDirOf(root, change), join(folder, 'specs'), join(folder, 'config.yaml')]) {
    if ((await lstatIfThere(base)) === undefined) continue
    for await (const { entry, bytes } of readTree(base)) {
      if (entry.kind === 'link') return ''
      const text = bytes?.toString('latin1').replaceAll(/^(\s*[-*+]\s+\[)[xX](?=\])/gm, '$1 ')
      hash.update(JSON.stringify([base, entry.path, text]))
    }
  }
  return hash.digest('hex')
}

const countSchema = once(() =>
  z.looseObject({
    progress: z.looseObject({ total: z.number() }).optional().catch(undefined),
  }),
)

async function countTasks(
  ask: Ask,
  version: string,
  change: string,
): Promise<{ readonly total?: number; readonly note: string }> {
  const answer = await ask('instructions', 'apply', '--change', change)
  if (!answer.ok)
    return {
      note: `openspec gave no instructions for ${change} (${answer.message}): the built-in rules are used`,
    }
  const said = countSchema().safeParse(answer.json).data
  if (said === undefined)
    return { note: `openspec ${version} answered in an unknown shape: the built-in rules are used` }
  // Below 1.13.1 its counts are known to be lower than ours.
  const total = isAtLeast(version, [1, 13, 1]) ? said.progress?.total : undefined
  return { note: '', ...(total !== undefined && { total }) }
}

const validateSchema = once(() =>
  z.looseObject({
    items: z.array(
      z.looseObject({
        valid: z.boolean(),
        issues: z
          .array(
            z.looseObject({
              level: z.string(),
              path: z.string().optional(),
              line: z.number().optional(),
              message: z.string(),
            }),
          )
          .catch([]),
      }),
    ),
  }),
)

async function validateChange(ask: Ask, change: string): Promise<Validation | undefined> {
  const answer = await ask('validate', change, '--type', 'change')
  const item = validateSchema().safeParse(answer.json).data?.items[0]
  if (item === undefined) return undefined
  const rank = ['ERROR', 'WARNING', 'INFO']
  const sorted = [...item.issues].sort((a, b) => rank.indexOf(a.level) - rank.indexOf(b.level))
  const issues = sorted.map(({ level, path, line, message }) => {
    const where = path === undefined ? '' : ` ${path}${line === undefined ? '' : `:${line}`}`
    return `${level}${where} ${message}`
  })
  return { valid: item.valid, issues }
}
