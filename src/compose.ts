// Config to ports: the only place that knows every adapter; everything a command can ask for is put together here.
import type { LoadedConfig, RawFlags } from './config/load.ts'
import { RalphError } from './core/error.ts'
import type { Knowing, Site } from './compose/site.ts'
import { knowing, knownRun, knownRuns, openSite, remembering } from './compose/site.ts'
import type { App, Observe } from './ui/app.ts'
import type { Io } from './ui/io.ts'
import { isTerminal } from './ui/io.ts'
import { folded } from './ui/print/layout.ts'
import { hasQueue } from './compose/queue-known.ts'

/** A program that uses ralph as a library gives none of its streams away. */
type Surroundings = Io | (Pick<Io, 'env' | 'cwd'> & Pick<Site, 'warn'>)

/** Each part is loaded when a command first needs it: `ralph status` must not pay for the agents. */
export function createApp(io: Surroundings): App {
  const attended = 'stdout' in io && isTerminal(io.stdout) && isTerminal(io.stdin)
  const warn = (message: string): void =>
    'warn' in io
      ? io.warn(message)
      : void io.stderr.write(`${folded(`warning: ${message}`, io.stderr.columns)}\n`)
  let opened: Promise<Site> | undefined
  const site = (): Promise<Site> =>
    (opened ??= openSite(folderOf(io), io.env, { isTerminal: attended, warn }))
  let looks = 0
  let first: Knowing | undefined
  let watching: Knowing | undefined
  const once = (here: Site): Knowing => (first ??= remembering(here))
  /** Who looks once reads the journals at once; who looks again and again, only what they have gained. */
  const known = (here: Site): Knowing => {
    looks += 1
    return looks === 1 ? once(here) : (watching ??= knowing(here).known)
  }
  /** The part is loaded while git looks for the repository. */
  const at = async <Part, Answer>(
    load: () => Promise<Part>,
    work: (part: Part, site: Site) => Promise<Answer>,
  ): Promise<Answer> => {
    const [part, here] = await Promise.all([load(), site()])
    try {
      return await work(part, here)
    } catch (error) {
      if (error instanceof RalphError && namesGit.test(error.hint))
        error.hint = await (
          await import('./adapters/git/landing/safe-to-type.ts')
        ).safeToType(here.git, error.hint)
      throw error
    }
  }
  const dryRuns = () => import('./compose/dry-run.ts')
  const logs = () => import('./compose/logs.ts')
  const stops = () => import('./compose/stop.ts')
  const wishes = () => import('./compose/wishes.ts')
  const deaths = () => import('./compose/recovery.ts')
  const attempts = () => import('./compose/attempts.ts')
  const nows = () => import('./compose/attempt-now.ts')
  const control = () => import('./compose/control.ts')
  const finish = () => import('./compose/finish.ts')
  const loops = () => import('./compose/loop.ts')
  const plans = () => import('./compose/changes.ts')
  const reports = () => import('./compose/reports.ts')
  const seen = () => import('./compose/loops-seen.ts')
  const usage = () => import('./compose/usage.ts')
  const leftovers = () => import('./compose/leftovers.ts')
  const init = () => import('./compose/init.ts')
  const queue = () => import('./compose/queue.ts')

  const settings: Observe['settings'] = async (flags, isResumed = false) => {
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
  const config = async (
    known = async () => knownRuns(await site()),
    flags: RawFlags = {},
  ): Promise<LoadedConfig> => {
    const loaded = await settings(flags)
    if (loaded.files.project === undefined) return loaded
    const { unagreed } = await import('./compose/config-trust.ts')
    const doubtful = await unagreed((await site()).git.gitCommonDir, loaded.files)
    const told = doubtful.map((what) => `${what}: a start needs --accept-config`)
    const { keptByRuns } = await import('./compose/run-settings.ts')
    const kept = await keptByRuns(await known(), loaded.files)
    return { ...loaded, warnings: [...loaded.warnings, ...told, ...kept] }
  }

  return {
    observe: {
      settings,
      async resumeSettings(change, flags) {
        const [here, loaded, part] = await Promise.all([
          site(),
          settings(flags, true),
          import('./compose/run-settings.ts'),
        ])
        return part.settingsToShow(await knownRun(here, change), loaded, here.git.gitCommonDir)
      },
      config: () => config(),
      list: () => at(plans, (part, here) => part.listAll(here)),
      show: (change) => at(plans, (part, here) => part.showOne(here, change)),
      prompt: (request) =>
        at(plans, async (part, here) => part.promptFor(here, request, (await settings({})).config)),
      learnings: (change) => at(plans, (part, here) => part.learningsOf(here, change)),
      plan: (request) => at(dryRuns, (part, here) => part.dryRun(here, request)),
      status: (change) => at(reports, (part, here) => part.statusOf(here, change, known(here))),
      loops: () => at(seen, (part, here) => part.loopsSeen(here, known(here))),
      statusLine: async () =>
        (await import('./compose/status-line.ts')).statusLineOf(folderOf(io), Date.now()),
      follow: async function* (change, request) {
        const [part, here] = await Promise.all([reports(), site()])
        yield* part.followRun(here, change, request)
      },
      watch: async function* (request) {
        const [part, here] = await Promise.all([import('./compose/watch.ts'), site()])
        yield* part.watchRuns(here, request)
      },
      history: (change, which) => at(reports, (part, here) => part.historyOf(here, change, which)),
      why: (change) => at(reports, (part, here) => part.whyOf(here, change, once(here))),
      logs: (request) => at(logs, (part, here) => part.writeLogs(here, request)),
      attempts: (change) => at(attempts, (part, here) => part.attemptsOf(here, change)),
      diff: (request) => at(attempts, (part, here) => part.diffOf(here, request)),
      attemptNow: (change) => at(nows, (part, here) => part.attemptNow(here, change)),
      gateOutput: (request) => at(nows, (part, here) => part.gateOutput(here, request)),
      doctor: async ({ runsGates = false, verify = [], flags = {} } = {}) => {
        const { diagnose } = await import('./compose/doctor.ts')
        return diagnose({
          cwd: folderOf(io),
          env: io.env,
          isTerminal: attended,
          site,
          config: (runs) => config(runs, flags),
          runsGates,
          verify,
        })
      },
      setup: (mcp) => at(init, (part, here) => part.setupOf(here, mcp)),
      usage: (request) => at(usage, (part, here) => part.usageOf(here, request)),
      report: (change) => at(usage, (part, here) => part.reportOf(here, change)),
      queue: async (isWhole = false) =>
        hasQueue((await site()).git)
          ? at(queue, (part, here) => part.queueReport(here, isWhole))
          : { target: '', target_commit: '', landed_commit: '', alive: false, entries: [] },
      upPlan: async (request) => (await import('./compose/queue-plan.ts')).dryUp(await site(), request),
    },
    control: {
      loop: (request) => at(loops, (part, here) => part.runLoop(here, request, 'loop')),
      resume: ({ feedback, ...request }) =>
        at(loops, (part, here) => part.runLoop(here, request, 'resume', feedback)),
      stop: (request) => at(stops, (part, here) => part.stopLoop(here, request)),
      pause: ({ change, isOff }) => at(wishes, (part, here) => part.pauseLoop(here, change, isOff)),
      note: ({ change, text }) => at(wishes, (part, here) => part.noteLoop(here, change, text)),
      skipWait: (change) => at(wishes, (part, here) => part.skipWait(here, change)),
      done: (change) => at(control, (part, here) => part.sayDone(here, change)),
      finish: (request) => at(finish, (part, here) => part.finishOrAccept(here, request)),
      clean: (request) => at(control, (part, here) => part.cleanRun(here, request)),
      restore: (request) => at(attempts, (part, here) => part.restoreTo(here, request)),
      init: (request) => at(init, (part, here) => part.initHere(here, request)),
      makeDemo: async (isParallel) => (await import('./compose/demo.ts')).makeDemo(io.env, isParallel),
      demoQueue: async (repo) =>
        (await import('./compose/queue.ts')).queueReport(await openSite(repo, io.env), false),
      fix: () => at(leftovers, (part, here) => part.fixLeftovers(here)),
      up: (request) => at(queue, (part, here) => part.up(here, request)),
      land: (change, request) => at(queue, (part, here) => part.landNow(here, change, request)),
      askQueue: (what, change) => at(queue, (part, here) => part.askQueue(here, what, change)),
      stopAll: (force) => at(queue, (part, here) => part.stopAll(here, force)),
      pullLanded: () => at(queue, (part, here) => part.pullLanded(here)),
      recordDeaths: (changes) => at(deaths, (part, here) => part.recordDeaths(here, changes)),
    },
  }
}

/** A terminal may stand in a folder that a clean-up or a removed work tree took away. */
function folderOf(io: Surroundings): string {
  try {
    return io.cwd
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause
    throw new RalphError('not_a_repository', 'The current folder is gone: it was deleted or moved.', {
      hint: 'Nothing was touched. Go to a folder that exists (cd "$PWD" if it has been made again), then type the command again.',
      cause,
    })
  }
}

/** Seldom, and what makes such a command safe to type is dear to load. */
const namesGit = /\bgit .*(switch|merge) /
