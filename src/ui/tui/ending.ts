// The end of a run: whether it is done where only a person can say so, where its work goes, then what came of it.
import { hasMerge } from '../../core/story.ts'
import type { FinishChoice } from '../../ports.ts'
import type { RunReport } from '../../core/report.ts'
import { branchName } from '../print/describe.ts'
import { isCleanedUp } from '../print/steps.ts'
import { oneLine, plural } from '../print/text.ts'
import { edited, editorOf, typedText } from './editor.ts'
import type { Editor } from './editor.ts'
import type { Act, Loaded, Step, World } from './inputs.ts'
import type { Key } from './keys.ts'
import { endingExtent } from './ending-content.ts'
import type { LoopScreen } from './loop-model.ts'
import { atStart, scrolled } from './pager.ts'
import type { Pager } from './pager.ts'
import { filesOf } from './patch-lines.ts'

export const resultTabs = ['Summary', 'Files'] as const
type ResultTab = (typeof resultTabs)[number]

export interface EndingScreen {
  /** The loop as it ended. */
  readonly loop: LoopScreen
  /** `word`: a manual loop, whose agent says that it is done. */
  readonly stage: 'word' | 'choice' | 'result'
  /** Which of the choices. */
  readonly at: number
  /** Letters since the last other key: one of them is a choice's first, more of them were meant for a shell. */
  readonly letters: string
  /** When its picture was there first; undefined until then. */
  readonly seenMs: number | undefined
  readonly isBusy: boolean
  /** `a` was typed: an agent that may cost money starts only with Enter, not by a letter that was meant for a shell. */
  readonly asksAgain: boolean
  /** Why the choice could not be carried out. */
  readonly problem: string
  /** What was said when it was. */
  readonly done: Finished | undefined
  readonly made: Where | undefined
  /** What the agent is told that is missing, or before it tries again, while it is typed. */
  readonly missing: Editor | undefined
  /** Against the start; undefined until it was read. */
  readonly patch: string | undefined
  readonly report: RunReport | undefined
  readonly tab: ResultTab
  readonly pagers: Readonly<Record<ResultTab, Pager>>
}

interface Finished {
  readonly message: string
  readonly commit: string | undefined
}

type Where = Exclude<FinishChoice, 'rename'>

export interface Choice {
  readonly answer: 'done' | 'more' | Where
  readonly what: string
}

/** Who has set what happens at the end is not asked. */
export function endingScreen(loop: LoopScreen): Step<EndingScreen> {
  const { change } = loop
  const isAsked =
    loop.complete !== undefined &&
    !isCleanedUp(loop.complete, loop.ending.finished) &&
    loop.complete.choice !== 'cleanup' &&
    loop.state?.settings?.on_complete === 'ask' &&
    loop.ending.begun &&
    // Of nothing there is nothing to choose.
    loop.commits > 0
  const stage = awaitsWord(loop) ? 'word' : isAsked ? 'choice' : 'result'
  const screen: EndingScreen = {
    loop,
    stage,
    at: firstAt(stage),
    letters: '',
    seenMs: undefined,
    isBusy: false,
    asksAgain: false,
    problem: '',
    done: undefined,
    made: undefined,
    missing: undefined,
    patch: undefined,
    report: undefined,
    tab: 'Summary',
    pagers: { Summary: atStart, Files: atStart },
  }
  return {
    screen,
    acts: [
      { do: 'load', load: { what: 'patch', change, n: undefined } },
      { do: 'load', load: { what: 'report', change } },
    ],
  }
}

/** Nobody says by a hasty Enter that something is done. */
function firstAt(stage: EndingScreen['stage']): number {
  return stage === 'word' ? words.length - 1 : 0
}

/** What was typed at the choice is a line for the shell: the Enter at its end chooses nothing. */
export function isForShell({ letters }: EndingScreen): boolean {
  return letters.length > 1
}

function awaitsWord({ complete, state }: LoopScreen): boolean {
  const isManual = state?.settings?.done_criteria === 'manual' && !hasMerge(state.stories)
  return complete?.stop_reason === 'human' && isManual
}

/** The word was said, here or elsewhere: now it is about the work. */
export function isAnswered({ stage, loop }: EndingScreen, now: LoopScreen): boolean {
  return (
    stage === 'word' &&
    now.life === 'ended' &&
    now.complete !== undefined &&
    !awaitsWord(now) &&
    now.complete !== loop.complete
  )
}

export function seenEnding(screen: EndingScreen, nowMs: number): EndingScreen {
  return screen.seenMs === undefined ? { ...screen, seenMs: nowMs } : screen
}

/** What is typed before anybody can have read the question is meant for something else. */
const unreadMs = 500

export function isRead({ seenMs }: EndingScreen, { nowMs }: Pick<World, 'nowMs'>): boolean {
  return seenMs !== undefined && nowMs - seenMs >= unreadMs
}

const words: readonly Choice[] = [
  { answer: 'done', what: 'yes, it is done' },
  { answer: 'more', what: 'no: say what is missing, and the agent tries again' },
  { answer: 'later', what: 'decide later, with `ralph done` or `ralph resume --feedback "…"`' },
]

export function choicesOf({ stage, loop, patch }: EndingScreen): readonly Choice[] {
  if (stage === 'word') return words
  const { board, commits } = loop
  const { started } = board
  if (started === undefined) return []
  const original = branchName(started.original_branch)
  const branch = oneLine(started.branch)
  const later: Choice = { answer: 'later', what: 'decide later, with `ralph finish`' }
  if (started.branch === started.original_branch)
    return [
      { answer: 'keep', what: `leave everything as it is, on ${original}` },
      {
        answer: 'cleanup',
        what: `the work stays in your tree on ${original}; ralph's own stash entries are deleted`,
      },
      later,
    ]
  const count = patch === undefined ? undefined : filesOf(patch).length
  const files = count === undefined ? 'all changed files' : plural(count, 'changed file')
  const stays =
    started.home === undefined
      ? `stay on ${branch} (${plural(commits, 'commit')})`
      : `leave it on ${branch} (${plural(commits, 'commit')}) in its own work tree`
  // With a work tree of its own the user's checkout is where it was all the time.
  const to = started.home === undefined ? `switch to ${original}, ${files}` : `bring ${files} to ${original},`
  const squash: Choice = {
    answer: 'squash',
    what: `${to} as one commit; ${branch} is deleted, a backup is kept`,
  }
  return [
    { answer: 'keep', what: stays },
    {
      answer: 'cleanup',
      what: `${to} uncommitted; ${branch} is deleted, a backup is kept`,
    },
    ...(commits === 0 ? [] : [squash]),
    later,
  ]
}

export function loadedEnding(screen: EndingScreen, loaded: Loaded): EndingScreen {
  if (!('change' in loaded) || loaded.change !== screen.loop.change) return screen
  if (loaded.what === 'report') return { ...screen, report: loaded.report }
  if (loaded.what === 'patch' && loaded.n === undefined) return { ...screen, patch: loaded.patch }
  return screen
}

export function failedEnding(screen: EndingScreen, act: Act, message: string): EndingScreen {
  if (act.do === 'finish' || act.do === 'start' || act.do === 'done')
    return { ...screen, isBusy: false, problem: message, made: undefined }
  // A run that saved nothing has nothing to show.
  if (act.do === 'load' && act.load.what === 'patch') return { ...screen, patch: '' }
  return screen
}

export function finishedEnding(screen: EndingScreen, done: Finished): EndingScreen {
  return { ...screen, isBusy: false, stage: 'result', done }
}

/** Undefined: not a key of this screen. */
export function typedEnding(screen: EndingScreen, key: Key, world: World): Step<EndingScreen> | undefined {
  if (screen.missing !== undefined) return typedMissing(screen, screen.missing, key)
  if (screen.asksAgain) {
    // No letter: it may be one of a line for the shell.
    if (key.name === 'down')
      return {
        screen: { ...screen, asksAgain: false, letters: '', missing: editorOf(), problem: '' },
        acts: [],
      }
    const closed = { ...screen, asksAgain: false, letters: key.name === 'text' ? `a${key.text}` : '' }
    return key.name === 'enter' ? again(closed) : { screen: closed, acts: [] }
  }
  if (screen.stage === 'result') return typedResult(screen, key, world)
  if (!isRead(screen, world)) return { screen, acts: [] }
  return screen.tab === 'Files' ? typedFiles(screen, key, world) : typedChoice(screen, key)
}

/** Looked at before anything is chosen. */
function typedFiles(screen: EndingScreen, key: Key, world: World): Step<EndingScreen> | undefined {
  if (key.name === 'escape') return { screen: { ...screen, tab: 'Summary' }, acts: [] }
  return typedResult(screen, key, world)
}

/** Whether it can go on where it ended. */
export function canGoOn({ stage, loop: { complete } }: EndingScreen): boolean {
  return stage !== 'word' && complete !== undefined && complete.status !== 'done'
}

function askAgain(screen: EndingScreen): Step<EndingScreen> {
  return { screen: { ...screen, asksAgain: !screen.isBusy }, acts: [] }
}

function again(screen: EndingScreen, feedback = ''): Step<EndingScreen> {
  if (screen.isBusy) return { screen, acts: [] }
  const resume = { do: 'start', change: screen.loop.change, how: 'resume', flags: {} } as const
  return {
    screen: { ...screen, isBusy: true, problem: '' },
    acts: [feedback === '' ? resume : { ...resume, feedback }],
  }
}

function typedMissing(screen: EndingScreen, missing: Editor, key: Key): Step<EndingScreen> {
  const closed = { ...screen, missing: undefined }
  if (key.name === 'escape' || key.name === 'interrupt') return { screen: closed, acts: [] }
  if (key.name === 'enter') return again(closed, typedText(missing).trim())
  return { screen: { ...screen, missing: edited(missing, key) ?? missing }, acts: [] }
}

function typedChoice(screen: EndingScreen, key: Key): Step<EndingScreen> | undefined {
  if (screen.isBusy) return { screen, acts: [] }
  const letters = key.name === 'text' ? `${screen.letters}${key.text}` : ''
  const now = { ...screen, letters }
  // A line for the shell, and the Enter at its end.
  if (letters.length > 1) return { screen: { ...now, at: firstAt(screen.stage) }, acts: [] }
  if (key.name === 'enter' && isForShell(screen)) return { screen: now, acts: [] }
  return typedKey(now, key)
}

function typedKey(screen: EndingScreen, key: Key): Step<EndingScreen> | undefined {
  const choices = choicesOf(screen)
  if (key.name === 'up' || key.name === 'down') {
    const at = Math.max(0, Math.min(choices.length - 1, screen.at + (key.name === 'up' ? -1 : 1)))
    return { screen: { ...screen, at }, acts: [] }
  }
  if (key.name === 'escape' || key.name === 'interrupt')
    return { screen: { ...screen, stage: 'result', made: 'later' }, acts: [] }
  if (key.name === 'tab' || key.name === 'back_tab') return { screen: { ...screen, tab: 'Files' }, acts: [] }
  if (key.name === 'text' && key.text === 'a' && canGoOn(screen)) return askAgain(screen)
  if (key.name === 'enter') return chosen(screen, choices[screen.at]?.answer)
  if (key.name !== 'text' || key.text === 'q') return undefined
  const typed = choices.findIndex(({ answer }) => answer.startsWith(key.text))
  return { screen: typed === -1 ? screen : { ...screen, at: typed }, acts: [] }
}

function chosen(screen: EndingScreen, answer: Choice['answer'] | undefined): Step<EndingScreen> {
  const { change } = screen.loop
  if (answer === 'more') return { screen: { ...screen, missing: editorOf(), problem: '' }, acts: [] }
  if (answer === 'done')
    return { screen: { ...screen, isBusy: true, problem: '' }, acts: [{ do: 'done', change }] }
  if (answer === undefined || answer === 'later')
    return { screen: { ...screen, stage: 'result', made: 'later' }, acts: [] }
  return {
    screen: { ...screen, isBusy: true, problem: '', made: answer },
    acts: [{ do: 'finish', change, choice: answer }],
  }
}

function typedResult(screen: EndingScreen, key: Key, world: World): Step<EndingScreen> | undefined {
  if (key.name === 'tab' || key.name === 'back_tab')
    return { screen: { ...screen, tab: screen.tab === 'Summary' ? 'Files' : 'Summary' }, acts: [] }
  if (key.name === 'text' && key.text === 'a' && canGoOn(screen)) return askAgain(screen)
  const pager = scrolled(screen.pagers[screen.tab], key, () => endingExtent(screen, world))
  return pager === undefined
    ? undefined
    : { screen: { ...screen, pagers: { ...screen.pagers, [screen.tab]: pager } }, acts: [] }
}
