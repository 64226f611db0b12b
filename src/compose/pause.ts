// pause: a running loop waits before its next iteration, until resume or pause --off.
import { isPaused, setPaused } from '../adapters/files/pause-file.ts'
import { RalphError } from '../core/error.ts'
import type { LoopEnd, LoopRequest, Said } from '../ui/app.ts'
import { chooseRun } from './choose.ts'
import { isRunning } from './site.ts'
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
  const { current } = state
  const message =
    current === undefined
      ? `${name} is paused: no further iteration begins.`
      : `${name} pauses after this iteration (#${current.n}), which runs to its end.`
  return { message, next: `ralph resume ${name}`, data }
}

/** What `resume` means while the loop is there and waits: it goes on, as it was started. Undefined where it does not wait. */
export function liftPause(
  run: KnownRun,
  { settings, acceptsConfig }: Pick<LoopRequest, 'settings' | 'acceptsConfig'>,
  feedback: string | undefined,
): LoopEnd | undefined {
  const { change, paths } = run
  if (!isRunning(run) || !isPaused(paths.pause)) return undefined
  const isPlain = settings.entries.every(({ key, origin }) => origin !== 'flag' || shown.has(key))
  if (!isPlain || acceptsConfig || feedback !== undefined) {
    throw new RalphError('locked', `The loop of ${change} is paused; its settings cannot be changed now.`, {
      hint: `To continue as it is: ralph resume ${change}. To change them: ralph stop ${change}, then this command again.`,
    })
  }
  setPaused(paths.pause, false)
  return { exitCode: 0, note: `${change} continues. Watch it: ralph logs ${change} -f` }
}

/** How this command shows what it does, which is nothing here. */
const shown: ReadonlySet<string> = new Set(['json', 'no_tui'])
