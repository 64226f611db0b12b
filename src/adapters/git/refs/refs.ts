// Refs as one picture: read at once, compared, and put back without losing what an agent pointed them at.
import { randomUUID } from 'node:crypto'
import {
  appendFileSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import type { Head } from '../../../core/git-facts.ts'
import { inFolder, rename, rm, sync } from '../../files/now.ts'
import { ifThereNow, syncFiles } from '../../files/whole.ts'
import { bytesOf, isPlainText, textOf } from '../formats/bytes.ts'
import {
  brokenRef,
  findRef,
  headRef,
  headText,
  isMeant,
  isUsual,
  kindsIn,
  listRefs,
} from '../formats/ref-files.ts'
import { isRefName, readLoose, refIn } from '../formats/loose-refs.ts'
import { ownEmail, type Git } from '../git.ts'
import { isLoose, isShared, timeZone } from '../formats/objects.ts'
import { mayDiffer, type RefMap } from './ref-picture.ts'

export interface Refs {
  readonly head: Head
  /** Without remote-tracking refs (a fetch is no harm) and without ralph's own. */
  readonly all: RefMap
}

export interface RefChanges {
  /** Now elsewhere; `to` is where the agent left it. */
  readonly moved: readonly { readonly name: string; readonly from: string; readonly to: string }[]
  readonly deleted: readonly { readonly name: string; readonly from: string }[]
  readonly created: readonly { readonly name: string; readonly to: string }[]
}

/** For a person. */
export function placeOf(head: Head): string {
  return head.ref === undefined ? `the commit ${head.commit.slice(0, 12)}` : shortName(head.ref)
}

/** As `git switch` takes it: a branch, or a commit. */
export function originName(origin: Head): string {
  return origin.ref === undefined ? origin.commit : shortName(origin.ref)
}

export function shortName(ref: string): string {
  return ref.replace('refs/heads/', '')
}

/** Of any kind, with bytes that are no text replaced. */
export function shortRef(name: string): string {
  return name.replace(/^refs\/(heads\/)?/, '').replace(/[\udc80-\udcff]/gu, '\ufffd')
}

/** `isThorough` where an agent may have been at them, see `listRefs`. */
export async function readRefs(git: Git, isThorough = false): Promise<Refs> {
  const head = readHead(git)
  const kinds = kindsIn(git)
  const found = await refsUnder(git, kinds ?? ['refs'], isThorough)
  const all =
    kinds === undefined ? Object.fromEntries(Object.entries(found).filter(([name]) => isMeant(name))) : found
  if (head.ref === undefined) return { head, all }
  // One that is another name for a branch is not listed, and has a commit all the same.
  return { head: { ref: head.ref, commit: all[head.ref] ?? (await readRef(git, head.ref)) }, all }
}

/** The ref that this one is another name for; undefined for a plain one, and where there is none. */
export async function aliasOf(git: Git, name: string): Promise<string | undefined> {
  if (findRef(git, name) !== undefined) return undefined
  return (await git.line(['symbolic-ref', '--quiet', name], { accept: [1, 128] })) || undefined
}

/** By name, symbolic ones apart. */
export async function refsUnder(git: Git, folders: readonly string[], isThorough = false): Promise<RefMap> {
  const found = listRefs(git, folders, isThorough)
  if (found !== undefined) return found
  const { out } = await git.run(['for-each-ref', '--format=%(objectname) %(refname) %(symref)', ...folders])
  const all: Record<string, string> = {}
  for (const line of textOf(out).split('\n')) {
    const [hash = '', name = '', symref = ''] = line.split(' ')
    if (name !== '' && symref === '') all[name] = hash
  }
  return all
}

export async function readRef(git: Git, name: string): Promise<string | undefined> {
  const found =
    findRef(git, name) ?? (await git.line(['rev-parse', '--verify', '--quiet', name], { accept: [1] }))
  return found || undefined
}

/** Stashes apart: their list is a log, see stash-list.ts. */
export function compareRefs(before: Refs['all'], now: Refs['all']): RefChanges {
  const names = [...mayDiffer(before, now)]
    .filter((name) => name !== 'refs/stash' && before[name] !== now[name])
    .toSorted()
  const [gone, there] = [
    names.filter((name) => now[name] === undefined),
    names.filter((name) => now[name] !== undefined),
  ]
  return {
    moved: there
      .filter((name) => before[name] !== undefined)
      .map((name) => ({ name, from: before[name] ?? '', to: now[name] ?? '' })),
    deleted: gone.map((name) => ({ name, from: before[name] ?? '' })),
    // A ref of another kind that is new harms nobody: tools keep their own there, and a fetch may bring thousands.
    created: there
      .filter((name) => before[name] === undefined && isUsual(name))
      .map((name) => ({ name, to: now[name] ?? '' })),
  }
}

/** For `moveRefs`: a plain one again, also in the place of another name for a branch. */
export async function madeAgain(git: Git, { name, from }: RefChanges['deleted'][number]): Promise<string> {
  return `${(await aliasOf(git, name)) === undefined ? 'create' : 'update'} ${name} ${from}`
}

/** All or nothing. Each line is a command of `update-ref --stdin`, without its final newline. */
export async function moveRefs(git: Git, reason: string, commands: readonly string[]): Promise<void> {
  if (commands.length === 0) return
  for (const command of commands) putBrokenAside(git, /^create (\S+) /.exec(command)?.[1] ?? '')
  const input = `start\n${commands.join('\n')}\nprepare\ncommit\n`
  // One that is written once, under a name of its own, has no use for a log.
  const isLogged = !commands.every((command) => / refs\/ralph\/.+\/(attempts|moved|pins)\//.test(command))
  if (await writeNow(git, isLogged ? reason : '', commands)) return
  // Never through another name for a branch: that would move the other one.
  const options = [
    '--no-deref',
    '-m',
    `ralph: ${reason}`,
    ...(isLogged ? ['--create-reflog'] : []),
    '--stdin',
  ]
  await git.run(['update-ref', ...options], { input: bytesOf(input) })
}

/** Nobody's git wrote it; what it holds is kept all the same. */
function putBrokenAside(git: Git, name: string): void {
  const file = name === '' ? undefined : brokenRef(git, name)
  if (file === undefined) return
  const folder = join(git.gitCommonDir, 'ralph', 'broken-refs')
  mkdirSync(folder, { recursive: true })
  const to = join(folder, `${name.replaceAll('/', '-')}-${randomUUID()}`)
  renameSync(file, to)
  // Mended by somebody in this very moment.
  if (readLoose(to) !== '') renameSync(to, file)
}

/** Points HEAD at a branch (also one without a commit) or at a commit; files and index are not touched. */
export async function setHead(git: Git, head: Head, reason: string): Promise<void> {
  const message = ['-m', `ralph: ${reason}`]
  if (head.ref === undefined) await git.run(['update-ref', ...message, '--no-deref', 'HEAD', head.commit])
  // What `git symbolic-ref` does, for a name that cannot be its argument.
  else if (!isPlainText(head.ref)) await writeLocked(join(git.gitDir, 'HEAD'), bytesOf(`ref: ${head.ref}\n`))
  else if (!(await pointHead(git, head.ref, reason)))
    await git.run(['symbolic-ref', ...message, 'HEAD', head.ref])
  // Git 2.39 does not; where a file system does not do it by itself, an empty HEAD is the end of the repository.
  await syncFiles([join(git.gitDir, 'HEAD')])
}

/** From one commit to another, as `git symbolic-ref` does it. False: nothing was done. */
async function pointHead(git: Git, ref: string, reason: string): Promise<boolean> {
  const [place, log] = [join(git.gitDir, 'HEAD'), join(git.gitDir, 'logs', 'HEAD')]
  const [old, hash] = [headRef(git), ref].map((name) => (name === undefined ? '' : findRef(git, name)))
  const isFile = lstatSync(place, { throwIfNoEntry: false })?.isFile() === true
  if (!old || !hash || isShared(git) || !existsSync(log) || !isFile) return false
  try {
    await writeLocked(place, bytesOf(`ref: ${ref}\n`))
  } catch (error) {
    // Another git holds it: git waits, or says so.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
  appendFileSync(log, logLine({ hash, old }, reason))
  return true
}

/**
 * Plain refs of ralph's, as git writes them: locked, on the disk, logged, renamed. False: nothing was done, and git shall do it, or say why
 * not. A process takes ten times as long. Without a reason there is no log.
 */
async function writeNow(git: Git, reason: string, commands: readonly string[]): Promise<boolean> {
  const updates = commands.map((command) => ownUpdate(git, command))
  if (!updates.every((update) => update !== undefined) || isShared(git)) return false
  // The log of HEAD tells what becomes of its branch, too.
  const headLog = join(git.gitDir, 'logs', 'HEAD')
  const isHeads = reason !== '' && updates.some(({ name }) => name === headRef(git))
  if (isHeads && !existsSync(headLog)) return false
  const held: string[] = []
  try {
    for (const { file, hash } of updates) {
      inFolder(dirname(file), () => writeFileSync(`${file}.lock`, `${hash}\n`, { flag: 'wx' }))
      held.push(`${file}.lock`)
    }
    // Nobody else can move it now.
    const isOther = updates.some(
      ({ name, expected }) => expected !== undefined && findRef(git, name) !== expected,
    )
    if (isOther) throw new Error('a ref was moved meanwhile')
    await syncFiles(held)
    for (const update of reason === '' ? [] : updates) {
      const line = logLine(update, reason)
      const log = join(git.gitCommonDir, 'logs', update.name)
      inFolder(dirname(log), () => appendFileSync(log, line))
      if (update.name === headRef(git)) appendFileSync(headLog, line)
    }
  } catch {
    for (const lock of held) await rm(lock, { force: true })
    return false
  }
  for (const { file } of updates) await rename(`${file}.lock`, file)
  return true
}

interface OwnUpdate {
  readonly name: string
  readonly hash: string
  /** Empty for one that is new. */
  readonly old: string
  /** Empty for one that must be new; undefined where it does not matter. */
  readonly expected: string | undefined
  readonly file: string
}

/** To an object that is a file of its own, such as a commit that ralph has just made; undefined for others: git makes sure that they are there. */
function ownUpdate(git: Git, command: string): OwnUpdate | undefined {
  const [, name = '', hash = '', asked] =
    /^update (refs\/(?:heads\/ralph\/[\w./-]+|ralph\/[\w./-]+\/(?:checkpoint|attempts\/\d+|pins\/[0-9a-f]+))) ([0-9a-f]+)(?: ([0-9a-f]+))?$/.exec(
      command,
    ) ?? []
  const old = isRefName(name) ? findRef(git, name) : undefined
  const file = join(git.gitCommonDir, name)
  if (name === '' || old === undefined || lstatIsFolder(file) || !isLoose(git, hash)) return undefined
  // A branch that is new must have no name that is a folder of others, or the other way round: git looks for that.
  if (old === '' && name.startsWith('refs/heads/') && hasNeighbours(git, name)) return undefined
  return { name, hash, old, expected: asked?.replace(/^0+$/, ''), file }
}

function hasNeighbours(git: Git, name: string): boolean {
  const found = listRefs(git, ['refs/heads/ralph'], true)
  return (
    found === undefined ||
    Object.keys(found).some((other) => other.startsWith(`${name}/`) || name.startsWith(`${other}/`))
  )
}

/** What is left of a branch `a/b` when a branch `a` is to be made: git clears it away. */
function lstatIsFolder(file: string): boolean {
  return ifThereNow(() => lstatSync(file, { throwIfNoEntry: false }))?.isDirectory() === true
}

function logLine({ hash, old }: Pick<OwnUpdate, 'hash' | 'old'>, reason: string): string {
  const nowMs = Date.now()
  const by = `ralph <${ownEmail}> ${Math.floor(nowMs / 1000)} ${timeZone(nowMs)}`
  return `${old || '0'.repeat(hash.length)} ${hash} ${by}\tralph: ${reason}\n`
}

/** As git writes them: nobody else can meanwhile, and it is whole or not there. */
async function writeLocked(place: string, bytes: Uint8Array): Promise<void> {
  const lock = `${place}.lock`
  const file = openSync(lock, 'wx')
  try {
    writeFileSync(file, bytes)
    await sync(file)
    await rename(lock, place)
  } catch (error) {
    await rm(lock)
    throw error
  } finally {
    closeSync(file)
  }
}

function readHead(git: Git): Head {
  const text = headText(git.gitDir)
  const ref = refIn(text)
  if (ref !== undefined) return { ref }
  if (/^[0-9a-f]{40,64}$/.test(text)) return { commit: text }
  throw new RalphError('repository_state', `HEAD of ${dirname(git.gitDir)} is unreadable`, {
    hint: 'Point it at a branch again: `git symbolic-ref HEAD refs/heads/<branch>`.',
    exitCode: 1,
  })
}
