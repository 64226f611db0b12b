// Other names for a branch (symbolic refs): an attempt leaves each as it found it, with what it leads to.
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { ownerOfAlias, type Ledger } from '../../../core/ownership.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { bytesOf, isPlainText, textOf } from '../formats/bytes.ts'
import type { Git } from '../git.ts'
import { isMeant, listAliases } from '../formats/ref-files.ts'
import type { RefMap } from './ref-picture.ts'
import { shortRef, type RefChanges } from './refs.ts'

/** `before` and `now`: what it leads to; undefined where it is none. `isPlain`: a branch of its own instead. */
export interface AliasChange {
  readonly name: string
  readonly before: string | undefined
  readonly now: string | undefined
  readonly isPlain: boolean
}

export interface AliasPlan {
  /** The agent's or a gate's: they go back. */
  readonly own: readonly AliasChange[]
  readonly others: readonly AliasChange[]
}

/** `isThorough` as for `readRefs`. */
export async function readAliases(git: Git, isThorough = false): Promise<RefMap> {
  const found = listAliases(git, isThorough)
  if (found !== undefined) return found
  const { out } = await git.run(['for-each-ref', '--format=%(refname) %(symref)'])
  const lines = textOf(out)
    .split('\n')
    .map((line) => line.split(' '))
  return Object.fromEntries(
    lines.flatMap(([name = '', target = '']) => (target === '' || !isMeant(name) ? [] : [[name, target]])),
  )
}

interface Named {
  readonly aliases?: RefMap | undefined
  readonly refs: RefMap
}

export function planAliases(
  before: Named,
  now: Named,
  ledger: Ledger,
  /** Of one that is a plain ref now: whether somebody else made it so. */
  isOthers: (name: string) => boolean,
): AliasPlan {
  const isOwn = ({ name, isPlain }: AliasChange): boolean =>
    ownerOfAlias(name, ledger).owner !== 'user' && !(isPlain && isOthers(name))
  const changes = compareAliases(before, now)
  return { own: changes.filter(isOwn), others: changes.filter((each) => !isOwn(each)) }
}

/** A record of an earlier version has none: then nothing is known, and nothing is done. */
export function compareAliases(before: Named, { aliases = {}, refs }: Named): AliasChange[] {
  const { aliases: were } = before
  if (were === undefined) return []
  return [...new Set([...Object.keys(were), ...Object.keys(aliases)])]
    .filter((name) => were[name] !== aliases[name])
    .toSorted()
    .map((name) => ({
      name,
      before: were[name],
      now: aliases[name],
      isPlain: (were[name] === undefined ? before.refs : refs)[name] !== undefined,
    }))
}

/** After plain refs in their place were put away. Where a plain one was before, that has come back by itself. */
export async function putBackAliases(git: Git, own: AliasPlan['own']): Promise<void> {
  for (const { name, before, isPlain } of own) {
    if (before === undefined && isPlain) continue
    if (!isPlainText(`${name}${before ?? ''}`)) writeAlias(git, name, before)
    // Something of the user's may stand in its way: then the words say what to type.
    else if (before !== undefined) await git.run(['symbolic-ref', name, before], { accept: [1, 128] })
    else await git.run(['symbolic-ref', '--delete', name], { accept: [1, 128] })
  }
}

/** What `git symbolic-ref` does, for a name that cannot be its argument. */
function writeAlias(git: Git, name: string, target: string | undefined): void {
  const place = Buffer.concat([Buffer.from(`${git.gitCommonDir}/`), bytesOf(name)])
  if (target === undefined) rmSync(place, { force: true })
  else {
    const lock = Buffer.concat([place, Buffer.from('.lock')])
    mkdirSync(place.subarray(0, place.lastIndexOf('/')), { recursive: true })
    writeFileSync(lock, bytesOf(`ref: ${target}\n`), { flag: 'wx' })
    renameSync(lock, place)
  }
}

/** What they are called for is said by `aliasesTold`. */
export function withoutAliases<T extends RefChanges>(changes: T, aliases: readonly AliasChange[]): T {
  const names = new Set(aliases.map(({ name }) => name))
  const isElse = ({ name }: { readonly name: string }): boolean => !names.has(name)
  return {
    ...changes,
    moved: changes.moved.filter(isElse),
    deleted: changes.deleted.filter(isElse),
    created: changes.created.filter(isElse),
  }
}

export async function aliasesTold(
  git: Git,
  who: string,
  own: AliasPlan['own'],
  aside: (name: string) => string,
): Promise<string[]> {
  const now = own.length === 0 ? {} : await readAliases(git, true)
  return own.map(({ name, ...was }) => {
    const [short, before, led] = [name, was.before, was.now].map((ref) => shortRef(ref ?? ''))
    if (was.before === undefined)
      return was.isPlain
        ? `${who} made ${short} another name for ${led}; it is a branch of its own again`
        : `${who} made ${short}, another name for ${led}; it is removed; to get it back: ${aliasCommand(name, was.now)}`
    const isBack = now[name] === was.before
    const again = isBack ? '' : `; ralph could not undo that: ${aliasCommand(name, was.before)}`
    if (was.now !== undefined)
      return `${who} made ${short} another name for ${led}${again || `; it is one for ${before} again`}`
    if (was.isPlain)
      return `${who} made ${short}, another name for ${before}, a branch of its own${again || `; it is that name again, and the branch is ${aside(name)}`}`
    return `${who} deleted ${short}, another name for ${before}${again || '; it is that again'}`
  })
}

/** Without blame, as `othersTold` has it. */
export function aliasWords({ name, before, now, isPlain }: AliasChange): { words: string; again: string[] } {
  const short = shortRef(name)
  const again = before === undefined ? [] : [aliasCommand(name, before)]
  if (now !== undefined) return { words: `${short} is another name for ${shortRef(now)}`, again }
  return { words: isPlain ? `${short} is a branch of its own` : `${short} was deleted`, again }
}

function aliasCommand(name: string, target = ''): string {
  return ['git', 'symbolic-ref', name, target].map(shellWord).join(' ')
}
