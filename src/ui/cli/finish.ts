// `ralph finish` without an answer: the question that the loop asks at its end, again.
import { RalphError } from '../../core/error.ts'
import type { App, Said, StatusReport } from '../app.ts'
import { isTerminal } from '../io.ts'
import { askWhere } from '../print/choice.ts'
import { oneLine } from '../print/text.ts'
import type { Context } from './context.ts'

export async function askFinish(
  { io, readerGone }: Context,
  { observe, control }: App,
  change: string | undefined,
): Promise<Said> {
  const reports = await observe.status(change)
  // Of several the latest that is unfinished; the question names its branch.
  const latest = reports.find(({ choice }) => choice !== 'cleanup') ?? reports[0]
  const report = reports.length > 1 ? (await observe.status(latest?.change_id))[0] : latest
  const unasked = { message: undefined, choice: 'keep', acceptsConfig: false } as const
  if (report !== undefined && isFinished(report))
    return control.finish({ ...unasked, change: report.change_id })
  if (report === undefined) return control.finish({ ...unasked, change })
  const { change_id: name, original_branch: originalBranch, where } = report
  if (!isTerminal(io.stdin) || !isTerminal(io.stdout)) {
    const typed = `ralph finish ${oneLine(name)}`
    throw new RalphError('usage', `Where should the work of ${oneLine(name)} go?`, {
      hint: [
        `${typed} --cleanup   to your branch, as uncommitted changes`,
        `${typed} --squash    to your branch, as one commit`,
        `${typed} --keep      it stays on its own branch`,
      ].join('\n'),
    })
  }
  const question = {
    originalBranch,
    branch: where?.branch || `ralph/${name}`,
    ...(where?.home !== undefined && where.worktree !== undefined && { worktree: where.worktree }),
  }
  const options = { ...io, isQuiet: false, before: () => undefined }
  const choice = (await askWhere(options, question, readerGone)) ?? 'later'
  // Another try is offered by a loop only.
  if (choice !== 'later' && choice !== 'again')
    return control.finish({ change: name, choice, message: undefined, acceptsConfig: false })
  return { message: 'Nothing was done.', next: `ralph finish ${name}`, data: { change_id: name, choice } }
}

/** Nothing is left to decide: it was brought before, has landed, or never began. */
function isFinished({ choice, died_at: died, where, original_branch: original }: StatusReport): boolean {
  if (where?.landed !== undefined || (where?.branch === '' && died === undefined)) return true
  return (
    choice === 'cleanup' && died === undefined && where?.cleaned_at !== undefined && where.branch !== original
  )
}
