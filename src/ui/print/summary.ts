// The last lines of a loop: what happened, where the work is, what to type next; each said once.
import { afterColon } from '../../core/outcome.ts'
import { firstNames } from '../../core/first-names.ts'
import type { GoneFile, LoopEvent } from '../../core/event.ts'
import { doneState, humanWord, inColourOf, mark, statusMeaning, statusWord } from '../vocabulary.ts'
import type { Board } from './board.ts'
import { figures, isManual, redGate } from './board.ts'
import { branchName } from './describe.ts'
import { entryLines, unbroken } from './layout.ts'
import type { Sheet } from './layout.ts'
import { isCleanedUp, isNothingKept, nextLines, onlyNamed } from './steps.ts'
import { clean, clip, oneLine, plural, sentences, tokenWords, usd } from './text.ts'

export type Complete = Extract<LoopEvent, { type: 'complete' }>
type Result = Pick<Complete, 'status' | 'reason' | 'stop_reason' | 'totals' | 'warnings' | 'tests_changed'>

export interface Ending {
  readonly complete: Complete
  readonly board: Board
  /** Whether the repository was touched at all. */
  readonly begun: boolean
  /** The branch it began on has no commit: there is none to go back to. */
  readonly isUnborn?: boolean
  /** What became of the choice; a cleanup that failed has moved nothing. */
  readonly finished?: {
    readonly ok: boolean
    /** Made later than the loop's own, where it is another. */
    readonly choice?: Complete['choice']
    readonly message: string
    readonly remote?: string | undefined
    readonly commit?: string | undefined
  }
  /** What was said with the error that ended it. */
  readonly hint?: string
  /** Warnings that must not scroll away, in their order. */
  readonly lasting: readonly string[]
  /** It ended before anybody looked: what was uncommitted then may be committed now. */
  readonly isPast?: boolean
  /** Something is not where it was; the notes name it. */
  readonly isSetAside?: boolean
}

/** What came of it: for a success the figures, else first which story and why. */
export function resultLines(result: Result, board: Board, sheet: Sheet): readonly string[] {
  const { status, totals, stop_reason: stop, warnings = [], tests_changed: tests = [] } = result
  const { paint } = sheet
  const isYours = stop === 'human'
  const part = status === 'done' ? partWords(result.reason, board) : undefined
  const [doneWord, meaning] = doneState(warnings)
  const isDoubted = status === 'done' && meaning === 'doubt'
  const sign = mark(isYours ? 'human' : status === 'done' ? meaning : statusMeaning(status, stop), paint)
  const stories = `${String(totals.stories_done)} of ${plural(totals.stories_total, 'story', 'stories')}`
  const tried = triedWords(totals, status === 'done', isManual(board))
  const counts = `${stories}, ${tried}`
  // The time is the board's, as in the rows above: gates take some, too.
  const right =
    totals.iterations === 0
      ? ''
      : figures({ ...totals, duration_ms: Math.max(totals.duration_ms, board.spent.duration_ms) }, true)
  const lost = lostWords(totals, stop === 'error' ? 'not saved' : lostWord(totals, board))
  const word = isYours
    ? humanWord(paint)
    : isDoubted
      ? paint.bold(inColourOf(meaning, status, paint))
      : statusWord(status, paint, stop)
  const headed = (text: string, more: { right?: string } = {}): readonly string[] => {
    const [first = '', ...rest] = entryLines({ sign, text, ...more }, sheet)
    return [first.replace(status, word), ...rest]
  }
  const dimmed = (text: string): readonly string[] => entryLines({ indent: 2, text, style: paint.dim }, sheet)
  const what = part ?? (status === 'done' ? oneLine(doneWord) : '')
  const notes = [
    ...warnings.filter((words) => !what.includes(words)).flatMap((words) => noteLines(words, sheet)),
    ...(tests.length === 0 ? [] : dimmed(`tests changed: ${firstNames(tests.map(oneLine), mostTests)}`)),
  ]
  const unread = board.unread.flatMap((text) =>
    entryLines(
      {
        indent: 2,
        text: `your note came after the last prompt, no agent has read it: ${clip(oneLine(text), 200)}`,
        style: paint.yellow,
      },
      sheet,
    ),
  )
  if (status === 'done') {
    return [
      ...headed(`${what}   ${part === undefined ? counts : tried}`, { right }),
      ...lost.flatMap(dimmed),
      ...notes,
      ...unread,
    ]
  }
  const [cause, why] = causeOf(result, board)
  return [
    ...headed(stop === 'signal' ? cause : `${status}: ${afterColon(cause)}`),
    ...why.flatMap((line) => entryLines({ indent: 2, text: clip(line, 400) }, sheet)),
    ...entryLines({ indent: 2, text: counts, style: paint.dim, right }, sheet),
    ...lost.flatMap(dimmed),
    ...notes,
    ...unread,
  ]
}

/** Of a run that was asked for some stories only: what is true of the change. */
function partWords(reason: string, { started }: Board): string | undefined {
  const others = onlyNamed.exec(reason)?.[1]
  if (others === undefined) return undefined
  const ids = (started?.settings.stories ?? []).map(oneLine)
  const what = ids.length === 1 ? `story ${ids.join()} is done` : `stories ${ids.join(', ')} are done`
  return `${what}, ${others}`
}

/** The sentence, and below it the reason of the last attempt where there is one. */
function causeOf({ reason, stop_reason: stop }: Result, board: Board): readonly [string, readonly string[]] {
  const [first = '', ...more] = clean(reason).split('\n')
  const [, id = '', how = '', last = ''] = /^Story (\S+) (failed .*?); last: (.*)$/.exec(first) ?? []
  if (stop !== 'retries' || how === '') return [oneLine(first).replace(/\.$/, ''), told(more)]
  const title = board.stories.find((story) => story.id === id)?.title
  const name = title === undefined ? '' : ` "${oneLine(title)}"`
  const red = redGate(board)
  return [`story ${id}${name} ${how}`, [...told([last, ...more]), ...(red === undefined ? [] : [red])]]
}

const mostReason = 5
const mostTests = 8

function told(lines: readonly string[]): readonly string[] {
  return lines
    .map(oneLine)
    .filter((line) => line !== '')
    .slice(0, mostReason)
}

function triedWords(totals: Result['totals'], isDone: boolean, hasNoBoxes: boolean): string {
  const of = (done: number, total: number, one: string, many: string): string =>
    isDone && done === total ? plural(total, one, many) : `${String(done)} of ${plural(total, one, many)}`
  const tasks = of(totals.tasks_done, totals.tasks_total, 'task', 'tasks')
  return `${hasNoBoxes ? '' : `${tasks}, `}${plural(totals.iterations, 'attempt')}`
}

/** Of what an earlier loop undid nobody knows here. */
function lostWord({ iterations }: Result['totals'], { hasUndone, attempts }: Board): string {
  return hasUndone || iterations > attempts ? 'undone' : 'came to nothing'
}

/** The last one before an error may be in the work tree still. */
function lostWords({ not_kept: lost, iterations }: Result['totals'], word: string): readonly string[] {
  if (lost === undefined || lost.iterations === 0) return []
  const spent = [
    ...(lost.tokens > 0 ? [tokenWords(lost)] : []),
    ...(lost.cost_usd !== undefined && lost.cost_usd > 0 ? [usd(lost.cost_usd)] : []),
  ]
  // That all of them did is said already.
  if (spent.length === 0 && lost.iterations === iterations) return []
  return [
    `${plural(lost.iterations, 'attempt')} ${word === 'came to nothing' ? '' : lost.iterations === 1 ? 'was ' : 'were '}${word}${spent.length === 0 ? '' : `: ${spent.join(', ')}`}`,
  ]
}

/** Where the work is, what must not be forgotten, and the next steps. */
export function placeLines(ending: Ending, sheet: Sheet): readonly string[] {
  const { paint } = sheet
  const said = (text: string): readonly string[] => entryLines({ indent: 2, text }, sheet)
  const { stop_reason: stop, gone = [] } = ending.complete
  const hint =
    (stop === 'error' || stop === 'gate' || stop === 'auth') && ending.hint ? [oneLine(ending.hint)] : []
  return [
    ...whereWords(ending).flatMap((text) =>
      entryLines({ indent: 2, text, ...(text.startsWith(ownFiles) && { style: paint.yellow }) }, sheet),
    ),
    ...hint.flatMap(said),
    ...ending.lasting.flatMap((line) => noteLines(line, sheet)),
    // Lines to be copied: never wrapped.
    ...goneLines(gone).map((line) => `  ${line}`),
    ...nextLines(ending, sheet),
  ]
}

function noteLines(text: string, sheet: Sheet): readonly string[] {
  const [first = '', ...rest] = entryLines({ indent: 2, text: `note: ${oneLine(text)}` }, sheet)
  return [first.replace('note:', sheet.paint.yellow('note:')), ...rest]
}

/** Files of the user's that were in no commit when the loop began, and that an agent took away. */
export function goneLines(gone: readonly GoneFile[]): readonly string[] {
  if (gone.length === 0) return []
  const rest = gone.length - mostGone
  return [
    `while the loop ran, ${plural(gone.length, 'file')} that you had not committed ${gone.length === 1 ? 'was' : 'were'} removed, reverted or overwritten; to get ${gone.length === 1 ? 'it' : 'them'} back:`,
    ...gone.slice(0, mostGone).map(({ restore }) => `  ${clean(restore)}`),
    ...(rest > 0 ? [`  and ${rest} more: ralph status --json`] : []),
  ]
}

const mostGone = 20

function whereWords(ending: Ending): readonly string[] {
  const { complete, board, finished, begun, isUnborn, isSetAside, isPast } = ending
  const { started } = board
  if (isNothingKept(complete) && isCleanedUp(complete, finished) && begun && started !== undefined)
    return [
      `Nothing was finished: you are back on ${branchName(started.original_branch)}, with your files as at the start${isSetAside === true ? ', except for what the notes name' : ''}.`,
      ...yoursWords(complete, board),
    ]
  if (finished?.ok && !isKeptOnBranch(finished.message)) {
    if (finished.message !== '') {
      const words = finishedWords(finished.message)
      if (isPast !== true) return words
      return words.map((each) => each.replace(/^(Everything|The work) is on/, '$1 was brought to'))
    }
  }
  // A work tree of the loop's own is there before anything is begun in it.
  if (started?.home !== undefined && !begun)
    return [
      `Nothing in ${oneLine(started.home)} was changed; the loop's own tree is ${oneLine(started.worktree)}.`,
    ]
  // Of the run: before it began, the command may have put an earlier one in order.
  if (started === undefined || !begun) return ['This run has changed nothing in the repository.']
  const original = branchName(started.original_branch)
  if (started.branch === started.original_branch) return [`The work is in your tree, on ${original}.`]
  if (isCleanedUp(complete, finished)) return [`The work is on ${original}, uncommitted.`]
  const where = finished?.ok
    ? finishedWords(finished.message)
    : [`The work is on ${oneLine(started.branch)}.`]
  const isGone = where.some((line) => / is gone \(renamed or deleted\)/.test(line))
  // By `ralph queue pull`, perhaps.
  const isMoved = where.some((line) => line.includes(' has moved since the loop began'))
  const isUnchanged = complete.choice !== 'cleanup' && !isGone
  return [
    ...where.slice(0, 1).map((line) => {
      const said = isNothingKept(complete)
        ? line.replace(
            /^The work is on (\S+)( \(.*?\))?(?=\.(?:$| )|; )/,
            'No story of this run is done yet: $1$2 is as it began',
          )
        : line
      // What others have done to it meanwhile nobody knows here.
      const state =
        isUnborn === true
          ? `${original} has no commit yet`
          : `${isMoved ? 'This loop' : 'ralph'} has not changed ${original}`
      return isUnchanged ? `${said} ${state}.` : said
    }),
    ...where.slice(1),
  ]
}

/** What came while the loop ran went with its attempt, whoever made it. */
function yoursWords(
  { change_id: change, stop_reason: stop }: Complete,
  { undone }: Board,
): readonly string[] {
  if (stop !== 'signal' || undone === undefined) return []
  const back = unbroken(`ralph restore ${String(undone)} ${oneLine(change)}`)
  return [`Is one of the undone files yours? All of them back: ${back}`]
}

/** The steps below say how it comes back. */
function isKeptOnBranch(message: string): boolean {
  return message.startsWith('the work is on ') && message.includes('` brings it back to ')
}

const ownFiles = 'Its first commit holds files that you had not committed'

function finishedWords(message: string): readonly string[] {
  const plain = oneLine(message)
    .split('; ')
    .filter((part) => !/^`ralph finish .*` brings it back to /.test(part))
    .join('; ')
  return plain === '' ? [] : sentences(plain).replace(` ${ownFiles}`, `\n${ownFiles}`).split('\n')
}
