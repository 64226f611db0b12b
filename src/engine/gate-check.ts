// The gates of an attempt, for its verdict: what they leave of the tree and of the plan counts as much as what they say.
import { isOwn, listed } from '../core/gating.ts'
import type { Command } from '../core/loop.ts'
import type { TreeState, WatchedPlan } from '../ports.ts'
import type { Context } from './context.ts'
import { runGates } from './gate-run.ts'
import { failureOf, reasonOf, withoutWords } from './gate-words.ts'

type Of<D extends Command['do']> = Extract<Command, { do: D }>

export async function checkGates(command: Of<'check_gates'>, context: Context): Promise<void> {
  const { ports, tell } = context
  const state = context.state()
  const env = {
    RALPH_CHANGE: state.changeId,
    RALPH_STORY: command.storyId,
    RALPH_RUN_ID: state.runId,
    ...(await ports.checkpoints.watch('gate', command.n)),
  }
  const held = await ports.spec.watch()
  let failed: string | undefined
  let reason: string | undefined
  let gate: string | undefined
  const judged: Awaited<ReturnType<WatchedPlan>>[] = []
  const run = {
    n: command.n,
    env,
    stop: context.stopping,
    after: async (gate: string) => void judged.push(await held(gate)),
  }
  /** Whether what is saved passes by itself, for what its ignore rules hide is in no other checkout. */
  const tried = async (): Promise<boolean> => {
    const hidden = await ports.checkpoints.without(command.n)
    if (hidden === undefined) return false
    const names = listed(hidden.paths)
    try {
      const message = `Ignore rules of this attempt keep ${names} out of the checkpoint; the gates run once more without that.`
      await tell({ type: 'warning', code: 'gates_again', message })
      const without = await runGates(command.commands, context, run)
      if (without === undefined) return true
      failed = withoutWords(names, failureOf(without.gate, without.result))
      reason = `passes only with ${names}, which the attempt's own ignore rules keep out of the checkpoint: ${reasonOf(without.gate, without.result)}`
      return true
    } finally {
      await hidden.back()
    }
  }
  const checked = async (more: { could_not_run?: true }): Promise<void> => {
    let treeNow = await ports.checkpoints.look(command.tree)
    const isOver =
      treeNow.stirred.length === 0 || (command.isLast && isOwn(treeNow.stirred, command.ownFiles))
    if (failed === undefined && treeNow.lost === undefined && isOver && (await tried()))
      treeNow = await ports.checkpoints.look(command.tree)
    // What took the work away took the plan along: no gate did.
    if (treeNow.lost === undefined) for (const each of judged) await tellJudged(each, context)
    if (failed === undefined && treeNow.lost === undefined && treeNow.stirred.length > 0) {
      const names = listed(treeNow.stirred)
      const message = command.isLast
        ? `The gates write files of their own each time they run (${names}); they are saved as the last run left them.`
        : `Files changed while the gates ran (${names}); they run again on what is there now.`
      const isTold = !command.isLast || isOwn(treeNow.stirred, command.ownFiles)
      if (isTold) await tell({ type: 'warning', code: 'gates_stirred', message })
    }
    await tell({
      type: 'gates.checked',
      n: command.n,
      ...(failed !== undefined && { failed }),
      ...(reason !== undefined && { reason }),
      ...(gate !== undefined && { gate }),
      ...more,
      ...stateOf(treeNow),
    })
  }
  const first = await runGates(command.commands, context, run)
  if (first !== undefined) {
    gate = first.gate
    failed = failureOf(first.gate, first.result)
    reason = reasonOf(first.gate, first.result)
  }
  await checked(first?.result.outcome === 'could_not_run' ? { could_not_run: true } : {})
}

/** As the journal has it. */
export function stateOf({ tree, stirred, made = [], lost }: TreeState): {
  tree: string
  stirred: string[]
  made?: string[]
  lost?: string
} {
  return {
    tree,
    stirred: [...stirred],
    ...(made.length > 0 && { made: [...made] }),
    ...(lost !== undefined && { lost }),
  }
}

/** One line for all that is simply as before; one that says how to get a person's bytes stays whole. */
function inOneLine(sentences: readonly string[]): readonly string[] {
  const end = /; (?:put back|unticked|ticked again|taken out)$/
  const plain = sentences.filter((sentence) => end.test(sentence))
  if (plain.length < 2) return sentences
  const all = plain.map((sentence) => sentence.replace(end, '')).join('; ')
  return [
    `put back what is outside of the story: ${all}`,
    ...sentences.filter((each) => !plain.includes(each)),
  ]
}

export async function tellJudged(judged: Awaited<ReturnType<WatchedPlan>>, { tell }: Context): Promise<void> {
  await warnEach(tell, 'put_back', inOneLine(judged.putBack))
  await warnEach(tell, 'plan_added', judged.added ?? [])
  if (judged.lost !== undefined) await tell({ type: 'warning', code: 'plan_lost', message: judged.lost })
}

export async function warnEach(
  tell: Context['tell'],
  code: string,
  messages: readonly string[],
): Promise<void> {
  for (const message of messages) await tell({ type: 'warning', code, message })
}
