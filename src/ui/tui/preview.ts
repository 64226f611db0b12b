// One change before a run: its stories, its scenarios, the exact prompt, and the settings, some of which can be changed for this run.
import type { LoadedConfig, RawFlags, SettingEntry } from '../../config/load.ts'
import type { OptionKey } from '../../config/options.ts'
import { parseSetting } from '../../config/parse.ts'
import type { ChangeDetail } from '../../core/change.ts'
import { RalphError } from '../../core/error.ts'
import type { DryRun } from '../app.ts'
import { edited, editorOf, typedText } from './editor.ts'
import type { Editor } from './editor.ts'
import type { Act, Loaded, Step, World } from './inputs.ts'
import type { Key } from './keys.ts'
import { atStart, scrolled } from './pager.ts'
import type { Pager } from './pager.ts'
import { labels, previewExtent } from './preview-content.ts'

export const previewTabs = ['Stories', 'Scenarios', 'Prompt', 'Settings'] as const
type PreviewTab = (typeof previewTabs)[number]

export interface PreviewScreen {
  readonly change: string
  /** Its last run has stopped before its end. */
  readonly isResumable: boolean
  readonly tab: PreviewTab
  readonly detail: ChangeDetail | undefined
  readonly settings: LoadedConfig | undefined
  readonly plan: DryRun | undefined
  /** Why there is no plan, or why a start was refused. */
  readonly problem: string
  readonly pagers: Readonly<Record<PreviewTab, Pager>>
  /** What was changed for this run. */
  readonly flags: RawFlags
  /** Which of the settings that can be changed. */
  readonly field: number
  readonly editor: Editor | undefined
  /** What is wrong with what was typed there. */
  readonly wrong: string
  /** Whose prompt. */
  readonly story: number
  readonly isStarting: boolean
  /** After a `/`, which searches elsewhere: the letters of a word that is typed then are no commands. */
  readonly isDeaf: boolean
}

/** Those that people change for one run. */
export const editable = [
  'agent',
  'model',
  'max_retries',
  'verify',
  'max_cost',
  'max_tokens',
  'agent_command',
] as const satisfies readonly OptionKey[]

export function previewScreen(change: string, isResumable: boolean): PreviewScreen {
  return {
    change,
    isResumable,
    tab: 'Stories',
    detail: undefined,
    settings: undefined,
    plan: undefined,
    problem: '',
    pagers: { Stories: atStart, Scenarios: atStart, Prompt: atStart, Settings: atStart },
    flags: {},
    field: 0,
    editor: undefined,
    wrong: '',
    story: 0,
    isStarting: false,
    isDeaf: false,
  }
}

export function loadPreview(screen: PreviewScreen): readonly Act[] {
  return [{ do: 'load', load: { what: 'detail', change: screen.change } }, loadPlan(screen)]
}

function loadPlan({ change, flags, isResumable }: PreviewScreen): Act {
  return { do: 'load', load: { what: 'plan', change, flags, ...(isResumable && { isResumed: true }) } }
}

export function loadedPreview(screen: PreviewScreen, loaded: Loaded): PreviewScreen {
  if (!('change' in loaded) || loaded.change !== screen.change) return screen
  if (loaded.what === 'detail') return { ...screen, detail: loaded.detail }
  if (loaded.what !== 'plan') return screen
  // Why a start was refused stays to be read.
  return {
    ...screen,
    settings: loaded.settings,
    plan: loaded.plan,
    problem: loaded.problem ?? screen.problem,
  }
}

export function failedPreview(screen: PreviewScreen, problem: string): PreviewScreen {
  return { ...screen, problem, isStarting: false }
}

export function entryFor({ settings }: PreviewScreen, key: OptionKey): SettingEntry | undefined {
  return settings?.entries.find((entry) => entry.key === key)
}

export function starting(screen: PreviewScreen): Step<PreviewScreen> {
  const { change, flags, isResumable } = screen
  if (screen.isStarting) return { screen, acts: [] }
  return {
    screen: { ...screen, isStarting: true, problem: '' },
    acts: [{ do: 'start', change, how: isResumable ? 'resume' : 'loop', flags }],
  }
}

/** Undefined: not a key of this screen. */
export function typedPreview(screen: PreviewScreen, key: Key, world: World): Step<PreviewScreen> | undefined {
  if (screen.editor !== undefined) return typedSetting(screen, screen.editor, key)
  if (key.name === 'text' && (screen.isDeaf || key.text === '/'))
    return { screen: { ...screen, isDeaf: true }, acts: [] }
  if (screen.isDeaf) {
    const heard = { ...screen, isDeaf: false }
    return key.name === 'enter' || key.name === 'escape'
      ? { screen: heard, acts: [] }
      : typedPreview(heard, key, world)
  }
  if (key.name === 'tab' || key.name === 'back_tab') return turned(screen, key.name === 'tab' ? 1 : -1)
  if (key.name === 'text' && key.text === 'r') return starting(screen)
  const at = key.name === 'text' ? previewTabs[Number(key.text) - 1] : undefined
  if (at !== undefined) return { screen: { ...screen, tab: at }, acts: [] }
  if (screen.tab === 'Settings') {
    const step = key.name === 'up' ? -1 : key.name === 'down' ? 1 : 0
    if (step !== 0) {
      const field = Math.max(0, Math.min(editable.length - 1, screen.field + step))
      return { screen: { ...screen, field }, acts: [] }
    }
    if (key.name === 'enter' || (key.name === 'text' && key.text === 'e')) {
      const editor = editorOf(rawText(screen, editable[screen.field] ?? 'agent'))
      return { screen: { ...screen, editor }, acts: [] }
    }
  }
  if (screen.tab === 'Prompt' && (key.name === 'left' || key.name === 'right')) {
    const last = Math.max(0, (screen.plan?.stories.length ?? 1) - 1)
    const story = Math.max(0, Math.min(last, screen.story + (key.name === 'right' ? 1 : -1)))
    return { screen: { ...screen, story, pagers: { ...screen.pagers, Prompt: atStart } }, acts: [] }
  }
  const pager = scrolled(screen.pagers[screen.tab], key, () => previewExtent(screen, world))
  return pager === undefined
    ? undefined
    : { screen: { ...screen, pagers: { ...screen.pagers, [screen.tab]: pager } }, acts: [] }
}

/** As one types it. */
function rawText(screen: PreviewScreen, key: OptionKey): string {
  const value = entryFor(screen, key)?.value
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.map(String).join(key === 'agent' ? ',' : ' | ')
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** Empty: nothing. */
function wrongWith(option: OptionKey, value: unknown): string {
  try {
    parseSetting(option, value, labels[option] ?? option)
    return ''
  } catch (error) {
    if (!(error instanceof RalphError)) throw error
    return `${error.message}\n${error.hint}`.trimEnd()
  }
}

function turned(screen: PreviewScreen, by: number): Step<PreviewScreen> {
  const at = previewTabs.indexOf(screen.tab)
  const tab = previewTabs[(at + by + previewTabs.length) % previewTabs.length] ?? 'Stories'
  return { screen: { ...screen, tab }, acts: [] }
}

function typedSetting(screen: PreviewScreen, editor: Editor, key: Key): Step<PreviewScreen> {
  if (key.name === 'escape' || key.name === 'interrupt')
    return { screen: { ...screen, editor: undefined, wrong: '' }, acts: [] }
  if (key.name !== 'enter')
    return { screen: { ...screen, editor: edited(editor, key) ?? editor, wrong: '' }, acts: [] }
  const option = editable[screen.field] ?? 'agent'
  const text = typedText(editor).trim()
  if (text === rawText(screen, option)) return { screen: { ...screen, editor: undefined }, acts: [] }
  const { [option]: _, ...rest } = screen.flags
  const value = option === 'verify' ? text.split(' | ').map((each) => each.trim()) : text
  const wrong = text === '' ? '' : wrongWith(option, value)
  if (wrong !== '') return { screen: { ...screen, wrong }, acts: [] }
  const next = {
    ...screen,
    problem: '',
    wrong,
    editor: undefined,
    flags: text === '' ? rest : { ...rest, [option]: value },
  }
  return { screen: next, acts: [loadPlan(next)] }
}
