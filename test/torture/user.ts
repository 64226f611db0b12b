// The user's part: what a person does in a repository while a loop works in it, and what they may expect to find again.
import { existsSync, lstatSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Place, Token } from './ledger.ts'
import type { UserAct, UserDeed } from './plan.ts'
import { appendLine, refsOf, stashesOf, tokensIn, type World } from './world.ts'

/** Plays it and writes down what is the user's now. `moment` is for people. */
export function playUser(world: World, act: UserAct, moment: string): string {
  const { ledger } = world
  const place: Place = world.plan.mode === 'worktree' ? act.place : 'checkout'
  // The loop's own tree need not be there yet, or any more.
  if (!existsSync(world.folder(place))) return `${act.deed}: no such place`
  const refs = refsOf(world)
  const stashes = new Set(stashesOf(world))
  const pwned = join(world.folder(place), 'pwned')
  const wasThere = existsSync(pwned)
  const did = deeds[act.deed]({ world, place, moment, count: ledger.tokens.length })
  // A hook that the agent has just made runs in the user's own git until its attempt is over: nobody can hinder that. Before a gate
  // runs, and when ralph has ended, it is away.
  if (!wasThere && !moment.startsWith('at the ')) rmSync(pwned, { force: true })
  const now = refsOf(world)
  for (const name of new Set([...refs.keys(), ...now.keys()]))
    if (refs.get(name) !== now.get(name)) {
      ledger.refs.set(name, now.get(name) ?? '')
      ledger.refTimes.set(name, ledger.tokens.length)
    }
  for (const hash of stashesOf(world)) if (!stashes.has(hash)) ledger.stashes.add(hash)
  return `${act.deed}${place === 'loop' ? " in the loop's tree" : ''} ${moment}: ${did}`
}

interface Doing {
  readonly world: World
  readonly place: Place
  readonly moment: string
  /** Grows with every token: a number that is new each time and the same in a replay. */
  readonly count: number
}

const deeds: Readonly<Record<UserDeed, (doing: Doing) => string>> = {
  edit: (doing) => append(doing, `src/user-${(doing.count % 8) + 1}.txt`),
  'edit-again': (doing) => {
    const mine = liveFiles(doing).filter((path) => lstatSync(join(folderOf(doing), path)).isFile())
    return append(doing, mine[doing.count % Math.max(1, mine.length)] ?? 'src/user-8.txt')
  },
  create: (doing) => append(doing, `mine/${doing.count} "ä" file.txt`),
  delete: (doing) => {
    const mine = liveFiles(doing)
    const path = mine[doing.count % Math.max(1, mine.length)]
    if (path === undefined) return 'nothing'
    rmSync(join(folderOf(doing), path))
    retire(doing, path)
    return path
  },
  commit: (doing) => {
    const mine = liveFiles(doing)
    if (mine.length === 0) return 'nothing'
    const { world, place } = doing
    world.tryGit(['add', '--', ...mine], place)
    const said = world.tryGit(['commit', '-m', 'by the user', '--', ...mine], place)
    if (said === '') return 'refused'
    const head = world.tryGit(['rev-parse', 'HEAD'], place)
    for (const token of world.ledger.liveOf(place)) if (mine.includes(token.path)) token.isCommitted = true
    // What was staged of them only is replaced by what lies in the tree.
    for (const token of world.ledger.tokens)
      if (token.where === 'index' && token.place === place && mine.includes(token.path))
        token.isRetired = true
    return `${head} (${mine.join(', ')})`
  },
  stash: ({ world, place }) => {
    const before = tokensIn(world.folder(place))
    world.tryGit(['stash', 'push', '-u', '-m', 'by the user'], place)
    const after = tokensIn(world.folder(place))
    for (const token of world.ledger.tokens)
      if (token.owner === 'user' && before.has(token.id) && !after.has(token.id)) token.isCommitted = true
    world.ledger.sweeps.push('stash')
    return `${before.size - after.size} tokens`
  },
  switch: ({ world, place, count }) => {
    world.ledger.sweeps.push('switch')
    const isHome = world.tryGit(['symbolic-ref', '-q', '--short', 'HEAD'], place) === 'main'
    world.tryGit(isHome ? ['switch', '-c', `user-side-${count}`] : ['switch', 'main'], place)
    return world.tryGit(['symbolic-ref', '-q', 'HEAD'], place)
  },
  'make-refs': ({ world, place, count }) => {
    world.tryGit(['branch', `user-made-${count}`, 'main'], place)
    world.tryGit(['tag', `user-made-${count}`, 'main'], place)
    return `user-made-${count}`
  },
  'delete-refs': ({ world, place }) => {
    world.tryGit(['branch', '-D', 'user-branch'], place)
    world.tryGit(['tag', '-d', 'user-tag'], place)
    return 'user-branch, user-tag'
  },
  'move-refs': ({ world, place }) => {
    const commit = world.tryGit(['commit-tree', '-m', 'by the user', '-p', 'main', 'main^{tree}'], place)
    if (commit === '') return 'nothing'
    world.tryGit(['branch', '-f', 'user-branch', commit], place)
    world.tryGit(['tag', '-f', 'user-tag', commit], place)
    return `user-branch, user-tag to ${commit}`
  },
  fetch: ({ world, place, count }) => {
    const remote = join(world.root, 'remote.git')
    if (!existsSync(remote)) return 'no remote'
    const at = `--git-dir=${remote}`
    const named = ['-c', 'user.name=Other', '-c', 'user.email=other@example.invalid']
    const commit = world.tryGit([at, ...named, 'commit-tree', '-m', 'elsewhere', '-p', 'main', 'main^{tree}'])
    world.tryGit([at, 'update-ref', `refs/heads/fetched-${count}`, commit])
    world.tryGit([at, 'tag', `fetched-${count}`, commit])
    world.tryGit(['fetch', '-q', '--tags', 'origin'], place)
    return `fetched-${count}`
  },
  configure: ({ world, place, count }) => {
    world.tryGit(['config', `torture.mine${count}`, 'yes'], place)
    // While ralph writes the file git refuses, and says so.
    if (world.tryGit(['config', '--get', `torture.mine${count}`], place) === '') return 'refused'
    world.tryGit(['config', '--file', world.ledger.configFile, `torture.mine${count}`, 'yes'])
    return `torture.mine${count}`
  },
}

function loopPlace(world: World): Place {
  return world.plan.mode === 'worktree' ? 'loop' : 'checkout'
}

function folderOf({ world, place }: Doing): string {
  return world.folder(place)
}

function append(doing: Doing, path: string): string {
  const { world, place, moment } = doing
  const isBeside = place === loopPlace(world) && !moment.startsWith('after')
  // Where an agent has just deleted it the user writes it anew: what was in it is replaced by their own hand.
  if (isBeside && !existsSync(join(folderOf(doing), path)))
    for (const old of world.ledger.liveOf(place))
      if (old.path === path && !old.isCommitted && old.where === 'tree') old.isRetired = true
  const token = world.ledger.mint('user', { path, place, where: 'tree', moment, isBeside })
  appendLine(folderOf(doing), path, token)
  return `${token} in ${path}`
}

/** Of the user's own, not committed, and there. */
function liveFiles(doing: Doing): string[] {
  const there = tokensIn(folderOf(doing))
  const live = doing.world.ledger
    .liveOf(doing.place)
    .filter(({ id, isCommitted }) => !isCommitted && there.has(id))
  return [...new Set(live.flatMap(({ id, path }) => (there.get(id)?.includes(path) === true ? [path] : [])))]
}

function retire({ world, place }: Doing, path: string): void {
  // Whoever deletes a file deletes what an agent wrote into it, too.
  const isGone = (token: Token): boolean =>
    token.path === path && (token.owner === 'agent' ? place === loopPlace(world) : token.place === place)
  for (const token of world.ledger.tokens) if (isGone(token) && token.where === 'tree') token.isRetired = true
}
