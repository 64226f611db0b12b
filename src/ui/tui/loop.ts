// The loop screen: what each event, key and answer does to it.
// Long because it is one switch over what may come in, on one state.
import type { LoopEvent } from '../../core/event.ts'
import type { Told } from '../../ports.ts'
import { applyBoard } from '../print/board.ts'
import { remembered } from '../print/plain.ts'
import { edited, editorOf, typedText } from './editor.ts'
import type { Editor } from './editor.ts'
import { fed } from './feed.ts'
import type { Entry } from './feed.ts'
import { heightOf } from './feed-lines.ts'
import type { Act, Load, Loaded, Step, World } from './inputs.ts'
import type { Key } from './keys.ts'
import { logged } from './log-lines.ts'
import { loopExtent, paneInside } from './loop-content.ts'
import {
  attemptsOf,
  gatedAttempt,
  isAskedToLeave,
  isRunning,
  lookedAt,
  loopScreen,
  loopTabs,
  noEnding,
  openAttempt,
  storiesOf,
} from './loop-model.ts'
import type { LoopScreen } from './loop-model.ts'
import { atEnd, atStart, scrolled, scrollTo, shifted } from './pager.ts'
import { elsewhere, found, searchOf } from './search.ts'
import type { Search } from './search.ts'

// --- what is told -----------------------------------------------------------------------------------------------

export function toldLoop(screen: LoopScreen, records: readonly Told[], world: World): LoopScreen {
  let next = screen
  let events: LoopEvent[] = []
  const flush = (): void => {
    next = withEvents(next, events, world)
    events = []
  }
  for (const told of records) {
    if (told.type === 'event') events.push(told.event)
    else if (told.type === 'run_began') {
      flush()
      const { tab, isOwn, life, wasLive } = next
      next = { ...loopScreen(next.change, isOwn), tab, life, wasLive }
    } else if (told.type === 'loop') {
      flush()
      next = { ...next, life: told.loop, wasLive: next.wasLive || told.loop === 'running' }
    } else if (told.type === 'journal_damaged' || told.type === 'journal_cut')
      next = { ...next, feed: { ...next.feed, loose: [...next.feed.loose, damage(told.message)] } }
  }
  flush()
  const last = records.at(-1)
  if (last === undefined) return next
  next = { ...next, state: last.state }
  // Whoever read what the gates of one attempt said follows those of the next.
  if (gatedAttempt(next)?.n === gatedAttempt(screen)?.n) return next
  return { ...next, pagers: { ...next.pagers, Gates: atEnd } }
}

function damage(text: string): Entry {
  return { kind: 'warning', text }
}

function withEvents(screen: LoopScreen, events: readonly LoopEvent[], world: World): LoopScreen {
  if (events.length === 0) return screen
  const { feed, gone } = fed(screen.feed, events)
  let { board, ending, complete, commits } = screen
  for (const event of events) {
    board = applyBoard(board, event)
    if (event.type === 'loop.started') {
      complete = undefined
      ending = noEnding
      if (!event.resumed) commits = 0
    }
    ending = remembered(ending, event)
    if (event.type === 'checkpoint.saved' && event.n !== undefined && event.changed) commits += 1
    if (event.type === 'complete') complete = event
  }
  const next = { ...screen, feed, log: logged(screen.log, events), board, ending, complete, commits }
  // Nobody reads in the middle: what has gone is not missed.
  if (screen.pagers.Agent.top === undefined) return next
  const page = { width: paneInside(screen, world.size).width, worktree: board.started?.worktree ?? '' }
  const shown = new Set(attemptsOf({ ...screen, feed }).map(({ n }) => n))
  const lost = [...gone].reduce((sum, [n, entries]) => {
    if (!shown.has(n)) return sum
    // From the first time on there is a line that says so.
    const isFirst = feed.attempts.some((attempt) => attempt.n === n && attempt.dropped === entries.length)
    return sum + heightOf(entries, page) - (isFirst ? 1 : 0)
  }, 0)
  const pagers = { ...screen.pagers, Agent: shifted(screen.pagers.Agent, lost) }
  return { ...next, pagers }
}

// --- what is loaded ---------------------------------------------------------------------------------------------

const liveMs = 2_000
const outputMs = 500

/** What the open tab needs that is in no event, and how often. */
function wanted(screen: LoopScreen): { readonly load: Load; readonly everyMs: number } | undefined {
  const { change, tab, state } = screen
  const isLive = screen.life === 'running'
  const isDead = screen.life === 'dead'
  const last = attemptsOf(screen).at(-1)
  const isOpen = last !== undefined && last.n === openAttempt(screen)
  const soFar = { load: { what: 'so_far', change }, everyMs: isLive || isDead ? liveMs : Infinity } as const
  if (tab === 'Tasks' || (tab === 'Diff' && isOpen && (isLive || isDead))) return soFar
  // What still runs of it, and what it left.
  if (isDead && (tab === 'Agent' || tab === 'Log')) return soFar
  if (last === undefined) return undefined
  if (tab === 'Diff' && last.record !== undefined)
    return { load: { what: 'patch', change, n: last.n }, everyMs: Infinity }
  const gated = tab === 'Gates' ? gatedAttempt(screen) : undefined
  if (gated !== undefined) {
    const isNow = gated.n === state?.current?.n && isLive
    return { load: { what: 'gate_output', change, n: gated.n }, everyMs: isNow ? outputMs : Infinity }
  }
  return undefined
}

/** Asks for it where that was not done yet, or is some time ago. */
export function asking(screen: LoopScreen, { nowMs }: World): Step<LoopScreen> {
  const want = wanted(screen)
  if (want === undefined) return { screen, acts: [] }
  const key = JSON.stringify([want.load, want.everyMs])
  const { asked } = screen
  const isDue = key !== asked.key || (!asked.isPending && nowMs - asked.atMs >= want.everyMs)
  if (!isDue) return { screen, acts: [] }
  return {
    screen: { ...screen, asked: { key, atMs: nowMs, isPending: true } },
    acts: [{ do: 'load', load: want.load }],
  }
}

export function loadedLoop(screen: LoopScreen, loaded: Loaded): LoopScreen {
  if (!('change' in loaded) || loaded.change !== screen.change) return screen
  const answered = { ...screen, asked: { ...screen.asked, isPending: false } }
  if (loaded.what === 'so_far') return { ...answered, now: loaded.now }
  if (loaded.what === 'gate_output') return { ...answered, output: loaded.output }
  if (loaded.what === 'patch' && loaded.n !== undefined)
    return { ...answered, patch: { n: loaded.n, patch: loaded.patch } }
  return answered
}

export function unansweredLoop(screen: LoopScreen): LoopScreen {
  return { ...screen, asked: { ...screen.asked, isPending: false } }
}

// --- what is typed ----------------------------------------------------------------------------------------------

/** Undefined: not a key of this screen. */
export function typedLoop(screen: LoopScreen, key: Key, world: World): Step<LoopScreen> | undefined {
  if (screen.note !== undefined) return typedNote(screen, screen.note, key)
  if (isAskedToLeave(screen)) {
    const stays = { ...screen, asksToLeave: false }
    if (key.name === 'interrupt' || isLetter(key, 's')) return stopping(stays, world.nowMs)
    // The screens know where `d` leads.
    if (isLetter(key, 'd')) return undefined
    return quiet(isLetter(key, 'q') ? screen : stays)
  }
  const searched = screen.search && typedSearch(screen, screen.search, key, world)
  if (searched !== undefined) return searched
  if (key.name === 'interrupt' && isRunning(screen)) return stopping(screen, world.nowMs)
  if (key.name === 'tab' || key.name === 'back_tab') return turned(screen, key.name === 'tab' ? 1 : -1)
  if (key.name === 'left' || key.name === 'right') return walked(screen, key.name === 'right' ? 1 : -1)
  const pager = scrolled(screen.pagers[screen.tab], key, () => loopExtent(screen, world))
  if (pager !== undefined && isLetter(key, 'G') && isRunning(screen) && screen.storyId !== undefined) {
    const { top } = screen.pagers[screen.tab]
    // It is at the end already.
    if (top === undefined || top === pager.top) return quiet(atWorked(screen))
  }
  if (pager !== undefined) return quiet({ ...screen, pagers: { ...screen.pagers, [screen.tab]: pager } })
  return key.name === 'text' ? typedLetter(screen, key.text, world) : undefined
}

function quiet(screen: LoopScreen, ...acts: readonly Act[]): Step<LoopScreen> {
  return { screen, acts }
}

function typedLetter(screen: LoopScreen, letter: string, world: World): Step<LoopScreen> | undefined {
  const { change, state } = screen
  const at = Number(letter)
  const numbered = letter >= '1' && letter <= String(loopTabs.length) ? loopTabs[at - 1] : undefined
  if (numbered !== undefined) return quiet({ ...atAnother(screen), tab: numbered })
  if (letter === '/') return quiet({ ...screen, search: searchOf() })
  if (!isRunning(screen)) return undefined
  if (letter === 'q')
    return isStopping(screen, world.nowMs)
      ? stopping(screen, world.nowMs)
      : quiet({ ...screen, asksToLeave: true })
  if (letter === 'n') return quiet({ ...screen, note: editorOf() })
  if (letter === 'p') {
    const isOff = state?.pause === true || state?.waiting?.for === 'pause'
    return quiet(screen, { do: 'pause', change, isOff })
  }
  if (letter === 's') {
    const isWaiting = state?.waiting !== undefined && state.waiting.for !== 'pause'
    if (isWaiting) return quiet(screen, { do: 'skip_wait', change })
    return { screen, acts: [], says: 'It does not wait for anything now.' }
  }
  return undefined
}

function turned(screen: LoopScreen, by: number): Step<LoopScreen> {
  const at = loopTabs.indexOf(screen.tab)
  const tab = loopTabs[(at + by + loopTabs.length) % loopTabs.length] ?? 'Agent'
  return quiet({ ...atAnother(screen), tab })
}

/** What was found stands in the text that was shown. */
function atAnother(screen: LoopScreen): LoopScreen {
  return { ...screen, search: screen.search && elsewhere(screen.search) }
}

function walked(screen: LoopScreen, by: number): Step<LoopScreen> {
  const stories = storiesOf(screen)
  const at = stories.findIndex(({ id }) => id === lookedAt(screen))
  const next = stories[Math.max(0, Math.min(stories.length - 1, at + by))]?.id
  if (next === undefined) return quiet(screen)
  const worked = lookedAt({ state: screen.state, storyId: undefined })
  return quiet({ ...atWorked(screen), storyId: next === worked ? undefined : next })
}

function atWorked(screen: LoopScreen): LoopScreen {
  const pagers = { ...screen.pagers, Agent: atEnd, Diff: atStart, Gates: atEnd }
  return { ...atAnother(screen), storyId: undefined, pagers }
}

function isLetter(key: Key, letter: string): boolean {
  return key.name === 'text' && key.text === letter
}

function isStopping({ state, presses }: LoopScreen, nowMs: number): boolean {
  return state?.stop !== undefined || presses.some((at) => nowMs - at < forceMs)
}

/** So many, so fast, and it is killed. */
const forcePresses = 3
const forceMs = 3_000

function stopping(screen: LoopScreen, nowMs: number): Step<LoopScreen> {
  const { change } = screen
  const presses = [...screen.presses.filter((at) => nowMs - at < forceMs), nowMs]
  if (presses.length >= forcePresses) {
    const words = [
      `Killed: the loop of ${change}. What is saved is safe; the attempt at hand is kept by the next command.`,
      `Continue with: ralph resume ${change}`,
    ]
    return quiet(
      { ...screen, presses: [] },
      { do: 'stop', change, isForce: true },
      { do: 'quit', exitCode: 130, words },
    )
  }
  const next = { ...screen, presses }
  const says = 'Stopping: the agent is ended, its attempt kept, the files restored. Ctrl-C 3 times kills.'
  if (presses.length > 1 || screen.state?.stop !== undefined) return { screen: next, acts: [], says }
  return { screen: next, acts: [{ do: 'stop', change, isForce: false }], says }
}

function typedNote(screen: LoopScreen, note: Editor, key: Key): Step<LoopScreen> {
  const { note: _, ...rest } = screen
  const closed = { ...rest, note: undefined }
  if (key.name === 'escape' || key.name === 'interrupt') return quiet(closed)
  if (key.name === 'enter') {
    const text = typedText(note).trim()
    if (text !== '' && !isRunning(screen))
      return {
        screen,
        acts: [],
        says:
          screen.state?.status === 'done'
            ? 'The run is done: there is no next prompt for your words'
            : `No loop is running: your words can go with ralph resume ${screen.change} --feedback`,
      }
    return text === '' ? quiet(closed) : quiet(closed, { do: 'note', change: screen.change, text })
  }
  return quiet({ ...screen, note: edited(note, key) ?? note })
}

/** Undefined: not a key of a search. */
function typedSearch(
  screen: LoopScreen,
  search: Search,
  key: Key,
  world: World,
): Step<LoopScreen> | undefined {
  const { tab } = screen
  const { isOpen } = search
  const isEmpty = isOpen && key.name === 'enter' && typedText(search.editor) === ''
  if (isEmpty || key.name === 'escape' || (isOpen && key.name === 'interrupt'))
    return quiet({ ...screen, search: undefined })
  const extent = loopExtent(screen, world)
  const next = found(search, key, extent.lines)
  if (next === undefined) {
    if (!isOpen) return undefined
    const pager = key.name === 'text' ? undefined : scrolled(screen.pagers[tab], key, () => extent)
    return quiet(pager === undefined ? screen : { ...screen, pagers: { ...screen.pagers, [tab]: pager } })
  }
  const at = next.at
  if (at === undefined) return quiet({ ...screen, search: next })
  // Whoever has found something reads it, at the end of what grows too.
  const still = { ...extent, isLive: false }
  const pager = scrollTo(screen.pagers[tab], Math.max(0, at - Math.floor(extent.height / 2)), still)
  return quiet({ ...screen, search: next, pagers: { ...screen.pagers, [tab]: pager } })
}
