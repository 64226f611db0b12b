// Plays a plan: the loop, what befalls it at its events, and a user who goes on as ralph advises until all is done.
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { advice } from './advice.ts'
import { writeAttempt } from './agent.ts'
import { hangBell } from './bell.ts'
import type { Spawn, Token } from './ledger.ts'
import { alive, differences, isAlive, isRalphsGit, pictureOf } from './picture.ts'
import type { Act, AttemptPlan, Event, Plan } from './plan.ts'
import { playUser } from './user.ts'
import { buildWorld, change, refsOf, tokensIn, type World } from './world.ts'

const ralph = process.env['RALPH_PROGRAM'] ?? resolve(import.meta.dirname, '../../dist/main.js')

/** One ralph command and what came of it. */
export interface Said {
  readonly args: readonly string[]
  readonly code: number | null
  readonly died: boolean
  readonly text: string
  /** What it changed; undefined where agents or users were at work meanwhile, or it was killed. */
  readonly changed?: readonly string[]
}

export interface Fault {
  readonly kind: 'lost' | 'lie' | 'dead end' | 'process' | 'left'
  readonly text: string
}

export interface Played {
  readonly world: World
  readonly said: readonly Said[]
  readonly generation: number
  /** Everything in order, for people. */
  readonly story: readonly string[]
  readonly faults: readonly Fault[]
}

/** A guard only: nothing that a round does takes a tenth of it. */
const longestMs = 90_000
const mostCommands = 16

/** `program` stands in for ralph: see the test of the oracle itself. */
export async function playRound(plan: Plan, program = ralph): Promise<Played> {
  const world = buildWorld(plan)
  const { ledger } = world
  const story: string[] = []
  const faults: Fault[] = []
  const said: Said[] = []
  const spent = new Set<Event>()
  const gatePids = new Set<number>()
  const agents = new Map<number, Spawn>()
  /** How many tokens there were when it began. */
  const sinceBegin = new Map<number, number>()
  let [runs, gates, deaths, halts, generation, deeds] = [0, 0, 0, 0, 0, 0]
  let running: { child: ChildProcess; ended: Promise<unknown> } | undefined
  let killing: Promise<void> | undefined
  const stops: Promise<unknown>[] = []

  const due = (isNow: (at: Event['at']) => boolean): Event[] => {
    const now = plan.events.filter((event) => !spent.has(event) && isNow(event.at))
    for (const event of now) spent.add(event)
    return now
  }
  const user = (act: Act, moment: string): void => {
    if (act.do !== 'user') return
    deeds += 1
    story.push(`  user: ${playUser(world, act, moment)}`)
  }
  /** False: the script that rang waits for an answer that never comes. */
  const befall = async (events: readonly Event[], moment: string): Promise<boolean> => {
    let goesOn = true
    for (const { act } of events) {
      if (act.do === 'user') user(act, moment)
      else if (running === undefined) continue
      else if (act.do === 'signal') {
        story.push(`  ${act.signal} ${moment}`)
        if (act.signal === 'stop') stops.push(stop())
        else running.child.kill(act.signal)
        goesOn = false
      } else {
        story.push(`  kill -9 of ${act.whom} ${moment}`)
        // Also where the one after it kills all: nothing is started in between.
        const isAll = events.some((each) => each.act.do === 'kill' && each.act.whom === 'all')
        if (isAll) killing = running.ended.then(() => killAll(world))
        running.child.kill('SIGKILL')
        await running.ended
        await killing
        if (isAll) return false
        goesOn = plan.orphansGoOn
      }
    }
    return goesOn
  }

  const bell = hangBell(
    world.desk,
    async (pid, [who, what, ...rest]) => {
      if (who === 'agent' && what === 'begin') {
        const [storyId = '', iteration = ''] = rest
        const attempts = plan.attempts[Number(storyId) - 1] ?? []
        const tries = ledger.spawns.filter((each) => each.story === storyId).length
        const attempt: AttemptPlan = attempts[tries] ?? { before: [], after: [], ending: 'complete' }
        const index = ledger.spawns.length
        const born: Spawn = {
          index,
          story: storyId,
          iteration: Number(iteration),
          generation,
          says: attempt.ending,
        }
        ledger.spawns.push(born)
        agents.set(pid, born)
        sinceBegin.set(pid, sinceLook(world, runs))
        deeds += 1
        story.push(
          `  agent ${index}: story ${storyId}, iteration ${iteration}: ${[...attempt.before, 'work', ...attempt.after, attempt.ending].join(', ')}`,
        )
        return writeAttempt(world, born, attempt)
      }
      if (who === 'agent') {
        const me = agents.get(pid)
        const step = what === 'end' ? lastStep : Number(rest[0])
        markTaken(world, sinceBegin.get(pid) ?? ledger.tokens.length)
        const moment = `at step ${what === 'end' ? 'end' : step} of agent ${me?.index}`
        const goesOn = await befall(
          due((at) => at.on === 'agent' && at.spawn === me?.index && at.step === step),
          moment,
        )
        if (what === 'end' && me !== undefined) {
          const there = tokensIn(world.folder('loop'))
          me.left = ledger.tokens
            .filter(({ id, spawn: by }) => by === me.index && there.has(id))
            .map(({ id }) => id)
        }
        return goesOn ? 'go' : undefined
      }
      if (who === 'gate') {
        gatePids.add(pid)
        const n = gates
        if (what === 'end') gates += 1
        const goesOn = await befall(
          due((at) => at.on === 'gate' && at.n === n && at.edge === what),
          `at the ${what} of gate ${n}`,
        )
        return goesOn ? 'go' : undefined
      }
      await befall(
        due((at) => at.on === 'git' && at.run === runs && at.n === Number(what)),
        `at ralph's git call ${what} of command ${runs}`,
      )
      return 'go'
    },
    (error) => faults.push({ kind: 'dead end', text: `the driver itself failed: ${String(error)}` }),
  )

  /** Any ralph command, without events of its own. */
  const call = async (args: readonly string[]): Promise<Said> => {
    await settled(world)
    const before = pictureOf(world)
    const doneBefore = deeds
    const child = spawn(process.execPath, [program, ...args], {
      cwd: world.repo,
      env: world.env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let text = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        text += chunk.toString('utf8')
      })
    const isWork = !['status', 'stop'].includes(args[0] ?? '')
    const ended = new Promise<void>((done) => child.on('exit', () => done()))
    const closed = new Promise<void>((done) => child.on('close', () => done()))
    if (isWork) running = { child, ended }
    const guard = setTimeout(() => {
      faults.push({
        kind: 'dead end',
        text: `ralph ${args.join(' ')} did not end within ${longestMs / 1000} s`,
      })
      void killAll(world)
    }, longestMs)
    await ended
    // Whatever is started before that is over would die of it, too.
    await killing
    clearTimeout(guard)
    // What it left running may hold its streams.
    await Promise.race([closed, pause(child.signalCode === 'SIGKILL' ? 200 : 5000)])
    if (isWork) running = undefined
    const died = child.signalCode === 'SIGKILL'
    if (died) await aftermath()
    const changed =
      died || deeds !== doneBefore || stops.length > 0 ? undefined : differences(before, pictureOf(world))
    const one: Said = {
      args,
      code: child.exitCode,
      died,
      text,
      ...(changed !== undefined && { changed }),
    }
    story.push(
      `$ ralph ${args.map((arg) => (arg.includes(' ') ? `'${arg}'` : arg)).join(' ')}`,
      ...(args.includes('--json') ? '…' : text)
        .trimEnd()
        .split('\n')
        .map((line) => `  | ${line}`),
      `  = ${died ? 'killed' : `exit ${child.exitCode}`}`,
    )
    said.push(one)
    return one
  }

  /** The kill that was meant for the loop's git may strike that of `stop`, which asks to be typed again then. */
  const stop = async (): Promise<void> => {
    const { text } = await call(['stop', change])
    if (text.includes('Type the same command again')) await call(['stop', change])
  }

  /** Every git that ralph had started has ended too, one way or the other; an orphan has gone on as far as it goes. */
  const aftermath = async (): Promise<void> => {
    for (const [pid, when, whom, ...args] of struck(world)) {
      story.push(strikeText(when, whom, args))
      await until(() => !isAlive(world, Number(pid)))
      if (whom === 'all') await killAll(world)
    }
    // Those beside the one that struck are on their way, too.
    await until(() => !alive(world).some(isRalphsGit))
    rmSync(join(world.desk, 'struck'), { force: true })
    const orphans = [...agents.keys(), ...gatePids]
    if (plan.orphansGoOn) await until(() => !orphans.some((pid) => isAlive(world, pid)))
  }

  /** A command that works: the events that the plan has for it are armed. */
  const work = async (args: readonly string[]): Promise<Said> => {
    const armed = plan.events.flatMap(({ at, act }) => {
      if (at.on !== 'git' || at.run !== runs || act.do === 'signal') return []
      return [`${at.n} ${act.do === 'user' ? 'bell' : at.when} ${act.do === 'kill' ? act.whom : 'nobody'}`]
    })
    writeFileSync(join(world.desk, 'armed'), armed.map((line) => `${line}\n`).join(''))
    writeFileSync(join(world.desk, 'git.log'), '')
    const end = await call(args)
    await Promise.all(stops.splice(0))
    writeFileSync(join(world.desk, 'armed'), '')
    runs += 1
    if (!end.died) {
      for (const [, when, whom, ...words] of struck(world)) story.push(strikeText(when, whom, words))
      rmSync(join(world.desk, 'struck'), { force: true })
    }
    return end
  }

  const flags = [
    '--agent-command',
    `sh ${join(world.desk, 'agent.sh')}`,
    '--on-complete',
    plan.choice === 'cleanup' ? 'cleanup' : 'keep',
    ...(plan.mode === 'stash' ? ['--checkpoint', 'stash'] : []),
    ...(plan.mode === 'worktree' ? ['--worktree'] : []),
  ]
  const isOver = (): boolean => plan.choice === 'keep' || plan.mode === 'stash' || !hasBranch(world)

  let next: readonly string[] = ['loop', change, ...flags]
  let last = ''
  for (let step = 0; ; step += 1) {
    if (faults.some(({ kind }) => kind === 'dead end')) break
    if (step >= mostCommands) {
      faults.push({ kind: 'dead end', text: `not done after ${mostCommands} commands` })
      break
    }
    const end = await work(next)
    if (end.died) {
      const after = due((at) => at.on === 'death' && at.n === deaths)
      // ralph takes what changes within two seconds of its last sign of life for the agent's last moment.
      if (after.length > 0) await pause(2200)
      for (const { act } of after) user(act, `after death ${deaths}`)
      deaths += 1
    }
    if (end.code === 0 && isDone(world) && isOver()) break
    const looked = await call(['status', change])
    // Every story is saved and brought back; the loop itself was killed before it could write that it was done.
    if (end.code === 0 && isOver() && looked.text.startsWith(`${change}  ✓ done`)) break
    if ((looked.changed?.length ?? 0) > 0)
      faults.push({ kind: 'lie', text: `status changed what it looked at: ${looked.changed?.join('; ')}` })
    // Nobody types what was refused again without doing what it asks for.
    const isRefused = next[0] === 'finish' && !end.died && end.code !== 0
    const wish =
      end.code === 0 || looked.code !== 0 || isRefused ? 'advice' : (plan.wishes[halts] ?? 'advice')
    halts += 1
    const fingerprint = `${end.code} ${next.join(' ')} ${end.text.replaceAll(/\d+/g, '#')}`
    if (!end.died && fingerprint === last) {
      faults.push({ kind: 'dead end', text: `the same command, the same answer: ralph ${next.join(' ')}` })
      break
    }
    last = fingerprint
    if (wish === 'fresh' && end.code !== 2) {
      generation += 1
      next = ['loop', change, '--fresh', ...flags]
    } else if (wish.startsWith('finish') && end.code !== 0 && end.code !== 2)
      next = ['finish', change, wish === 'finish-keep' ? '--keep' : '--cleanup']
    else {
      const advised = advice(world, end, looked, story)
      if (advised === undefined) {
        faults.push({ kind: 'dead end', text: `nothing was advised after: ralph ${next.join(' ')}` })
        break
      }
      // A run that was cleaned up is over: this is another.
      if (advised[0] === 'loop') generation += 1
      next = advised[0] === 'loop' ? [...advised, ...flags] : advised
    }
  }
  const looked = await call(['status', change, '--json'])
  if ((looked.changed?.length ?? 0) > 0)
    faults.push({ kind: 'lie', text: `status changed what it looked at: ${looked.changed?.join('; ')}` })
  bell.close()
  return { world, said, generation, story, faults }
}

/** Steps are planned 0 to 3; the last is the moment before the promise, however few deeds there are. */
const lastStep = 3

/** Tokens from here on were written after ralph's last look at the tree: no program can know of them before the agent begins. */
function sinceLook({ desk, ledger }: World, run: number): number {
  const looks = readFileSync(join(desk, 'git.log'), 'utf8').split('\n')
  let last = looks.findLastIndex((line) => line.endsWith(' look')) + 1
  // Two that run side by side: the one that asks for files may be through when the other has not begun.
  while (looks[last - 2]?.endsWith(' look') === true) last -= 1
  const isSince = ({ moment }: Token): boolean => {
    const [, n, command] = /^at ralph's git call (\d+) of command (\d+)$/.exec(moment) ?? []
    return Number(command) === run && Number(n) > last
  }
  return ledger.tokens.findLastIndex((token) => !isSince(token)) + 1
}

/** What the user wrote or made since the agent began, and its last deed took away. */
function markTaken(world: World, since: number): void {
  const there = tokensIn(world.folder('loop'))
  for (const token of world.ledger.tokens.slice(since))
    if (token.isBeside === true && !token.isCommitted && !token.isRetired && !there.has(token.id))
      token.isTaken = true
  if (world.ledger.refTimes.size === 0) return
  const now = refsOf(world)
  for (const [name, at] of world.ledger.refTimes)
    if (
      at >= since &&
      world.ledger.refs.has(name) &&
      world.ledger.agentRefs.has(name) &&
      (now.get(name) ?? '') !== world.ledger.refs.get(name)
    ) {
      world.ledger.takenRefs.set(name, world.ledger.refs.get(name) ?? '')
      world.ledger.refs.delete(name)
    }
}

function isDone(world: World): boolean {
  const path = [world.folder('loop'), world.repo]
    .map((folder) => join(folder, '.claude', 'loop-state.json'))
    .find((each) => existsSync(each))
  if (path === undefined) return false
  return (JSON.parse(readFileSync(path, 'utf8')) as { status?: string }).status === 'done'
}

export function hasBranch(world: World): boolean {
  return world.tryGit(['rev-parse', '-q', '--verify', `refs/heads/ralph/${change}`]) !== ''
}

function struck(world: World): string[][] {
  const path = join(world.desk, 'struck')
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(' '))
}

function strikeText(when = '', whom = '', args: readonly string[] = []): string {
  const command = args.filter((arg) => !arg.startsWith('-') && !arg.includes('=')).join(' ')
  return when === 'bell'
    ? `  (at: git ${command})`
    : `  kill -9 of ${whom} at ralph's git call (${when}): git ${command}`
}

/** Until they are gone: one that is dying still has its place in the table. */
async function killAll(world: World): Promise<void> {
  // Again and again: one of them may be starting another.
  await until(() => {
    const pids = alive(world)
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        continue
      }
    }
    return pids.length === 0
  })
}

async function until(holds: () => boolean): Promise<void> {
  const began = performance.now()
  while (!holds() && performance.now() - began < 20_000) await pause(5)
}

/** What a command has ended may take a moment to go, on a busy machine too long a one: that is no deed of the next command's. */
async function settled(world: World): Promise<void> {
  let last = alive(world).join()
  for (let looks = 0, same = 0; last !== '' && same < 3 && looks < 50; looks += 1) {
    await pause(20)
    const now = alive(world).join()
    same = now === last ? same + 1 : 0
    last = now
  }
}
