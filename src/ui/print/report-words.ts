// What all forms of the report show, so that they say the same: its words, its figures and its two tables, before any markup.
import { countAttempts } from '../../core/report.ts'
import type { AttemptReport, RunReport, Spending, StoryReport } from '../../core/report.ts'
import type { Verdict } from '../../core/event.ts'
import { agentName, symbolOf, verdictMeaning, verdictName } from '../vocabulary.ts'
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

export function timeWord(spent: Spending): string {
  return spent.iterations === 0 ? '-' : duration(spent.duration_ms)
}

type Part = Omit<Spending, 'cost_usd' | 'tokens_estimated'> &
  SpentTokens & { readonly cost_usd?: number | undefined }

/** "2 of 5 attempts were not kept: 1.2k tokens (34%), $0.10, 4m 05s"; empty when all were. */
function notKeptWords(whole: Pick<Spending, 'iterations' | 'tokens'>, part: Part): string {
  if (part.iterations === 0) return ''
  const share = whole.tokens > 0 ? ` (${String(Math.round((100 * part.tokens) / whole.tokens))}%)` : ''
  const were = part.iterations === 1 ? 'was' : 'were'
  const figures = [`${tokenWords(part)}${share}`, costWord(part), duration(part.duration_ms)]
  return `${String(part.iterations)} of ${plural(whole.iterations, 'attempt')} ${were} not kept: ${figures.filter((word) => word !== '-').join(', ')}`
}

/** What the figures leave out or guess. */
function caveats({ totals }: RunReport): readonly string[] {
  return [
    ...(totals.estimated > 0
      ? [
          totals.tokens > 0
            ? `~ tokens of ${plural(totals.estimated, 'iteration')} are estimated from the size of session files`
            : `the tokens of ${plural(totals.estimated, 'iteration')} are not known: the agent did not report them`,
        ]
      : []),
    ...(totals.unpriced > 0
      ? [`the cost of ${plural(totals.unpriced, 'iteration')} is not known and not in the sum`]
      : []),
  ]
}

/** What a sum of figures cannot say. */
export function notesOf(report: RunReport): readonly string[] {
  return [notKeptWords(report.totals, report.not_kept), ...caveats(report)].filter((line) => line !== '')
}

/** Every attempt with its story, as they happened. */
export function inOrder(report: RunReport): readonly (readonly [StoryReport, AttemptReport])[] {
  return report.stories
    .flatMap((story) => story.attempts.map((attempt) => [story, attempt] as const))
    .sort(([, a], [, b]) => a.n - b.n)
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
  return {
    heads: ['Story', 'State', 'Tasks', 'Attempts', 'Tokens', 'Cost', 'Not kept', 'Time'],
    rows: stories.map((story) => [
      words(storyLabel(story)),
      words(stateWord(story)),
      number(`${String(story.tasks_done)}/${String(story.tasks_total)}`),
      number(countAttempts(story.attempts)),
      number(tokenWord(story)),
      number(costWord(story)),
      number(lossWord(story.not_kept)),
      number(timeWord(story)),
    ]),
  }
}

export function iterationsTable(report: RunReport): Table {
  return {
    heads: ['#', 'Story', 'Attempt', 'Verdict', 'Tokens', 'Cost', 'Time', 'Commits', 'Reason'],
    rows: inOrder(report).map(([story, attempt]) => [
      number(attempt.n),
      words(story.story_id),
      number(attempt.attempt),
      { text: verdictName(attempt.verdict), kind: verdictKind(attempt.verdict) },
      number(tokenWord(attempt)),
      number(costWord(attempt)),
      number(duration(attempt.duration_ms)),
      number(attempt.commits),
      { text: attempt.reason, isLong: true },
    ]),
  }
}

/** How it was run: names and words, in the order of interest. */
export function aboutOf({ about }: RunReport): readonly (readonly [name: string, words: string])[] {
  if (about === undefined) return []
  const { agents, model, gates, branch, original_branch: original, work } = about
  const facts: readonly (readonly [string, string])[] = [
    [
      'agent',
      `${agents.map((agent) => agentName(agent)).join(', then ')}${model === '' ? '' : ` (${model})`}`,
    ],
    ['gates', gates.join(' · ') || 'none'],
    ...(work === undefined
      ? ([['branch', branch === original ? branch : `${branch}, from ${original}`]] as const)
      : ([['work', work]] as const)),
  ]
  return facts.filter(([name, words]) => words !== '' && (name !== 'branch' || branch !== ''))
}

const mostFiles = 8

/** "3 files: a.ts, b.ts, c.ts"; empty where nothing is known or changed. */
export function filesWord({ files = [] }: StoryReport): string {
  if (files.length === 0) return ''
  const rest = files.length - mostFiles
  return `${plural(files.length, 'file')}: ${files.slice(0, mostFiles).join(', ')}${rest > 0 ? ` and ${String(rest)} more` : ''}`
}

export function storyLabel(story: StoryReport): string {
  return `${story.story_id} ${story.title}`
}

/** A story that is open after its last attempt failed is called by that. */
export function stateWord({ status, attempts }: StoryReport): string {
  const last = attempts.at(-1)
  if (status === 'open' && last !== undefined && verdictKind(last.verdict) === 'failed') return 'failed'
  return status || 'no longer planned'
}

function lossWord(lost: Spending): string {
  if (lost.iterations === 0) return '-'
  const figures = [tokenWord(lost), costWord(lost)].filter((word) => word !== '-')
  return `${figures.join(', ')} (${plural(lost.iterations, 'iteration')})`
}
