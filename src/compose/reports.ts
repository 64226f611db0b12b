// What the reporting commands show, read off the journals: they compute, and never write a run's files.
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { diffAttempt, listAttempts, restoreAttempt } from '../adapters/git/attempts.ts'
import { RalphError } from '../core/error.ts'
import { toStateFile } from '../core/state-file.ts'
import { decisionsOf } from '../core/why.ts'
import type { AttemptList, Decisions, History, LogRequest, Said, StatusReport } from '../ui/app.ts'
import { hiddenPaths } from './checkpoints.ts'
import { chooseRun } from './choose.ts'
import { recoverDead } from './recovery.ts'
import { isRunning, knownRun, knownRuns } from './site.ts'
import type { KnownRun, Site } from './site.ts'

export async function statusOf(site: Site, change: string | undefined): Promise<readonly StatusReport[]> {
  const runs = change === undefined ? await knownRuns(site) : [await must(site, change)]
  return Promise.all(
    runs.map(async (run) => {
      await recoverDead(site, run)
      const now = await knownRun(site, run.change)
      return { ...toStateFile(now.state), alive: isRunning(now) }
    }),
  )
}

export async function historyOf(site: Site, change: string | undefined): Promise<History> {
  const run = await must(site, change)
  return { change_id: run.change, iterations: run.state.iterations }
}

export async function whyOf(site: Site, change: string | undefined): Promise<Decisions> {
  const run = await must(site, change)
  return { change_id: run.change, decisions: decisionsOf(run.events) }
}

export async function attemptsOf(site: Site, change: string | undefined): Promise<AttemptList> {
  const run = await must(site, change)
  const refs = new Map((await listAttempts(site.git, run.change)).map((attempt) => [attempt.n, attempt]))
  return {
    attempts: run.state.iterations.flatMap((iteration) => {
      const attempt = refs.get(iteration.n)
      if (attempt === undefined) return []
      const { n, story_id, verdict, reason } = iteration
      return [
        {
          n,
          story_id,
          attempt: iteration.attempt,
          verdict,
          reason,
          ref: attempt.ref,
          commit: attempt.commit,
        },
      ]
    }),
  }
}

export async function diffOf(site: Site, change: string | undefined, n: number): Promise<string> {
  const run = await must(site, change)
  return (await diffAttempt(site.git, run.change, n)).toString('utf8')
}

export async function restoreTo(
  site: Site,
  change: string | undefined,
  n: number,
  to: string | undefined,
): Promise<Said> {
  const run = await must(site, change)
  if (to === undefined && isRunning(run)) {
    throw new RalphError('locked', `The loop of ${run.change} is running: its work tree is not yours now.`, {
      hint: `Bring the attempt into a folder instead: ralph restore ${n} --to DIR`,
      exitCode: 7,
    })
  }
  const where = await restoreAttempt(site.git, run.change, n, {
    protectedPaths: hiddenPaths,
    ...(to !== undefined && { to: resolve(site.cwd, to) }),
  })
  return { message: where, data: { change_id: run.change, n, to: to ?? site.git.worktree } }
}

/** In order, byte by byte; with `follow` on to the next iteration, until the loop has ended. */
export async function writeLogs(site: Site, request: LogRequest): Promise<void> {
  let run = await must(site, request.change)
  const files = (known: KnownRun): readonly { n: number; file: string }[] => {
    const all = known.state.iterations.map((iteration) => ({ n: iteration.n, file: iteration.log_file }))
    const { current } = known.state
    return current === undefined ? all : [...all, { n: current.n, file: current.logFile }]
  }
  const wanted = request.iteration ?? files(run).at(-1)?.n
  if (wanted === undefined || !files(run).some((log) => log.n === wanted)) {
    throw new RalphError('usage', `Iteration ${request.iteration ?? 1} of ${run.change} has no log.`, {
      hint: `Its iterations: ralph history ${run.change}`,
      exitCode: 2,
    })
  }
  let n = wanted
  let offset = 0
  for (;;) {
    const log = files(run).find((candidate) => candidate.n === n)
    if (log !== undefined) offset += await copyFrom(log.file, offset, request)
    if (!request.follow || request.stop.aborted) return
    const alive = isRunning(run)
    run = await knownRun(site, run.change)
    const hasEnded = run.state.iterations.some((iteration) => iteration.n === n)
    const moved = log !== undefined && (await sizeOf(log.file)) > offset
    if (hasEnded && !moved) {
      if (
        request.iteration !== undefined ||
        (!alive && !files(run).some((candidate) => candidate.n === n + 1))
      )
        return
      if (files(run).some((candidate) => candidate.n === n + 1)) {
        n += 1
        offset = 0
        continue
      }
    }
    if (!alive && !moved) return
    await delay(200, undefined, { signal: request.stop }).catch(() => undefined)
  }
}

async function copyFrom(file: string, offset: number, request: LogRequest): Promise<number> {
  if ((await sizeOf(file)) <= offset) return 0
  let copied = 0
  for await (const chunk of createReadStream(file, { start: offset })) {
    if (!Buffer.isBuffer(chunk)) continue
    copied += chunk.length
    request.write(chunk)
    if (request.stop.aborted) break
  }
  return copied
}

async function sizeOf(file: string): Promise<number> {
  const found = await stat(file).catch(() => undefined)
  return found?.size ?? 0
}

export async function must(site: Site, change: string | undefined): Promise<KnownRun> {
  const run = await chooseRun(site, change, 'any')
  if (run !== undefined) return run
  throw new RalphError(
    'change_not_found',
    change === undefined
      ? 'No loop has run in this repository.'
      : `No loop of ${change} has run in this repository.`,
    {
      hint: 'Start one: ralph loop. What there is: ralph list',
      exitCode: 2,
    },
  )
}
