// The landing of one change after another: built, gated, moved by compare-and-swap, and each way in which that does not come to its end.
import { bothChanged, byHand, gateSteps, parked } from '../core/queue-due.ts'
import { targetOf } from '../core/queue.ts'
import type { Entry } from '../core/queue.ts'
import type { QueueBody } from '../core/queue-event.ts'
import { RalphError } from '../core/error.ts'
import { isOfGate, joined } from '../core/weakness.ts'
import { entryNow, lastLine, lineOf } from './queue-base.ts'
import type { Base, Bases } from './queue-base.ts'
import type { Landing, QueueHand } from './queue-ports.ts'

export interface Landings {
  /** One change, from its branch to the target. Resolves when it has landed, was parked, or has to begin again. */
  readonly land: (change: string, stop: AbortSignal) => Promise<void>
  /** Killed before the branch could follow: it does now, where it stands as it stood. */
  readonly carryAll: () => Promise<void>
}

export function landingsOf({ ports, now, tell }: QueueHand, bases: Bases): Landings {
  const { landing } = ports
  /**
   * The candidates that this process has built, each with the gates that it has seen pass. What the journal says of an earlier one's is not
   * trusted: an agent may have written it.
   */
  const proven = new Map<string, Set<string>>()

  const land = async (change: string, stop: AbortSignal): Promise<void> => {
    const before = entryNow(now(), change)
    const target = targetOf(now(), change)
    // Killed in the very moment: whether it happened only the refs know.
    if (
      before?.isLanding === true &&
      before.candidate !== undefined &&
      (await landing.has(target, before.candidate.commit))
    )
      return await landed(change, before.candidate.commit)
    const base = await bases.now(change, stop)
    if (base === undefined || !(await bases.isGreen(change, base, stop))) return
    const tip = await landing.tip(change)
    const squashed = tip === undefined ? await landing.squashedAs(change, base.commit) : undefined
    if (squashed !== undefined) {
      tell({ type: 'candidate.built', change, base: base.commit, ...squashed })
      return await landed(change, squashed.commit)
    }
    const refusal = await refusalOf(change, before, tip)
    if (refusal !== undefined || tip === undefined) return refusal && tell(refusal)
    // Somebody took it out of the queue, and it was added again: a second merge of it would be a conflict with itself.
    const as = await landing.landedAs(change, base.commit, tip)
    if (as !== undefined) {
      tell({ type: 'candidate.built', change, base: base.commit, tip, commit: as })
      return await landed(change, as)
    }
    const candidate = await candidateFor(change, base, tip, stop)
    if (candidate === undefined) return
    const { commit } = candidate
    // All of it is there already: somebody has merged it.
    if (commit === base.commit) return await landed(change, commit)
    const gates = await bases.gatesOf(change)
    for (const gate of gates.filter((each) => proven.get(commit)?.has(each) !== true))
      if (!(await passes(change, gate, { commit, base }, stop))) return
    const seen = await landing.refs(target)
    const next = await landing.base(target, seen)
    const isMoved = 'conflicts' in next || next.commit !== base.commit
    const newTip = await landing.tip(change)
    // Taken out of the queue while its gates ran.
    if (entryNow(now(), change)?.candidate?.commit !== commit) return
    if (isMoved || newTip !== tip) {
      const came = await landing.came(base.commit, seen.own)
      const to = 'conflicts' in next ? base.commit : next.commit
      return tell({ type: 'base.moved', change, to, ...(came.length > 0 && { came: [...came] }) })
    }
    const unfit = await landing.unfit(change)
    if (unfit !== undefined)
      return tell(parked(change, 'failed', unfit.refused, unfit.hint ?? (await fixIt(change))))
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

  /** What is to be told where its branch, as it is, cannot land; undefined where it may. */
  const refusalOf = async (
    change: string,
    before: Entry | undefined,
    tip: string | undefined,
  ): Promise<QueueBody | undefined> => {
    if (tip === undefined)
      return parked(
        change,
        'failed',
        `its branch ralph/${change} is gone`,
        `Bring it back: git branch ralph/${change} refs/ralph/${change}/checkpoint; then: ralph queue retry ${change}`,
      )
    // Retried as it was refused: nobody has looked at it since.
    if (tip === before?.refused)
      return parked(
        change,
        'failed',
        `${bothChanged(before.unresolved?.paths ?? [])}; no merge of both was accepted, and its branch is as it was then`,
        byHand(change, before.unresolved?.paths ?? [], (await ports.loops.facts(change)).folder),
      )
    // Git's own merge of both is no conflict any more, and nobody has said that it is right.
    if (before?.unresolved === undefined || !(await landing.isLeft(change, before.unresolved.marked)))
      return undefined
    const { base: onto, tip: own, paths, marked, said, generated } = before.unresolved
    return {
      type: 'candidate.conflicted',
      change,
      base: onto,
      tip: own,
      paths: [...paths],
      marked,
      ...(said !== undefined && { said }),
      generated: [...generated],
    }
  }

  /** The one that this process has built, where nothing has moved since, else a new one. Undefined: told why there is none. */
  const candidateFor = async (
    change: string,
    base: Base,
    tip: string,
    stop: AbortSignal,
  ): Promise<Entry['candidate']> => {
    const { candidate, generated = [] } = entryNow(now(), change) ?? {}
    const isSame = candidate?.base === base.commit && candidate.tip === tip
    if (isSame && proven.has(candidate.commit) && (await landing.isThere(candidate.commit))) return candidate
    tell({ type: 'candidate.began', change, base: base.commit, tip })
    const isAtRef = base.commit === base.own || base.commit === base.landed
    const built = await landing.build(change, { base: base.commit, tip, generated, isAtRef }, stop)
    if (built === 'stopped') return undefined
    if ('conflicts' in built) {
      const { conflicts, marked, said, generated: toMake } = built
      tell({
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
      return undefined
    }
    if ('refused' in built) {
      tell(parked(change, 'failed', built.refused, built.hint ?? (await fixIt(change))))
      return undefined
    }
    if (built.regenerated.length > 0)
      tell({ type: 'candidate.regenerated', change, paths: [...built.regenerated] })
    proven.set(built.commit, new Set())
    tell({ type: 'candidate.built', change, base: base.commit, tip, commit: built.commit })
    return entryNow(now(), change)?.candidate
  }

  const landed = async (change: string, commit: string): Promise<void> => {
    const target = targetOf(now(), change)
    const isByHand = entryNow(now(), change)?.unresolved !== undefined
    const { weakened = [] } = await ports.loops.facts(change)
    // A merge of both sides is a run of its own. What the gates of the landing had to say is known by them.
    const warnings = joined(
      entryNow(now(), change)?.warnings ?? [],
      weakened.filter((words) => !isOfGate(words)),
    )
    tell({ type: 'landed', change, commit, ...(warnings.length > 0 && { warnings: [...warnings] }) })
    // Put together by hand: the loop that was to do it waits for a word that nobody needs any more.
    if (isByHand)
      await ports.loops.accept(change).catch((error: unknown) => {
        if (!(error instanceof RalphError)) throw error
      })
    const { home } = now().landed[target] ?? {}
    if (home !== undefined && (await landing.carryHome(target, commit, home)) === '')
      tell({ type: 'target.followed', target, commit })
  }

  const carryAll = async (): Promise<void> => {
    for (const [target, { last, home }] of Object.entries(now().landed)) {
      if (last === undefined || home === undefined || home === last) continue
      // A target that is gone is told by who needs it.
      const { own, landed: there } = await landing.refs(target).catch((error: unknown) => {
        if (error instanceof RalphError) return { own: '', landed: '' }
        throw error
      })
      if (own === home && there === last && (await landing.carryHome(target, last, home)) === '')
        tell({ type: 'target.followed', target, commit: last })
    }
  }

  /** Red twice, and green on the base: the change's fault. Whatever else it is, is told as that. */
  const passes = async (
    change: string,
    gate: string,
    { commit, base }: { readonly commit: string; readonly base: Base },
    stop: AbortSignal,
  ): Promise<boolean> => {
    const told = (
      outcome: 'passed' | 'failed' | 'could_not_run',
      { flaky = false, ranNoTests }: { readonly flaky?: boolean; readonly ranNoTests?: true } = {},
    ): void => {
      if (outcome === 'passed') proven.get(commit)?.add(gate)
      tell({
        type: 'candidate.gated',
        change,
        commit,
        gate,
        outcome,
        ...(flaky && { flaky }),
        ...(ranNoTests && { ran_no_tests: ranNoTests }),
      })
    }
    const check = (on: string, isFresh: boolean): ReturnType<Landing['gate']> =>
      landing.gate(change, gate, on, stop, isFresh)
    const first = await check(commit, false)
    if (first.outcome === 'stopped') return false
    if (first.outcome === 'passed' && first.changed.length === 0) {
      told('passed', first)
      return true
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
      return false
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
      return false
    }
    const second = await check(commit, true)
    if (second.outcome === 'stopped') return false
    if (second.outcome === 'passed' && second.changed.length === 0) {
      told('passed', { ...second, flaky: true })
      return true
    }
    told('failed')
    const onBase = await check(base.commit, true)
    if (onBase.outcome === 'stopped') return false
    if (onBase.outcome !== 'passed') {
      tell({
        type: 'queue.halted',
        why: `the gate \`${gate}\` fails on ${targetOf(now(), change)} without ${change}, too: ${lineOf(onBase)}`,
        hint: `Fix ${targetOf(now(), change)}, then: ralph up`,
      })
      return false
    }
    tell(
      parked(
        change,
        'failed',
        `\`${gate}\` fails after the merge: ${lineOf(second)}`,
        await gateByHand(change, gate, base),
      ),
    )
    return false
  }

  /** Without what landed its gate is green there. */
  const gateByHand = async (
    change: string,
    gate: string,
    { commit, own, landed: there }: Base,
  ): Promise<string> => {
    const { folder } = await ports.loops.facts(change)
    const target = targetOf(now(), change)
    const refs = { [own]: target, ...(there !== undefined && { [there]: `refs/ralph-landed/${target}` }) }
    const one = refs[commit]
    const from = one === undefined ? Object.values(refs) : [one]
    return gateSteps(change, { gate, folder, from, log: landing.logOf(change) })
  }

  const fixIt = async (change: string): Promise<string> => {
    const { folder } = await ports.loops.facts(change)
    const where = folder === undefined ? '' : ` (in ${folder})`
    return `Fix it on ralph/${change}${where}, then: ralph queue retry ${change}`
  }

  return { land, carryAll }
}
