// A user who does what ralph prints: its git commands, the merge that they end in, and the command that stands last.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Place } from './ledger.ts'
import type { Said } from './play.ts'
import { playUser } from './user.ts'
import { change, tokensIn, type World } from './world.ts'

/** What the user types next, as told. Git commands that are told first are typed at once. */
export function advice(world: World, end: Said, looked: Said, story: string[]): string[] | undefined {
  const isRefused = !end.died && (end.code !== 0 || /^warning: .*has touched nothing/m.test(end.text))
  const told = isRefused ? `${end.text}\n${looked.text}` : looked.text
  if (isRefused && /[Cc]ommit (?:these changes )?or (?:move|stash|remove|put)/.test(end.text)) {
    story.push('  user: commits what is in the way, as told')
    for (const place of world.plan.mode === 'worktree'
      ? (['checkout', 'loop'] as const)
      : (['checkout'] as const)) {
      if (!end.text.includes(world.folder(place)) && place === 'loop') continue
      commitAll(world, place)
    }
  }
  const stash = /`git (-C \S+ )?stash -u`/.exec(end.text)
  if (isRefused && stash !== null) {
    const place = stash[1] === undefined ? 'checkout' : 'loop'
    story.push(`  user: ${playUser(world, { do: 'user', deed: 'stash', place }, 'as told')}`)
  }
  if (isRefused)
    for (const [, command = ''] of end.text.matchAll(
      /`?(git (?:(?:-C \S+ )?(?:switch|checkout|worktree) [^`\n;]*?|merge ralph\/\S+?))(?=`|$| && |, |;)/gm,
    )) {
      story.push(`  user: ${command}`)
      if (command.startsWith('git merge ')) story.push(`  user: ${merge(world, command)}`)
      else world.tryGit(command.split(' ').slice(1))
    }
  if (isRefused && /remove the file/.test(end.text)) {
    // Those in ralph's own folders are ralph's to sweep.
    const lock = /Unable to create '(.*\.lock)'|rm (\S+\.lock)/.exec(end.text)
    const path = lock?.[1] ?? lock?.[2] ?? ''
    if (path !== '' && !/\/\.git\/(ralph|worktrees)\//.test(path)) {
      story.push(`  user: rm ${path}`)
      rmSync(path, { force: true })
    }
  }
  // What stands last is what to go on with; where status has nothing to add, what the command itself said.
  const commands = /ralph (resume|loop|finish|stop|done)\b( demo| --[a-z-]+| \d+)*/g
  const chosen = (told.match(commands) ?? end.text.match(commands))?.at(-1)
  const [, name, ...rest] = chosen?.split(' ') ?? []
  return name === undefined ? undefined : [name, change, ...rest.filter((arg) => arg !== change)]
}

function commitAll(world: World, place: Place): void {
  world.tryGit(['add', '-A'], place)
  world.tryGit(['commit', '-qm', 'by the user, as told'], place)
  takeDown(world, place)
}

/** What lies in the tree is in a commit of the user's now, and the branch is where they left it. */
function takeDown(world: World, place: Place): void {
  const { ledger } = world
  const there = tokensIn(world.folder(place))
  for (const token of ledger.tokens) {
    if (there.has(token.id)) token.isCommitted = true
    if (token.where === 'index' && token.place === place) token.isRetired = true
  }
  // What they had staged is in that commit.
  if (place === 'checkout') ledger.staged.clear()
  const branch = world.tryGit(['symbolic-ref', '-q', 'HEAD'], place)
  if (ledger.refs.has(branch)) ledger.refs.set(branch, world.tryGit(['rev-parse', 'HEAD'], place))
}

/** What git says is in its way is committed first; every line of both sides is wanted. */
function merge(world: World, command: string): string {
  const args = command.split(' ').slice(1)
  const isMerging = (): boolean => existsSync(join(world.repo, '.git', 'MERGE_HEAD'))
  const isMerged = (): boolean => {
    const open = world.tryGit(['rev-list', '-n', '1', `HEAD..${args[1] ?? ''}`])
    return open === ''
  }
  world.tryGit(args)
  if (!isMerging() && !isMerged()) {
    commitAll(world, 'checkout')
    world.tryGit(args)
  }
  const paths = new Set(
    world
      .tryGit(['ls-files', '-u', '-z'])
      .split('\0')
      .filter((entry) => entry !== '')
      .map((entry) => entry.slice(entry.indexOf('\t') + 1)),
  )
  for (const path of paths) resolve(world, path)
  if (isMerging()) {
    world.tryGit(['commit', '-qm', 'merged by the user, as told'])
    takeDown(world, 'checkout')
  }
  return `merged, ${paths.size} conflicts resolved${isMerging() || !isMerged() ? ', which git refused' : ''}`
}

function resolve(world: World, path: string): void {
  const stages = [1, 2, 3].map((stage) => world.tryGit(['rev-parse', '-q', '--verify', `:${stage}:${path}`]))
  const [base = '', ours = '', theirs = ''] = stages
  if (path.endsWith('/tasks.md') && theirs !== '') world.tryGit(['checkout', '--theirs', '--', path])
  else if (ours === '' || theirs === '')
    world.tryGit(['checkout', ours === '' ? '--theirs' : '--ours', '--', path])
  else writeFileSync(join(world.repo, path), union(world, [ours, base, theirs]))
  world.tryGit(['add', '--', path])
}

/** A line that both sides have written is wanted once. */
function union(world: World, blobs: readonly string[]): string {
  const folder = mkdtempSync(join(world.root, 'merge-'))
  const files = blobs.map((blob, at) => {
    const file = join(folder, String(at))
    writeFileSync(
      file,
      blob === '' ? '' : execFileSync('git', ['cat-file', 'blob', blob], { cwd: world.repo, env: world.env }),
    )
    return file
  })
  const lines = world.tryGit(['merge-file', '--union', '-p', ...files]).split('\n')
  rmSync(folder, { recursive: true })
  return `${[...new Set(lines)].join('\n')}\n`
}
