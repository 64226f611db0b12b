// Drives the merge queue: asks what is due, starts loops as processes of their own, lands what is done, one after the other.
import { dueNow, inOrder, mostSpawns, parked, queueExit } from '../core/queue-due.ts'
import { evolveQueue, targetOf } from '../core/queue.ts'
import type { Entry, QueueState } from '../core/queue.ts'
import type { LoopFacts, Money } from '../core/queue-due.ts'
import type { QueueBody, QueueEvent } from '../core/queue-event.ts'
import { RalphError } from '../core/error.ts'
import { basesOf, entryNow } from './queue-base.ts'
import { landingsOf } from './queue-land.ts'
import type { QueuePorts } from './queue-ports.ts'

export type QueueReader = (event: QueueEvent, state: QueueState) => void

export interface Queue {
  readonly state: QueueState
  tell(body: QueueBody): void
  /** What git's history says: it is asked again each time, and not written down. */
  note(body: QueueBody): void
  /** Until nothing is under way and nothing is due, or `stop`: loops go on then. Those that are not `mine` stay as they are. */
  run(stop: AbortSignal, isMine: (change: string) => boolean): Promise<number>
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
  const hand = { ports, now: () => state, tell, note }
  const bases = basesOf(hand)
  const { land, carryAll } = landingsOf(hand, bases)
  let isStopped = (): boolean => false
  let landingNow: Promise<void> | undefined
  const entry = (change: string): Entry | undefined => entryNow(state, change)

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

  /** Where a loop may begin; undefined: nowhere now. */
  const baseFor = async (change: string, stop: AbortSignal): Promise<string | undefined> => {
    const wait = (): Promise<undefined> => ports.pulse(stop).then(() => undefined)
    if (state.halted !== undefined) return await wait()
    const base = await bases.now(change, stop)
    if (base === undefined) return undefined
    // There is one tree to try merges in.
    if (landingNow !== undefined && (await bases.unseenBy(change, base)).length > 0) return await wait()
    return (await bases.isGreen(change, base, stop)) ? base.commit : undefined
  }

  const spawn = async (
    change: string,
    how: 'loop' | 'resume',
    place: Place,
    stop: AbortSignal,
  ): Promise<void> => {
    // One that is resumed goes on from where it is; and what its agent did to the target's refs only its own repair puts back.
    const base =
      how === 'resume' ? (await ports.landing.refs(targetOf(state, change))).own : await baseFor(change, stop)
    if (base === undefined) return
    tell(await spawnedAt(change, base, place))
    refusedAs(change, await ports.loops.start(change, how, { base, ...placeOf(place) }))
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
    await (problems.length === 0 ? ports.loops.accept(change) : ports.loops.refuse(change, problems))
    tell({
      type: 'resolution.judged',
      change,
      problems: [...problems],
      ...(tip !== undefined && { tip }),
      ...(beside.length > 0 && { beside: [...beside] }),
      cost_usd: (await ports.loops.facts(change)).costUsd,
    })
  }

  return {
    get state() {
      return state
    },
    tell,
    note,
    async run(stop, isMine) {
      isStopped = () => stop.aborted
      const mine = (): QueueState => ({
        ...state,
        entries: state.entries.filter(({ change }) => isMine(change)),
      })
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
        const isHeld = state.halted !== undefined && slow?.do === 'spawn' && slow.how === 'loop'
        if (isHeld && landingNow === undefined && ![...loops.values()].some(({ loop }) => loop === 'running'))
          break
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
