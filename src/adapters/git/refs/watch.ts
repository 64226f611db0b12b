// Lets the git of an agent or a gate tell what it does, and nobody else's: hooks and a trace that only its environment names.
import { existsSync, lstatSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { mkdir, readdir, rename, rm, writeFile } from '../../files/now.ts'
import { markOf, writeOver } from '../../files/whole.ts'
import { quoted } from '../../../core/shell-word.ts'
import { shown, type Git } from '../git.ts'
import { bytesOf } from '../formats/bytes.ts'
import { allSettings, atHome } from '../formats/settings.ts'
import { readRefs } from './refs.ts'
import { shimScript, type UserSettings } from './shim.ts'
import type { Store } from '../store.ts'

export type Watched = 'agent' | 'gate'

/** Hooks that git calls on this side of a connection, and whose being there changes nothing else. */
const hookNames = [
  'applypatch-msg',
  'commit-msg',
  'post-applypatch',
  'post-checkout',
  'post-commit',
  'post-merge',
  'post-rewrite',
  'pre-applypatch',
  'pre-auto-gc',
  'pre-commit',
  'pre-merge-commit',
  'pre-push',
  'pre-rebase',
  'prepare-commit-msg',
  'reference-transaction',
  'sendemail-validate',
]

/**
 * A new ledger for this attempt, and the variables that make a git write it. They go into the environment of that one process;
 * a program that drops them is not seen, and what it did is then nobody's. Idempotent: a gate after a gate adds to the same.
 */
export async function watch(store: Store, by: Watched, n: number): Promise<Record<string, string>> {
  const { git } = store
  // What an earlier attempt told has been used.
  if (by === 'agent') await forgetWatches(store)
  const folder = watchFolder(store, by, n)
  const hooks = join(folder, 'hooks')
  const user = await userSettings(store)
  const names = new Set([...hookNames, ...hooksIn(resolve(git.worktree, user.hooks))])
  const spare = spareOf(store.folder)
  const isSpare = !existsSync(folder) && isAsMade(spare, names)
  await mkdir(isSpare ? watchesOf(store) : folder, { recursive: true, mode: 0o700 })
  if (isSpare) await moveWatch(spare, folder)
  for (const name of ['ledger', 'trace']) await writeFile(join(folder, name), '', { flag: 'a', mode: 0o600 })
  const shim = join(folder, 'shim.sh')
  const script = shimScript({ ...user, folder, gitDir: git.gitDir, common: git.gitCommonDir })
  writeOver(shim, Buffer.from(script), 0o666)
  backdate(shim)
  const marks = isSpare ? (made.get(folder)?.hooks ?? '') : await makeHooks(hooks, names)
  made.set(folder, { hooks: marks, shim: markAt(shim) })
  const parameters = [user.parameters, `'core.hooksPath'=${quoted(hooks)}`]
  return {
    // Not GIT_CONFIG_COUNT: Codex drops GIT_CONFIG_KEY_0 for its name, and git fails without it. This one wins over it, too.
    GIT_CONFIG_PARAMETERS: parameters.filter((part) => part !== '').join(' '),
    ...(!user.hasTrace && {
      GIT_TRACE2_EVENT: join(folder, 'trace'),
      GIT_TRACE2_EVENT_BRIEF: '1',
      GIT_TRACE2_EVENT_NESTING: '1',
    }),
  }
}

/**
 * For what runs on a merge that is nowhere yet: its git may not write a ref that is there, nor any of ralph's. What it makes anew and deletes
 * again is its own affair. Nothing moves back, because nothing moves: whoever has a branch checked out sees none of it.
 */
export async function closeRefs(
  git: Git,
  env: NodeJS.ProcessEnv,
  folder: string,
): Promise<Record<string, string>> {
  const hooks = join(folder, 'hooks')
  const user = await userSettings({ git, env })
  await rm(folder, { recursive: true, force: true })
  await makeHooks(hooks, new Set([...hookNames, ...hooksIn(resolve(git.worktree, user.hooks))]))
  const { all } = await readRefs(git)
  await writeFile(join(folder, 'there'), bytesOf(`${Object.keys(all).join('\n')}\n`), { mode: 0o600 })
  const at = { ...user, folder, gitDir: git.gitDir, common: git.gitCommonDir, isClosed: true }
  const shim = join(folder, 'shim.sh')
  await writeFile(shim, shimScript(at), { mode: 0o600 })
  backdate(shim)
  // It would pack refs, and what it could not do then stops the user's own later.
  const parameters = [
    user.parameters,
    `'core.hooksPath'=${quoted(hooks)}`,
    `'gc.auto'='0'`,
    `'maintenance.auto'='false'`,
  ]
  return { GIT_CONFIG_PARAMETERS: parameters.filter((part) => part !== '').join(' ') }
}

/** What `closeRefs` made a git say, in what the command printed; undefined where it was not refused anything. */
export function refusedRef(output: string): string | undefined {
  return /^ralph: (it may not write .*)$/m.exec(output)?.[1]
}

/** It asks git again where the settings are newer than itself. Clocks of files tick every few milliseconds: one tick is not newer. */
function backdate(shim: string): void {
  const second = Date.now() / 1000 - 0.02
  utimesSync(shim, second, second)
}

/** Small files, not links: an installer of hooks that writes to one of these spoils no other. */
async function makeHooks(hooks: string, names: ReadonlySet<string>): Promise<string> {
  await mkdir(hooks, { recursive: true, mode: 0o700 })
  const stub = `#!/bin/sh\n[ -r "\${0%/*}/../shim.sh" ] && . "\${0%/*}/../shim.sh"\nexit 0\n`
  for (const name of names) await writeFile(join(hooks, name), stub, { mode: 0o700 })
  for (const known of made.keys()) if (!existsSync(known)) made.delete(known)
  return marksIn(hooks)
}

/** The attempt is settled: the trace may hold what an agent typed, secrets too. Its hooks say nothing, and serve the next one. */
export async function forgetWatches(store: Store): Promise<void> {
  const watches = watchesOf(store)
  const names = existsSync(watches) ? await readdir(watches) : []
  for (const folder of names.map((name) => join(watches, name))) {
    if (made.has(folder) && isOfAgent(folder)) await moveWatch(folder, spareOf(store.folder))
    else await rm(folder, { recursive: true, force: true })
  }
}

/** At the end of a loop: there is no next one. */
export function dropSpare(checkpoints: string): void {
  const spare = spareOf(checkpoints)
  made.delete(spare)
  try {
    rmSync(spare, { recursive: true, force: true })
  } catch {
    // Closed to ralph by now: it tells nothing, and the next loop takes it away.
  }
}

/** Folders of watches that this process has made, and how hooks and shim stood then: an agent may have written to them. */
const made = new Map<string, { readonly hooks: string; readonly shim: string }>()

function isOfAgent(folder: string): boolean {
  return basename(folder).startsWith('agent-')
}

/** With nothing in it but what tells nothing. */
async function moveWatch(from: string, to: string): Promise<void> {
  const marks = made.get(from) ?? { hooks: '', shim: '' }
  made.delete(from)
  if (existsSync(to)) await rm(to, { recursive: true, force: true })
  // Gone, then: they are made again.
  if (!existsSync(from)) return
  for (const name of await readdir(from))
    if (name !== 'hooks' && name !== 'shim.sh') await rm(join(from, name), { recursive: true, force: true })
  await rename(from, to)
  made.set(to, marks)
}

/** A shim that somebody has replaced may lead elsewhere: it is written again for each attempt. */
function isAsMade(folder: string, names: ReadonlySet<string>): boolean {
  const { hooks: marks, shim } = made.get(folder) ?? { hooks: '', shim: '' }
  const hooks = join(folder, 'hooks')
  if (marks === '' || marks !== marksIn(hooks) || shim === '') return false
  if (shim !== markAt(join(folder, 'shim.sh'))) return false
  const there = readdirSync(hooks)
  return there.length === names.size && there.every((name) => names.has(name))
}

/** Empty where there is no plain file with one name. */
function markAt(file: string): string {
  const stats = lstatSync(file, { bigint: true, throwIfNoEntry: false })
  return stats?.isFile() === true && stats.nlink === 1n ? markOf(stats) : ''
}

/** Empty where they cannot be looked at. */
function marksIn(hooks: string): string {
  try {
    const marks = readdirSync(hooks).map((name) => {
      const stats = lstatSync(join(hooks, name), { bigint: true })
      return `${name} ${stats.mode} ${markOf(stats)}`
    })
    return [lstatSync(hooks).mode, ...marks].join('\n')
  } catch {
    return ''
  }
}

function spareOf(checkpoints: string): string {
  return join(checkpoints, 'spare-watch')
}

/** The iteration whose gates were watched, if any were. */
export async function watchedGates(store: Store): Promise<number | undefined> {
  const names = existsSync(watchesOf(store)) ? await readdir(watchesOf(store)) : []
  const n = names.map((name) => /^gate-(\d+)$/.exec(name)?.[1]).find((found) => found !== undefined)
  return n === undefined ? undefined : Number(n)
}

export function watchFolder(store: Store, by: Watched, n: number): string {
  return join(watchesOf(store), `${by}-${n}`)
}

function watchesOf(store: Store): string {
  return join(store.folder, 'watch')
}

async function userSettings({ git, env = process.env }: Pick<Store, 'git' | 'env'>): Promise<UserSettings> {
  const own = (await allSettings(git)).filter(({ scope }) => scope !== 'command')
  const hooks = own.findLast(({ key }) => key === 'core.hookspath')?.value
  return {
    hooks: hooks === undefined ? join(git.gitCommonDir, 'hooks') : await expanded(git, shown(hooks)),
    parameters: env['GIT_CONFIG_PARAMETERS'] ?? '',
    hasTrace: env['GIT_TRACE2_EVENT'] !== undefined || own.some(({ key }) => key === 'trace2.eventtarget'),
  }
}

/** Where somebody's home is only git knows: it is asked for a setting that is not there, with this in its place. */
async function expanded(git: Git, path: string): Promise<string> {
  if (!/^(~[^/]|%\()/.test(path)) return atHome(path, git.env())
  const out = await git.line(['config', '--type=path', '--default', path, '--get', 'ralph.none'])
  return shown(out)
}

function hooksIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => /^[a-z0-9-]+$/.test(name))
  } catch {
    return []
  }
}
