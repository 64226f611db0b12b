// Claims: an agent says while it works that its story is complete, and hears at once what is missing. The verdict comes later, as ever.
import { warnEach } from './gate-check.ts'
import type { Command } from '../core/loop.ts'
import { defused } from '../core/prompt-text.ts'
import type { ClaimAnswer, ClaimDesk } from '../ports.ts'
import type { Context } from './context.ts'
import { runGates } from './gate-run.ts'
import { failureOf, reasonOf } from './gate-words.ts'

/** One that is being judged: how, and who waits for it. */
export interface OpenClaim {
  readonly gone: AbortSignal
  readonly env: Readonly<Record<string, string>>
  readonly answer: (answer: ClaimAnswer) => void
}

type JudgeClaim = Extract<Command, { do: 'judge_claim' }>

/** `env`: what watches the agent's own git, too. What a gate does in the middle of an attempt is a part of the attempt. */
export function claimDesk(context: Context, n: number, env: OpenClaim['env']): ClaimDesk {
  const { tell, ports } = context
  let last: Promise<unknown> = Promise.resolve()
  let isLimitTold = false
  const told = { progress: 0, failures: 0, learnings: 0, task: '' }

  const claim = async (summary: string, gone: AbortSignal): Promise<ClaimAnswer> => {
    const { phase, current, settings } = context.state()
    if (gone.aborted || phase !== 'working' || current.n !== n) return over
    const most = settings.claims ?? 0
    const number = current.claims + 1
    if (number > most) {
      const message = `attempt #${n} has used up its claims (${most}); its final message decides`
      if (!isLimitTold) await tell({ type: 'warning', code: 'claims', message })
      isLimitTold = true
      return { isAccepted: false, claim: number, text: spent(most) }
    }
    return new Promise((answer) => {
      context.claims.set(number, { gone, env, answer })
      void tell({ type: 'claim.made', n, claim: number, summary: inLine(summary, 1000) })
    })
  }

  return {
    complete(summary, gone) {
      const judged = last.then(() => claim(summary, gone))
      last = judged
      return judged
    },
    failed(reason) {
      if ((told.failures += 1) > mostTold) return
      void tell({ type: 'failure.reported', n, reason: reason.trim().slice(0, 4000) })
    },
    progress(task) {
      const line = inLine(task, 300)
      if (line === '' || line === told.task || (told.progress += 1) > mostTold) return
      told.task = line
      void tell({ type: 'progress.reported', n, task: line })
    },
    async learned(text) {
      if ((told.learnings += 1) > mostTold) return false
      try {
        await ports.spec.learn(inLine(text, 2000))
        return true
      } catch (error) {
        await tell({
          type: 'warning',
          code: 'learnings',
          message: `A learning was not kept: ${words(error)}`,
        })
        return false
      }
    },
  }
}

/** Never rejects: what hinders it here stops the loop when the verdict needs it, with the agent dead. */
export async function judgeClaim(command: JudgeClaim, context: Context): Promise<void> {
  const { n, claim } = command
  const open = context.claims.get(claim)
  if (open === undefined) return
  context.claims.delete(claim)
  const judged = await judgement(command, context, open).catch((error: unknown) => ({
    outcome: 'refused' as const,
    reason: `it could not be judged: ${words(error)}`,
    text: `It could not be judged now: ${words(error)}`,
  }))
  const { outcome, reason, text } = judged
  await context.tell({ type: 'claim.judged', n, claim, outcome, reason })
  const left = (context.state().settings.claims ?? 0) - claim
  const isAccepted = outcome === 'accepted'
  open.answer({
    isAccepted,
    claim,
    text: isAccepted ? text : `${defused(text).trimEnd()}\n\n${advice(left)}`,
  })
}

interface Judgement {
  readonly outcome: 'accepted' | 'refused' | 'stopped'
  readonly reason: string
  readonly text: string
}

async function judgement(
  { n, claim, storyId, commands }: JudgeClaim,
  context: Context,
  { gone, env }: OpenClaim,
): Promise<Judgement> {
  const { ports, tell } = context
  const state = context.state()
  const boxes = await ports.spec.judge(storyId)
  await warnEach(tell, 'put_back', boxes.putBack)
  if (boxes.lost !== undefined) return refused(boxes.lost, `${boxes.lost}. The plan is back as it was.`)
  if (boxes.ticked > 0 && boxes.stillOpen > 0) {
    const open = `${boxes.stillOpen} ${boxes.stillOpen === 1 ? 'task' : 'tasks'} of the story still open`
    return refused(open, `${open}: do what is missing, and tick every box of what you have done.`)
  }
  const held = await ports.spec.watch()
  const run = (stop: AbortSignal): ReturnType<typeof runGates> =>
    runGates(commands, context, {
      n,
      claim,
      stop,
      env: {
        ...env,
        RALPH_CHANGE: state.changeId,
        RALPH_STORY: storyId,
        RALPH_RUN_ID: state.runId,
        // Apart from the agent, which carries the run's: a gate that ends takes along what is its own, and nothing else.
        RALPH_CLAIM: `${n}.${claim}`,
      },
      after: async (gate) => warnEach(tell, 'put_back', (await held(gate)).putBack),
    })
  const failed =
    commands.length === 0
      ? undefined
      : await noteMade(n, context, () => whileNeither(context.stopping, gone, run))
  if (gone.aborted || context.stopping.aborted || failed?.result.outcome === 'stopped')
    return { outcome: 'stopped', reason: '', text: 'It was not judged: the attempt is over.' }
  if (failed === undefined) return { outcome: 'accepted', reason: '', text: accepted(commands.length) }
  return refused(reasonOf(failed.gate, failed.result), failureOf(failed.gate, failed.result))
}

/** What gates write each time they run is theirs, also where the first to run were not those of the verdict. */
async function noteMade<T>(n: number, { ports, tell }: Context, run: () => Promise<T>): Promise<T> {
  const made = await ports.checkpoints.made().catch(() => undefined)
  const result = await run()
  const paths = (await made?.().catch(() => [])) ?? []
  if (paths.length > 0) await tell({ type: 'claim.stirred', n, made: paths.slice(0, mostMade) })
  return result
}

function refused(reason: string, text: string): Judgement {
  return { outcome: 'refused', reason, text }
}

/** Works with a signal that aborts as soon as one of the two does. */
async function whileNeither<T>(
  one: AbortSignal,
  other: AbortSignal,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  const either = new AbortController()
  const end = (): void => either.abort()
  for (const signal of [one, other]) {
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
  }
  try {
    return await work(either.signal)
  } finally {
    for (const signal of [one, other]) signal.removeEventListener('abort', end)
  }
}

function accepted(gates: number): string {
  const how = gates === 0 ? '' : gates === 1 ? ' The gate passed.' : ` All ${gates} gates passed.`
  return `Accepted.${how} End your turn now. What you change from here on is judged again; if something is wrong after all, call story_failed.`
}

function advice(left: number): string {
  if (left <= 0) return 'That was the last claim of this attempt. Fix it, and report in your final message.'
  return `Fix it and call story_complete again (${left} ${left === 1 ? 'claim' : 'claims'} left), or call story_failed.`
}

function spent(most: number): string {
  return `Not judged: the claims of this attempt (${most}) are used up. Fix what was missing, and report in your final message as the prompt says; it is judged then.`
}

const over: ClaimAnswer = { isAccepted: false, claim: 0, text: 'Not judged: this attempt is over.' }

/** More than that is a whole build, which belongs in .gitignore. */
const mostMade = 200

/** Of each kind, in one attempt: the journal keeps them. */
const mostTold = 100

function inLine(text: string, most: number): string {
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, most)
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
