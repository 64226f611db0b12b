// One round, decided before it is played: a pure function of the seed and the round's number. No clock has a say in it.
import { diceOf, type Dice } from './dice.ts'

/** `submodules`: branch mode, with one that is checked out and has work of the user's in it. */
export const modes = ['branch', 'stash', 'worktree', 'detached', 'unborn', 'submodules'] as const
export type Mode = (typeof modes)[number]

/** What lies in the repository before the loop, beside the committed files. */
const belongings = [
  // First: git stashes nothing beside an intent to add.
  'stash',
  'stash-untracked',
  'edited',
  'staged-edit',
  'partly-staged',
  'staged-new',
  'deleted',
  'staged-delete',
  'renamed',
  'intent-to-add',
  'untracked',
  'untracked-odd',
  'untracked-deep',
  'untracked-link',
  'private',
  'executable',
  'empty-folder',
  'ignored',
  'branch',
  'tag',
  'annotated-tag',
  'linked-tree',
  'remote',
  'hook',
  'attributes',
] as const
export type Belonging = (typeof belongings)[number]

/** What an agent does to the repository, besides its work. */
export type AgentDeed =
  | 'edit-shared'
  | 'edit-users'
  | 'delete-tracked'
  | 'delete-users'
  | 'odd-file'
  | 'commit'
  | 'switch-main'
  | 'branch-from-main'
  | 'reset-hard'
  | 'reset-main'
  | 'sweep'
  | 'stash'
  | 'drop-stash'
  | 'make-refs'
  | 'delete-refs'
  | 'move-refs'
  | 'yaml'
  | 'config'
  | 'hook'
  | 'attributes'
  | 'child'
  | 'state-file'
  | 'tick-own'
  | 'tick-foreign'
  | 'stale-lock'
  | 'nested'
  | 'hide'
  | 'half-merge'
  | 'submodule'

/** How an attempt ends. A lie says COMPLETE where the work is not done, which only a gate can see. */
type Ending = 'complete' | 'failed' | 'none' | 'crash' | 'suicide' | 'lie'

export interface AttemptPlan {
  /** Before its work is written, and after. */
  readonly before: readonly AgentDeed[]
  readonly after: readonly AgentDeed[]
  readonly ending: Ending
}

/** What a user does beside the loop. */
export type UserDeed =
  | 'edit'
  | 'edit-again'
  | 'create'
  | 'delete'
  | 'commit'
  | 'stash'
  | 'switch'
  | 'make-refs'
  | 'delete-refs'
  | 'move-refs'
  | 'fetch'
  | 'configure'

/** In worktree mode a user has two places: the own checkout, and the loop's tree. */
export interface UserAct {
  readonly do: 'user'
  readonly deed: UserDeed
  readonly place: 'checkout' | 'loop'
}

interface KillAct {
  readonly do: 'kill'
  /** `git`: the git command alone dies, ralph lives on. `all`: agent and gate die with ralph. */
  readonly whom: 'ralph' | 'all' | 'git'
}

interface SignalAct {
  readonly do: 'signal'
  readonly signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'stop'
}

export type Act = UserAct | KillAct | SignalAct

/** Events of the n-th ralph command that works (0: the loop itself), never a time. */
type Moment =
  | { readonly on: 'git'; readonly run: number; readonly n: number; readonly when: GitMoment }
  | { readonly on: 'agent'; readonly spawn: number; readonly step: number }
  | { readonly on: 'gate'; readonly n: number; readonly edge: 'start' | 'end' }
  /** After ralph's n-th death, before anybody looks. */
  | { readonly on: 'death'; readonly n: number }

/** `middle-k`: git dies of a file-size limit of k blocks in its own write, locks and half files left; `torn`: its input is cut off. */
type GitMoment = 'before' | 'after' | 'middle-0' | 'middle-1' | 'torn'

export interface Event {
  readonly at: Moment
  readonly act: Act
}

/** What the user types after a death or a halt. */
type Wish = 'advice' | 'finish-cleanup' | 'finish-keep' | 'fresh'

export interface Plan {
  readonly seed: number
  readonly round: number
  readonly mode: Mode
  readonly stories: number
  readonly has: readonly Belonging[]
  /** By story; the spawns beyond them do good work. */
  readonly attempts: readonly (readonly AttemptPlan[])[]
  readonly gate: boolean
  readonly choice: 'cleanup' | 'keep' | 'later'
  readonly events: readonly Event[]
  /** By death or halt; `advice` beyond them. */
  readonly wishes: readonly Wish[]
  /** An orphan agent goes on to its end before the recovery, or is still there when it comes. */
  readonly orphansGoOn: boolean
  /** On no branch when the loop begins: always in mode `detached`, sometimes beside a work tree of its own. */
  readonly isDetached: boolean
}

export function planRound(seed: number, round: number, only?: Mode): Plan {
  const dice = diceOf(seed, round)
  const drawn = dice.weighted({
    branch: 5,
    stash: 3,
    worktree: 4,
    detached: 2,
    unborn: 1,
    submodules: 2,
  } satisfies Record<Mode, number>)
  const mode = only ?? drawn
  const stories = dice.int(2, 3)
  const has = belongings.filter(
    (thing) => dice.chance(0.45) && !(mode === 'unborn' && needsCommit.has(thing)),
  )
  const gate = dice.chance(0.5)
  return {
    seed,
    round,
    mode,
    stories,
    has,
    attempts: Array.from({ length: stories }, () => attemptsOf(dice, mode, gate)),
    gate,
    choice: dice.weighted({ cleanup: 5, keep: 2, later: 3 }),
    events: eventsOf(dice, mode, gate),
    wishes: Array.from({ length: 4 }, () =>
      dice.weighted({ advice: 12, 'finish-cleanup': 3, 'finish-keep': 1, fresh: 2 } satisfies Record<
        Wish,
        number
      >),
    ),
    orphansGoOn: dice.chance(0.5),
    isDetached: mode === 'detached' || (mode === 'worktree' && dice.chance(0.2)),
  }
}

const needsCommit = new Set<Belonging>([
  'edited',
  'staged-edit',
  'deleted',
  'staged-delete',
  'renamed',
  'stash',
  'stash-untracked',
  'branch',
  'tag',
  'annotated-tag',
  'linked-tree',
  'remote',
])

function attemptsOf(dice: Dice, mode: Mode, gate: boolean): AttemptPlan[] {
  const failing = dice.weighted({ '0': 6, '1': 4, '2': 1 })
  return Array.from({ length: Number(failing) + 1 }, (_, index) => {
    const isLast = index === Number(failing)
    const ending = isLast
      ? 'complete'
      : dice.weighted({ failed: 4, none: 2, crash: 2, suicide: 1, lie: gate ? 2 : 0, complete: 0 })
    return { before: deedsOf(dice, mode, 'before'), after: deedsOf(dice, mode, 'after'), ending }
  })
}

function deedsOf(dice: Dice, mode: Mode, when: 'before' | 'after'): AgentDeed[] {
  const count = Number(dice.weighted({ '0': 5, '1': 4, '2': 2 }))
  return Array.from({ length: count }, () =>
    dice.weighted({
      'edit-shared': 3,
      'edit-users': 3,
      'delete-tracked': 2,
      'delete-users': 2,
      'odd-file': 3,
      commit: 4,
      // Its own work would be gone, which is no success worth the name.
      'switch-main': when === 'before' ? 2 : 0,
      'branch-from-main': when === 'before' ? 3 : 0,
      'reset-hard': when === 'before' ? 2 : 0,
      'reset-main': when === 'before' ? 2 : 0,
      sweep: when === 'before' ? 2 : 0,
      stash: when === 'before' ? 2 : 0,
      'drop-stash': 1,
      'make-refs': 2,
      'delete-refs': 2,
      'move-refs': 2,
      yaml: 1,
      config: 2,
      hook: 1,
      attributes: 1,
      child: 2,
      'state-file': 1,
      'tick-own': when === 'after' ? 4 : 0,
      'tick-foreign': 1,
      'stale-lock': 1,
      nested: 1,
      hide: 2,
      'half-merge': when === 'after' ? 1 : 0,
      submodule: mode === 'submodules' ? 8 : 0,
    } satisfies Record<AgentDeed, number>),
  )
}

function eventsOf(dice: Dice, mode: Mode, gate: boolean): Event[] {
  const events: Event[] = []
  // Kills: of the loop, then of each recovery, up to three in a row.
  const kills = Number(dice.weighted({ '0': 3, '1': 5, '2': 3, '3': 2 }))
  for (let run = 0; run < kills; run += 1) events.push(killOf(dice, run, gate))
  if (dice.chance(0.2)) {
    events.push({
      at: { on: 'agent', spawn: dice.int(0, 3), step: dice.int(0, 3) },
      act: { do: 'signal', signal: dice.pick(['SIGTERM', 'SIGINT', 'SIGHUP', 'stop'] as const) },
    })
  }
  const deeds = Number(dice.weighted({ '0': 3, '1': 3, '2': 4, '3': 2, '4': 1 }))
  for (let index = 0; index < deeds; index += 1)
    events.push({ at: userMoment(dice, kills, gate), act: userAct(dice, mode) })
  return events
}

function killOf(dice: Dice, run: number, gate: boolean): Event {
  const on = dice.weighted({ git: 6, agent: run === 0 ? 3 : 1, gate: gate && run === 0 ? 1 : 0 })
  const whom = dice.weighted({ ralph: 5, all: 4 })
  if (on === 'agent')
    return { at: { on, spawn: run + dice.int(0, 2), step: dice.int(0, 3) }, act: { do: 'kill', whom } }
  if (on === 'gate')
    return { at: { on, n: dice.int(0, 2), edge: dice.pick(['start', 'end']) }, act: { do: 'kill', whom } }
  const when = dice.weighted({ before: 3, after: 3, 'middle-0': 4, 'middle-1': 2, torn: 2 } satisfies Record<
    GitMoment,
    number
  >)
  const n = run === 0 ? dice.int(1, 90) : dice.int(1, 45)
  const alone = when.startsWith('middle') && dice.chance(0.25)
  return { at: { on, run, n, when }, act: { do: 'kill', whom: alone ? 'git' : whom } }
}

function userMoment(dice: Dice, kills: number, gate: boolean): Moment {
  const on = dice.weighted({ agent: 5, gate: gate ? 2 : 0, git: 1, death: kills > 0 ? 4 : 0 })
  if (on === 'agent') return { on, spawn: dice.int(0, 3), step: dice.int(0, 3) }
  if (on === 'gate') return { on, n: dice.int(0, 2), edge: dice.pick(['start', 'end']) }
  if (on === 'death') return { on, n: dice.int(0, kills - 1) }
  return { on, run: 0, n: dice.int(5, 80), when: 'before' }
}

function userAct(dice: Dice, mode: Mode): UserAct {
  const deed = dice.weighted({
    edit: 4,
    'edit-again': 3,
    create: 5,
    delete: 2,
    commit: 2,
    stash: 1,
    switch: 1,
    'make-refs': 3,
    'delete-refs': 2,
    'move-refs': 2,
    fetch: 2,
    configure: 1,
  } satisfies Record<UserDeed, number>)
  return { do: 'user', deed, place: mode === 'worktree' && dice.chance(0.3) ? 'loop' : 'checkout' }
}
