// Whose name stands on the commits of `ralph/<change>`: the user's where git knows one, else ralph's. The committer is always ralph.
import { shown, type Git } from '../git.ts'
import { allSettings } from './settings.ts'

export interface Author {
  readonly name: string
  readonly email: string
}

/** Undefined where a `git commit` of the user's would ask who they are; a guess from the machine's name is none. */
export async function readAuthor(git: Git, env: NodeJS.ProcessEnv): Promise<Author | undefined> {
  const settings = await allSettings(git)
  const found = new Map(settings.map(({ key, value }) => [key, shown(value)]))
  const name = plain(env['GIT_AUTHOR_NAME'] ?? found.get('author.name') ?? found.get('user.name') ?? '')
  const email = plain(
    env['GIT_AUTHOR_EMAIL'] ?? found.get('author.email') ?? found.get('user.email') ?? env['EMAIL'] ?? '',
  )
  return name === '' || email === '' ? undefined : { name, email }
}

/** Where there is no author: who stands on the commits, and how that is changed. */
export const nobody = 'git knows no name of yours, so the author of the commits is ralph <ralph@localhost>'
export const nameYou = 'git config --global user.name "…" && git config --global user.email "…"'

/** As git does it: these would end the name before its end. */
function plain(text: string): string {
  return text.replace(/[<>\p{Cc}]/gu, '').trim()
}
