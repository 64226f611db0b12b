// Files of commits as text, many in one process.
import type { Git } from '../git.ts'

/** By `commit:path`, its path in git's bytes; what is not there, or whose name no line can hold, has no entry. */
export async function textsAt(git: Git, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const asked = names.filter((name) => !name.includes('\n'))
  const texts = new Map<string, string>()
  if (asked.length === 0) return texts
  const input = Buffer.from(asked.map((name) => `${name}\n`).join(''), 'latin1')
  const { out } = await git.run(['cat-file', '--batch'], { input })
  let at = 0
  for (const name of asked) {
    const end = out.indexOf('\n', at)
    const size = / blob (\d+)$/.exec(out.slice(at, end))?.[1]
    at = end + 1
    if (size === undefined) continue
    texts.set(name, Buffer.from(out.slice(at, at + Number(size)), 'latin1').toString('utf8'))
    at += Number(size) + 1
  }
  return texts
}
