// Whose change is it? The one place that says so, for every ref, path, setting and lock, and by what evidence.
// The rules are docs/decisions/0009-whose-change-is-it.md; checkpoints, recovery and reports ask here and never guess.
// Long because a rule that stands elsewhere is one that nobody asks.

export type Owner =
  /** There, as it is, before the loop began. */
  | 'user_before'
  /** Changed while the loop ran, by a person or a program of theirs: an editor, a fetch, a commit in another work tree. */
  | 'user'
  | 'agent'
  | 'gate'
  | 'ralph'
  | 'other_loop'
  /** Nobody can tell: everything is kept, nothing is changed, and it is said. */
  | 'unknown'

export interface Claim {
  readonly owner: Owner
  /** One clause for a person: how this is known. */
  readonly evidence: string
}

/** One ref that the git of an agent or a gate has written, as that git itself reported it. */
export interface RefWrite {
  readonly by: 'agent' | 'gate'
  /** `refs/…`, or `HEAD` of the loop's own work tree. */
  readonly ref: string
  /** What it found there; undefined when there was nothing. */
  readonly from: string | undefined
  /** Undefined when it was deleted. */
  readonly to: string | undefined
}

/** `checkout`, `switch` and the like in the loop's own work tree. */
export interface HeadSwitch {
  readonly by: 'agent' | 'gate'
  /** What HEAD says since: `refs/heads/x`, or a commit when detached. */
  readonly head: string
}

/** One git command in a work tree of this repository: `['clean', '-fd']`, without `git` and its general options. */
export interface GitCommand {
  readonly by: 'agent' | 'gate'
  readonly argv: readonly string[]
  /** The top of the work tree that it ran in. */
  readonly worktree: string
  /** The git command that ran it: an alias, or one that is made of others. */
  readonly within?: string
}

/**
 * What an attempt's own gits told, in their order: the evidence of whose a change is. A git that nobody watched (the user's,
 * one whose environment was cleared) is not in it. Empty too when nothing could be watched.
 */
export interface Ledger {
  readonly writes: readonly RefWrite[]
  readonly switches: readonly HeadSwitch[]
  readonly commands: readonly GitCommand[]
  /** Names (in `.git/worktrees`) of the work trees that were made. */
  readonly trees: readonly string[]
}

/** A ref that is not what it was when the attempt began; undefined: not there. */
export interface ChangedRef {
  readonly name: string
  readonly before: string | undefined
  readonly now: string | undefined
}

/** `found`: where the agent or gate found it, and where it goes back to; the user may have moved it before them. */
export function ownerOfRef(
  change: string,
  ref: ChangedRef,
  ledger: Ledger,
): Claim & { readonly found: string | undefined } {
  const writes = ledger.writes.filter(({ ref: name }) => name === ref.name)
  const last = writes.at(-1)
  const renamed = ledger.commands.find(({ argv }) => newName(argv) === ref.name)
  // The old name went with what the new one has.
  const isRenamed = (hash: string): boolean =>
    renamed !== undefined &&
    ledger.writes.some((write) => write.ref !== ref.name && write.from === hash && write.to === undefined)
  if (last !== undefined && last.to === ref.now)
    return {
      owner: last.by,
      evidence: `the ${last.by}'s own git wrote it`,
      found: foundBy(writes, isRenamed) ?? ref.before,
    }
  if (renamed !== undefined && (ref.before === undefined || isRenamed(ref.now ?? '')))
    return {
      owner: renamed.by,
      evidence: `the ${renamed.by} renamed a branch to it`,
      found: ref.before === undefined ? undefined : (foundBy(writes) ?? ref.before),
    }
  const aliased = ledger.commands.find(({ argv }) => isAliasOf(argv, ref.name))
  if (aliased !== undefined && last === undefined && ref.now === undefined)
    return {
      owner: aliased.by,
      evidence: `the ${aliased.by} made it another name for a branch`,
      found: ref.before,
    }
  const claim = (owner: Owner, evidence: string): Claim & { readonly found: string | undefined } => ({
    owner,
    evidence,
    found: ref.now,
  })
  if (ref.name !== `refs/heads/ralph/${change}` && /^refs\/((heads\/)?ralph|ralph-landed)\//.test(ref.name))
    return claim('other_loop', 'it is a ref of another loop, or of the merge queue')
  return claim(
    'user',
    last === undefined ? 'no git of the agent or a gate wrote it' : `it was moved again after the ${last.by}`,
  )
}

/** Of another name for a branch that is not what it was. Git before 2.46 reports no write where one is made or leads elsewhere. */
export function ownerOfAlias(name: string, { writes, commands }: Ledger): Claim {
  const by =
    writes.findLast(({ ref }) => ref === name)?.by ??
    commands.find(({ argv }) => isAliasOf(argv, name) || isDeleted(argv, name) || newName(argv) === name)?.by
  return by === undefined
    ? { owner: 'user', evidence: 'no git of the agent or a gate wrote it' }
    : { owner: by, evidence: `the ${by}'s own git wrote it` }
}

/** `git symbolic-ref <name> <ref>`, or `-d <name>`; a name alone is a question. */
function isAliasOf([verb, ...words]: readonly string[], name: string): boolean {
  const refs = words.filter((word, at) => !word.startsWith('-') && words[at - 1] !== '-m')
  const isQuestion = refs.length === 1 && !words.some((word) => /^(?:-d|--delete)$/.test(word))
  return verb === 'symbolic-ref' && refs[0] === name && !isQuestion
}

/** Of one that leads nowhere git reports nothing. */
function isDeleted([verb, ...words]: readonly string[], name: string): boolean {
  const isMeant = words.some((word) => /^(?:-[a-z]*[dD]|--delete)$/.test(word))
  return verb === 'branch' && isMeant && words.some((word) => `refs/heads/${word}` === name)
}

/** Whether the agent or a gate has made it where there was none: if it was there before and looks as before, somebody had deleted it meanwhile. */
export function wasMadeAgain({ name, before, now }: ChangedRef, { writes }: Ledger): boolean {
  const own = writes.filter(({ ref }) => ref === name)
  // Of these git gives no old value.
  const isKnown = own.length > 0 && !name.startsWith('refs/remotes/')
  return (
    isKnown && before !== undefined && before === now && own.at(-1)?.to === now && foundBy(own) === undefined
  )
}

/** Where somebody else left a ref that was not there at first, and that the agent or a gate has deleted since: no difference shows that. */
export function deletedBeside(
  { name, before, now }: ChangedRef,
  { writes, commands }: Ledger,
): string | undefined {
  if (before !== undefined || now !== undefined) return undefined
  const isKept = /^refs\/(?:heads|tags|ralph-landed)\//.test(name)
  // Of the new name of a branch git does not report that it was made.
  const isRenamed = commands.some(({ argv }) => newName(argv) === name)
  return isKept && !isRenamed ? foundBy(writes.filter(({ ref }) => ref === name)) : undefined
}

/** What others than the agent and the gates left on a ref while the attempt ran, whatever it is now. */
export function leftBeside({ name, before, now }: ChangedRef, { writes }: Ledger): string[] {
  const own = writes.filter(({ ref }) => ref === name)
  const made = new Set([before, ...own.map(({ to }) => to)])
  const tips = [...own.map(({ from }) => from), now].filter((tip) => tip !== undefined)
  return [...new Set(tips)].filter((tip) => !made.has(tip))
}

/** Of an entry of `git stash list` that is new. */
export function ownerOfStash(hash: string, { writes }: Ledger): Owner {
  return writes.find(({ ref, to }) => ref === 'refs/stash' && to === hash)?.by ?? 'user'
}

/** Of a merge, a rebase, a bisect … that stands between two commands in this work tree: by the commands that begin one. */
export function ownerOfOperation(worktree: string, { commands }: Ledger): Owner {
  const begins = /^(?:merge|pull|rebase|am|cherry-pick|revert|bisect)/
  const begun = commands.find(
    ({ argv: [verb = ''], within = '', worktree: tree }) =>
      tree === worktree && (begins.test(verb) || begins.test(within)),
  )
  return begun?.by ?? 'user'
}

/** Of entries that are gone: git reports no ref for a drop, so that only the commands tell. */
export function dropperOfStashes({ writes, commands }: Ledger): Owner {
  const deleted = writes.find(({ ref, to }) => ref === 'refs/stash' && to === undefined)
  return commands.find(drops)?.by ?? deleted?.by ?? 'user'
}

/** Whether more were dropped than those it had made itself: then entries that others made meanwhile may be among them. */
export function mayHaveDroppedOthers(ledger: Ledger, isThere: (hash: string) => boolean): boolean {
  if (dropperOfStashes(ledger) === 'user') return false
  const made = ledger.writes.filter(({ ref, to }) => ref === 'refs/stash' && to !== undefined && !isThere(to))
  // An older git drops by a command of its own.
  const dropping = ledger.commands.filter((command) => drops(command) && command.within !== 'stash')
  const isOneByOne = dropping.every(({ argv: [verb, what] }) => verb === 'stash' && what !== 'clear')
  return !isOneByOne || dropping.length === 0 || dropping.length > made.length
}

function drops({ argv: [verb, what = '', ...rest] }: GitCommand): boolean {
  return (
    (verb === 'stash' && /^(?:drop|pop|clear|branch)$/.test(what)) ||
    (verb === 'reflog' && what === 'delete') ||
    // Without a time it is `git gc` that asks, and stashes do not expire.
    (verb === 'reflog' && what === 'expire' && rest.some((word) => word.startsWith('--expire')))
  )
}

/** Back along the agent's own writes to what was there before the first of them. */
function foundBy(
  writes: readonly RefWrite[],
  isRenamed: (hash: string) => boolean = () => false,
): string | undefined {
  const came = (found: string | undefined): boolean => found !== undefined && isRenamed(found)
  const first = writes.reduceRight<string | undefined>((found, { from, to }, at) => {
    const isNext = to === found || (to === undefined && came(found))
    return at === writes.length - 1 || isNext ? from : found
  }, undefined)
  return came(first) ? undefined : first
}

/** `branch -m [old] new` and `-c`: git reports no ref for the new name. */
function newName([verb, ...words]: readonly string[]): string | undefined {
  const isRename = words.some((word) => /^(?:-[a-z]*[mMcC]|--move|--copy)$/.test(word))
  const name = words.at(-1)
  return verb === 'branch' && isRename && name !== undefined ? `refs/heads/${name}` : undefined
}

/** One entry of a git configuration file; a key without `=` has no value. */
export interface GitSetting {
  /** As git lists it: section and name in lower case, the part between as it is. */
  readonly key: string
  readonly value: string | null
}

export interface SettingChange {
  readonly key: string
  readonly before: readonly (string | null)[]
  readonly now: readonly (string | null)[]
}

/** What git and the tools of its users write as bookkeeping: it runs nothing and sends nothing elsewhere. A value must match where one stands. */
const bookkeeping: readonly (readonly [key: RegExp, value?: RegExp])[] = [
  [/^branch\..*\.(?!mergeoptions$)(remote|pushremote)$/, /^(?!-)(?!\w[\w+.-]*::)/],
  [/^branch\..*\.(?!mergeoptions$|remote$|pushremote$)[^.]+$/],
  [/^branch\.(sort|autosetupmerge|autosetuprebase)$/],
  [/^(remote|submodule)\..*\.(url|pushurl)$/, /^(?!-)(?!\w[\w+.-]*::)/],
  [
    /^remote\..*\.(fetch|push|tagopt|prune|prunetags|promisor|partialclonefilter|skipfetchall|skipdefaultupdate|gh-resolved|followremotehead)$/,
  ],
  [/^remote\.pushdefault$/, /^(?!-)(?!\w[\w+.-]*::)/],
  [/^submodule\..*\.(active|branch|ignore|shallow|fetchrecursesubmodules)$/],
  [/^submodule\..*\.update$/, /^(checkout|rebase|merge|none)$/],
  [/^(user|author|committer)\.[^.]+$/],
  [/^gc\.(?!recentobjectshook$)/],
  [/^(maintenance|advice|color|column|log|status|stash|rerere|versionsort|blame)\./],
  [/^lfs\.(repositoryformatversion|.*\.(access|locksverify))$/],
  [/^core\.repositoryformatversion$/, /^[01]$/],
  [/^extensions\.(worktreeconfig|partialclone)$/],
  [/^pull\.(rebase|ff)$/],
  [/^push\.(default|autosetupremote|followtags)$/],
  [/^fetch\.(all|parallel|prune|prunetags|showforcedupdates|writecommitgraph)$/],
  [/^rebase\.(autosquash|autostash|forkpoint|stat|updaterefs)$/],
  [/^merge\.(conflictstyle|ff|log|renames|stat)$/],
  [
    /^diff\.(algorithm|colormoved|colormovedws|context|interhunkcontext|mnemonicprefix|noprefix|renamelimit|renames|wserrorhighlight)$/,
  ],
  [/^commit\.(status|verbose)$/],
  [/^(tag\.sort|checkout\.(defaultremote|guess)|init\.defaultbranch|gui\.(geometry|wmstate))$/],
]

/** Whether git may run, read or send something because of it. What is not known may. */
export function mayRun({ key, value }: GitSetting): boolean {
  const isPlain = !/\p{Cc}/u.test(key + (value ?? ''))
  return !(
    isPlain && bookkeeping.some(([name, allowed]) => name.test(key) && (allowed?.test(value ?? '') ?? true))
  )
}

/**
 * The settings as they should be after an attempt. Bookkeeping stays whoever wrote it, for the user works beside the loop; a key whose values
 * may run something is as before, until the user has agreed. The order of a key's values is kept, the order of keys is that of `now`.
 */
export function settleGitSettings(
  before: readonly GitSetting[],
  now: readonly GitSetting[],
): { readonly undone: readonly SettingChange[]; readonly stays: boolean } {
  const keys = [...new Set([...before, ...now].map(({ key }) => key))]
  const changes = keys
    .map((key) => ({ key, before: valuesOf(before, key), now: valuesOf(now, key) }))
    .filter((change) => !isSame(change.before, change.now))
  const undone = changes.filter(({ key, before: old, now: fresh }) => {
    const touched = [
      ...old.filter((value) => !fresh.includes(value)),
      ...fresh.filter((value) => !old.includes(value)),
    ]
    // Only their order or number differs: as harmless as the values themselves.
    return (touched.length > 0 ? touched : fresh).some((value) => mayRun({ key, value }))
  })
  return { undone, stays: undone.length < changes.length }
}

/** For messages: short, and without what may be a secret. */
export function shownSetting(key: string, values: readonly (string | null)[]): string {
  if (values.length === 0) return `${key}: not set`
  if (/(extraheader|password|token|secret|cookie)/i.test(key)) return `${key} = (not shown)`
  const shown = values.map((value) => (value ?? 'true').replaceAll(/\/\/[^/@\s]+@/g, '//…@'))
  const text = shown.join(', ')
  return `${key} = ${text.length > 120 ? `${text.slice(0, 119)}…` : text}`
}

function valuesOf(settings: readonly GitSetting[], key: string): (string | null)[] {
  return settings.filter((setting) => setting.key === key).map(({ value }) => value)
}

function isSame<T>(one: readonly T[], other: readonly T[]): boolean {
  return one.length === other.length && one.every((value, at) => value === other[at])
}

/** What can be seen of a lock file of git's (`index.lock`, `refs/heads/x.lock`, …). */
export interface LockFacts {
  /** In a folder that only ralph writes to. */
  readonly isInOwnFolder: boolean
  /** Processes that have it open; undefined where nobody can look. */
  readonly holders: readonly number[] | undefined
  /** Whether any git is at work in this repository, whoever's; undefined where nobody can look. */
  readonly isGitAtWork: boolean | undefined
  /** Made after the loop's last checkpoint. */
  readonly isOfAttempt: boolean
  /** Since it was made: JGit and some editors hold one for a moment without having it open. */
  readonly ageMs: number
}

/** A lock that was left by nobody who is still there; asked only when the agent has ended, with all its processes. */
export function ownerOfLock(lock: LockFacts): Claim {
  const { holders, isGitAtWork } = lock
  if (holders === undefined || isGitAtWork === undefined)
    return lock.isInOwnFolder
      ? { owner: 'ralph', evidence: 'only ralph writes to that folder' }
      : { owner: 'unknown', evidence: 'ralph cannot see which process holds it' }
  if (holders.length > 0) return { owner: 'user', evidence: `process ${holders.join(', ')} has it open` }
  if (lock.isInOwnFolder) return { owner: 'ralph', evidence: 'only ralph writes to that folder' }
  if (isGitAtWork) return { owner: 'user', evidence: 'a git command is at work in this repository' }
  if (!lock.isOfAttempt) return { owner: 'user', evidence: 'it was there before the attempt' }
  if (lock.ageMs < quietMs) return { owner: 'unknown', evidence: 'it was made just now' }
  return { owner: 'agent', evidence: 'it was made during the attempt, and no process holds it any more' }
}

const quietMs = 2000

/** Who may have changed the work tree since the loop's last sign of life. */
export interface Absence {
  readonly diedMs: number
  /** What outlived the loop is known to have run until then; absent when nothing did. */
  readonly orphanUntilMs?: number
  /** From then on nothing of the loop was running: somebody looked, or ended it. */
  readonly quietFromMs?: number
  /** When ralph itself put things in order; the last is open (Infinity) while it does. */
  readonly repairs: readonly { readonly fromMs: number; readonly untilMs: number }[]
}

/** What lstat says of a path that differs from the checkpoint. */
export interface PathTimes {
  /** Its ctime: content, mode, name or owner changed then, and nobody can set it back. Absent when it is gone. */
  readonly changedMs?: number
  /**
   * The ctime of the folder that the checkpoint does not have, or that the path is gone from: a renamed folder takes its files along
   * without touching them, and a deleted file leaves no other trace.
   */
  readonly folderMs?: number
}

/** A path of a dead loop's tree that is not as in its checkpoint. `isSlight`: unknown, but most likely the agent's last moment. */
export function ownerOfPath(
  { changedMs, folderMs }: PathTimes,
  absence: Absence,
): Claim & { readonly isSlight?: true } {
  const own = changedMs === undefined ? 'ralph' : atWork(changedMs, absence)
  const slight = (ms: number | undefined): { isSlight?: true } =>
    ms !== undefined && ms <= absence.diedMs + surelyMs ? { isSlight: true } : {}
  if (own === 'user') return { owner: 'user', evidence: 'it changed after the loop had died' }
  if (own === 'unknown')
    return {
      owner: 'unknown',
      evidence:
        (changedMs ?? 0) <= (absence.orphanUntilMs ?? 0)
          ? 'it changed while an agent that outlived the loop was at work'
          : 'it changed in the moment in which the loop was killed',
      ...slight(changedMs),
    }
  const folder = folderMs === undefined ? 'ralph' : atWork(folderMs, absence)
  if (folder === 'user' || folder === 'unknown')
    return {
      owner: 'unknown',
      evidence: 'its folder changed after the loop had died',
      ...slight(folderMs),
    }
  return own === 'ralph' && changedMs !== undefined
    ? { owner: 'ralph', evidence: 'it changed while ralph repaired the tree' }
    : { owner: 'agent', evidence: 'it changed while the loop lived' }
}

/** Beats come twice a second, so that most of what changes in this time after the last one is the agent's; but nobody can tell. */
const surelyMs = 700
const toleranceMs = 2000
/** The kernel stamps files by a clock that ticks every few milliseconds. */
const tickMs = 20

function atWork(ms: number, { diedMs, orphanUntilMs, quietFromMs, repairs }: Absence): Owner {
  const isInRepair = (marginMs: number): boolean =>
    repairs.some(({ fromMs, untilMs }) => ms >= fromMs && ms <= untilMs + marginMs)
  if (isInRepair(surelyMs)) return 'ralph'
  if (isInRepair(toleranceMs)) return 'unknown'
  if (quietFromMs !== undefined && ms > quietFromMs) return 'user'
  if (ms <= diedMs + tickMs) return 'agent'
  if (ms <= diedMs + toleranceMs) return 'unknown'
  return orphanUntilMs !== undefined && ms <= orphanUntilMs ? 'unknown' : 'user'
}
