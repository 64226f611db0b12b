// Config to ports: the only place that knows every adapter; everything a command can ask for is put together here.
import type { LoadedConfig } from './config/load.ts'
import { loadConfig } from './config/load.ts'
import { RalphError } from './core/error.ts'
import type { Site } from './compose/site.ts'
import { openSite } from './compose/site.ts'
import type { App } from './ui/app.ts'
import type { Io } from './ui/io.ts'
import { isTerminal } from './ui/io.ts'

/** Each room is loaded when a command first needs it: `ralph status` must not pay for the agents. */
export function createApp(io: Io): App {
  const attended = isTerminal(io.stdout) && isTerminal(io.stdin)
  let opened: Promise<Site> | undefined
  const site = (): Promise<Site> => (opened ??= openSite(folderOf(io), io.env, { isTerminal: attended }))
  const reports = () => import('./compose/reports.ts')
  const control = () => import('./compose/control.ts')
  const plans = () => import('./compose/changes.ts')

  const load = async (flags: Parameters<App['settings']>[0]): Promise<LoadedConfig> => {
    const projectFolder = await site().then(
      (found) => found.git.worktree,
      (error: unknown) => {
        if (error instanceof RalphError && error.code === 'not_a_repository') return undefined
        throw error
      },
    )
    return loadConfig({ flags, env: io.env, ...(projectFolder !== undefined && { projectFolder }) })
  }

  return {
    settings: load,
    config: async () => (await load({})).entries,
    list: async () => (await plans()).listAll(await site()),
    show: async (change) => (await plans()).showOne(await site(), change),
    prompt: async ({ change, storyId }) =>
      (await plans()).promptFor(await site(), change, storyId, (await load({})).config),
    learnings: async (change) => (await plans()).learningsOf(await site(), change),
    loop: async (request) => (await import('./compose/loop.ts')).runLoop(await site(), request, 'loop'),
    resume: async ({ feedback, ...request }) =>
      (await import('./compose/loop.ts')).runLoop(await site(), request, 'resume', feedback),
    plan: async ({ change, settings }) =>
      (await import('./compose/dry-run.ts')).dryRun(await site(), change, settings.config),
    stop: async ({ change, force }) => (await control()).stopLoop(await site(), change, force),
    done: async (change) => (await control()).sayDone(await site(), change),
    finish: async ({ change, choice }) => (await control()).finishRun(await site(), change, choice),
    clean: async ({ change, attempts }) => (await control()).cleanRun(await site(), change, attempts),
    status: async (change) => (await reports()).statusOf(await site(), change),
    history: async (change) => (await reports()).historyOf(await site(), change),
    logs: async (request) => (await import('./compose/logs.ts')).writeLogs(await site(), request),
    attempts: async (change) => (await reports()).attemptsOf(await site(), change),
    diff: async ({ change, n }) => (await reports()).diffOf(await site(), change, n),
    restore: async ({ change, n, to }) => (await reports()).restoreTo(await site(), change, n, to),
    why: async (change) => (await reports()).whyOf(await site(), change),
    doctor: async () =>
      (await import('./compose/doctor.ts')).diagnose(
        folderOf(io),
        io.env,
        attended,
        async () => (await load({})).config,
      ),
    usage: async (request) => (await import('./compose/usage.ts')).usageReport(await site(), request),
    report: async ({ change, format }) =>
      (await import('./compose/usage.ts')).runReportAs(
        await site(),
        change,
        format,
        io.stdout.columns ?? 100,
      ),
  }
}

/** A terminal may stand in a folder that a clean-up or a removed work tree took away. */
function folderOf(io: Io): string {
  try {
    return io.cwd
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause
    throw new RalphError('not_a_repository', 'The current folder is gone: it was deleted or moved.', {
      hint: 'Nothing was touched. Go to a folder that is there, e.g. cd "$PWD" if it has been made again, and type the command once more.',
      exitCode: 2,
      cause,
    })
  }
}
