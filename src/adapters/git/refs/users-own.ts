// What ralph holds of the user's beside the attempts: commits, branches and stash entries that nothing else may hold. No cleaning takes it.
import { named } from '../git.ts'
import type { Git } from '../git.ts'
import { refsUnder } from './refs.ts'

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
