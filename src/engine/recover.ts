// What becomes of a dead loop: its death is recorded by whoever looks, its tree is put in order by whoever may repair.
import { warnEach } from './gate-check.ts'
import { mostFiles, tellSaved } from './save.ts'
import { firstNames } from '../core/first-names.ts'
import type { LoopState } from '../core/state.ts'
import type { Clock } from '../ports.ts'
import { aboutStory } from './about.ts'
import type { Loop, Ports } from './run.ts'

export interface Death {
  /** Epoch ms of its last sign of life. */
  readonly lastSignMs: number
  /** What is still running of it. */
  readonly orphans: readonly number[]
}

/** Call with its locks held. The open iteration is recorded, once, and the loop has ended; neither git nor a process is touched. */
export async function recordDeath(loop: Loop, clock: Clock, { lastSignMs, orphans }: Death): Promise<void> {
  if (loop.state.phase === 'idle' || loop.state.phase === 'ended') return
  const now = clock.now()
  await loop.tell({
    type: 'loop.died',
    at_ms: Math.min(lastSignMs, now),
    now_ms: now,
    orphans: [...orphans],
  })
  await loop.run()
}

export interface Repair extends Death {
  /** Ends what is left of it, and says what that was. */
  reap(): Promise<readonly number[]>
  /** Throws where a repair could take something from a user who has moved on since; true when it had to go back to the loop's branch. */
  returnToRun(state: LoopState): Promise<boolean>
  /** Called when the last sign of life is recorded: from then on the repair gives its own. */
  beat(): void
}

/**
 * Call with the locks held. Also for a loop that ended well: a half-done `ralph finish` is brought to its end all the same, and so is
 * an iteration that an error had cut off. Resolves with one sentence for the user.
 */
export async function repair(loop: Loop, ports: Ports, world: Repair): Promise<string> {
  const { checkpoints, clock } = ports
  const { phase, pid } = loop.state
  await recordDeath(loop, clock, world)
  const ended = await world.reap()
  if (ended.length > 0) await loop.tell({ type: 'orphans.ended', now_ms: clock.now(), pids: [...ended] })
  const isBack = await world.returnToRun(loop.state)
  await loop.tell({ type: 'repair.began', now_ms: clock.now(), last_sign_ms: world.lastSignMs })
  world.beat()
  const isFinish = loop.state.git.pending?.operation.op === 'finish'
  const { said: repaired, commit } = await checkpoints.recover()
  if (isFinish)
    await loop.tell({
      type: 'loop.finished',
      choice: 'cleanup',
      ok: true,
      message: repaired ?? '',
      ...(commit !== undefined && { commit }),
    })
  const settled = await settle(loop, ports, isBack)
  // The files are those of the branch as it was before the step.
  if (isBack && repaired !== undefined && settled === '' && !isFinish) await checkpoints.restore()
  const detail = [
    phase === 'ended'
      ? loop.state.outcome?.stopReason === 'killed'
        ? 'the last loop was killed'
        : ''
      : `the last loop was killed (pid ${pid})`,
    ended.length > 0 ? `its agent was still running and has been ended (${ended.join(', ')})` : '',
    repaired ?? '',
    settled,
  ]
    .filter((part) => part !== '')
    .map((part, at) => (at === 0 ? part : `${part.slice(0, 1).toUpperCase()}${part.slice(1)}`))
    .join('. ')
  await loop.tell({ type: 'repair.ended', detail })
  return detail
}

async function settle(loop: Loop, { checkpoints, spec }: Ports, isBack: boolean): Promise<string> {
  const { unsettled, outcome } = loop.state
  if (unsettled === undefined) return ''
  const { n, storyId, message, tree } = unsettled
  // What passed its gates is saved only as it was then.
  if (message !== undefined && !isBack && (await checkpoints.isAsLeft())) {
    const { tasksFile: mayDiffer = '' } = loop.state
    const judged = tree === undefined ? undefined : { tree, isBinding: true, mayDiffer }
    const { agent = '' } = loop.state.iterations.find((each) => each.n === n) ?? {}
    const about = await aboutStory(spec, loop.state, { storyId, agent })
    const saved = await checkpoints.save(storyId, message, judged, about)
    if (saved.refused === undefined) {
      const { changeId } = loop.state
      await tellSaved(saved, { n, storyId, message, changeId }, { spec, tell: (body) => loop.tell(body) })
      return `#${n} was complete when its checkpoint failed; it is saved now`
    }
  }
  const kept = await checkpoints.keep(n)
  await warnEach(loop.tell, 'agent_git', kept.warnings)
  await warnEach(loop.tell, 'beside', kept.notes)
  await loop.tell({
    type: 'attempt.kept',
    n,
    ref: kept.ref,
    commit: kept.commit,
    commits: [...kept.commits],
    changed: kept.changed,
    history_rewritten: kept.historyRewritten,
    ticked: 0,
    still_open: 0,
    not_asked: 0,
  })
  const bringBack = await spec.added()
  const { commit, stays } = await checkpoints.restore()
  await warnEach(loop.tell, 'put_back', await spec.putBack())
  await warnEach(loop.tell, 'plan_added', await bringBack())
  const isOwn = (path: string): boolean => stays.some((own) => path === own || path.startsWith(`${own}/`))
  // With the agent's whatever its user had changed beside it: nobody can tell them apart.
  const files = (await checkpoints.changed(n)).filter((path) => !isOwn(path))
  await loop.tell({
    type: 'checkpoint.reverted',
    n,
    commit,
    files: files.slice(0, mostFiles),
    files_total: files.length,
  })
  const what = outcome?.stopReason === 'killed' ? '' : `#${n} was cut off by an error; `
  const { changeId } = loop.state
  const undone =
    files.length === 0
      ? ''
      : `. Undone, ${files.length} ${files.length === 1 ? 'file' : 'files'}: ${firstNames(files, mostNames)}; all of it back: ralph restore ${n} ${changeId}`
  return `${what}what it left is kept as ${kept.ref} (ralph diff ${n} ${changeId}), and ${stays.length === 0 ? 'the work tree' : 'all but what is yours'} is back at the checkpoint${undone}`
}

/** As many as the warnings about what may be the user's. */
const mostNames = 50
