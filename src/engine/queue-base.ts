// Where the next change of the queue begins or lands, and whether that is as the queue has left it: if not, the queue halts and says why.
import { isOwnLanding, targetOf } from '../core/queue.ts'
import type { Entry, QueueState } from '../core/queue.ts'
import type { QueueBody } from '../core/queue-event.ts'
import type { GateResult } from '../ports.ts'
import type { Landing, QueueHand, TargetRefs } from './queue-ports.ts'

export interface Base extends TargetRefs {
  readonly commit: string
}

export interface Bases {
  /** Undefined where the queue has halted, or waits. */
  now(change: string, stop: AbortSignal): Promise<Base | undefined>
  /** What it has to pass: of its own loop, what it was queued with, and what this queue was given. */
  gatesOf(change: string): Promise<readonly string[]>
  /** Gates that have not seen it: only what the queue itself has merged is new to them. */
  unseenBy(change: string, base: Base): Promise<readonly string[]>
  /** What the user committed and what landed may go together for git and for no gate: that is nobody's fault. */
  isGreen(change: string, base: Base, stop: AbortSignal): Promise<boolean>
}

export function basesOf({ ports, now, tell, note }: QueueHand): Bases {
  const halted = (why: string, hint: string): undefined => {
    if (now().halted?.why !== why) tell({ type: 'queue.halted', why, hint })
  }

  const baseNow = async (change: string, stop: AbortSignal, before?: string): Promise<Base | undefined> => {
    const { landing } = ports
    const target = targetOf(now(), change)
    // What lands behind the look is neither in it nor in what was known before it: it is missed by nobody.
    const known = now()
    // Looked at once: what an agent makes of them a moment later nobody begins from.
    const refs = await landing.refs(target)
    const { landed, isHome } = refs
    const ref = `refs/ralph-landed/${target}`
    const { last, home } = known.landed[target] ?? {}
    const sight = JSON.stringify([refs, known.landed[target]])
    // A landing that is under way, or a loop that puts back what its agent moved, is through at the second look.
    const haltedIfStill = async (why: string, hint: string): Promise<Base | undefined> =>
      before === sight ? halted(why, hint) : await baseNow(change, stop, sight)
    const isOwn = landed === undefined ? last === undefined : isOwnLanding(known, target, landed)
    if (!isOwn) {
      const by = await landing.movedBy(target, landed)
      if (by !== undefined) {
        const why = `waits for the loop of ${by}: its agent has moved ${ref}, and that is put back`
        if (entryNow(now(), change)?.why !== why) tell({ type: 'entry.waiting', change, why })
        await ports.pulse(stop)
        return undefined
      }
      if (before !== sight) return await baseNow(change, stop, sight)
    }
    if (landed === undefined && last !== undefined && !(await landing.isHome(target, last)))
      return await haltedIfStill(
        `${ref} is gone, and what landed (${last.slice(0, 12)}) is not on ${target}`,
        `Bring it back: git update-ref ${ref} ${last}; or, if it is to be gone: git update-ref ${ref} refs/heads/${target}; then ralph up`,
      )
    if (landed !== undefined && !isHome) {
      if (!isOwn)
        return await haltedIfStill(
          `${ref} was moved to ${landed.slice(0, 12)}, and the queue has not landed that`,
          `Look at it: git log ${target}..${ref}. If it is right, merge it into ${target}; if not: git update-ref ${ref} ${last ?? `refs/heads/${target}`}; then ralph up`,
        )
      // What landed holds what somebody has taken off the branch: it would come back with it.
      const isSetBack =
        (home !== undefined && !(await landing.isHome(target, home))) ||
        (await landing.wasHome(target, landed))
      if (isSetBack)
        return await haltedIfStill(
          `${target} was reset or rewritten: what landed (${landed.slice(0, 12)}) holds commits that ${target} had and has no longer`,
          `If that was no mistake: git update-ref ${ref} refs/heads/${target} (what landed and is not on ${target} can be landed again by its name). If it was: git switch ${target} && git merge ${ref}. Then ralph up`,
        )
    }
    if (landed !== undefined && isHome && home !== landed)
      tell({ type: 'target.followed', target, commit: landed })
    for (const body of await takenBack(known, (of, commits) => landing.notLanded(of, commits, refs), [
      target,
    ]))
      note(body)
    const base = await landing.base(target, refs)
    if ('commit' in base) return { ...refs, ...base }
    return await haltedIfStill(
      `${target} and what landed changed the same lines: ${base.conflicts.join(', ')}`,
      `Merge them: git switch ${target} && git merge ${ref}; then ralph up`,
    )
  }

  const gatesOf = async (change: string): Promise<readonly string[]> => {
    const own = await ports.landing.gates(change)
    return provenBy(now(), change, own)
  }

  const greenMerges = new Set<string>()

  const unseenBy = async (change: string, { commit, own, landed }: Base): Promise<readonly string[]> => {
    if (commit === own || commit === landed) return []
    return (await gatesOf(change)).filter((gate) => !greenMerges.has(`${commit} ${gate}`))
  }

  const isGreen = async (change: string, base: Base, stop: AbortSignal): Promise<boolean> => {
    const target = targetOf(now(), change)
    for (const gate of await unseenBy(change, base)) {
      const check = (isFresh: boolean): ReturnType<Landing['gate']> =>
        ports.landing.gate(change, gate, base.commit, stop, isFresh)
      const first = await check(false)
      const result = first.outcome === 'failed' ? await check(true) : first
      if (result.outcome === 'stopped') return false
      if (result.outcome !== 'passed') {
        const fails = result.outcome === 'could_not_run' ? 'could not run' : 'fails'
        halted(
          `the gate \`${gate}\` ${fails} on ${target} together with what landed, without ${change}: ${lineOf(result)}`,
          `Its output: ${ports.landing.logOf(change)}. Merge them: git switch ${target} && git merge refs/ralph-landed/${target}; fix it there and commit; then ralph up`,
        )
        return false
      }
      greenMerges.add(`${base.commit} ${gate}`)
    }
    return true
  }

  return { now: baseNow, gatesOf, unseenBy, isGreen }
}

/** What is to be told of entries that have landed and are, by git's history, on their target no longer. */
export async function takenBack(
  state: QueueState,
  notLanded: (target: string, commits: readonly string[]) => Promise<readonly string[]>,
  targets: readonly string[] = Object.keys(state.landed),
): Promise<readonly Extract<QueueBody, { type: 'entry.unlanded' }>[]> {
  const gone: Extract<QueueBody, { type: 'entry.unlanded' }>[] = []
  for (const target of targets) {
    const there = state.entries.flatMap(({ change, state: now, landed }) =>
      now === 'landed' && landed?.target === target ? [{ change, commit: landed.commit }] : [],
    )
    if (there.length === 0) continue
    const commits = await notLanded(
      target,
      there.map(({ commit }) => commit),
    )
    for (const { change, commit } of there)
      if (commits.includes(commit))
        gone.push({
          type: 'entry.unlanded',
          change,
          why: `it had landed as ${commit.slice(0, 12)}, which is neither on ${target} nor on refs/ralph-landed/${target} any more`,
          hint: `To land it again: ralph queue retry ${change}, then ralph up. To forget it: ralph queue remove ${change}`,
        })
  }
  return gone
}

/** `own`: of its loop. */
export function provenBy(state: QueueState, change: string, own: readonly string[]): readonly string[] {
  const { gates = [], given = [] } = entryNow(state, change) ?? {}
  return [...new Set([...gates, ...own, ...given, ...state.gates])]
}

export function entryNow({ entries }: QueueState, change: string): Entry | undefined {
  return entries.find((each) => each.change === change)
}

export function lineOf({ failure, outputTail }: GateResult): string {
  return failure?.what ?? lastLine(outputTail)
}

export function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) || 'it printed nothing'
}
