// What a person has done and ticked between two attempts: saved first, then judged by the gates; never undone.
import { maxRounds } from '../core/gating.ts'
import type { Command } from '../core/loop.ts'
import type { Context } from './context.ts'
import { tellJudged } from './gate-check.ts'
import { runGates } from './gate-run.ts'
import { reasonOf } from './gate-words.ts'

export async function checkHand(
  { n, storyIds, commands }: Extract<Command, { do: 'check_hand' }>,
  context: Context,
): Promise<void> {
  const { ports, tell } = context
  const { changeId, runId } = context.state()
  const name = storyIds.join(', ')
  if (!context.begun() || ports.mode === 'resume') await context.begin()
  // A gate may take files away: what is the user's is under a ref before it runs.
  let { commit } = await ports.checkpoints.ensure(name, true)
  const env = {
    RALPH_CHANGE: changeId,
    RALPH_STORY: name,
    RALPH_RUN_ID: runId,
    ...(await ports.checkpoints.watch('gate', n)),
  }
  let failure: Awaited<ReturnType<typeof runGates>>
  for (let round = 1; round <= maxRounds; round += 1) {
    const held = await ports.spec.watch()
    const after = async (gate: string): Promise<void> => tellJudged(await held(gate), context)
    failure = await runGates(commands, context, { n, env, stop: context.stopping, byHand: true, after })
    if (failure !== undefined) break
    // What a gate has written is saved, too; it has to pass as it is now.
    const now = await ports.checkpoints.ensure(name, true)
    if (now.commit === commit) break
    commit = now.commit
  }
  await tell({ type: 'checkpoint.verified', commit })
  await tell({
    type: 'hand.checked',
    story_ids: [...storyIds],
    ...(failure !== undefined && { failed: reasonOf(failure.gate, failure.result) }),
    ...(failure?.result.outcome === 'could_not_run' && { could_not_run: true }),
  })
}
