// The stash list: entries by hash and exact name, changed line by line under git's own lock, so that nobody else's entry goes.
import { join } from 'node:path'
import { rename, rm, stat, writeFile } from '../../files/now.ts'
import { readIfThere, syncFiles, writeDurably } from '../../files/whole.ts'
import { dropperOfStashes, mayHaveDroppedOthers, ownerOfStash, type Ledger } from '../../../core/ownership.ts'
import { ownEmail, shown, type Git } from '../git.ts'
import { takeLock } from '../formats/index-file.ts'
import { readLoose } from '../formats/objects.ts'
import { findRef } from '../formats/ref-files.ts'
import type { Store } from '../store.ts'
import { looseSince } from '../formats/sync.ts'

export interface StashEntry {
  readonly hash: string
  readonly message: string
}

/** The list is the log of refs/stash, oldest entry first; empty when there is none. */
export async function readStashLog(git: Git): Promise<string> {
  return (await readIfThere(stashLog(git)))?.toString('latin1') ?? ''
}

/** Newest first, as `git stash list` counts. */
export function stashEntries(log: string): StashEntry[] {
  return linesOf(log).map(entryOf).reverse()
}

export interface StashPlan {
  /** New entries of the agent's or a gate's. */
  readonly made: readonly StashEntry[]
  /** Hashes of entries that the agent or a gate dropped. */
  readonly dropped: readonly string[]
  /** Hashes of those that somebody else dropped. */
  readonly gone: readonly string[]
}

export function planStashes(before: string, now: string, ledger: Ledger): StashPlan {
  const known = new Set(stashEntries(before).map(({ hash }) => hash))
  const left = new Set(stashEntries(now).map(({ hash }) => hash))
  const missing = [...known].filter((hash) => !left.has(hash))
  const isOwn = missing.length > 0 && dropperOfStashes(ledger) !== 'user'
  return {
    made: stashEntries(now).filter(({ hash }) => !known.has(hash) && ownerOfStash(hash, ledger) !== 'user'),
    dropped: isOwn ? missing : [],
    gone: isOwn ? [] : missing,
  }
}

/** Without `away`, and with `back` again in the places that they had in the list `before`. */
export async function putBackStashes(
  git: Git,
  before: string,
  { back, away }: { readonly back: readonly string[]; readonly away: readonly string[] },
): Promise<void> {
  if (back.length + away.length === 0) return
  const old = linesOf(before)
  await rewriteStashes(git, (lines) => {
    const isThere = new Set(lines.map(hashOf))
    const known = new Set(old.map(hashOf))
    return [
      ...old.filter((line) => isThere.has(hashOf(line)) || back.includes(hashOf(line))),
      ...lines.filter((line) => !known.has(hashOf(line)) && !away.includes(hashOf(line))),
    ]
  })
}

/**
 * Entries that others made during the attempt, and that the agent or a gate dropped: they are in neither list, but git still has their commits.
 * Says how many came back. `ledger` is the whole attempt's, `dropping` of those who are asked for.
 */
export async function putBackBeside(
  { git, folder, absence }: Store,
  ledger: Ledger,
  dropping: Ledger = ledger,
): Promise<number> {
  if (dropperOfStashes(dropping) === 'user') return 0
  const there = new Set(stashEntries(await readStashLog(git)).map(({ hash }) => hash))
  if (!mayHaveDroppedOthers(dropping, (hash) => there.has(hash))) return 0
  // Written before every attempt; what came after a death is nobody's but the user's.
  const { mtimeMs } = await stat(join(folder, 'snapshot.json'))
  const { diedMs = Infinity } = absence?.() ?? {}
  const found = looseSince(git, mtimeMs, largestEntry).flatMap(({ hash }) => {
    const name = there.has(hash) || ownerOfStash(hash, ledger) !== 'user' ? undefined : nameOfStash(git, hash)
    return name === undefined || name.seconds * 1000 > diedMs ? [] : [{ hash, ...name }]
  })
  for (const { hash, subject } of found.sort((one, other) => one.seconds - other.seconds))
    await storeStash(git, hash, subject)
  return found.length
}

/** In bytes: no commit of `git stash` with a name that a person types is larger. */
const largestEntry = 16_384

/** Of a commit as `git stash push` makes it; not of what `--autostash` or ralph itself has put aside. */
function nameOfStash(git: Git, hash: string): { subject: string; seconds: number } | undefined {
  const [head = '', subject = ''] = commitParts(git, hash)
  const parents = [...head.matchAll(/^parent (\w+)$/gm)].map(([, parent]) => parent ?? '')
  const isLike = /^(?:WIP on|On) .*: (?!autostash$)/.test(subject) && [2, 3].includes(parents.length)
  if (!isLike || commitParts(git, parents[1] ?? '')[1]?.startsWith('index on ') !== true) return undefined
  return { subject, seconds: Number(/^committer .* (\d+) \S+$/m.exec(head)?.[1]) }
}

/** Its header, and the first line of its message. */
function commitParts(git: Git, hash: string): string[] {
  const found = readLoose(git, hash)
  const text = found?.kind === 'commit' ? found.body.toString() : ''
  const end = text.indexOf('\n\n')
  return [text.slice(0, end), text.slice(end + 2).split('\n')[0] ?? '']
}

/** Not `--quiet`: that hides a lock, which is waited for, and named if it stays. */
export async function storeStash(git: Git, commit: string, name: string): Promise<void> {
  await git.run(['stash', 'store', '-m', name, commit])
  await syncFiles([stashLog(git)])
}

/** After a death: a power cut tears the line that git appended last, and the next would be appended to the rest of it. */
export async function mendStashes(git: Git): Promise<void> {
  const log = await readStashLog(git)
  const tip = findRef(git, 'refs/stash') ?? ''
  const lines = linesOf(log)
  const isListed = tip === '' || hashOf(lines.at(-1) ?? '') === tip
  if (isListed && textOf(lines) === log) return
  const [head = '', subject = ''] = commitParts(git, tip)
  const by = /^committer (.*)$/m.exec(head)?.[1]
  await rewriteStashes(git, (known) =>
    isListed || by === undefined ? known : [...known, `${tip} ${tip} ${by}\t${subject}`],
  )
}

/** Hashes of the entries with these names that ralph itself has made: a user may give one such a name, too. */
export async function ownStashes(git: Git, isOurs: (name: string) => boolean): Promise<Set<string>> {
  const named = stashEntries(await readStashLog(git)).filter(({ message }) => isOurs(message))
  return await madeByRalph(
    git,
    named.map(({ hash }) => hash),
  )
}

export async function madeByRalph(git: Git, hashes: readonly string[]): Promise<Set<string>> {
  if (hashes.length === 0) return new Set()
  const input = `${hashes.join('\n')}\n`
  const lines = await git.line(['log', '--no-walk', '--stdin', '--format=%H %ae'], { input })
  return new Set(
    lines
      .split('\n')
      .filter((line) => line.endsWith(` ${ownEmail}`))
      .map((line) => line.split(' ')[0] ?? ''),
  )
}

export async function dropStashes(git: Git, isOurs: (name: string) => boolean): Promise<void> {
  const own = await ownStashes(git, isOurs)
  if (own.size > 0) await rewriteStashes(git, (lines) => lines.filter((line) => !own.has(hashOf(line))))
}

/**
 * git has no command that changes several entries at once, and one by its number may hit another that came meanwhile.
 * The lock is the one that `git stash` itself takes: what it adds is there before, or comes after.
 */
async function rewriteStashes(git: Git, edit: (lines: string[]) => string[]): Promise<void> {
  const ref = join(git.gitCommonDir, 'refs', 'stash')
  const lock = `${ref}.lock`
  await takeLock(git, lock)
  try {
    const log = await readStashLog(git)
    const lines = linesOf(log)
    const wanted = edit(lines)
    const tip = wanted.at(-1)
    if (textOf(wanted) === log) return
    if (tip !== undefined) {
      await writeDurably(stashLog(git), Buffer.from(textOf(chained(wanted)), 'latin1'))
      await writeFile(lock, `${hashOf(tip)}\n`, { flush: true })
      await rename(lock, ref)
      return
    }
    // None is left: git takes the lock itself, and refuses if the list has grown meanwhile.
    await rm(lock)
    const last = lines.slice(-1).map(hashOf)
    const gone = ['update-ref', '-d', 'refs/stash', ...last]
    const { code } = await git.run(gone, { accept: [1, 128] })
    if (code === 0) return
    if ((await readStashLog(git)) === log) await git.run(gone)
    await rewriteStashes(git, edit)
  } finally {
    await rm(lock, { force: true })
  }
}

/** Each line begins with the entry before it, as git writes them. */
function chained(lines: readonly string[]): string[] {
  return lines.map((line, at) => {
    const zero = '0'.repeat(hashOf(line).length)
    const before = lines[at - 1]
    return `${before === undefined ? zero : hashOf(before)}${line.slice(line.indexOf(' '))}`
  })
}

function linesOf(log: string): string[] {
  return log.split('\n').filter((line) => /^[0-9a-f]{40,64} [0-9a-f]{40,64} .*>/.test(line))
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}

function entryOf(line: string): StashEntry {
  return { hash: hashOf(line), message: shown(line.split('\t').slice(1).join('\t')) }
}

function hashOf(line: string): string {
  return line.split(' ')[1] ?? ''
}

function stashLog(git: Git): string {
  return join(git.gitCommonDir, 'logs', 'refs', 'stash')
}
