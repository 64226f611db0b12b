// Of a run whose work was brought back before: where that is now, and why another finish would do nothing.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readRef } from '../adapters/git/refs/refs.ts'
import { checkpointFolder } from '../adapters/git/store.ts'
import { RalphError } from '../core/error.ts'
import { shellWord } from '../core/shell-word.ts'
import type { FinishChoice } from '../ports.ts'
import type { OpenRun } from './open-run.ts'
import { isSettled, needsRepair } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { whereabouts } from './whereabouts.ts'

/** Where the work of a run is that was brought back before: another word on it would only spoil its record. Else empty. */
export async function finishedAlready(
  site: Site,
  run: OpenRun['run'],
  asked: Exclude<FinishChoice, 'later'>,
): Promise<string> {
  const { branch, choice, git, originalBranch } = run.state
  const isBrought = choice === 'cleanup' && git.cleaned !== undefined && git.origin === undefined
  const isLeft = needsRepair(run) || (await readRef(site.git, `refs/heads/ralph/${run.change}`)) !== undefined
  if (!isSettled(run) && (!isBrought || isLeft || branch === originalBranch)) return ''
  const { where } = await whereabouts(site, run)
  const place = originalBranch === '' ? 'your detached HEAD' : originalBranch
  if (where?.squashed !== undefined)
    return `squashed into ${where.squashed.slice(0, 7)} on ${where.squashed_on || place}`
  if (where?.is_nothing) return `it had saved nothing, and ${place} is as you left it`
  const time = where?.cleaned_at?.slice(11, 19) ?? ''
  const at = time === '' ? '' : ` since the cleanup at ${time}`
  if (where?.away !== undefined)
    throw new RalphError(
      'finish_conflict',
      `The work of ${run.change} is not on ${place} any more, where the cleanup at ${time} had brought it.`,
      {
        hint: `Nothing was touched. Its commits are kept as ${where.away.kept}; to bring it again: ${where.away.back}`,
      },
    )
  if (where?.brought_on !== undefined)
    return `its work is on ${where.brought_on || 'your detached HEAD'}; the cleanup at ${time} had brought it to ${place}`
  if (asked === 'squash' && where?.uncommitted === true)
    throw new RalphError(
      'finish_conflict',
      `The work of ${run.change} is on ${place}, uncommitted,${at}: it is yours to commit.`,
      {
        hint: `Nothing was touched. ${commitWords(site, run)}`,
      },
    )
  return where?.uncommitted === false
    ? `its work is on ${place}${at}`
    : `its work is on ${place}, uncommitted,${at}`
}

/** After a hook's refusal all of it is staged, and the message of the squash is there. */
function commitWords({ git }: Site, { change, recall }: KnownRun): string {
  const began = recall('git.began').findLast(({ op }) => op === 'finish')
  const message = join(checkpointFolder(git.gitCommonDir, change), 'squash-message')
  return began?.data['squash'] === undefined || !existsSync(message)
    ? 'Look at it with git status, then: git add and git commit'
    : `With the message of the squash, once what refused it is mended: ${git.typed} commit -F ${shellWord(message)}`
}
