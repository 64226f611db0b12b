// What ralph holds of the user's beside the attempts: commits, branches and stash entries that nothing else may hold. No cleaning takes it.
import type { Head } from '../../../core/git-facts.ts'
import { headRef } from '../formats/ref-files.ts'
import { named, type Git } from '../git.ts'
import type { Store } from '../store.ts'
import { outermost } from '../submodules/submodule.ts'
import { moveRefs, readRef, refsUnder, setHead } from './refs.ts'

/** A ref that stays, with a clause for people. */
export interface UsersOwn {
  readonly ref: string
  readonly commit: string
  readonly what: string
}

/** Where an agent or a gate left a ref is theirs. What was there before, what came beside them, and what nobody knows is the user's. */
function mayBeUsers(change: string, ref: string): boolean {
  const [, kind = '', rest = ''] =
    /^(?:earlier\/[^/]+\/)?(attempts|moved|restored)\/(.*)$/s.exec(
      ref.slice(`refs/ralph/${change}/`.length),
    ) ?? []
  return (
    kind !== 'attempts' &&
    !(kind === 'moved' && /^\d+(?:-gates)?\/(?!before\/|beside\/|ignored\/)/.test(rest))
  )
}

/** Of refs that are about to go: those of the user's that lead to what no other ref leads to. */
export async function usersOwn(
  git: Git,
  change: string,
  going: Readonly<Record<string, string>>,
): Promise<readonly UsersOwn[]> {
  const theirs = Object.entries(going).filter(([ref]) => mayBeUsers(change, ref))
  if (theirs.length === 0) return []
  const staying = new Set(
    Object.entries(await refsUnder(git, ['refs'])).flatMap(([ref, hash]) => (ref in going ? [] : [hash])),
  )
  const input = Buffer.from(theirs.map(([, hash]) => `${hash}\n`).join(''))
  const format = '--batch-check=%(objecttype)'
  const types = (await git.line(['cat-file', format], { input })).split('\n')
  const commits = theirs.filter((_, at) => types[at] === 'commit').map(([, hash]) => hash)
  // A walk that ends where the other refs begin, however many there are.
  const walk = [...new Set(commits)].concat([...staying].map((hash) => `^${hash}`))
  const alone = new Set(
    commits.length === 0
      ? []
      : (
          await git.line(['rev-list', '--ignore-missing', '--stdin'], {
            input: Buffer.from(walk.map((one) => `${one}\n`).join('')),
          })
        ).split('\n'),
  )
  const found = theirs.filter(([, hash], at) => {
    if (types[at]?.endsWith('missing') === true || staying.has(hash)) return false
    return types[at] !== 'commit' || alone.has(hash)
  })
  return Promise.all(
    found.map(async ([ref, commit]) => {
      const subject = await git.line(['log', '-1', '--format=%s', commit, '--'], { accept: [128] })
      return { ref, commit, what: `${commit.slice(0, 12)}${subject === '' ? '' : ` (${named(subject)})`}` }
    }),
  )
}

/** Names of ralph's for commits of the user's: made while attempt `n` ran, or, with 0, when none did. */
export function besideRef({ refs }: Pick<Store, 'refs'>, n: number, hash: string): string {
  return `${refs}/moved/${n}/beside/${hash.slice(0, 12)}`
}

/** A commit and those before it that no ref leads to, the newest first; what ralph holds for a while only is no ref. */
export async function unheld(git: Git, hash: string): Promise<string[]> {
  // Not `--all`: that has HEAD itself.
  const passing = ['pins/*', 'checkpoint'].map((name) => `--exclude=refs/ralph/*/${name}`)
  const walk = ['rev-list', '--topo-order', '--ignore-missing', hash, '--not', ...passing, '--glob=refs/*']
  return (await git.line(walk)).split('\n').filter((each) => each !== '')
}

/** Before HEAD goes elsewhere: what only a detached HEAD led to gets a ref, and a sentence for the user; else empty. */
export async function holdDetached(git: Git, refs: string, typed = git.typed): Promise<string> {
  const hash = headRef(git) === undefined ? await readRef(git, 'HEAD') : undefined
  const [tip, ...more] = hash === undefined ? [] : await unheld(git, hash)
  if (tip === undefined) return ''
  const ref = besideRef({ refs }, 0, tip)
  await moveRefs(git, 'hold', [`update ${ref} ${tip}`])
  const short = tip.slice(0, 12)
  const [subject, oldest] = await Promise.all([
    git.line(['log', '-1', '--format=%s', tip]),
    git.line(['rev-parse', '--verify', '--quiet', `${more.at(-1) ?? tip}^`], { accept: [1, 128] }),
  ])
  const range = more.length === 0 || oldest === '' ? short : `${oldest.slice(0, 12)}..${short}`
  const others = more.length === 0 ? '' : `, with ${more.length} before it,`
  return `your commit ${short} (${named(subject)})${others} was on no branch; it is kept as ${ref}: ${typed} cherry-pick ${range} brings it back`
}

/** HEAD goes there; see `holdDetached`. */
export async function leaveFor(store: Store, head: Head, reason: string): Promise<void> {
  const message = await holdDetached(store.git, store.refs)
  if (message !== '') await outermost(store).note({ type: 'warning', code: 'commit_off', message })
  await setHead(store.git, head, reason)
}
