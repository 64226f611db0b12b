// One command, one effect: what each command asks of the ports and which events come of it.
import type { Command } from '../core/loop.ts'
import { inOneLine, RalphError } from '../core/error.ts'
import { resultOf } from '../core/outcome.ts'
import type { Context } from './context.ts'
import { judgeClaim } from './claim.ts'
import { checkHand } from './hand.ts'
import { mostFiles } from './save.ts'
import { checkGates, tellJudged, warnEach } from './gate-check.ts'
import { planRead, recordIteration } from './record.ts'
import { saveCheckpoint } from './save.ts'
import { expectAgent, runAgent } from './turn.ts'

type Of<D extends Command['do']> = Extract<Command, { do: D }>

export async function perform(command: Command, context: Context): Promise<void> {
  const { ports, tell } = context
  switch (command.do) {
    case 'announce':
      return tell(command.event)
    case 'read_plan':
      // Whole, once for each loop: who listens from its start on has not heard of the stories of the loops before it.
      return tell(planRead(await ports.spec.read(), { settings: context.state().settings, stories: [] }))
    case 'check_hand':
      return checkHand(command, context)
    case 'ensure_checkpoint': {
      if (!context.begun() || ports.mode === 'resume') await context.begin()
      const { commit } = await ports.checkpoints.ensure(command.storyId)
      return tell({ type: 'checkpoint.verified', commit })
    }
    case 'open_iteration': {
      const { n, storyId, attempt, attempts, agent } = command
      const { git, maxIterations } = context.state()
      const untilMs = await ports.logins.look(agent)
      if (untilMs !== undefined) {
        const until = ports.clock.stamp(untilMs)
        return tell({ type: 'login.limited', agent, until, until_ms: untilMs, now_ms: ports.clock.now() })
      }
      // Before the record that an iteration is open: a recovery puts back what was guarded, never an earlier story's bytes.
      await ports.spec.guard()
      await expectAgent(command, context)
      return tell({
        type: 'iteration.started',
        n,
        story_id: storyId,
        attempt,
        attempts,
        max_iterations: maxIterations,
        agent,
        base_commit: git.lastCheckpoint ?? '',
        log_file: ports.transcript(n),
      })
    }
    case 'run_agent':
      return runAgent(command, context)
    case 'keep_attempt':
      return keepAttempt(command, context)
    case 'judge_claim':
      return judgeClaim(command, context)
    case 'check_gates':
      return checkGates(command, context)
    case 'settle_boxes':
      return settleBoxes(command, context)
    case 'save_checkpoint':
      return saveCheckpoint(command, context)
    case 'revert': {
      if (command.isStirred) await ports.checkpoints.keep(command.n)
      const bringBack = await ports.spec.added()
      const { commit } = await ports.checkpoints.restore()
      // Only now: what came while it was undone is kept with it.
      const files = await ports.checkpoints.changed(command.n)
      await ports.spec.putBack()
      await tell({
        type: 'checkpoint.reverted',
        n: command.n,
        commit,
        files: files.slice(0, mostFiles),
        files_total: files.length,
      })
      await warnEach(tell, 'plan_added', await bringBack())
      return
    }
    case 'record_iteration':
      return recordIteration(context)
    case 'wait': {
      const { for: cause, untilMs, agent } = command
      const isPause = cause === 'pause'
      const until = isPause ? '' : ports.clock.stamp(untilMs)
      await tell({ type: 'waiting', for: cause, until, until_ms: untilMs, agent })
      if (isPause) {
        await context.unpaused()
        return tell({ type: 'wait.ended' })
      }
      const how = await context.waited(untilMs, async (stop) =>
        cause === 'limit' ? ports.logins.freed(agent, stop) : false,
      )
      if (how === 'skipped') ports.logins.passOver(agent)
      return tell({
        type: 'wait.ended',
        ...(how !== 'over' && { skipped_ms: ports.clock.now() }),
        ...(how === 'free' && { free: true }),
      })
    }
    case 'ask_done':
      return tell({ type: 'choice.made', choice: await ports.human.isDone(command.task, context.stopping) })
    case 'ask_choice':
      return askChoice(context)
    case 'finish':
      return finish(command, context)
    case 'end_agent':
      // The engine itself aborts the agent; it never queues this one.
      return undefined
  }
}

async function keepAttempt(command: Of<'keep_attempt'>, context: Context): Promise<void> {
  const { ports, tell } = context
  const kept = await ports.checkpoints.keep(command.n, command.mayBeSaved)
  const judged = await ports.spec.judge(command.storyId)
  const isPutBack = judged.putBack.length > 0 || judged.lost !== undefined
  const { tree } =
    command.mayBeSaved && command.isGated && isPutBack ? await ports.checkpoints.look(kept.tree) : kept
  await warnEach(tell, 'agent_git', kept.warnings)
  await warnEach(tell, 'beside', kept.notes)
  if (!kept.isElsewhere) await tellJudged(judged, context)
  await tell({
    type: 'attempt.kept',
    n: command.n,
    ref: kept.ref,
    commit: kept.commit,
    commits: [...kept.commits],
    changed: kept.changed,
    history_rewritten: kept.historyRewritten,
    ticked: judged.ticked,
    still_open: judged.stillOpen,
    not_asked: judged.notAsked ?? 0,
    tree,
    ...(judged.lost !== undefined && { spec_lost: judged.lost }),
    ...(kept.refused !== undefined && { refused: kept.refused }),
    ...(kept.gone.length > 0 && { gone: [...kept.gone] }),
  })
}

async function settleBoxes(command: Of<'settle_boxes'>, context: Context): Promise<void> {
  const forgot = command.ticked === 0 && command.stillOpen > 0
  const tickedByRalph = forgot ? await context.ports.spec.tick(command.storyId) : 0
  await context.tell({
    type: 'boxes.settled',
    n: command.n,
    remaining: forgot ? 0 : command.stillOpen,
    not_asked: command.notAsked,
    ticked_by_ralph: tickedByRalph,
  })
}

async function askChoice(context: Context): Promise<void> {
  const { ports, tell } = context
  const state = context.state()
  await tell({
    type: 'choice.needed',
    original_branch: state.originalBranch,
    branch: state.branch,
    status: state.outcome?.status ?? 'stopped',
    ...resultOf(state),
  })
  const summary = state.outcome?.reason ?? ''
  const choice = await ports.human.choose(
    {
      originalBranch: state.originalBranch,
      branch: state.branch,
      summary,
      ...(state.home !== undefined && { worktree: state.worktree }),
      isStuck: state.outcome?.stopReason === 'retries' || state.outcome?.stopReason === 'stall',
    },
    context.question,
  )
  await tell({ type: 'choice.made', choice })
}

async function wrapUp(context: Context): Promise<void> {
  const { ports, tell } = context
  const { warnings, checkpoint } = await ports.wrapUp()
  await warnEach(tell, 'wrap_up', warnings)
  if (checkpoint === undefined) return
  const { message, after } = checkpoint
  const { commit, changed } = await ports.checkpoints.save(
    'archive',
    message,
    undefined,
    `Ralph-Change: ${context.state().changeId}`,
  )
  await tell({ type: 'checkpoint.saved', message, commit, changed })
  await after()
}

async function finish(command: Of<'finish'>, context: Context): Promise<void> {
  const { ports, tell } = context
  try {
    if (!context.begun()) {
      await tell({ type: 'loop.finished', choice: command.choice, ok: true, message: 'Nothing was changed.' })
      return
    }
    if (context.state().outcome?.status === 'done') await wrapUp(context)
    const report = await ports.checkpoints.finish(command.choice)
    const { message, remote, userPaths, gone } = report
    await tell({
      type: 'loop.finished',
      choice: command.choice,
      ok: true,
      message,
      ...(gone !== undefined && { gone: [...gone] }),
      ...(remote !== undefined && { remote }),
      ...(remote !== undefined && userPaths.length > 0 && { user_paths: userPaths.slice(0, 4) }),
    })
  } catch (error) {
    if (!(error instanceof RalphError)) throw error
    // The loop's own status and exit code stand.
    const message = inOneLine(error)
    await tell({ type: 'warning', code: error.code, message })
    await tell({ type: 'loop.finished', choice: command.choice, ok: false, message })
  }
}
