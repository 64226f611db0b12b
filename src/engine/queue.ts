// Drives the merge queue: asks what is due, starts loops as processes of their own, lands what is done, one after the other.
import { byHand, dueNow, inOrder, mostSpawns, parked, queueExit } from '../core/queue-due.ts'
import { evolveQueue, isOwnLanding, targetOf } from '../core/queue.ts'
import type { Conflict, Entry, QueueState } from '../core/queue.ts'
import type { LoopFacts, Money } from '../core/queue-due.ts'
import type { QueueBody, QueueEvent } from '../core/queue-event.ts'
import { RalphError } from '../core/error.ts'
import type { GateResult } from '../ports.ts'

/** What the queue asks of the world. */
export interface QueuePorts {
  /** On the disk when it returns. */
  append(event: QueueEvent): void
  stamp(): string
  /** What other processes have asked for since. */
  wishes(take: (body: QueueBody) => void): void
  readonly loops: {
    /** `marked`: both sides of its conflict, where it has one. */
    facts(change: string, marked?: string): Promise<LoopFacts>
    /** Resolves when it has begun, or with what it said when it refused. It outlives this process. */
    start(
      change: string,
      how: 'loop' | 'resume',
      at: { readonly base: string; readonly slot: number; readonly maxCostUsd?: number },
    ): Promise<{ readonly refused?: string; readonly exitCode?: number }>
    /** In the change's own work tree, from both sides with their markers. */
    resolve(
      change: string,
      conflict: Conflict,
      at: { readonly target: string; readonly slot: number; readonly maxCostUsd?: number },
    ): Promise<{ readonly refused?: string; readonly exitCode?: number }>
    /** The same agent goes on with what was wrong. */
    tryAgain(
      change: string,
      problems: readonly string[],
      at: { readonly slot: number; readonly maxCostUsd?: number },
    ): Promise<{ readonly refused?: string; readonly exitCode?: number }>
    /** Nothing was wrong: its loop is done. */
    accept(change: string): Promise<void>
    /** Why none may be started now; empty where one may. */
    hold(): Promise<string>
  }
  readonly landing: Landing
  /** Something may have changed: a loop ended, a wish was made, time passed. */
  pulse(stop: AbortSignal): Promise<void>
}

export interface Landing {
  /** The branch and what landed on it. */
  refs(target: string): Promise<TargetRefs>
  /** Why nothing can land there; empty where it can. */
  whyNoTarget(target: string): Promise<string>
  /** Where the next one lands: on both; conflicts where the user's own commits and what landed do not go together. */
  base(target: string): Promise<{ readonly commit: string } | { readonly conflicts: readonly string[] }>
  /** Whether this commit is in the branch. */
  isHome(target: string, commit: string): Promise<boolean>
  /** Whether the branch had this commit at some time, as far as git remembers. */
  wasHome(target: string, commit: string): Promise<boolean>
  tip(change: string): Promise<string | undefined>
  /** Whether git still has it. */
  isThere(commit: string): Promise<boolean>
  /** Work of somebody's that would not land with it, or a plan that is another one by now; empty where all is well. */
  unfit(change: string): Promise<string>
  /** Whether this commit is in what landed, or in the branch. */
  has(target: string, commit: string): Promise<boolean>
  /** Which loop's agent or gate, still at work, has put what landed there: its loop puts that back. */
  movedBy(target: string, to: string): Promise<string | undefined>
  /** Of these the ones that are in neither. */
  notLanded(target: string, commits: readonly string[]): Promise<readonly string[]>
  /** The work merged, set up and archived, as one commit that is nowhere yet. */
  build(
    change: string,
    from: {
      readonly base: string
      readonly tip: string
      /** To be made anew, besides those that conflict now. */
      readonly generated: readonly string[]
      /** The base is on a ref: where nothing would be added to it, it is itself the commit. */
      readonly isAtRef: boolean
    },
    stop: AbortSignal,
  ): Promise<
    | {
        readonly commit: string
        readonly gates: readonly string[]
        readonly notes: readonly string[]
        readonly regenerated: readonly string[]
      }
    | {
        readonly conflicts: readonly string[]
        readonly marked: string
        readonly said?: string
        readonly generated: readonly string[]
      }
    | { readonly refused: string; readonly hint?: string }
    | 'stopped'
  >
  /** What is wrong with how both sides were put together: markers, a side that was dropped, tests that were changed. */
  judge(
    change: string,
    conflict: Conflict,
  ): Promise<{
    readonly problems: readonly string[]
    /** Files that had no conflict and were changed all the same. */
    readonly beside: readonly string[]
    readonly tip?: string
  }>
  /** Whether its branch stands on these markers as a loop has left it: no commit of anybody's is on them. */
  isLeft(change: string, marked: string): Promise<boolean>
  /** The gates of a change whose candidate was built before. */
  gates(change: string): Promise<readonly string[]>
  /** On exactly this commit. A gate that changes files has not passed: what lands would be something else. */
  gate(
    change: string,
    command: string,
    commit: string,
    stop: AbortSignal,
    /** In a work tree made anew: nothing that an earlier run of a gate left is there. */
    isFresh: boolean,
  ): Promise<GateResult & { readonly changed: readonly string[] }>
  /** What the gates printed. */
  logOf(change: string): string
  /** By compare-and-swap; false where somebody was quicker. */
  land(target: string, commit: string, onto: string | undefined): Promise<boolean>
  /** The branch follows, where nobody stands on it or has moved it since; else why not. */
  carryHome(target: string, from: string): Promise<string>
  close(): Promise<void>
}

interface TargetRefs {
  /** Of the branch itself. */
  readonly own: string
  readonly landed: string | undefined
  /** What landed is on the branch already. */
  readonly isHome: boolean
}

interface Base extends TargetRefs {
  readonly commit: string
}

export type QueueReader = (event: QueueEvent, state: QueueState) => void

export interface Queue {
  readonly state: QueueState
  tell(body: QueueBody): void
  /** What git's history says: it is asked again each time, and not written down. */
  note(body: QueueBody): void
  /** Until nothing is under way and nothing is due, or `stop`: loops go on then. `only` this change: the others stay as they are. */
  run(stop: AbortSignal, only?: string): Promise<number>
}

export function createQueue(ports: QueuePorts, initial: QueueState, readers: readonly QueueReader[]): Queue {
  let state = initial
  const tell = (body: QueueBody): void => {
    const event = { v: 1, seq: state.seq + 1, time: ports.stamp(), ...body } as QueueEvent
    ports.append(event)
    state = evolveQueue(state, event)
    for (const read of readers) read(event, state)
  }
  const note = (body: QueueBody): void => {
    const event = { v: 1, seq: state.seq, time: ports.stamp(), ...body } as QueueEvent
    state = evolveQueue(state, event)
    for (const read of readers) read(event, state)
  }
  let isStopped = (): boolean => false
  let landingNow: Promise<void> | undefined
  const entry = (change: string): Entry | undefined => state.entries.find((each) => each.change === change)

  const halted = (why: string, hint: string): undefined => {
    tell({ type: 'queue.halted', why, hint })
  }

  /** Where the next one begins or lands; undefined where the queue has halted. */
  const baseNow = async (change: string, stop: AbortSignal): Promise<Base | undefined> => {
    const { landing } = ports
    const target = targetOf(state, change)
    const refs = await landing.refs(target)
    const { landed, isHome } = refs
    const ref = `refs/ralph-landed/${target}`
    const { last, home } = state.landed[target] ?? {}
    if (landed === undefined && last !== undefined && !(await landing.isHome(target, last)))
      return halted(
        `${ref} is gone, and what landed (${last.slice(0, 12)}) is not on ${target}`,
        `Bring it back: git update-ref ${ref} ${last}; or, if it is to be gone: git update-ref ${ref} refs/heads/${target}; then ralph up`,
      )
    if (landed !== undefined && !isHome) {
      const isOwn = isOwnLanding(state, target, landed)
      const by = isOwn ? undefined : await landing.movedBy(target, landed)
      if (by !== undefined) {
        const why = `waits for the loop of ${by}: its agent has moved ${ref}, and that is put back`
        if (entry(change)?.why !== why) tell({ type: 'entry.waiting', change, why })
        await ports.pulse(stop)
        return undefined
      }
      if (!isOwn)
        return halted(
          `${ref} was moved to ${landed.slice(0, 12)}, and the queue has not landed that`,
          `Look at it: git log ${target}..${ref}. If it is right, merge it into ${target}; if not: git update-ref ${ref} ${last ?? `refs/heads/${target}`}; then ralph up`,
        )
      // What landed holds what somebody has taken off the branch: it would come back with it.
      const isSetBack =
        (home !== undefined && !(await landing.isHome(target, home))) ||
        (await landing.wasHome(target, landed))
      if (isSetBack)
        return halted(
          `${target} was reset or rewritten: what landed (${landed.slice(0, 12)}) holds commits that ${target} had and has no longer`,
          `If that was no mistake: git update-ref ${ref} refs/heads/${target} (what landed and is not on ${target} can be landed again by its name). If it was: git switch ${target} && git merge ${ref}. Then ralph up`,
        )
    }
    if (landed !== undefined && isHome && home !== landed)
      tell({ type: 'target.followed', target, commit: landed })
    await takeBack()
    const base = await landing.base(target)
    if ('commit' in base) return { ...refs, ...base }
    return halted(
      `${target} and what landed changed the same lines: ${base.conflicts.join(', ')}`,
      `Merge them: git switch ${target} && git merge ${ref}; then ralph up`,
    )
  }

  const greenMerges = new Set<string>()

  /** Gates that have not seen where the next one begins or lands: only what the queue itself has merged is new to them. */
  const unseenBy = async (change: string, { commit, own, landed }: Base): Promise<readonly string[]> => {
    if (commit === own || commit === landed) return []
    return (await ports.landing.gates(change)).filter((gate) => !greenMerges.has(`${commit} ${gate}`))
  }

  /** What the user committed and what landed may go together for git and for no gate: that is nobody's fault. */
  const isGreen = async (change: string, base: Base, stop: AbortSignal): Promise<boolean> => {
    const target = targetOf(state, change)
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

  /** Those that were taken off their target say so; whether they were, git's history tells. */
  const takeBack = async (): Promise<void> => {
    for (const body of await takenBack(state, (...asked) => ports.landing.notLanded(...asked))) note(body)
  }

  /** A branch that was renamed or deleted is one change's trouble, and stops no other. */
  const onTarget = async (change: string, work: Promise<void>): Promise<void> => {
    try {
      await work
    } catch (error) {
      const target = targetOf(state, change)
      const why = error instanceof RalphError ? await ports.landing.whyNoTarget(target) : ''
      if (why === '') throw error
      const hint = `For another branch: ralph up ${change} --into <branch>. When ${target} is there again: ralph queue retry ${change}, then ralph up`
      tell(parked(change, 'human', why, hint))
    }
  }

  const spawnedAt = async (change: string, base: string, { slot, money }: Place): Promise<QueueBody> => {
    const { run } = await ports.loops.facts(change)
    const of = money && { reserved_usd: money.reservedUsd, max_cost_usd: money.maxCostUsd }
    return { type: 'loop.spawned', change, base, slot, ...(run !== undefined && { over: run }), ...of }
  }

  const spawn = async (
    change: string,
    how: 'loop' | 'resume',
    place: Place,
    stop: AbortSignal,
  ): Promise<void> => {
    const base = await baseNow(change, stop)
    if (base === undefined) return
    // There is one tree to try merges in.
    if (landingNow !== undefined && (await unseenBy(change, base)).length > 0) return await ports.pulse(stop)
    if (!(await isGreen(change, base, stop))) return
    tell(await spawnedAt(change, base.commit, place))
    refusedAs(change, await ports.loops.start(change, how, { base: base.commit, ...placeOf(place) }))
  }

  const refusedAs = (
    change: string,
    { refused, exitCode }: { readonly refused?: string; readonly exitCode?: number },
  ): void => {
    // Who stops the queue ends what is only beginning, too: that is no fault of the change.
    if (refused === undefined || isStopped()) return
    // One that a killed queue has started takes its lock just now: it is taken up when it has.
    if (exitCode === 7 && (entry(change)?.spawns ?? 0) < mostSpawns) return
    const kind = exitCode === 5 ? 'human' : exitCode === 6 ? 'limit' : 'failed'
    tell(parked(change, kind, refused, `Fix it, then: ralph queue retry ${change}`))
  }

  const resolve = async (change: string, place: Place): Promise<void> => {
    const { conflict } = entry(change) ?? {}
    if (conflict === undefined) return
    tell(await spawnedAt(change, conflict.marked, place))
    const [at, { problems }] = [placeOf(place), conflict]
    refusedAs(
      change,
      problems.length > 0
        ? await ports.loops.tryAgain(change, problems, at)
        : await ports.loops.resolve(change, conflict, { target: targetOf(state, change), ...at }),
    )
  }

  const judge = async (change: string): Promise<void> => {
    const { conflict } = entry(change) ?? {}
    if (conflict === undefined) return
    const { problems, beside, tip } = await ports.landing.judge(change, conflict)
    if (problems.length === 0) await ports.loops.accept(change)
    tell({
      type: 'resolution.judged',
      change,
      problems: [...problems],
      ...(tip !== undefined && { tip }),
      ...(beside.length > 0 && { beside: [...beside] }),
      cost_usd: (await ports.loops.facts(change)).costUsd,
    })
  }

  /** One change, from its branch to the target. Returns when it has landed, was parked, or has to begin again. */
  const land = async (change: string, stop: AbortSignal): Promise<void> => {
    const { landing } = ports
    const before = entry(change)
    const target = targetOf(state, change)
    // Killed in the very moment: whether it happened only the refs know.
    if (
      before?.isLanding === true &&
      before.candidate !== undefined &&
      (await landing.has(target, before.candidate.commit))
    )
      return await landed(change, before.candidate.commit)
    const base = await baseNow(change, stop)
    if (base === undefined || !(await isGreen(change, base, stop))) return
    const tip = await landing.tip(change)
    if (tip === undefined)
      return tell(
        parked(
          change,
          'failed',
          `its branch ralph/${change} is gone`,
          `Bring it back: git branch ralph/${change} refs/ralph/${change}/checkpoint; then: ralph queue retry ${change}`,
        ),
      )
    // Retried as it was refused: nobody has looked at it since.
    if (tip === before?.refused)
      return tell(
        parked(
          change,
          'failed',
          'the merge that an agent made was refused, and its branch is as it was then',
          byHand(change, before.unresolved?.paths ?? [], (await ports.loops.facts(change)).folder),
        ),
      )
    // Git's own merge of both is no conflict any more, and nobody has said that it is right.
    if (before?.unresolved !== undefined && (await landing.isLeft(change, before.unresolved.marked))) {
      const { base: onto, tip: own, paths, marked, said, generated } = before.unresolved
      return tell({
        type: 'candidate.conflicted',
        change,
        base: onto,
        tip: own,
        paths: [...paths],
        marked,
        ...(said !== undefined && { said }),
        generated: [...generated],
      })
    }
    let { candidate } = entry(change) ?? {}
    let gates: readonly string[]
    const isSame = candidate?.base === base.commit && candidate.tip === tip
    if (candidate !== undefined && isSame && (await landing.isThere(candidate.commit)))
      gates = await landing.gates(change)
    else {
      tell({ type: 'candidate.began', change, base: base.commit, tip })
      const generated = entry(change)?.generated ?? []
      const isAtRef = base.commit === base.own || base.commit === base.landed
      const built = await landing.build(change, { base: base.commit, tip, generated, isAtRef }, stop)
      if (built === 'stopped') return
      if ('conflicts' in built) {
        const { conflicts, marked, said, generated: toMake } = built
        return tell({
          type: 'candidate.conflicted',
          change,
          base: base.commit,
          tip,
          paths: [...conflicts],
          marked,
          ...(said !== undefined && { said }),
          ...(toMake.length > 0 && { generated: [...toMake] }),
          gates: [...(await landing.gates(change))],
        })
      }
      if ('refused' in built)
        return tell(parked(change, 'failed', built.refused, built.hint ?? fixIt(change)))
      if (built.regenerated.length > 0)
        tell({ type: 'candidate.regenerated', change, paths: [...built.regenerated] })
      tell({ type: 'candidate.built', change, base: base.commit, tip, commit: built.commit })
      gates = built.gates
      candidate = entry(change)?.candidate
    }
    if (candidate === undefined) return
    const { commit } = candidate
    // All of it is there already: somebody has merged it.
    if (commit === base.commit) return await landed(change, commit)
    const all = new Set([...(before?.gates ?? []), ...gates])
    for (const gate of [...all].filter((each) => !candidate.passed.includes(each))) {
      const verdict = await passes(change, gate, { commit, base: base.commit }, stop)
      if (verdict !== 'passed') return
    }
    const now = await landing.base(target)
    const isMoved = 'conflicts' in now || now.commit !== base.commit
    const newTip = await landing.tip(change)
    // Taken out of the queue while its gates ran.
    if (entry(change)?.candidate?.commit !== commit) return
    if (isMoved || newTip !== tip)
      return tell({ type: 'base.moved', change, to: 'conflicts' in now ? base.commit : now.commit })
    const unfit = await landing.unfit(change)
    if (unfit !== '') return tell(parked(change, 'failed', unfit, fixIt(change)))
    tell({
      type: 'landing.began',
      change,
      commit,
      home: base.own,
      ...(base.landed !== undefined && { onto: base.landed }),
    })
    if (!(await landing.land(target, commit, base.landed)))
      return tell({ type: 'base.moved', change, to: base.commit })
    await landed(change, commit)
  }

  const landed = async (change: string, commit: string): Promise<void> => {
    const target = targetOf(state, change)
    const isByHand = entry(change)?.unresolved !== undefined
    tell({ type: 'landed', change, commit })
    // Put together by hand: the loop that was to do it waits for a word that nobody needs any more.
    if (isByHand)
      await ports.loops.accept(change).catch((error: unknown) => {
        if (!(error instanceof RalphError)) throw error
      })
    const { home } = state.landed[target] ?? {}
    if (home !== undefined && (await ports.landing.carryHome(target, home)) === '')
      tell({ type: 'target.followed', target, commit })
  }

  /** Killed before the branch could follow: it does now, where it stands as it stood. */
  const carryAll = async (): Promise<void> => {
    for (const [target, { last, home }] of Object.entries(state.landed)) {
      if (last === undefined || home === undefined || home === last) continue
      // A target that is gone is told by who needs it.
      const { own, landed: now } = await ports.landing.refs(target).catch((error: unknown) => {
        if (error instanceof RalphError) return { own: '', landed: '' }
        throw error
      })
      if (own === home && now === last && (await ports.landing.carryHome(target, home)) === '')
        tell({ type: 'target.followed', target, commit: last })
    }
  }

  /** Red twice, and green on the base: the change's fault. Whatever else it is, is told as that. */
  const passes = async (
    change: string,
    gate: string,
    { commit, base }: { readonly commit: string; readonly base: string },
    stop: AbortSignal,
  ): Promise<'passed' | 'not'> => {
    const told = (outcome: 'passed' | 'failed' | 'could_not_run', flaky = false): void =>
      tell({ type: 'candidate.gated', change, commit, gate, outcome, ...(flaky && { flaky }) })
    const check = (on: string, isFresh: boolean): ReturnType<Landing['gate']> =>
      ports.landing.gate(change, gate, on, stop, isFresh)
    const first = await check(commit, false)
    if (first.outcome === 'stopped') return 'not'
    if (first.outcome === 'passed' && first.changed.length === 0) {
      told('passed')
      return 'passed'
    }
    if (first.outcome === 'could_not_run') {
      told('could_not_run')
      tell(
        parked(
          change,
          'human',
          `the gate \`${gate}\` could not run: ${lastLine(first.outputTail)}`,
          `Fix it, then: ralph queue retry ${change}`,
        ),
      )
      return 'not'
    }
    if (first.outcome === 'passed') {
      told('failed')
      tell(
        parked(
          change,
          'failed',
          `the gate \`${gate}\` changes files: ${first.changed.join(', ')}`,
          `Commit what it changes on ralph/${change}, or name it in a .gitignore there, then: ralph queue retry ${change}`,
        ),
      )
      return 'not'
    }
    const second = await check(commit, true)
    if (second.outcome === 'stopped') return 'not'
    if (second.outcome === 'passed' && second.changed.length === 0) {
      told('passed', true)
      return 'passed'
    }
    told('failed')
    const onBase = await check(base, true)
    if (onBase.outcome === 'stopped') return 'not'
    if (onBase.outcome !== 'passed') {
      tell({
        type: 'queue.halted',
        why: `the gate \`${gate}\` fails on ${targetOf(state, change)} without ${change}, too: ${lineOf(onBase)}`,
        hint: `Fix ${targetOf(state, change)}, then: ralph up`,
      })
      return 'not'
    }
    tell(
      parked(
        change,
        'failed',
        `\`${gate}\` fails after the merge: ${lineOf(second)}`,
        `Its output: ${ports.landing.logOf(change)}. Fix it on ralph/${change}, then: ralph queue retry ${change}`,
      ),
    )
    return 'not'
  }

  return {
    get state() {
      return state
    },
    tell,
    note,
    async run(stop, only) {
      isStopped = () => stop.aborted
      const mine = (): QueueState =>
        only === undefined
          ? state
          : { ...state, entries: state.entries.filter(({ change }) => change === only) }
      await carryAll()
      let failure: { readonly error: unknown } | undefined
      while (!stop.aborted && failure === undefined) {
        ports.wishes(tell)
        const loops = new Map<string, LoopFacts>()
        for (const { change, state: now, unresolved } of inOrder(mine()))
          if (now === 'running' || now === 'waiting' || now === 'resolving')
            loops.set(change, await ports.loops.facts(change, unresolved?.marked))
        const due = dueNow(mine(), { loops, likelyUsd: likelyUsd(state), hold: await ports.loops.hold() })
        for (const step of due) {
          if (step.do === 'tell') tell(step.event)
          // Decided and begun in one go: what lands meanwhile is no longer due.
          else if (step.do === 'land')
            landingNow ??= onTarget(step.change, land(step.change, stop))
              .catch((error: unknown) => (failure = { error }))
              .then(() => void (landingNow = undefined))
        }
        // Takes a while, in which everything else may change: then it is asked again what is due.
        const slow = due.find((step) => step.do !== 'tell' && step.do !== 'land')
        if (slow !== undefined) {
          if (slow.do === 'spawn') await onTarget(slow.change, spawn(slow.change, slow.how, slow, stop))
          else if (slow.do === 'resolve') await resolve(slow.change, slow)
          else if (slow.do === 'judge') await judge(slow.change)
          continue
        }
        const isIdle =
          landingNow === undefined &&
          !inOrder(mine()).some((each) => each.state === 'running' || each.state === 'resolving')
        if (isIdle && due.every((step) => step.do === 'tell' && step.event.type === 'entry.waiting')) break
        await ports.pulse(stop)
      }
      await landingNow
      if (failure !== undefined) throw failure.error
      return queueExit(mine())
    },
  }
}

/** What is to be told of entries that have landed and are, by git's history, on their target no longer. */
export async function takenBack(
  state: QueueState,
  notLanded: (target: string, commits: readonly string[]) => Promise<readonly string[]>,
): Promise<readonly Extract<QueueBody, { type: 'entry.unlanded' }>[]> {
  const gone: Extract<QueueBody, { type: 'entry.unlanded' }>[] = []
  for (const target of Object.keys(state.landed)) {
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

interface Place {
  readonly slot: number
  readonly money?: Money
}

function placeOf({ slot, money }: Place): { readonly slot: number; readonly maxCostUsd?: number } {
  return { slot, ...(money !== undefined && { maxCostUsd: money.maxCostUsd }) }
}

/** The dearest of those that have ended, but for the dearest tenth: what one more will probably take. */
function likelyUsd({ entries }: QueueState): number {
  const costs = entries
    .map(({ costUsd }) => costUsd)
    .filter((cost) => cost > 0)
    .toSorted((a, b) => a - b)
  return costs[Math.max(0, Math.ceil(costs.length * 0.9) - 1)] ?? 0
}

function fixIt(change: string): string {
  return `Fix it on ralph/${change}, then: ralph queue retry ${change}`
}

function lineOf({ failure, outputTail }: GateResult): string {
  return failure?.what ?? lastLine(outputTail)
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) || 'it printed nothing'
}
