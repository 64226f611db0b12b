// What is asked of a running loop: to wait before its next iteration, until resume or pause --off; words for its next prompt; not to wait.
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { askToSkip, hasNote, isPaused, leaveNote, setPaused } from '../adapters/files/wish-files.ts'
import { inspectLock } from '../adapters/files/lock.ts'
import { RalphError } from '../core/error.ts'
import type { LoopEnd, LoopRequest, Said } from '../ui/app.ts'
import { agentName } from '../ui/vocabulary.ts'
import { chooseRun } from './choose.ts'
import { isRunning, knownRun } from './site.ts'
import type { KnownRun, Site } from './site.ts'

export async function pauseLoop(site: Site, change: string | undefined, isOff: boolean): Promise<Said> {
  const run = await chooseRun(site, change, 'running')
  if (run === undefined || !isRunning(run))
    return { message: 'No loop is running here.', data: { paused: false, change_id: run?.change ?? '' } }
  const { change: name, state, paths } = run
  const was = isPaused(paths.pause)
  setPaused(paths.pause, !isOff)
  const data = { paused: !isOff, change_id: name }
  if (isOff) return { message: was ? `${name} continues.` : `${name} is not paused.`, data }
  // Said only of what the loop has heard: its attempt may end in this very moment.
  let { current } = state
  await comesTrue(run, site, async () => {
    const now = await knownRun(site, name)
    current = now.state.current
    return now.state.pause
  })
  const message =
    current === undefined
      ? `${name} is paused: no further attempt begins.`
      : `${name} pauses after this attempt (#${current.n}), which runs to its end.`
  return { message, next: `ralph resume ${name}`, data }
}

/** The loop looks twice a second. */
const patienceMs = 10_000
const lookMs = 50

/** Whether that was so before it took too long, or the loop was gone. */
async function comesTrue(
  run: KnownRun,
  site: Site,
  isSo: () => boolean | Promise<boolean>,
): Promise<boolean> {
  const deadline = performance.now() + patienceMs
  while (!(await isSo())) {
    if (performance.now() > deadline) return false
    if (!isRunning({ lock: inspectLock(run.paths.lock, site.identity) })) return await isSo()
    await delay(lookMs)
  }
  return true
}

export async function noteLoop(site: Site, change: string | undefined, text: string): Promise<Said> {
  const run = await chooseRun(site, change, 'running')
  if (text.trim() === '')
    throw new RalphError('usage', 'The note is empty.', { hint: 'Say what the agent should know.' })
  if (run === undefined || !isRunning(run)) {
    const name = run?.change ?? change
    throw new RalphError('usage', `No loop of ${name ?? 'any change'} is running.`, {
      hint: `Your words can go with the next start: ralph resume ${name ?? 'NAME'} --feedback "…"`,
    })
  }
  const { change: name, paths } = run
  const id = `${String(site.clock.now()).padStart(15, '0')}-${randomUUID()}`
  await leaveNote(paths.notes, { id, text })
  const data = { change_id: name, note: text }
  if (await comesTrue(run, site, () => !hasNote(paths.notes, id)))
    return { message: `The next prompt of ${name} has your note.`, data }
  // Its file is there, and the next loop of this run takes it.
  return { message: `Your note is kept for the next prompt of ${name}.`, next: `ralph resume ${name}`, data }
}

export async function skipWait(site: Site, change: string | undefined): Promise<Said> {
  const run = await chooseRun(site, change, 'running')
  if (run === undefined || !isRunning(run))
    return { message: 'No loop is running here.', data: { skipped: false, change_id: run?.change ?? '' } }
  const { change: name, paths, state, recall } = run
  const { waiting } = state
  if (waiting === undefined || waiting.for === 'pause') {
    const next = waiting === undefined ? undefined : `ralph resume ${name}`
    const message = waiting === undefined ? `${name} does not wait for anything now.` : `${name} is paused.`
    return { message, ...(next !== undefined && { next }), data: { skipped: false, change_id: name } }
  }
  askToSkip(paths.skip, waiting.untilMs)
  const isHeard = await comesTrue(run, site, () => !existsSync(paths.skip))
  const after = state.pause
    ? `it is paused, ralph resume ${name} continues`
    : `${agentName(waiting.agent, recall('loop.started').at(-1)?.agent_program)} is asked now`
  return {
    message: isHeard ? `${name} waits no longer: ${after}.` : `${name} does not answer.`,
    data: { skipped: isHeard, change_id: name },
  }
}

/** What `resume` means while the loop is there and waits: it goes on, as it was started. Undefined where it does not wait. */
export async function liftPause(
  site: Site,
  run: KnownRun,
  { settings, acceptsConfig }: Pick<LoopRequest, 'settings' | 'acceptsConfig'>,
  feedback: string | undefined,
): Promise<LoopEnd | undefined> {
  const { change, paths } = run
  if (!isRunning(run) || !isPaused(paths.pause)) return undefined
  const isPlain = settings.entries.every(({ key, origin }) => origin !== 'flag' || shown.has(key))
  if (!isPlain || acceptsConfig) {
    throw new RalphError('locked', `The loop of ${change} is paused; its settings cannot be changed now.`, {
      hint: `To continue as it is: ralph resume ${change}. To change them: ralph stop ${change}, then this command again.`,
    })
  }
  const told = feedback === undefined ? '' : `${(await noteLoop(site, change, feedback)).message} `
  setPaused(paths.pause, false)
  return { exitCode: 0, note: `${told}${change} continues. Watch it: ralph logs ${change} -f` }
}

/** How this command shows what it does, which is nothing here. */
const shown: ReadonlySet<string> = new Set(['json', 'no_tui'])
