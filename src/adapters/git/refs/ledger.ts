// Reads what the gits of an attempt told about themselves (see watch.ts), whole lines only, in bytes.
import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import * as z from 'zod'
import { readJson } from '../../../core/json.ts'
import { readNow } from '../../files/now.ts'
import { ifThereNow, readIfThere } from '../../files/whole.ts'
import type { GitCommand, HeadSwitch, Ledger, RefWrite } from '../../../core/ownership.ts'
import { textOf } from '../formats/bytes.ts'
import { shown, type Git } from '../git.ts'
import { checkpointFolder, type Store } from '../store.ts'
import { watchFolder, type Watched } from './watch.ts'

/** Of iteration n, agent and gates; empty when nothing was watched. Readable until the attempt is settled, after a crash too. */
export async function readLedger(store: Store, n: number): Promise<Ledger> {
  const parts = await Promise.all((['agent', 'gate'] as const).map((by) => readOne(store, by, n)))
  return {
    writes: parts.flatMap(({ writes }) => writes),
    switches: parts.flatMap(({ switches }) => switches),
    commands: parts.flatMap(({ commands }) => commands),
    trees: parts.flatMap(({ trees }) => trees),
  }
}

async function readOne(store: Store, by: Watched, n: number): Promise<Ledger> {
  const folder = watchFolder(store, by, n)
  const [bytes, commands] = await Promise.all([
    readIfThere(join(folder, 'ledger')),
    readTrace(join(folder, 'trace'), by, store),
  ])
  const told = textOf(bytes?.toString('latin1') ?? '')
    .split('\n')
    .slice(0, -1)
  return { ...readTold(told, by), commands }
}

/** Whether an attempt of this change that is not settled yet has put this ref of the queue's there, or deleted it: told before git shows it. */
export function hasWritten(git: Git, change: string, ref: string, to: string | undefined): boolean {
  const watches = join(checkpointFolder(git.gitCommonDir, change), 'watch')
  const names = ifThereNow(() => readdirSync(watches)) ?? []
  return names.some((name) => {
    const lines = ifThereNow(() => readNow(join(watches, name, 'ledger'), 'latin1'))?.split('\n') ?? []
    return lines.slice(0, -1).some((line) => {
      const [kind, , , next = '', ...name] = textOf(line).split(' ')
      return kind === 'will' && value(next) === to && name.join(' ') === ref
    })
  })
}

function readTold(lines: readonly string[], by: Watched): Omit<Ledger, 'commands'> {
  const writes: RefWrite[] = []
  const switches: HeadSwitch[] = []
  const trees = new Set<string>()
  const found = new Map<string, string>()
  /** `git pack-refs` writes each ref as it is and then deletes its loose file: neither is a change. */
  const packed = new Set<string>()
  for (const line of lines) {
    const [kind, tree = '', ...rest] = line.split(' ')
    if (kind === 'found') {
      const [hash = '', ref = ''] = rest
      found.set(ref, hash)
    } else if (kind === 'switched') {
      const [from = '', , flag, ...head] = rest
      if (tree === '.' && flag === '1') switches.push({ by, head: head.at(-1) ?? '' })
      if (tree !== '.' && tree !== '@' && value(from) === undefined) trees.add(tree)
    } else if (kind === 'wrote') {
      const [old = '', next = '', ref = ''] = rest
      if (!ref.startsWith('refs/') && !(ref === 'HEAD' && tree === '.')) continue
      const to = value(next)
      const from = value(old) ?? found.get(ref)
      // Of another name for a branch: what it leads to is no commit (git 2.46).
      if (ref !== 'HEAD' && [from, to].some((end) => end?.startsWith('ref:') === true)) {
        writes.push({ by, ref, from: plain(from), to: plain(to) })
      } else if (to?.startsWith('ref:') === true) {
        switches.push({ by, head: to.slice('ref:'.length) })
      } else if (from === to) {
        packed.add(`${to ?? ''} ${ref}`)
      } else if (to !== undefined || !packed.delete(`${from ?? ''} ${ref}`)) {
        writes.push({ by, ref, from, to })
      }
    }
  }
  return { writes, switches, trees: [...trees] }
}

function plain(end: string | undefined): string | undefined {
  return end?.startsWith('ref:') === true ? undefined : end
}

function value(hash: string): string | undefined {
  return /^0*$/.test(hash) ? undefined : hash
}

/** One JSON record a line; of a process: its arguments, and the work tree that it found itself in. */
async function readTrace(file: string, by: Watched, { git }: Store): Promise<GitCommand[]> {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) return []
  const trees = await worktreesOf(git)
  const started = new Map<string, readonly string[]>()
  const names = new Map<string, string>()
  const commands: GitCommand[] = []
  // latin1: an argument may be bytes, and no line break but LF can be in it.
  for await (const line of createInterface({ input: createReadStream(file, 'latin1') })) {
    if (!/^\{"event":"(?:start|def_repo)",/.test(line)) continue
    // A line that was cut off when its process died is no record.
    const { event, sid, argv, worktree } = recordSchema.safeParse(readJson(line)).data ?? {}
    if (sid === undefined) continue
    if (event === 'start') {
      started.set(sid, argv ?? [])
      names.set(sid, commandOf(argv ?? [])[0] ?? '')
    }
    const ran = started.get(sid)
    if (event !== 'def_repo' || ran === undefined || worktree === undefined || !trees.has(worktree)) continue
    const within = names.get(sid.slice(0, Math.max(0, sid.lastIndexOf('/')))) ?? ''
    commands.push({
      by,
      argv: commandOf(ran).map(textOf),
      worktree: shown(worktree),
      ...(within !== '' && { within }),
    })
    // A submodule that it looks into is a second one.
    started.delete(sid)
  }
  return commands
}

const recordSchema = z.object({
  event: z.string(),
  sid: z.string(),
  argv: z.array(z.string()).optional(),
  worktree: z.string().optional(),
})

/** In bytes. */
async function worktreesOf(git: Git): Promise<Set<string>> {
  const hasOthers = existsSync(join(git.gitCommonDir, 'worktrees'))
  const listed = hasOthers ? await git.list(['worktree', 'list', '--porcelain', '-z'], { accept: [128] }) : []
  const trees = listed
    .filter((line) => line.startsWith('worktree '))
    .map((line) => line.slice('worktree '.length))
  return new Set([...trees, Buffer.from(git.worktree).toString('latin1')])
}

/** Without `git` and what stands before the command: `git -C x -c a=b checkout .` is `checkout .`. */
function commandOf([program = '', ...words]: readonly string[]): string[] {
  const dashed = /(?:^|\/)git-([a-z0-9-]+)$/.exec(program)?.[1]
  if (dashed !== undefined) return [dashed, ...words]
  const withValue = ['-C', '-c', '--git-dir', '--work-tree', '--namespace', '--super-prefix', '--config-env']
  let at = 0
  while (words[at]?.startsWith('-') === true) at += withValue.includes(words[at] ?? '') ? 2 : 1
  return words.slice(at)
}
