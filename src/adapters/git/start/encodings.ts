// Files whose encoding is not the one that .gitattributes names: git stores none of them, so no checkpoint can hold them.
import { firstNames } from '../../../core/first-names.ts'
import { convertedPaths, encodingOf, mayConvert } from '../tree/conversions.ts'
import { misfitsIn } from '../tree/exact-bytes.ts'
import { above, lstatNow } from '../tree/files.ts'
import type { Git } from '../git.ts'
import type { Scan } from '../tree/scan.ts'

/** What git says of each that it could not store; a repository without attributes costs no process. */
export async function misfits(git: Git, { changed, untracked }: Scan): Promise<string> {
  const files = [...changed, ...untracked].filter(
    (path) => !path.includes('\n') && lstatNow(git.worktree, path)?.isFile() === true,
  )
  const folders = new Set(files.flatMap((path) => above(path)))
  if (files.length === 0 || !mayConvert({ git, env: git.env() }, [], [...folders])) return ''
  const converted = await convertedPaths(git, [], files)
  const encoded = files.filter((path) => encodingOf(converted.get(path) ?? '') !== '')
  if (encoded.length === 0) return ''
  const input = Buffer.from(encoded.map((path) => `./${path}\n`).join(''), 'latin1')
  const { said } = await git.run(['hash-object', '--stdin-paths'], { input, accept: [128] })
  return firstNames(misfitsIn(said))
}
