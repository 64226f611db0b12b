// Config to ports: the only place that knows every adapter; everything a command can ask for is put together here.
import type { LoadedConfig } from './config/load.ts'
import { RalphError } from './core/error.ts'
import type { Site } from './compose/site.ts'
import { openSite } from './compose/site.ts'
import type { App } from './ui/app.ts'
import type { Io } from './ui/io.ts'
import { isTerminal } from './ui/io.ts'

/** Each part is loaded when a command first needs it: `ralph status` must not pay for the agents. */
export function createApp(io: Io): App {
  const attended = isTerminal(io.stdout) && isTerminal(io.stdin)
  const warn = (message: string): void => void io.stderr.write(`warning: ${message}\n`)
  let opened: Promise<Site> | undefined
  const site = (): Promise<Site> =>
    (opened ??= openSite(folderOf(io), io.env, { isTerminal: attended, warn }))
  const reports = () => import('./compose/reports.ts')
  const control = () => import('./compose/control.ts')
  const plans = () => import('./compose/changes.ts')
  const attempts = () => import('./compose/attempts.ts')
  /** A part is loaded while git looks for the repository. */
  const withSite = <Part>(part: () => Promise<Part>): Promise<[Part, Site]> => Promise.all([part(), site()])

  const load: App['settings'] = async (flags, isResumed = false) => {
    const projectFolder = await site().then(
      (found) => found.git.worktree,
      (error: unknown) => {
        if (error instanceof RalphError && error.code === 'not_a_repository') return undefined
        throw error
      },
    )
    const { loadConfig } = await import('./config/load.ts')
    return loadConfig({
      flags,
      env: io.env,
      isResumed,
      ...(projectFolder !== undefined && { projectFolder }),
    })
  }

  /** For those who only look: also what no start would use. */
  const looked = async (): Promise<LoadedConfig> => {
    const loaded = await load({})
    if (loaded.files.project === undefined) return loaded
    const { unagreed } = await import('./compose/config-trust.ts')
    const doubtful = await unagreed((await site()).git.gitCommonDir, loaded.files)
    const told = doubtful.map((what) => `${what}: a start needs --accept-config`)
    return { ...loaded, warnings: [...loaded.warnings, ...told] }
  }

  return {
    settings: load,
    config: looked,
    list: () => withSite(plans).then(([part, at]) => part.listAll(at)),
    show: (change) => withSite(plans).then(([part, at]) => part.showOne(at, change)),
    prompt: async ({ change, storyId }) =>
      (await plans()).promptFor(await site(), change, storyId, (await load({})).config),
    learnings: (change) => withSite(plans).then(([part, at]) => part.learningsOf(at, change)),
    loop: async (request) => (await import('./compose/loop.ts')).runLoop(await site(), request, 'loop'),
    resume: async ({ feedback, ...request }) =>
      (await import('./compose/loop.ts')).runLoop(await site(), request, 'resume', feedback),
    plan: async (request) => (await import('./compose/dry-run.ts')).dryRun(await site(), request),
    stop: ({ change, force }) =>
      withSite(() => import('./compose/stop.ts')).then(([part, at]) => part.stopLoop(at, change, force)),
    done: (change) => withSite(control).then(([part, at]) => part.sayDone(at, change)),
    finish: (request) => withSite(control).then(([part, at]) => part.finishOrAccept(at, request)),
    clean: async ({ change, attempts: all }) => (await control()).cleanRun(await site(), change, all),
    status: (change) => withSite(reports).then(([part, at]) => part.statusOf(at, change)),
    history: (change) => withSite(reports).then(([part, at]) => part.historyOf(at, change)),
    logs: (request) =>
      withSite(() => import('./compose/logs.ts')).then(([part, at]) => part.writeLogs(at, request)),
    attempts: (change) => withSite(attempts).then(([part, at]) => part.attemptsOf(at, change)),
    diff: ({ change, n }) => withSite(attempts).then(([part, at]) => part.diffOf(at, change, n)),
    restore: ({ change, n, to }) =>
      withSite(attempts).then(([part, at]) => part.restoreTo(at, change, n, to)),
    why: (change) => withSite(reports).then(([part, at]) => part.whyOf(at, change)),
    doctor: async () =>
      (await import('./compose/doctor.ts')).diagnose(folderOf(io), io.env, attended, looked),
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
