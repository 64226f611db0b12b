// `ralph doctor`: what works here, what does not, and how to fix it.
// Long because it is one list: every check with its fix.
import { join } from 'node:path'
import { installedAgents, loginFixes, loginOf, programOf } from '../adapters/agents/installed.ts'
import type { AgentName } from '../adapters/agents/table.ts'
import { nameYou, nobody, readAuthor } from '../adapters/git/formats/author.ts'
import { operationsInProgress } from '../adapters/git/start/operations.ts'
import { refuseReadOnly } from '../adapters/git/start/preflight.ts'
import { headRef } from '../adapters/git/formats/ref-files.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import { systemClock } from '../adapters/clock.ts'
import { listChanges } from '../adapters/openspec/changes.ts'
import { findCli } from '../adapters/openspec/cli.ts'
import { lstatIfThere } from '../adapters/files/whole.ts'
import { probeCage } from '../adapters/process/cage-probe.ts'
import { exec } from '../adapters/process/exec.ts'
import { ownEnv } from '../adapters/process/on-path.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import type { Diagnosis } from '../ui/app.ts'
import { missingAgent } from './agent-program.ts'
import { agentView, gateToOffer } from './beforehand.ts'
import { agentsTree } from './cage.ts'
import { blindGates } from '../core/blind-gate.ts'
import { cannotRun, openTargets } from './gate-programs.ts'
import { findRootOf } from './root.ts'
import { isRunning, knownRuns, needsRepair } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { liveWords, parkedHere } from './whereabouts.ts'

type Check = Diagnosis['checks'][number]

const checked =
  (verdict: Check['verdict']) =>
  (name: string, detail: string, fix = ''): Check => ({ name, verdict, detail, fix })
const [ok, warning, problem] = [checked('ok'), checked('warning'), checked('problem')]

interface Surroundings {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly isTerminal: boolean
  readonly site: () => Promise<Site>
  /** Whether its gates are to be run, once each. */
  readonly runsGates: boolean
  /** Instead of those of the settings; none: those. */
  readonly verify: readonly string[]
  /** Asks for the runs only where the settings have to do with them. */
  readonly config: (known: () => Promise<readonly KnownRun[]>) => Promise<LoadedConfig>
}

export async function diagnose(around: Surroundings): Promise<Diagnosis> {
  const { cwd, env, isTerminal, site } = around
  let read: Promise<readonly KnownRun[]> | undefined
  /** The journals are read once for all checks. */
  const known = (): Promise<readonly KnownRun[]> => (read ??= site().then((here) => knownRuns(here)))
  // git starts, and answers while the rest is looked at.
  const gitCheck = gitVersion(cwd, ownEnv(env, cwd))
  const configured = await around.config(known).catch((error: unknown) => {
    if (error instanceof RalphError) return error
    throw error
  })
  const set = configured instanceof RalphError ? undefined : configured.config
  const config =
    set === undefined || around.verify.length === 0
      ? set
      : { ...set, verify: [...around.verify], stories: {} }
  const [repositoryChecks, openspecCheck] = await Promise.all([
    repository(site, known, config, around.runsGates),
    openspec(around, config),
  ])
  return {
    checks: [
      node(),
      await gitCheck,
      // Before those that cannot be checked without them.
      ...settingsCheck(configured),
      ...repositoryChecks,
      openspecCheck,
      ...(await agents(around, config)),
      await sandbox(ownEnv(env, cwd), config),
      terminal(env, isTerminal),
    ],
  }
}

function node(): Check {
  const version = process.versions.node
  if (process.platform === 'win32') {
    return warning(
      'platform',
      'Windows has no process groups: agents cannot be run, reports work',
      'Run loops under WSL.',
    )
  }
  return ok('node', `${version} on ${process.platform}`)
}

async function gitVersion(cwd: string, env: NodeJS.ProcessEnv): Promise<Check> {
  const result = await exec('git', ['--version'], { cwd, env, timeoutMs: 10_000 })
  const version = /(\d+)\.(\d+)/.exec(result.stdout.toString('utf8'))
  if (version === null) return problem('git', 'git cannot be started', 'Install git 2.38 or newer.')
  const [, major = '0', minor = '0'] = version
  const isNew = Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 38)
  const detail = result.stdout.toString('utf8').trim()
  return isNew ? ok('git', detail) : problem('git', `${detail} is too old`, 'Install git 2.38 or newer.')
}

/** This is the command one types when something looks wrong: it says so, and leaves it as it is. */
async function repository(
  open: () => Promise<Site>,
  known: () => Promise<readonly KnownRun[]>,
  config: Config | undefined,
  runsGates: boolean,
): Promise<Check[]> {
  try {
    const site = await open()
    // What `ralph loop` would refuse is a problem here too.
    refuseReadOnly(site.git)
    const checks = [
      await commits(site),
      await author(site),
      ...(await plans(site)),
      ...(await gates(site, config, runsGates)),
    ]
    for (const run of await known()) {
      checks.push(await loopCheck(site, run))
      for (const detail of await liveWords(site, run))
        checks.push(warning(`loop ${run.change}`, detail, fixOf(run.change)))
    }
    const { leftoversIn } = await import('./leftovers.ts')
    for (const { name, before } of await leftoversIn(site, await known()))
      checks.push(warning(name, before, 'ralph doctor --fix'))
    return checks
  } catch (error) {
    if (!(error instanceof RalphError)) throw error
    return [problem('repository', error.message, error.hint)]
  }
}

async function commits({ git }: Site): Promise<Check> {
  const ref = headRef(git)
  const isBorn =
    ref === undefined
      ? (await git.run(['rev-parse', '--quiet', '--verify', 'HEAD'], { accept: [1, 128] })).code === 0
      : (await readRef(git, ref)) !== undefined
  const [begun] = operationsInProgress(git.gitDir)
  if (begun !== undefined)
    return problem(
      'repository',
      `a ${begun} is in progress in ${git.worktree}`,
      `Finish it or abort it: ${git.typed} status says how.`,
    )
  if (isBorn) return ok('repository', git.worktree)
  return warning(
    'repository',
    `${git.worktree} has no commit yet, so there is no branch to come back to`,
    'git add --all && git commit -m "start"',
  )
}

/** Of the loop's commits; a squash is the user's own git's, which refuses without. */
async function author({ git, env }: Site): Promise<Check> {
  const known = await readAuthor(git, env)
  return known === undefined
    ? warning('author', nobody, nameYou)
    : ok('author', `${known.name} <${known.email}>`)
}

const plan = 'openspec/changes/<name>/tasks.md'

/** What `ralph loop` would ask for first. */
async function plans(site: Site): Promise<Check[]> {
  const name = 'changes'
  const planned = await findRootOf(site)
    .then((root) => listChanges(root, site.env))
    .catch((error: unknown) => {
      if (error instanceof RalphError) return error
      throw error
    })
  const hasOwnPlan = (await lstatIfThere(join(site.git.worktree, 'tasks.md'))) !== undefined
  if (planned instanceof RalphError || planned.length === 0) {
    if (hasOwnPlan) return [ok(name, 'none, but there is a tasks.md: ralph loop <any-name> runs it')]
    const detail =
      planned instanceof RalphError ? planned.message : 'there is no change under openspec/changes'
    return [problem(name, detail, `Write a plan into ${plan}, or let OpenSpec do it: openspec init`)]
  }
  const open = planned.filter((change) => change.tasks_done < change.tasks_total).map((change) => change.name)
  const names = open.length === 0 ? '' : ` (${open.join(', ')})`
  const told = planned.filter((change) => change.problem !== '' && !hasOwnPlan)
  return [
    ok(name, `${planned.length} in all, ${open.length} with open tasks${names}`),
    ...told.map((change): Check => ({
      name: `change ${change.name}`,
      verdict: 'warning',
      detail: change.problem,
      fix:
        change.problem === 'no tasks.md'
          ? `Write openspec/changes/${change.name}/tasks.md; without it a loop asks the agent for its title, again and again.`
          : '',
    })),
  ]
}

async function gates({ git, env }: Site, config: Config | undefined, isRun: boolean): Promise<Check[]> {
  if (config === undefined) return [unchecked('gates')]
  const set = config.verify
  const asked = await Promise.all(set.map((gate) => cannotRun(gate, { cwd: git.worktree, env })))
  const missing = asked.flatMap((found): Check[] =>
    found === undefined ? [] : [{ name: 'gates', verdict: 'problem', ...found }],
  )
  if (missing.length > 0) return missing
  const absent = openTargets(set, git.worktree).map((detail): Check => warning('gates', detail, gateFix))
  if (absent.length > 0) return absent
  const blind = blindGates(set).map((detail): Check =>
    warning('gates', detail, 'Change it: verify: in ralph.yaml.'),
  )
  if (blind.length > 0) return blind
  const single = Object.values(config.stories).flatMap(({ verify = [] }) => verify)
  if (isRun && set.length + single.length > 0)
    return gatesNow([...new Set([...set, ...single])], { git, env }, config)
  if (set.length > 0) return [ok('gates', set.join(' | '))]
  const offer = await gateToOffer(git.worktree)
  const none = "none, so the agent's word alone counts"
  return [
    {
      name: 'gates',
      verdict: 'warning',
      detail: offer === '' ? none : `${none} (found ${offer})`,
      fix:
        offer === ''
          ? 'Name a command that checks the work: ralph loop --verify "…", or in ralph.yaml: verify: ["…"]'
          : `Add --verify "${offer}", or in ralph.yaml: verify: ["${offer}"]`,
    },
  ]
}

/** One after the other, as in a loop: two may use the same port. */
async function gatesNow(
  set: readonly string[],
  { git, env }: Pick<Site, 'git' | 'env'>,
  { iteration_timeout: minutes, sandbox: cage, sandbox_gates: isCaged }: Config,
): Promise<Check[]> {
  const { gateNow } = await import('../adapters/process/gate-now.ts')
  const where = cage !== 'off' && isCaged ? ', outside of the sandbox' : ''
  const found: Check[] = []
  for (const gate of set) {
    const options = { cwd: git.worktree, env, timeoutMs: minutes * 60_000 }
    const { passed, why } = await gateNow(gate, options)
    found.push(
      passed
        ? ok('gates', `${gate}: passes now${where}`)
        : {
            ...warning(
              'gates',
              `${gate}: fails now${where} (${why})`,
              'If the plan is not about that, fix it before a loop: every attempt would fail, and be paid.',
            ),
            is_red: true,
          },
    )
  }
  return found
}

const gateFix = 'Add it, or change the gate: --verify, or verify: in ralph.yaml.'

function fixOf(change: string): string {
  return `ralph resume ${change} or ralph finish ${change} --cleanup`
}

async function loopCheck(site: Site, run: KnownRun): Promise<Check> {
  const { change, state } = run
  const name = `loop ${change}`
  if (run.damage !== undefined) {
    const way = `ralph resume ${change} says how to get everything back; ralph loop ${change} --fresh starts over`
    return problem(name, run.damage, way)
  }
  const fix = fixOf(change)
  // What a death brings with it, the engine and every adapter, is loaded only for a loop that needs it.
  const death = needsRepair(run) ? (await import('./recovery.ts')).deathOf(run) : undefined
  if (death !== undefined) {
    const { orphans, diedMs } = death
    const minutes = Math.max(0, Math.floor((systemClock.now() - diedMs) / 60_000))
    const age = minutes === 0 ? 'less than a minute' : minutes === 1 ? '1 minute' : `${minutes} minutes`
    const died = `died ${age} ago: ralph was killed`
    if (orphans.length === 0) return warning(name, died, fix)
    const detail = `${died}; an agent still runs, pid ${orphans.join(', ')}`
    return warning(name, detail, `ralph stop ${change}; then ${fix}`)
  }
  if (needsRepair(run)) {
    const detail = `${state.status}, and its work tree still has to be repaired`
    return warning(name, detail, fix)
  }
  if (isRunning(run)) return ok(name, 'running')
  const parked = await parkedHere(site, run)
  if (parked !== undefined)
    return warning(name, parked.waits === true ? parked.why : `parked: ${parked.why}`, 'ralph queue')
  const isOver = state.status === 'done' || state.choice === 'cleanup'
  return isOver ? ok(name, state.status) : warning(name, state.status, `ralph why ${change}`)
}

async function openspec({ cwd, env, site }: Surroundings, config: Config | undefined): Promise<Check> {
  const here = await site().catch(() => undefined)
  const notIn = here === undefined ? undefined : agentsTree(here, config?.sandbox)
  const { cli, note } = await findCli({ from: cwd, env, notIn })
  return cli === undefined
    ? warning(
        'openspec',
        note.replace(/^openspec is not installed/, 'not installed (optional)'),
        'npm install --global @fission-ai/openspec',
      )
    : ok('openspec', `${cli.path} ${cli.version}`)
}

/** A settings file that `ralph loop` would refuse is a problem here too, and what it would warn of a warning. */
function settingsCheck(configured: LoadedConfig | RalphError): Check[] {
  if (!(configured instanceof RalphError)) {
    return configured.warnings.map((detail) => warning('settings', detail, settingsFix(detail)))
  }
  return [problem('settings', configured.message, configured.hint)]
}

/** What is set for it nobody knows: one fault is not counted twice. */
function unchecked(name: string): Check {
  return warning(name, 'not checked: the settings cannot be read', 'First fix "settings" above.')
}

function settingsFix(detail: string): string {
  const changed = /^(\S+) was \w+ while #\d+ of (\S+) ran/.exec(detail)
  if (changed !== null) {
    const [, file = '', change = ''] = changed
    return `Look at it: git log -p -1 -- ${file}, or git diff -- ${file}. Agree: ralph finish ${change} --accept-config. Or write your own version: that needs no flag.`
  }
  const open = /^the open run of (\S+) continues/.exec(detail)?.[1]
  return open === undefined
    ? 'Rename it, or unset it.'
    : `To use the file as it is: ralph resume ${open} --accept-config`
}

/** The one that a loop would take has to be there and logged in; of the others it is only told. */
async function agents({ cwd, env, site }: Surroundings, config: Config | undefined): Promise<Check[]> {
  if (config === undefined) return [unchecked('agents')]
  if (config.agent_command !== undefined) {
    const worktree = await site().then(
      ({ git }) => git.worktree,
      () => cwd,
    )
    const fault = await missingAgent(config, { cwd: worktree, env })
    return fault === undefined
      ? [ok('agent', `--agent-command ${config.agent_command}`)]
      : [problem('agent', fault.detail, fault.fix)]
  }
  const installed: readonly string[] = installedAgents(env)
  const wanted = config.agent ?? installed.slice(0, 1)
  if (wanted.length === 0) {
    return [
      problem(
        'agents',
        'none of claude, codex, opencode and gemini is on PATH',
        'Install one, or use --agent-command CMD; --agent demo needs nothing.',
      ),
    ]
  }
  const seen = agentView(env, config)
  return [...new Set([...wanted, ...installed])].map((name) => agentCheck(name, seen, wanted[0] === name))
}

function agentCheck(name: string, env: NodeJS.ProcessEnv, isFirst: boolean): Check {
  const check = `agent ${name}`
  const verdict = isFirst ? 'problem' : 'warning'
  const isAlwaysThere = name === 'demo' || name === 'acp' || name === 'command'
  const path = isAlwaysThere ? '' : programOf(name as AgentName, env)
  if (path === undefined)
    return { name: check, verdict, detail: 'not on PATH', fix: 'Install it, or name another one by --agent.' }
  const { is, how } = loginOf(name, env)
  const place = path === '' ? '' : `${path}; `
  if (is === 'found') return ok(check, `${place}${how}`)
  if (is === 'none')
    return { name: check, verdict, detail: `${place}no login found`, fix: loginFixes[name] ?? '' }
  return ok(check, `${place}login not known (ralph cannot see it from here)`)
}

/** Not asked for: recommended, and told what it needs. */
async function sandbox(env: NodeJS.ProcessEnv, config: Config | undefined): Promise<Check> {
  const asked = config?.sandbox ?? 'off'
  const probe = await probeCage(env, { isStrict: asked === 'strict' })
  if (!('program' in probe))
    return asked === 'off'
      ? warning('sandbox', `off, and not possible: ${probe.why}`, probe.fix)
      : problem('sandbox', `${asked} is not possible: ${probe.why}`, probe.fix)
  if (asked !== 'off') return ok('sandbox', `${asked}, by ${probe.program}`)
  return ok(
    'sandbox',
    `off: the agent can read and write what you can. To confine it: --sandbox workspace, or in ralph.yaml: sandbox: workspace`,
  )
}

function terminal(env: NodeJS.ProcessEnv, isTerminal: boolean): Check {
  if (!isTerminal) return ok('terminal', 'none: plain lines, nothing is asked')
  return ok('terminal', `${env['TERM'] ?? 'unknown'}${env['NO_COLOR'] ? ', no colours (NO_COLOR)' : ''}`)
}
