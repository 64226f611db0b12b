// The commits of `ralph/<change>` again, with the stories' titles as subjects; what they were is archived.
import { retitled } from '../../../core/commit-text.ts'
import type { Operation } from '../../../core/git-facts.ts'
import { ownEmail, type Git } from '../git.ts'
import { writeObject } from '../formats/objects.ts'
import { moveRefs, readRefs } from '../refs/refs.ts'
import { timeName, type Store } from '../store.ts'
import { treeOf } from '../tree/tree.ts'

type Rename = Extract<Operation, { op: 'rename' }>

/** `renamed`: how many subjects are others now. Trees, authors and times stay. */
export async function renameCommits(
  store: Store,
  {
    origin,
    initial,
    tip,
    checkpoint,
  }: { origin: string | undefined; initial: string; tip: string; checkpoint: string },
): Promise<{ readonly renamed: number; readonly time: string }> {
  const { git } = store
  const since = origin === undefined ? [] : [`^${origin}`]
  const list = await git.line(['rev-list', '--reverse', '--topo-order', tip, ...since])
  const hashes = list.split('\n').filter((hash) => hash !== '')
  // Without a word of its own in the history: what it would say is that there was nothing.
  const isEmpty = origin !== undefined && (await treeOf(git, initial)) === (await treeOf(git, origin))
  const now = new Map<string, string>()
  let renamed = 0
  for (const { hash, parents, head, message } of await readCommits(git, hashes)) {
    const title = isRalphs(head) ? retitled(message) : undefined
    if (hash === initial && isEmpty && parents[0] === origin) {
      now.set(hash, origin)
      continue
    }
    if (title !== undefined) renamed += 1
    const others = parents.map((each) => now.get(each) ?? each)
    const isSame = title === undefined && others.every((each, at) => each === parents[at])
    now.set(hash, isSame ? hash : await writeRaw(git, withParents(head, others, title ?? message)))
  }
  const time = timeName(store)
  const to = now.get(tip) ?? tip
  if (to === tip) return { renamed: 0, time }
  const operation: Rename = {
    op: 'rename',
    from: tip,
    to,
    initial: now.get(initial) ?? initial,
    checkpoint: now.get(checkpoint) ?? checkpoint,
    time,
  }
  await store.operate(operation, () => moveBranch(store, operation))
  return { renamed, time }
}

/** All at once, and only from where it was. */
export async function moveBranch(
  store: Store,
  { from, to, checkpoint, time }: Omit<Rename, 'op'>,
): Promise<boolean> {
  const branch = `refs/heads/ralph/${store.change}`
  const { all } = await readRefs(store.git)
  if (all[branch] === to) return true
  if (all[branch] !== from) return false
  await moveRefs(store.git, 'rename', [
    `update ${store.refs}/archive/${time} ${from}`,
    `update ${branch} ${to} ${from}`,
    `update ${store.refs}/checkpoint ${checkpoint}`,
  ])
  return true
}

interface RawCommit {
  readonly hash: string
  readonly parents: readonly string[]
  /** In bytes (latin1), as the message is: its encoding is nobody's business here. */
  readonly head: string
  readonly message: string
}

async function readCommits(git: Git, hashes: readonly string[]): Promise<RawCommit[]> {
  const { out } = await git.run(['cat-file', '--batch'], { input: `${hashes.join('\n')}\n` })
  const commits: RawCommit[] = []
  for (let at = 0; at < out.length;) {
    const end = out.indexOf('\n', at)
    const [hash = '', , size = '0'] = out.slice(at, end).split(' ')
    const body = out.slice(end + 1, end + 1 + Number(size))
    const cut = body.indexOf('\n\n')
    const head = body.slice(0, cut)
    const parents = [...head.matchAll(/^parent ([0-9a-f]+)$/gm)].map(([, parent = '']) => parent)
    commits.push({ hash, parents, head, message: body.slice(cut + 2) })
    at = end + 2 + Number(size)
  }
  return commits
}

async function writeRaw(git: Git, body: Buffer): Promise<string> {
  const written = await writeObject(git, 'commit', body)
  return written ?? (await git.line(['hash-object', '-t', 'commit', '-w', '--stdin'], { input: body }))
}

/** A signature is of the commit as it was. */
function withParents(head: string, parents: readonly string[], message: string): Buffer {
  const [tree = '', ...lines] = head.replace(/^gpgsig(-sha256)? .*(\n .*)*\n?/gm, '').split('\n')
  const rest = lines.filter((line) => !line.startsWith('parent ') && line !== '')
  const all = [tree, ...new Set(parents.map((parent) => `parent ${parent}`)), ...rest]
  return Buffer.from(`${all.join('\n')}\n\n${message}`, 'latin1')
}

function isRalphs(head: string): boolean {
  return new RegExp(`^committer .*<${ownEmail}> `, 'm').test(head)
}
