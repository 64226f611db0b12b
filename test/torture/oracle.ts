// Judges a round by what everybody wrote: nothing of the user's lost, nothing said that is not so, nothing left behind.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, lstatSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { tokenPattern, type Token } from './ledger.ts'
import { alive, commandOf, gitDirOf } from './picture.ts'
import { hasBranch, type Fault, type Played } from './play.ts'
import { change, modeOf, refsOf, stagedOf, stashesOf, tokensIn, walk, type World } from './world.ts'

interface Record {
  readonly n: number
  readonly verdict: string
  readonly story_id: string
}

interface State {
  readonly status: string
  readonly iterations: readonly Record[]
}

export function judge(played: Played): Fault[] {
  const { world } = played
  const found = [...played.faults]
  const fault = (kind: Fault['kind'], text: string): void => void found.push({ kind, text })
  const words = played.said.map(({ text }) => text).join('\n')
  const observed = see(world)
  lostBytes(world, observed, words, fault)
  lostRefs(world, words, fault)
  lostForms(played, fault)
  // A round that came to no end is judged by what it has lost; what is not done is no lie then.
  if (!played.faults.some(({ kind }) => kind === 'dead end')) results(played, observed, words, fault)
  lies(played, fault)
  leftovers(world, fault)
  return found
}

type Tell = (kind: Fault['kind'], text: string) => void

interface Observed {
  /** Token -> paths, of the tree that the user finds the work in. */
  readonly result: Map<string, string[]>
  readonly checkout: Map<string, string[]>
  readonly loop: Map<string, string[]>
  /** In commits of the user's own refs and stash entries. */
  readonly kept: Set<string>
  readonly index: Set<string>
  /** In any commit that any ref holds, ralph's own too. */
  readonly anywhere: Set<string>
}

function see(world: World): Observed {
  const checkout = tokensIn(world.repo)
  const loop = world.plan.mode === 'worktree' ? tokensIn(world.folder('loop')) : checkout
  const stashes = stashesOf(world).flatMap((hash) => [hash, `${hash}^2`, `${hash}^3`])
  const own = [...refsOf(world).values()]
  const branch = world.tryGit(['rev-parse', '-q', '--verify', `refs/heads/ralph/${change}`])
  const all = world.tryGit(['for-each-ref', '--format=%(objectname)']).split('\n')
  const [kept, anywhere] = [
    // Whoever commits in the loop's tree commits on its branch.
    committedTokens(world, [...own, world.tryGit(['rev-parse', 'HEAD']), branch, ...stashes]),
    new Set([...committedTokens(world, [...all, ...stashes]), ...inSubmodule(world)]),
  ]
  return {
    result: world.plan.mode === 'worktree' && world.plan.choice === 'keep' ? loop : checkout,
    checkout,
    loop,
    kept,
    index: new Set(
      world.tryGit(['grep', '-a', '-o', '-h', '-E', '--cached', grepPattern]).match(tokenPattern),
    ),
    anywhere,
  }
}

const grepPattern = 'tok-[ua][0-9]+-[0-9]+x'

/** Blob by blob: `git grep` passes over symbolic links. `walk`: of their whole history, not of these commits alone. */
function committedTokens(
  world: World,
  names: readonly string[],
  walk = true,
  folder = world.repo,
): Set<string> {
  const at = (args: readonly string[]): string => world.tryGit(['-C', folder, ...args])
  const starts = [...new Set(names)].filter((name) => name !== '')
  if (starts.length === 0) return new Set()
  const objects = at([
    'rev-list',
    '--ignore-missing',
    '--objects',
    '--no-object-names',
    ...(walk ? [] : ['--no-walk']),
    ...starts,
  ])
  const text = execFileSync('git', ['cat-file', '--batch', '--buffer'], {
    cwd: folder,
    env: world.env,
    input: `${objects}\n`,
    encoding: 'latin1',
    maxBuffer: 2 ** 28,
  })
  return new Set(text.match(tokenPattern))
}

function inSubmodule(world: World): Set<string> {
  const folder = join(world.repo, 'sub')
  return existsSync(folder) ? committedTokens(world, ['--all'], true, folder) : new Set()
}

/** In what a ref holds, or in one of the parts of a stash. */
function holds(world: World, ref: string, token: Token): boolean {
  const folder = token.path.startsWith('sub/') ? join(world.repo, 'sub') : world.repo
  return committedTokens(world, [ref, `${ref}^2`, `${ref}^3`], false, folder).has(token.id)
}

// --- lost ---------------------------------------------------------------------------------------------------------

function lostBytes(world: World, observed: Observed, words: string, fault: Tell): void {
  for (const token of world.ledger.tokens) {
    if (token.owner !== 'user' || token.isRetired || token.isTaken) continue
    const there = token.place === 'loop' ? observed.loop : observed.checkout
    // A cleanup carries what was saved in the loop's own tree to the user's.
    const paths = there.get(token.id) ?? observed.result.get(token.id) ?? observed.checkout.get(token.id)
    if (paths !== undefined && token.where !== 'index') {
      // An agent's git brought back a file that its user had renamed, and the user edited that one: it is theirs, and so is the renamed one.
      const isEdited = (path: string): boolean =>
        world.ledger.tokens.some(
          (other) => other.owner === 'user' && other.path === path && other !== token && !other.isRetired,
        )
      const copies = paths.filter((path) => !isEdited(path))
      // A switch of their own brings back what they had renamed and not committed.
      if (copies.length > 1 && world.ledger.sweeps.length === 0)
        fault('lie', `${token.id} of the user's is there ${paths.length} times: ${paths.join(', ')}`)
      continue
    }
    // An agent may change what is committed: that is its work, and the commit is there.
    if (token.isCommitted && observed.kept.has(token.id)) continue
    if (token.where === 'index' && (observed.index.has(token.id) || observed.anywhere.has(token.id))) continue
    if (isNamed(token, words) && bringsBack(world, token, words)) continue
    if (isUndoneWithAttempt(world, token, words) || isDeletedLater(world, token, words)) continue
    if (isLeftBehind(world, token, words)) continue
    if (isInLeftTree(token, words)) continue
    const where = observed.anywhere.has(token.id) ? 'only in refs of ralph, and nobody said so' : 'nowhere'
    fault(
      'lost',
      `${token.id} of the user's (${token.where}, ${JSON.stringify(token.path)}, written ${token.moment}) is ${where}`,
    )
  }
}

function isNamed({ path }: Token, words: string): boolean {
  const escaped = path.replaceAll('\n', '\\n').replaceAll('\t', '\\x09')
  const spelledOut = Buffer.from(path)
    .toString('latin1')
    .replace(/[^!-~]|['\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)
  return (
    words.includes(path) ||
    words.includes(escaped) ||
    words.includes(spelledOut) ||
    words.includes(basename(path)) ||
    words.includes(JSON.stringify(path).slice(1, -1))
  )
}

/** Runs what the words offer, each in a copy: does the byte come back? */
function bringsBack(world: World, token: Token, words: string): boolean {
  const lines = words.split('\n').filter((line) => isNamed(token, line))
  const commands = [
    ...new Set(
      lines.flatMap((line) =>
        [
          ...line.matchAll(
            /`?((?:git (?:-C \S+ )?(?:restore|checkout|show|stash apply|cherry-pick)|ralph restore) [^`;\n]*?)(?= brings |[`;\n]|$)/g,
          ),
        ].map(([, command]) => command?.trim() ?? ''),
      ),
    ),
  ]
  const refs = [...new Set(lines.flatMap((line) => line.match(/refs\/ralph\/[\w./-]*[\w-]/g) ?? []))]
  if (refs.some((ref) => holds(world, ref, token))) return true
  return commands.some((command) => {
    const copy = mkdtempSync(join(tmpdir(), 'ralph-torture-copy-'))
    try {
      cpSync(world.repo, join(copy, 'repo'), { recursive: true, verbatimSymlinks: true })
      // One for the loop's own folder brings the same in the copy, and must not write to that folder.
      const here = command.replace(`git -C ${world.folder('loop')} `, 'git ')
      // By what it brings, not by how it ends: `git stash apply` complains of files that are there again, and brings the rest.
      const { stdout } = spawnSync('bash', ['-c', here], { cwd: join(copy, 'repo'), env: world.env })
      // `git show` is for a file that is the user's again: what it was is shown, and not put over it.
      const isShown = / show /.test(command) && stdout.toString('latin1').includes(token.id)
      return isShown || tokensIn(join(copy, 'repo')).has(token.id)
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  })
}

/** Edits made beside an agent, in its tree, cannot be told from its own: they are undone with its attempt, and that is said. */
function isUndoneWithAttempt(world: World, token: Token, words: string): boolean {
  if (!token.isBeside) return false
  const numbers = new Set(
    [
      ...words.matchAll(
        /(?:kept as #\d+: ralph diff |[Ww]hat it left is kept as refs\/ralph\/demo\/attempts\/|bring it back: ralph restore )(\d+)/g,
      ),
    ].map(([, n]) => n),
  )
  // The end names those of its run together, for a kill may have cut off what was said of one.
  const isEnded = new RegExp(`attempts +ralph attempts ${change} `).test(words)
  // A submodule keeps its own part of an attempt, and that is said with it.
  const inside = token.path.startsWith('sub/') ? ['-C', 'sub'] : []
  const kept = world.tryGit([...inside, 'for-each-ref', '--format=%(refname)', `refs/ralph/${change}`])
  // A fresh start puts the whole of a run away, saved or not, and names where.
  const earlier = words.match(/refs\/ralph\/demo\/earlier\/[\w+-]+/g) ?? []
  const refs = kept
    .split('\n')
    .filter(
      (ref) =>
        /attempts\/\d+$/.test(ref) &&
        ((isEnded && ref.startsWith(`refs/ralph/${change}/attempts/`)) ||
          numbers.has(ref.split('/').at(-1)) ||
          earlier.some((run) => ref.startsWith(`${run}/`))),
    )
  return refs.some((ref) => holds(world, ref, token))
}

/** The half-made tree of a start that was killed goes aside whole, and it is said where to. */
function isInLeftTree(token: Token, words: string): boolean {
  const folders = [...words.matchAll(/what was in it is now in (\S+)/g)].map(([, folder = '']) => folder)
  return token.place === 'loop' && folders.some((folder) => tokensIn(folder).has(token.id))
}

/** Saved with the work of the agent that it was made beside, it stays with that work where a new run begins without it, and says where that is. */
function isLeftBehind(world: World, token: Token, words: string): boolean {
  const commits = words.match(/(?<=which stay kept: git log )[0-9a-f]+/g) ?? []
  return token.isBeside === true && commits.some((commit) => holds(world, commit, token))
}

/** Saved with the work of the agent that it was made beside, it is the loop's: a later agent may delete the file, as any in a checkpoint. */
function isDeletedLater(world: World, token: Token, words: string): boolean {
  if (token.isBeside !== true || !world.ledger.agentDeletes.has(token.path)) return false
  const archives = words.match(/refs\/ralph\/demo\/archive\/\w+/g) ?? []
  // With stashes nothing is committed, and the end names the attempts instead.
  const attempts = words.includes(`ralph attempts ${change}`)
    ? world.tryGit(['for-each-ref', '--format=%(refname)', `refs/ralph/${change}/attempts`]).split('\n')
    : []
  const branch = hasBranch(world) ? [`refs/heads/ralph/${change}`] : []
  return committedTokens(world, [...archives, ...attempts, ...branch]).has(token.id)
}

/** Permissions and staging of what neither the loop nor the user has touched since. */
function lostForms({ world, generation }: Played, fault: Tell): void {
  const { ledger, plan, repo } = world
  const touched = new Set([
    ...ledger.agentPaths,
    ...ledger.tokens.filter(({ moment }) => moment !== 'before the loop').map(({ path }) => path),
    ...ledger.tokens.filter(({ isRetired, isCommitted }) => isRetired || isCommitted).map(({ path }) => path),
  ])
  // A fresh start takes the index as it finds it, on the branch of the one before.
  if (ledger.sweeps.length > 0 || generation > 0) return
  for (const [path, mode] of ledger.modes)
    if (!touched.has(path) && modeOf(repo, path) !== mode && modeOf(repo, path) !== 'absent')
      fault('lost', `${JSON.stringify(path)} has mode ${modeOf(repo, path)}, the user had ${mode}`)
  const hasMoved = ledger.refs.get(world.origin.ref) !== world.origin.commit && world.origin.ref !== ''
  if (hasMoved || (plan.choice === 'keep' && plan.mode !== 'stash' && plan.mode !== 'worktree')) return
  const now = stagedOf(world)
  for (const [path, entry] of ledger.staged)
    if (!touched.has(path) && now.get(path) !== entry)
      fault('lost', `${JSON.stringify(path)} was staged (${entry}), now ${now.get(path) ?? 'it is not'}`)
}

function lostRefs(world: World, words: string, fault: Tell): void {
  const { ledger } = world
  const now = refsOf(world)
  for (const [name, hash] of ledger.refs) {
    if ((now.get(name) ?? '') === hash) continue
    // A commit beside an attempt that was reverted goes with it, and is named with what brings it back.
    const way = new RegExp(
      String.raw`git (?:-C \S+ )?(?:cherry-pick|reset --soft|commit -C) ${hash.slice(0, 12)} brings it back`,
    )
    const isTold = hash !== '' && way.test(words)
    if (isTold && world.tryGit(['rev-parse', '-q', '--verify', `${hash.slice(0, 12)}^{commit}`]) === hash)
      continue
    fault(
      'lost',
      `${name} is ${now.get(name) ?? 'gone'}, the user left it ${hash === '' ? 'deleted' : `at ${hash}`}`,
    )
  }
  for (const [name, hash] of now)
    if (
      !ledger.refs.has(name) &&
      ledger.takenRefs.get(name) !== hash &&
      !words.includes(name.replace(/^refs\/(heads\/)?/, ''))
    )
      fault('lie', `${name} is there, the user did not make it, and nobody said so`)
  const stashes = new Set(stashesOf(world))
  for (const hash of ledger.stashes)
    if (!stashes.has(hash)) fault('lost', `the stash ${hash} of the user's is gone from the list`)
}

// --- lies ---------------------------------------------------------------------------------------------------------

const keptVerdicts = new Set(['complete', 'kept', 'partial', 'progress', 'refused'])

function results(played: Played, observed: Observed, words: string, fault: Tell): void {
  const { world, generation } = played
  const { ledger, plan } = world
  const state = stateOf(world)
  if (state === undefined) return fault('lie', 'there is no state file')
  // Killed after its last story: the boxes are true, and that the loop did not end by itself is said.
  const isSaid = words.includes(`✓ done  (last run: ${state.status})`)
  if (state.status !== 'done' && !isSaid)
    fault('lie', `the last command said all is well, the state is ${state.status}`)
  const tasks = join(
    plan.mode === 'worktree' && plan.choice === 'keep' ? world.folder('loop') : world.repo,
    `openspec/changes/${change}/tasks.md`,
  )
  const open = existsSync(tasks)
    ? readFileSync(tasks, 'utf8')
        .split('\n')
        .filter((line) => line.includes('[ ]'))
    : ['no tasks.md']
  // The user stashed away what an earlier cleanup had brought, ticks and all: that is theirs to bring back, and ralph says which files it means.
  const isLeft = /as you left it since the cleanup before: /i.test(words) && ledger.stashes.size > 0
  if (open.length > 0 && !isLeft) fault('lie', `done, but open: ${open.join(', ')}`)
  const verdicts = new Map(state.iterations.map(({ n, verdict }) => [n, verdict]))
  for (const spawn of ledger.spawns.filter((each) => each.generation === generation)) {
    const verdict = verdicts.get(spawn.iteration)
    if (verdict === undefined) {
      fault('lie', `iteration ${spawn.iteration} is not in the record`)
      continue
    }
    const tokens = ledger.tokens.filter(({ spawn: by }) => by === spawn.index).map(({ id }) => id)
    if (keptVerdicts.has(verdict)) {
      const isOver = ({ isRetired, path }: Token): boolean => isRetired || ledger.agentDeletes.has(path)
      const retired = new Set(ledger.tokens.filter(isOver).map(({ id }) => id))
      for (const id of (spawn.left ?? []).filter((each) => !retired.has(each))) {
        const count = observed.result.get(id)?.length ?? 0
        const isMoved = ledger.sweeps.length > 0 && observed.kept.has(id)
        if (count !== 1 && !isMoved)
          fault(
            'lie',
            `iteration ${spawn.iteration} is called ${verdict}, its ${id} is in the result ${count} times`,
          )
      }
    } else
      for (const id of tokens)
        if (observed.result.has(id) && !words.includes(basename(observed.result.get(id)?.[0] ?? '')))
          fault(
            'lie',
            `iteration ${spawn.iteration} is called ${verdict}, yet its ${id} is in the result: ${observed.result.get(id)?.join(', ')}`,
          )
  }
  // A fresh start may find boxes ticked by the one before.
  for (let id = 1; generation === 0 && id <= plan.stories; id += 1)
    if (
      !state.iterations.some(({ story_id: story, verdict }) => story === String(id) && verdict === 'complete')
    )
      fault('lie', `done, but story ${id} has no complete iteration`)
}

function stateOf(world: World): State | undefined {
  const path = [world.folder('loop'), world.repo]
    .map((folder) => join(folder, '.claude', 'loop-state.json'))
    .find((each) => existsSync(each))
  return path === undefined ? undefined : (JSON.parse(readFileSync(path, 'utf8')) as State)
}

function lies(played: Played, fault: Tell): void {
  const { world, said } = played
  const { plan } = world
  for (const { args, code, text, changed, died } of said) {
    const command = `ralph ${args.slice(0, 2).join(' ')}`
    // What is said of the run is not said of the one that the same command has put in order and archived, in so many words.
    const hasEarlier = text.includes('the earlier run is archived')
    if (
      (/[Nn]othing was touched|[Nn]othing was changed/.test(text) ||
        (!hasEarlier && text.includes('This run has changed nothing in the repository'))) &&
      (changed?.length ?? 0) > 0 &&
      code !== 0
    )
      fault('lie', `${command} says that nothing was touched, yet: ${changed?.slice(0, 5).join('; ')}`)
    if (/next +git diff: the work is on/.test(text) && plan.mode !== 'stash' && hasBranch(world))
      fault('lie', `${command} says that the work is on the original branch; it is on ralph/${change}`)
    if (/This is a bug in ralph|\n {4}at /.test(text)) fault('lie', `${command}: a stack trace`)
    if (!died && code === null) fault('dead end', `${command} ended without an exit code`)
    for (const [, what = '', name = ''] of text.matchAll(
      /the agent (made|moved|deleted) (\S+?)(?:[;,.]|$)/gm,
    )) {
      const full = name.startsWith('tags/') ? `refs/${name}` : `refs/heads/${name}`
      // Where the user has switched to, the agent's commits go.
      const isUnderFoot = what === 'moved' && name.startsWith('user-side-') && world.plan.mode === 'stash'
      if (!world.ledger.agentRefs.has(full) && !name.startsWith('ralph/') && name !== 'main' && !isUnderFoot)
        fault('lie', `${command} blames the agent: "${what} ${name}"`)
    }
  }
  const config = readFileSync(join(world.repo, '.git', 'config'), 'utf8')
  if (config !== userConfig(world) && !isPutAside(played, config))
    fault('lie', `.git/config is not the user's: ${diffLines(userConfig(world), config)}`)
  const hooks = existsSync(join(world.repo, '.git/hooks'))
    ? readdirSync(join(world.repo, '.git/hooks')).filter((name) => !name.endsWith('.sample'))
    : []
  const wanted = world.plan.has.includes('hook') ? ['pre-commit'] : []
  if (hooks.join(' ') !== wanted.join(' '))
    fault('lie', `hooks are ${hooks.join(' ') || 'none'}, the user had ${wanted.join(' ') || 'none'}`)
}

function userConfig(world: World): string {
  return readFileSync(world.ledger.configFile, 'utf8')
}

/** Nobody can tell whose line in it is: those of an attempt are put back, named, and kept aside. */
function isPutAside({ world, said }: Played, config: string): boolean {
  const words = said.map(({ text }) => text).join('\n')
  const missing = userConfig(world)
    .split('\n')
    .filter((line) => !config.includes(line))
  const isOnlyLess = config.split('\n').every((line) => userConfig(world).includes(line))
  const asides = [...words.matchAll(/As it was then: (\S+\w)/g)].map(([, path]) =>
    join(world.repo, path ?? ''),
  )
  return (
    isOnlyLess &&
    missing.filter((line) => line.includes(' = ')).every((line) => words.includes(line.trim())) &&
    asides.length > 0 &&
    asides.every((path) => existsSync(path))
  )
}

function diffLines(before: string, after: string): string {
  const [old, now] = [before.split('\n'), after.split('\n')]
  return [
    ...old.filter((line) => !now.includes(line)).map((line) => `-${line.trim()}`),
    ...now.filter((line) => !old.includes(line)).map((line) => `+${line.trim()}`),
  ].join(' ')
}

// --- left ---------------------------------------------------------------------------------------------------------

function leftovers(world: World, fault: Tell): void {
  for (const pid of alive(world)) fault('process', `${pid}: ${commandOf(pid)}`)
  const gitDir = join(world.repo, '.git')
  const folders = [gitDir, gitDirOf(world.folder('loop')), join(world.repo, '.claude')]
  const files = new Set<string>()
  for (const folder of folders)
    walk(folder, '', (path, kind) => {
      if (
        kind === 'file' &&
        /\.(lock|tmp)$|lock\.json$|\.\d+$/.test(path) &&
        !/^logs\/|archive|journal|stale-locks/.test(path)
      )
        files.add(join(basename(folder), path))
    })
  for (const file of files) fault('left', file)
  for (const name of readdirSync(world.temp)) fault('left', `TMPDIR/${name}`)
  try {
    world.git(['fsck', '--connectivity-only', '--no-dangling'])
  } catch (error) {
    fault('lost', `git fsck: ${String(error)}`)
  }
  if (existsSync(join(world.repo, 'pwned')) && lstatSync(join(world.repo, 'pwned')).isFile())
    fault('lie', "the agent's code ran in the user's shell")
}
