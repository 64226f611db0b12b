// Whose name stands on the commits of `ralph/<change>`: the user's where git knows one, else ralph's. The committer is always ralph.
import { shown, type Git } from './git.ts'

export interface Author {
  readonly name: string
  readonly email: string
}

/** Undefined where a `git commit` of the user's would ask who they are; a guess from the machine's name is none. */
export async function readAuthor(git: Git, env: NodeJS.ProcessEnv): Promise<Author | undefined> {
  const asked = ['config', '-z', '--get-regexp', '^(user|author)\\.(name|email)$']
  const found = new Map<string, string>()
  for (const entry of await git.list(asked, { accept: [1] })) {
    const end = entry.indexOf('\n')
    if (end > 0) found.set(entry.slice(0, end), shown(entry.slice(end + 1)))
  }
  const name = plain(env['GIT_AUTHOR_NAME'] ?? found.get('author.name') ?? found.get('user.name') ?? '')
  const email = plain(
    env['GIT_AUTHOR_EMAIL'] ?? found.get('author.email') ?? found.get('user.email') ?? env['EMAIL'] ?? '',
  )
  return name === '' || email === '' ? undefined : { name, email }
}

/** As git does it: these would end the name before its end. */
function plain(text: string): string {
  return text.replace(/[<>\p{Cc}]/gu, '').trim()
}
