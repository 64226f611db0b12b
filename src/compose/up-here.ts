// The commands of the queue as they work where they are typed: in a loop's own folder nothing can land, in its user's checkout it can.
import { headRef } from '../adapters/git/formats/ref-files.ts'
import { shellWord } from '../core/shell-word.ts'
import { homeOf } from './open-run.ts'
import { knownRun } from './site.ts'
import type { KnownRun, Site } from './site.ts'

/** As it is anywhere else. */
export async function upHere(site: Site, command: string): Promise<string> {
  const [, change] = /^refs\/heads\/ralph\/(.+)$/.exec(headRef(site.git) ?? '') ?? []
  return change === undefined ? command : await upFrom(site, await knownRun(site, change), command)
}

/** Typed in the work tree of this run. */
export async function upFrom(site: Site, { state: { home } }: KnownRun, command: string): Promise<string> {
  return home === undefined
    ? command
    : `cd ${shellWord((await homeOf(site, home)).git.worktree)} && ${command}`
}
