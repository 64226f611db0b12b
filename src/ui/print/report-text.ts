// The report for a terminal: what came of the run, how it was run, then each story with its attempts, its files and what it took.
import { tookMs } from '../../core/report.ts'
import type { AttemptReport, RunReport, StoryReport } from '../../core/report.ts'
import type { Paint } from '../io.ts'
import { inColourOf, mark, verdictMeaning, verdictName } from '../vocabulary.ts'
import { factLines } from './facts.ts'
import { entryLines } from './layout.ts'
import type { Entry } from './layout.ts'
import {
  aboutOf,
  agentOf,
  attemptName,
  byMany,
  countsOf,
  costWord,
  filesLines,
  handWord,
  inOrder,
  newReason,
  notesOf,
  reasonOf,
  stateOf,
  stateWord,
  storyLabel,
  storyMeaning,
  whenOf,
} from './report-words.ts'
import { clip, duration, oneLine, tokenWord, tokenWords } from './text.ts'

export function reportText(report: RunReport, columns: number, paint: Paint): string {
  const [state, meaning] = stateOf(report)
  // One more than the lines may take: they leave the last column free.
  const sheet = { paint, columns: Number.isFinite(columns) ? columns : undefined }
  const lines = (entry: Entry): readonly string[] => entryLines(entry, sheet)
  const right = figuresOf(report)
  const isMixed = byMany(report)
  const byWhom = (attempt: AttemptReport | undefined): string =>
    isMixed && attempt !== undefined ? ` by ${oneLine(agentOf(attempt))}` : ''
  const head = `${paint.bold(oneLine(report.change_id))}   ${mark(meaning, paint)} ${paint.bold(inColourOf(meaning, state, paint))}`
  const reason = reasonOf(report)
  const facts = [...whenOf(report), ...aboutOf(report), ...notesOf(report)]
  return [
    head,
    ...lines({ indent: 2, text: countsOf(report) }),
    ...(reason === '' ? [] : lines({ indent: 2, text: clip(oneLine(reason), 600) })),
    '',
    ...factLines(
      facts.map(([name, words]) => [name, oneLine(words)] as const),
      { paint, width: 7, columns: sheet.columns },
    ),
    ...report.stories.flatMap((story) => [
      '',
      ...lines({
        sign: mark(storyMeaning(story), paint),
        text: `${oneLine(storyLabel(story))}${stateWords(story)}${onlyNumber(story) === '' ? '' : byWhom(story.attempts[0])}`,
        style: paint.bold,
        right: story.attempts.length > 0 ? right(story) : '',
      }),
      ...(onlyNumber(story) === ''
        ? story.attempts.flatMap((attempt, at) => [
            ...lines({
              indent: 4,
              sign: mark(verdictMeaning(attempt.verdict), paint),
              text: `${attemptName(attempt)} ${verdictName(attempt.verdict)}${byWhom(attempt)}`,
              right: right(attempt),
            }),
            ...(attempt.reason === ''
              ? []
              : lines({
                  indent: 6,
                  text: clip(oneLine(newReason(story.attempts, at)), mostReason),
                  style: paint.dim,
                })),
          ])
        : []),
      ...filesLines(story, report).flatMap((words) =>
        lines({ indent: 4, text: oneLine(words), style: paint.dim }),
      ),
    ]),
    '',
  ].join('\n')
}

/** Whose it is goes after the name of one that is done; what another one is stands in brackets. */
function stateWords(story: StoryReport): string {
  const { status, attempts, by_hand: hand } = story
  if (hand !== undefined) return `   ${handWord(hand)}`
  if (status !== 'done') return ` (${stateWord(story)})`
  return attempts.length === 0 ? '   done before' : onlyNumber(story)
}

/** A story that was done at once has one attempt to tell of, and that is the story. */
function onlyNumber({ status, attempts, by_hand: hand }: StoryReport): string {
  const [first, second] = attempts
  return status === 'done' && hand === undefined && first?.kept === true && second === undefined
    ? `   ${attemptName(first)}`
    : ''
}

/** Whole, nearly: who reads a report has not seen the run. */
const mostReason = 400

type Spent = Pick<StoryReport, 'duration_ms' | 'gates_ms' | 'tokens' | 'cost_usd'> & {
  readonly tokens_estimated?: boolean
}

/** Time, tokens and cost below one another; no column that nothing is known for. */
function figuresOf(report: RunReport): (spent: Spent) => string {
  const all: readonly Spent[] = [...report.stories, ...inOrder(report).map(([, attempt]) => attempt)]
  const columns = [
    (spent: Spent) => duration(tookMs(spent)),
    ...(all.some((spent) => tokenWord(spent) !== '?' && spent.tokens > 0) ? [tokenWords] : []),
    ...(all.some((spent) => costWord(spent) !== '-') ? [costWord] : []),
  ]
  const widths = columns.map((word) => Math.max(...all.map((spent) => word(spent).length)))
  return (spent) => columns.map((word, at) => word(spent).padStart(widths[at] ?? 0)).join('   ')
}
