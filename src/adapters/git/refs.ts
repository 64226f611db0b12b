// Refs as one picture: read at once, compared, and put back without losing what an agent pointed them at.
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { RalphError } from '../../core/error.ts'
import { mkdir, rename, rm, sync } from '../files/now.ts'
import { syncFiles } from '../files/whole.ts'
import { bytesOf, isPlainText, textOf } from './bytes.ts'
import { findRef, headText, listRefs, usualKinds } from './ref-files.ts'
import type { Git } from './git.ts'
import { isShared } from './objects.ts'
import { mayDiffer, type RefMap } from './ref-picture.ts'

export interface Head {
  /** Empty when detached. */
  readonly ref: string
  /** Empty when its branch has no commit. */
  readonly commit: string
}

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

/** `isThorough` where an agent may have been at them, see `listRefs`. */
export async function readRefs(git: Git, isThorough = false): Promise<Refs> {
  const head = readHead(git)
  const all = await refsUnder(git, usualKinds, isThorough)
  return { head: head.ref === '' ? head : { ref: head.ref, commit: all[head.ref] ?? '' }, all }
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

/** Empty when there is no such ref. */
export async function readRef(git: Git, name: string): Promise<string> {
  return findRef(git, name) ?? (await git.line(['rev-parse', '--verify', '--quiet', name], { accept: [1] }))
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
    created: there
      .filter((name) => before[name] === undefined)
      .map((name) => ({ name, to: now[name] ?? '' })),
  }
}

/** All or nothing. Each line is a command of `update-ref --stdin`, without its final newline. */
export async function moveRefs(git: Git, reason: string, commands: readonly string[]): Promise<void> {
  if (commands.length === 0) return
  const input = `start\n${commands.join('\n')}\nprepare\ncommit\n`
  // One that is written once, under a name of its own, has no use for a log.
  const isLogged = !commands.every((command) => / refs\/ralph\/.+\/(attempts|moved)\//.test(command))
  if (!isLogged && commands.length === 1 && (await writeOwn(git, commands[0] ?? ''))) return
  const options = ['-m', `ralph: ${reason}`, ...(isLogged ? ['--create-reflog'] : []), '--stdin']
  await git.run(['update-ref', ...options], { input: bytesOf(input) })
}

/** Points HEAD at a branch (also one without a commit) or at a commit; files and index are not touched. */
export async function setHead(git: Git, head: Head, reason: string): Promise<void> {
  const message = ['-m', `ralph: ${reason}`]
  // What `git symbolic-ref` does, for a name that cannot be its argument.
  if (!isPlainText(head.ref)) await writeLocked(join(git.gitDir, 'HEAD'), bytesOf(`ref: ${head.ref}\n`))
  else if (head.ref !== '') await git.run(['symbolic-ref', ...message, 'HEAD', head.ref])
  else await git.run(['update-ref', ...message, '--no-deref', 'HEAD', head.commit])
  // Git 2.39 does not; where a file system does not do it by itself, an empty HEAD is the end of the repository.
  await syncFiles([join(git.gitDir, 'HEAD')])
}

/** One of ralph's own, which is nobody else's to write. False: git shall do it, or say why not. */
async function writeOwn(git: Git, command: string): Promise<boolean> {
  const [, name, hash] = /^update (refs\/ralph\/[\w./-]+) ([0-9a-f]+)$/.exec(command) ?? []
  if (name === undefined || findRef(git, name) !== '' || isShared(git)) return false
  const file = join(git.gitCommonDir, name)
  try {
    await mkdir(dirname(file), { recursive: true })
    await writeLocked(file, Buffer.from(`${hash}\n`))
    return true
  } catch {
    return false
  }
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
  if (text.startsWith('ref: ')) return { ref: textOf(text.slice(5)), commit: '' }
  if (/^[0-9a-f]{40,64}$/.test(text)) return { ref: '', commit: text }
  throw new RalphError('repository_state', `HEAD of ${dirname(git.gitDir)} is unreadable`, {
    hint: 'Point it at a branch again: `git symbolic-ref HEAD refs/heads/<branch>`.',
    exitCode: 1,
  })
}
