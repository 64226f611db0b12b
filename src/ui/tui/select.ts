// The first screen: every change with where it stands, loops that run on top; it looks again by itself.
import type { StatusReport } from '../app.ts'
import type { ChangeList } from '../app.ts'
import { stateOf, storiesDone } from '../print/list.ts'
import type { Meaning } from '../vocabulary.ts'
import { edited, editorOf, typedText } from './editor.ts'
import type { Editor } from './editor.ts'
import type { Loaded, Step, World } from './inputs.ts'
import { rowsMoved, type Key } from './keys.ts'

type Listed = ChangeList['changes'][number]

export interface SelectRow {
  readonly name: string
  readonly title: string
  readonly word: string
  readonly meaning: Meaning
  readonly storiesDone: number
  readonly storiesTotal: number
  readonly isRunning: boolean
  /** It has stopped before its end. */
  readonly isHalted: boolean
  readonly hasRun: boolean
  readonly problem: string
  readonly report: StatusReport | undefined
  readonly editedAt: string | undefined
}

export interface SelectScreen {
  /** Undefined until they were read. */
  readonly rows: readonly SelectRow[] | undefined
  readonly at: string | undefined
  /** Of this checkout; empty where it has none, or was not looked at yet. */
  readonly branch: string
  /** A merge queue with something in it; undefined before the first look. */
  readonly hasQueue: boolean | undefined
  readonly filter: Editor
  readonly isFiltering: boolean
  readonly askedMs: number
  readonly isPending: boolean
  readonly problem: string
}

export const emptySelect: SelectScreen = {
  rows: undefined,
  at: undefined,
  branch: '',
  hasQueue: undefined,
  filter: editorOf(),
  isFiltering: false,
  askedMs: 0,
  isPending: false,
  problem: '',
}

/** What else is known of loops comes with the first look. */
export function selectScreen(list: ChangeList | undefined): SelectScreen {
  if (list === undefined) return emptySelect
  return { ...loadedSelect(emptySelect, { what: 'changes', list, reports: [] }), hasQueue: undefined }
}

const everyMs = 2_000

export function askingSelect(screen: SelectScreen, { nowMs }: World): Step<SelectScreen> {
  if (
    screen.isPending ||
    (screen.askedMs !== 0 && screen.rows !== undefined && nowMs - screen.askedMs < everyMs)
  )
    return { screen, acts: [] }
  return {
    screen: { ...screen, askedMs: nowMs, isPending: true },
    acts: [{ do: 'load', load: { what: 'changes' } }],
  }
}

export function loadedSelect(screen: SelectScreen, loaded: Loaded): SelectScreen {
  if (loaded.what !== 'changes') return screen
  const reports = new Map(loaded.reports.map((report) => [report.change_id, report]))
  const own = loaded.list.changes.map((change) => rowOf(change, reports.get(change.name)))
  const known = new Set(own.map(({ name }) => name))
  // A loop in another work tree may be about a change that this checkout does not have.
  const elsewhere = loaded.reports
    .filter((report) => report.alive && !known.has(report.change_id))
    .map(rowAway)
  const rows = [...own, ...elsewhere].sort((a, b) => rankOf(a) - rankOf(b))
  const branch = loaded.list.checked_out ?? ''
  return { ...screen, rows, branch, hasQueue: loaded.queue !== undefined, isPending: false, problem: '' }
}

export function failedSelect(screen: SelectScreen, problem: string): SelectScreen {
  return { ...screen, isPending: false, problem }
}

function rowOf(change: Listed, report: StatusReport | undefined): SelectRow {
  const [word, meaning] = stateOf(change)
  const isRunning = change.status === 'running' || change.status === 'starting'
  const isHalted = !isRunning && change.status !== '' && change.status !== 'done' && word !== 'done'
  return {
    name: change.name,
    title: change.title,
    // Where it landed is said by the queue, and by `list`.
    word: change.landed === undefined ? word : 'landed',
    meaning,
    storiesDone: storiesDone(change),
    storiesTotal: change.stories_total,
    isRunning,
    isHalted,
    hasRun: change.status !== '',
    problem: change.problem ?? '',
    report,
    editedAt: change.edited_at,
  }
}

function rowAway(report: StatusReport): SelectRow {
  return {
    name: report.change_id,
    title: '',
    word: 'running',
    meaning: 'working',
    storiesDone: report.stories.filter(({ status }) => status === 'done').length,
    storiesTotal: report.stories.length,
    isRunning: true,
    isHalted: false,
    hasRun: true,
    problem: '',
    report,
    editedAt: undefined,
  }
}

function rankOf({ isRunning, isHalted, meaning }: SelectRow): number {
  if (isRunning) return 0
  if (isHalted || meaning === 'human') return 1
  return meaning === 'done' || meaning === 'doubt' ? 3 : 2
}

export function shownRows({ rows = [], filter }: SelectScreen): readonly SelectRow[] {
  const words = typedText(filter).toLowerCase()
  return words === ''
    ? rows
    : rows.filter(({ name, title }) => `${name} ${title}`.toLowerCase().includes(words))
}

export function chosen(screen: SelectScreen): SelectRow | undefined {
  const rows = shownRows(screen)
  return rows.find(({ name }) => name === screen.at) ?? rows[0]
}

/** What a key asks for that leads away from here. */
export type Onward =
  | { readonly to: 'preview' | 'loop' | 'run'; readonly row: SelectRow }
  | { readonly to: 'quit' }
  | { readonly to: 'queue' }

interface Turn {
  readonly screen: SelectScreen
  readonly onward?: Onward
  /** Why a key does nothing. */
  readonly says?: string
}

export function typedSelect(screen: SelectScreen, key: Key): Turn | undefined {
  if (screen.isFiltering) {
    if (key.name === 'escape') return { screen: { ...screen, filter: editorOf(), isFiltering: false } }
    if (key.name === 'enter') return { screen: { ...screen, isFiltering: false } }
    const filter = edited(screen.filter, key)
    if (filter !== undefined) return { screen: { ...screen, filter } }
  }
  const row = chosen(screen)
  const step = rowsMoved[key.name]
  if (step !== undefined) {
    const rows = shownRows(screen)
    const at = rows.findIndex(({ name }) => name === row?.name)
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + step))]
    return { screen: { ...screen, at: next?.name } }
  }
  if (key.name === 'interrupt') return { screen, onward: { to: 'quit' } }
  if (key.name === 'escape') return { screen: { ...screen, filter: editorOf() } }
  if (key.name === 'enter')
    return row === undefined
      ? { screen }
      : { screen, onward: { to: row.isRunning ? 'loop' : 'preview', row } }
  return key.name === 'text' ? letter(screen, key.text, row) : undefined
}

function letter(screen: SelectScreen, text: string, row: SelectRow | undefined): Turn | undefined {
  if (text === '/') return { screen: { ...screen, isFiltering: true } }
  if (text === 'q') return { screen, onward: { to: 'quit' } }
  if (text === 'u')
    return screen.hasQueue === false
      ? { screen, says: 'There is no merge queue here. ralph up makes one: it runs several changes at once.' }
      : { screen, onward: { to: 'queue' } }
  if (row === undefined) return undefined
  if (text === 'r' && !row.isRunning) return { screen, onward: { to: 'run', row } }
  if ((text === 'a' || text === 'l') && row.hasRun) return { screen, onward: { to: 'loop', row } }
  return undefined
}
