// What all forms of the report show, so that they say the same: its words, its figures and its two tables, before any markup.
// Long because each format says the same of the same thing: a word that stood elsewhere would differ.
import { firstNames } from '../../core/first-names.ts'
import { keepsWork, tookMs } from '../../core/report.ts'
import type { AttemptReport, RunReport, Spending, StoryByHand, StoryReport } from '../../core/report.ts'
import { mergeStory } from '../../core/story.ts'
import type { Verdict } from '../../core/event.ts'
import {
  agentName,
  countsOf as storyCounts,
  stateNow,
  storyMeanings,
  symbolOf,
  verdictMeaning,
  verdictName,
} from '../vocabulary.ts'
import type { Meaning } from '../vocabulary.ts'
import { duration, plural, tokenWord, tokenWords, usd } from './text.ts'
import type { SpentTokens } from './text.ts'

/** What a reader sees first of a verdict: four kinds, each with a sign that does without colour. */
export const verdictKinds = {
  kept: { sign: symbolOf('done'), meaning: 'kept' },
  failed: { sign: symbolOf('failed'), meaning: 'failed: the agent, a gate, a timeout or a crash' },
  broken: { sign: symbolOf('human'), meaning: 'could not run: needs you' },
  stopped: { sign: symbolOf('waiting'), meaning: 'stopped, or had to wait' },
} as const
export type VerdictKind = keyof typeof verdictKinds

const kindOf: Readonly<Record<Meaning, VerdictKind>> = {
  done: 'kept',
  failed: 'failed',
  undone: 'failed',
  human: 'broken',
  doubt: 'kept',
  waiting: 'stopped',
  working: 'stopped',
  open: 'stopped',
}

export function verdictKind(verdict: Verdict): VerdictKind {
  return kindOf[verdictMeaning(verdict)]
}

/** Unpriced is never $0.00, and nothing used is. */
export function costWord({
  cost_usd: cost,
  tokens: used,
}: {
  readonly cost_usd?: number | undefined
  readonly tokens: number
}): string {
  if (cost !== undefined) return usd(cost)
  return used > 0 ? 'unpriced' : '-'
}

function timeWord(spent: Spending): string {
  return spent.iterations === 0 ? '-' : duration(tookMs(spent))
}

type Part = Omit<Spending, 'cost_usd' | 'tokens_estimated'> &
  SpentTokens & { readonly cost_usd?: number | undefined }

/** "2 of 5 attempts, 1.2k tokens (34%), $0.10, 4m 05s"; empty when all work was kept. */
function lossWords(whole: Pick<Spending, 'iterations' | 'tokens'>, part: Part): string {
  if (part.iterations === 0) return ''
  const share = whole.tokens > 0 ? ` (${String(Math.round((100 * part.tokens) / whole.tokens))}%)` : ''
  const figures = [
    ...(part.tokens > 0 ? [`${tokenWords(part)}${share}`] : []),
    costWord(part),
    duration(tookMs(part)),
  ]
  return `${String(part.iterations)} of ${plural(whole.iterations, 'attempt')}, ${figures.filter((word) => word !== '-').join(', ')}`
}

type Fact = readonly [name: string, words: string]

/** Unknown tokens are said once, by `notesOf`. */
export function knownTokens(spent: SpentTokens): string {
  return tokenWord(spent) === '?' ? '-' : tokenWords(spent)
}

/** What a sum of figures cannot say: what was lost, what it leaves out or guesses. */
export function notesOf({
  totals,
  stories,
  not_kept: lost,
  warnings = [],
  tests_changed: tests = [],
}: RunReport): readonly Fact[] {
  const attempts = stories.flatMap(({ attempts: of }) => of)
  const facts: readonly Fact[] = [
    ...warnings.map((text) => ['note', text] as const),
    ['tests', tests.length === 0 ? '' : `changed: ${firstNames(tests, mostFiles)}`],
    [attempts.every(isKeptOrWaited) ? 'waited' : 'undone', lossWords(totals, lost)],
    ['tokens', guessWords(stories, totals.iterations)],
    [
      'cost',
      totals.unpriced > 0 ? `unknown for ${plural(totals.unpriced, 'attempt')}, and not in the sum` : '',
    ],
  ]
  return facts.filter(([, words]) => words !== '')
}

/** Where every other one had only to wait for its provider, nothing was undone. */
function isKeptOrWaited({ verdict }: { readonly verdict: Verdict }): boolean {
  return verdict === 'limit' || keepsWork[verdict]
}

/** A guess of 0 is none: there was nothing to guess from. */
function guessWords(stories: RunReport['stories'], all: number): string {
  const estimated = stories.flatMap(({ attempts }) => attempts).filter((attempt) => attempt.tokens_estimated)
  const unknown = estimated.filter(({ tokens }) => tokens === 0).length
  const guessed = estimated.length - unknown
  return [
    ...(guessed > 0 ? [`~ estimated from the size of session files for ${plural(guessed, 'attempt')}`] : []),
    ...(unknown > 0
      ? [
          `unknown${unknown === all ? '' : ` for ${plural(unknown, 'attempt')}`} (the agent did not report them)`,
        ]
      : []),
  ].join('; ')
}

/** "3 of 3 stories, 5 of 5 tasks, 4 attempts, 14.0k tokens, $0.49, 9.3 s". */
export function countsOf(report: RunReport): string {
  const { totals, stories } = report
  const merge = stories.find(({ story_id: id }) => id === mergeStory)
  const sum = (count: (story: StoryReport) => number): number =>
    stories.reduce((all, story) => all + count(story), 0)
  return [
    `${String(report.stories_done)} of ${plural(report.stories_total, 'story', 'stories')}`,
    ...(merge === undefined || report.parked?.waits === true
      ? []
      : [`merge of both sides: ${merge.status || 'open'}`]),
    `${String(sum((story) => story.tasks_done))} of ${plural(
      sum((story) => story.tasks_total),
      'task',
    )}`,
    plural(totals.iterations + (stories.some(({ running }) => running !== undefined) ? 1 : 0), 'attempt'),
    ...(totals.iterations === 0 ? [] : [knownTokens(totals), costWord(totals), duration(tookMs(totals))]),
  ]
    .filter((word) => word !== '-')
    .join(', ')
}

/** As status and list have it. */
export function stateOf(report: RunReport): readonly [word: string, meaning: Meaning] {
  return stateNow(report, { ...storyCounts(report.stories), total: report.stories_total })
}

/** Why it ended; of a success only what its counts do not say. */
export function reasonOf({ status, reason, died_at: died, parked }: RunReport): string {
  if (died !== undefined && status !== 'done') return 'ralph was killed in the middle of the work.'
  if (parked !== undefined)
    return `${parked.waits === true ? 'In' : 'Parked in'} the merge queue: ${parked.why}.`
  return status === 'done' ? reason.replace(/^\d+ of \d+ stor(?:y|ies) complete\.\s*/, '') : reason
}

/** The same again is not said again: four lines of it hide the one that differs. */
export function newReason(
  attempts: readonly { readonly n: number; readonly reason: string }[],
  at: number,
): string {
  const reason = attempts[at]?.reason ?? ''
  const other = attempts.slice(0, at).findLastIndex((before) => before.reason !== reason)
  const first = attempts[other + 1]
  const isShort = reason.length <= 'the same as #100'.length
  return isShort || first === undefined || other + 1 === at ? reason : `the same as #${String(first.n)}`
}

/** "2026-02-09 14:00 to 15:44, 1h 44m": with its date once, where that is the same. */
export function whenOf({ started, ended, wall_ms: wall }: RunReport): readonly Fact[] {
  if (started === '') return []
  const [from, to] = [started, ended].map((stamp) => stamp.slice(0, 16).replace('T', ' '))
  const until = to?.slice(0, 10) === from?.slice(0, 10) ? to?.slice(11) : to
  const span = from === to ? '' : ` to ${until ?? ''}`
  return [['when', `${from ?? ''}${span}, ${duration(wall)} in all`]]
}

/** Every attempt with its story, as they happened. */
export function inOrder(report: RunReport): readonly (readonly [StoryReport, AttemptReport])[] {
  return report.stories
    .flatMap((story) => story.attempts.map((attempt) => [story, attempt] as const))
    .sort(([, a], [, b]) => (a.run ?? Infinity) - (b.run ?? Infinity) || a.n - b.n)
}

/** Plain words, some of them an agent's: whoever prints a cell makes it harmless. */
export interface Cell {
  readonly text: string
  readonly isNumber?: true
  /** A verdict: its sign stands before the word. */
  readonly kind?: VerdictKind
  /** May run over many lines. */
  readonly isLong?: true
}

export interface Table {
  readonly heads: readonly string[]
  readonly rows: readonly (readonly Cell[])[]
}

const words = (text: string): Cell => ({ text })
const number = (text: string | number): Cell => ({ text: String(text), isNumber: true })

export function storiesTable({ stories }: RunReport): Table {
  return withoutUnknown({
    heads: ['Story', 'State', 'Tasks', 'Attempts', 'Tokens', 'Cost', 'Undone', 'Time'],
    rows: stories.map((story) => [
      words(storyLabel(story)),
      words(stateWord(story)),
      number(`${String(story.tasks_done)}/${String(story.tasks_total)}`),
      number(story.iterations),
      number(tokenWord(story)),
      number(costWord(story)),
      number(lossWord(story.not_kept)),
      number(timeWord(story)),
    ]),
  })
}

export function iterationsTable(report: RunReport): Table {
  const isMixed = byMany(report)
  const isOneRun = inOrder(report).every(([, { run }]) => run === undefined)
  return withoutUnknown({
    heads: ['#', 'Story', ...(isMixed ? ['Agent'] : []), 'Result', 'Tokens', 'Cost', 'Time', 'Reason'],
    rows: inOrder(report).map(([story, attempt]) => [
      isOneRun ? number(attempt.n) : words(attemptName(attempt)),
      words(story.story_id),
      ...(isMixed ? [words(agentOf(attempt))] : []),
      { text: verdictName(attempt.verdict), kind: verdictKind(attempt.verdict) },
      number(tokenWord(attempt)),
      number(costWord(attempt)),
      number(duration(tookMs(attempt))),
      { text: newReason(story.attempts, story.attempts.indexOf(attempt)), isLong: true },
    ]),
  })
}

/** A column in which nothing is known says nothing. */
function withoutUnknown({ heads, rows }: Table): Table {
  const isShown = (_: unknown, at: number): boolean =>
    (heads[at] !== 'Tokens' && heads[at] !== 'Cost') ||
    rows.some((cells) => !['?', '-'].includes(cells[at]?.text ?? ''))
  return { heads: heads.filter(isShown), rows: rows.map((cells) => cells.filter(isShown)) }
}

/** Each run has numbers of its own, and `ralph diff` takes that of the run, too. */
export function attemptName({ n, run }: Pick<AttemptReport, 'n' | 'run'>): string {
  return run === undefined ? `#${String(n)}` : `#${String(n)} of run ${String(run)}`
}

export function agentOf({ agent, agent_program: program }: AttemptReport): string {
  return agentName(agent, program)
}

/** Whether it has to be said whose attempt each one was. */
export function byMany(report: RunReport): boolean {
  return new Set(inOrder(report).map(([, attempt]) => agentOf(attempt))).size > 1
}

/** How it was run: names and words, in the order of interest. */
export function aboutOf(report: RunReport): readonly Fact[] {
  const { about } = report
  if (about === undefined) return []
  const { agents, agent_program: program, model, gates, branch, original_branch: original, work } = about
  // Those that worked, in their order, then those that may yet.
  const named = [
    ...inOrder(report).map(([, attempt]) => agentOf(attempt)),
    ...agents.map((agent) => agentName(agent, program)),
  ]
  const facts: readonly Fact[] = [
    ['agent', `${[...new Set(named)].join(', then ')}${model === '' ? '' : ` (${model})`}`],
    ['gates', gates.join(' · ') || 'none'],
    ...(work === undefined
      ? ([['branch', branch === original ? branch : `${branch}, from ${original}`]] as const)
      : ([['work', work]] as const)),
  ]
  return facts.filter(([name, words]) => words !== '' && (name !== 'branch' || branch !== ''))
}

const mostFiles = 8

interface FileGroup {
  /** Empty where they are the story's own. */
  readonly whose: string
  readonly files: readonly string[]
}

/** That each story ticks its boxes goes without saying. */
export function filesOf(
  { files = [], deleted = [], adopted = [] }: StoryReport,
  { change_id: change }: RunReport,
): readonly FileGroup[] {
  const isWork = (file: string): boolean => !file.endsWith(`changes/${change}/tasks.md`)
  const own = files.map((file) => (deleted.includes(file) ? `${file} (deleted)` : file))
  return [
    { whose: '', files: own.filter(isWork) },
    { whose: ' not by the loop, saved with it', files: adopted.filter(isWork) },
  ].filter((group) => group.files.length > 0)
}

/** "3 files: a.ts, b.ts, c.ts"; nothing where nothing is known or changed. */
export function filesLines(story: StoryReport, report: RunReport): readonly string[] {
  return filesOf(story, report).map((group) => `${filesCount(group)}: ${firstNames(group.files, mostFiles)}`)
}

export function filesCount({ whose, files }: FileGroup): string {
  return `${plural(files.length, 'file')}${whose}`
}

export function storyLabel(story: StoryReport): string {
  return `${story.story_id} ${story.title}`
}

/** "by hand, gate green": whose work it is, and what says that it is done. */
export function handWord({ gates, with: others = [] }: Pick<StoryByHand, 'gates' | 'with'>): string {
  return `by hand${others.length === 0 ? '' : `, together with ${others.join(', ')}`}, ${gateWords[gates]}`
}

export function handGate({ gates }: Pick<StoryByHand, 'gates'>): string {
  return gateWords[gates]
}

export function handMeaning({ gates }: Pick<StoryByHand, 'gates'>): Meaning {
  return gates === 'passed' || gates === 'none' ? 'done' : 'failed'
}

const gateWords: Readonly<Record<StoryByHand['gates'], string>> = {
  passed: 'gate green',
  failed: 'gate red',
  could_not_run: 'its gate could not run',
  none: 'no gate',
}

/** A story that is open after its last attempt failed is called by that. */
export function stateWord({ status, attempts, by_hand: hand, running }: StoryReport): string {
  if (running !== undefined) return `running, #${String(running)}`
  if (hand !== undefined) return `${handMeaning(hand) === 'failed' ? 'ticked' : 'done'} ${handWord(hand)}`
  const last = attempts.at(-1)
  if (status === 'open' && last !== undefined && verdictKind(last.verdict) === 'failed') return 'failed'
  return status || 'no longer planned'
}

/** How a story stands, for its sign. */
export function storyMeaning(story: StoryReport): Meaning {
  if (story.running !== undefined) return 'working'
  if (story.by_hand !== undefined) return handMeaning(story.by_hand)
  const state = stateWord(story)
  return state === 'failed' ? 'failed' : story.status === '' ? 'open' : storyMeanings[story.status]
}

function lossWord(lost: Spending): string {
  if (lost.iterations === 0) return '-'
  const figures = [tokenWord(lost), costWord(lost)].filter((word) => word !== '-' && word !== '?')
  const count = plural(lost.iterations, 'attempt')
  return figures.length === 0 ? count : `${figures.join(', ')} (${count})`
}
