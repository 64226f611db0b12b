// The terminal UI as one pure function: what comes in changes the model and asks for acts; a view is made of it for a size.
// Long because all screens pass here: which one an input is for, and what it means there, is decided in one place.
import { signalExits } from '../../core/outcome.ts'
import type { ChangeList, QueueReport } from '../app.ts'
import { entryLines } from '../print/layout.ts'
import type { Sheet } from '../print/layout.ts'
import { oneLine, withHint } from '../print/text.ts'
import {
  endingScreen,
  failedEnding,
  finishedEnding,
  isAnswered,
  loadedEnding,
  seenEnding,
  typedEnding,
} from './ending.ts'
import type { EndingScreen } from './ending.ts'
import { lastWords } from './ending-content.ts'
import { endingView } from './ending-view.ts'
import { smallest, viewOf } from './frame.ts'
import type { Size, View } from './frame.ts'
import { helpView } from './help.ts'
import type { Act, Input, World } from './inputs.ts'
import type { Key } from './keys.ts'
import { asking, loadedLoop, toldLoop, typedLoop, unansweredLoop } from './loop.ts'
import { deathWords } from './loop-head.ts'
import { hasEnd, isRunning, loopScreen } from './loop-model.ts'
import type { LoopScreen } from './loop-model.ts'
import { loopView } from './loop-view.ts'
import {
  failedPreview,
  loadedPreview,
  loadPreview,
  previewScreen,
  starting,
  typedPreview,
} from './preview.ts'
import type { PreviewScreen } from './preview.ts'
import { previewView } from './preview-view.ts'
import { askingQueue, failedQueue, loadedQueue, queueScreen, typedQueue } from './queue.ts'
import type { QueueScreen } from './queue.ts'
import { queueView } from './queue-view.ts'
import { askingSelect, emptySelect, failedSelect, loadedSelect, selectScreen, typedSelect } from './select.ts'
import type { Onward, SelectScreen } from './select.ts'
import { selectView } from './select-view.ts'
import { line } from './spans.ts'
import type { Line } from './spans.ts'

/** Where it opens. */
export type Entry =
  | {
      readonly at: 'select'
      /** Read already: the first picture has it. */
      readonly list?: ChangeList
      /** One that is at work is what they want to see first. */
      readonly queue?: QueueReport
    }
  /** `ralph up` of this process. */
  | { readonly at: 'queue' }
  | { readonly at: 'loop'; readonly change: string; readonly isOwn: boolean }

export interface Model extends World {
  readonly at: 'select' | 'queue' | 'preview' | 'loop' | 'ending'
  /** Undefined where it was opened for one loop. */
  readonly select: SelectScreen | undefined
  /** Undefined where nobody has opened it: from a loop one comes back here. */
  readonly queue: QueueScreen | undefined
  readonly preview: PreviewScreen | undefined
  readonly loop: LoopScreen | undefined
  readonly ending: EndingScreen | undefined
  readonly says: { readonly text: string; readonly untilMs: number }
  readonly isHelp: boolean
  /** For the last words. */
  readonly sheet: Sheet
}

export interface Updated {
  readonly model: Model
  readonly acts: readonly Act[]
}

const sayMs = 6_000
const silent = { text: '', untilMs: 0 }

export function opened(entry: Entry, world: Omit<World, 'frame'>, sheet: Sheet): Updated {
  const isQueue = entry.at === 'queue' || (entry.at === 'select' && entry.queue?.alive === true)
  const model: Model = {
    ...world,
    frame: 0,
    at: isQueue ? 'queue' : entry.at,
    queue: isQueue ? queueScreen(entry.at === 'queue') : undefined,
    select: entry.at === 'select' ? selectScreen(entry.list) : undefined,
    preview: undefined,
    loop: entry.at === 'loop' ? loopScreen(entry.change, entry.isOwn) : undefined,
    ending: undefined,
    says: silent,
    isHelp: false,
    sheet,
  }
  if (entry.at === 'loop') return { model, acts: [{ do: 'follow', change: entry.change }] }
  return asked({ model, acts: [] })
}

export function update(model: Model, input: Input): Updated {
  switch (input.type) {
    case 'resize': {
      const sheet = { ...model.sheet, columns: input.size.columns }
      return { model: { ...model, size: input.size, sheet }, acts: [] }
    }
    case 'tick': {
      const says = model.says.untilMs > input.nowMs ? model.says : silent
      const ending = model.ending && seenEnding(model.ending, input.nowMs)
      return asked({
        model: { ...model, nowMs: input.nowMs, frame: model.frame + 1, says, ending },
        acts: [],
      })
    }
    case 'key':
      return asked(typed(model, input.key))
    case 'told':
      return asked(told(model, input.change, input.records))
    case 'loaded':
      return { model: loaded(model, input.loaded), acts: [] }
    case 'started':
      return joined(model, input.change, true)
    case 'queue_over':
      return queueOver(model)
    case 'said':
      return { model: said(model, input), acts: [] }
    case 'failed': {
      const next = failed(model, input)
      // Started from the list: only now somebody looks at it.
      const isBare = input.act.do === 'start' && next.preview?.detail === undefined
      return { model: next, acts: isBare && next.preview !== undefined ? loadPreview(next.preview) : [] }
    }
  }
}

function asked({ model, acts }: Updated): Updated {
  if (model.at === 'loop' && model.loop !== undefined) {
    const step = asking(model.loop, model)
    return { model: { ...model, loop: step.screen }, acts: [...acts, ...step.acts] }
  }
  if (model.at === 'queue' && model.queue !== undefined) {
    const step = askingQueue(model.queue, model)
    return { model: { ...model, queue: step.screen }, acts: [...acts, ...step.acts] }
  }
  if (model.at === 'select' && model.select !== undefined) {
    const step = askingSelect(model.select, model)
    return { model: { ...model, select: step.screen }, acts: [...acts, ...step.acts] }
  }
  return { model, acts }
}

function saying(model: Model, text: string): Model {
  return text === '' ? model : { ...model, says: { text: oneLine(text), untilMs: model.nowMs + sayMs } }
}

// --- what comes from outside ------------------------------------------------------------------------------------

function told(model: Model, change: string, records: Extract<Input, { type: 'told' }>['records']): Updated {
  if (model.loop?.change !== change) return { model, acts: [] }
  const loop = toldLoop(model.loop, records, model)
  if (model.ending !== undefined && isAnswered(model.ending, loop)) return ended({ ...model, loop }, loop)
  return endedWhereNews({ model: { ...model, loop }, acts: [] })
}

/** Whoever types finishes first: the next keys are for what they see, and no answer to a question. */
function endedWhereNews({ model, acts }: Updated): Updated {
  const { loop } = model
  if (model.at !== 'loop' || loop === undefined || model.ending !== undefined) return { model, acts }
  const hasEnded = loop.life === 'ended' && loop.complete !== undefined && (loop.wasLive || loop.isOwn)
  if (!hasEnded || isTyping(model)) return { model, acts }
  const end = ended(model, loop)
  return { model: end.model, acts: [...acts, ...end.acts] }
}

function ended(model: Model, loop: LoopScreen): Updated {
  const step = endingScreen(loop)
  return { model: { ...model, at: 'ending', ending: step.screen, says: silent }, acts: step.acts }
}

function loaded(model: Model, what: Extract<Input, { type: 'loaded' }>['loaded']): Model {
  return {
    ...model,
    ...(model.select !== undefined && { select: loadedSelect(model.select, what) }),
    ...(model.queue !== undefined && { queue: loadedQueue(model.queue, what) }),
    ...(model.preview !== undefined && { preview: loadedPreview(model.preview, what) }),
    ...(model.loop !== undefined && { loop: loadedLoop(model.loop, what) }),
    ...(model.ending !== undefined && { ending: loadedEnding(model.ending, what) }),
  }
}

function said(model: Model, { act, message, commit }: Extract<Input, { type: 'said' }>): Model {
  if (act === 'finish' && model.ending !== undefined)
    return { ...model, ending: finishedEnding(model.ending, { message, commit }) }
  return saying(model, message)
}

function failed(model: Model, { act, message, hint }: Extract<Input, { type: 'failed' }>): Model {
  const words = withHint(message, hint)
  if (act.do === 'start' && model.preview !== undefined)
    return { ...model, at: 'preview', preview: failedPreview(model.preview, words) }
  if (act.do === 'start' && model.ending !== undefined)
    return saying({ ...model, ending: failedEnding(model.ending, act, words) }, words)
  if ((act.do === 'finish' || act.do === 'done' || act.do === 'load') && model.ending !== undefined)
    return { ...model, ending: failedEnding(model.ending, act, words) }
  if (act.do !== 'load') return saying(model, words)
  if (act.load.what === 'changes' && model.select !== undefined)
    return { ...model, select: failedSelect(model.select, words) }
  if (act.load.what === 'queue' && model.queue !== undefined)
    return { ...model, queue: failedQueue(model.queue, words) }
  if (model.at === 'preview' && model.preview !== undefined)
    return { ...model, preview: failedPreview(model.preview, words) }
  // The next look is soon.
  return model.loop === undefined ? model : { ...model, loop: unansweredLoop(model.loop) }
}

// --- what is typed ----------------------------------------------------------------------------------------------

function typed(model: Model, key: Key): Updated {
  if (key.name === 'suspend') return { model, acts: [{ do: 'suspend' }] }
  if (key.name === 'redraw') return { model, acts: [{ do: 'redraw' }] }
  if (model.isHelp) return { model: { ...model, isHelp: false }, acts: [] }
  if (key.name === 'text' && key.text === '?' && !isTyping(model))
    return { model: { ...model, isHelp: true }, acts: [] }
  // What was said has been read.
  const heard = { ...model, says: silent }
  switch (model.at) {
    case 'select':
      return typedInSelect(heard, key)
    case 'queue':
      return typedInQueue(heard, key)
    case 'preview':
      return typedInPreview(heard, key)
    case 'loop':
      return typedInLoop(heard, key)
    case 'ending':
      return typedInEnding(heard, key)
  }
}

function isTyping({ at, select, preview, loop, ending }: Model): boolean {
  if (at === 'select') return select?.isFiltering === true
  if (at === 'preview') return preview?.editor !== undefined
  if (at === 'ending') return ending?.missing !== undefined
  return at === 'loop' && (loop?.note !== undefined || loop?.search?.isOpen === true)
}

function typedInSelect(model: Model, key: Key): Updated {
  if (model.select === undefined) return { model, acts: [] }
  const step = typedSelect(model.select, key)
  if (step === undefined) return { model, acts: [] }
  const next = saying({ ...model, select: step.screen }, step.says ?? '')
  return step.onward === undefined ? { model: next, acts: [] } : onward(next, step.onward)
}

function onward(model: Model, to: Onward): Updated {
  if (to.to === 'quit') return { model, acts: [{ do: 'quit', exitCode: 0, words: [] }] }
  if (to.to === 'queue') return { model: { ...model, at: 'queue', queue: queueScreen(false) }, acts: [] }
  const { row } = to
  if (to.to === 'loop') return joined(model, row.name, false)
  const preview = previewScreen(row.name, row.isHalted)
  if (to.to === 'preview') return { model: { ...model, at: 'preview', preview }, acts: loadPreview(preview) }
  const run = starting(preview)
  return { model: { ...model, at: 'preview', preview: run.screen }, acts: run.acts }
}

function typedInQueue(model: Model, key: Key): Updated {
  if (model.queue === undefined) return { model, acts: [] }
  const step = typedQueue(model.queue, key)
  if (step !== undefined) {
    const next = { ...model, queue: step.screen }
    return step.joins === undefined ? { model: next, acts: [] } : joined(next, step.joins, false)
  }
  if (key.name === 'escape' && model.select !== undefined)
    return { model: { ...model, at: 'select', queue: undefined }, acts: [] }
  if (!isQuit(key)) return { model, acts: [] }
  return quit(model, model.queue.isOwn ? signalExits.SIGINT : 0)
}

/** Whoever looks at one of its loops is not sent away. */
function queueOver(model: Model): Updated {
  if (model.at === 'queue' || model.queue === undefined) return quit(model, 0)
  const next = { ...model, queue: { ...model.queue, isOver: true } }
  return { model: saying(next, 'ralph up has nothing left to do; Esc shows how it ended'), acts: [] }
}

function joined(model: Model, change: string, isOwn: boolean): Updated {
  const loop = loopScreen(change, isOwn)
  return {
    model: { ...model, at: 'loop', loop, ending: undefined, preview: undefined, says: silent },
    acts: [{ do: 'follow', change }],
  }
}

function typedInPreview(model: Model, key: Key): Updated {
  if (model.preview === undefined) return { model, acts: [] }
  const step = typedPreview(model.preview, key, model)
  if (step !== undefined) return { model: { ...model, preview: step.screen }, acts: step.acts }
  if (key.name === 'escape') return toList(model)
  return isQuit(key) ? quit(model, 0) : { model, acts: [] }
}

function isQuit(key: Key): boolean {
  return key.name === 'interrupt' || (key.name === 'text' && key.text === 'q')
}

function toList(model: Model): Updated {
  if (model.queue !== undefined) return toQueue(model, model.queue)
  if (model.select === undefined) return { model, acts: [] }
  const next = { ...model, at: 'select' as const, preview: undefined, loop: undefined, ending: undefined }
  return { model: next, acts: [{ do: 'unfollow' }] }
}

function toQueue(model: Model, queue: QueueScreen): Updated {
  if (queue.isOver) return quit(model, 0)
  const next = { ...model, at: 'queue' as const, loop: undefined, ending: undefined }
  return { model: next, acts: [{ do: 'unfollow' }] }
}

function quit(model: Model, exitCode: number, words: readonly string[] = []): Updated {
  // To leave a loop of this process's own queue is no word about the queue.
  if (model.queue?.isOwn === true && model.at !== 'queue' && !model.queue.isOver)
    return toQueue(model, model.queue)
  return { model, acts: [{ do: 'quit', exitCode, words }] }
}

function typedInLoop(model: Model, key: Key): Updated {
  const { loop } = model
  if (loop === undefined) return { model, acts: [] }
  const step = typedLoop(loop, key, model)
  if (step !== undefined)
    return endedWhereNews({
      model: saying({ ...model, loop: step.screen }, step.says ?? ''),
      acts: step.acts,
    })
  const letter = key.name === 'text' ? key.text : ''
  if (key.name === 'escape') return toList(model)
  if (letter === 'd' && isRunning(loop)) return detached(model, loop)
  if (isRunning(loop)) return { model, acts: [] }
  if (key.name === 'enter' && hasEnd(loop)) return ended(model, loop)
  if (!isQuit(key)) return { model, acts: [] }
  // Looked at once more: what came of it is said all the same.
  const words = model.ending === undefined ? [] : lastWords(model.ending, model.sheet)
  const died = deathWords(loop).flatMap((text) => entryLines({ text }, model.sheet))
  return quit(model, exitCodeOf(model), loop.life === 'dead' ? died : words)
}

function detached(model: Model, { change }: LoopScreen): Updated {
  const words = [`The loop of ${change} continues.`, `Join it again with: ralph attach ${change}`]
  return quit(model, 0, words)
}

function exitCodeOf({ loop }: Model): number {
  return loop?.isOwn === true ? (loop.complete?.exit_code ?? 1) : 0
}

function typedInEnding(model: Model, key: Key): Updated {
  if (model.ending === undefined) return { model, acts: [] }
  const step = typedEnding(model.ending, key, model)
  if (step !== undefined) return { model: { ...model, ending: step.screen }, acts: step.acts }
  if (key.name === 'escape')
    return hasList(model) ? toList(model) : { model: { ...model, at: 'loop' }, acts: [] }
  if (!isQuit(key)) return { model, acts: [] }
  return quit(model, exitCodeOf(model), lastWords(model.ending, model.sheet))
}

// --- the view ---------------------------------------------------------------------------------------------------

export function view(model: Model): View {
  const { size } = model
  if (size.columns < smallest.columns || size.rows < smallest.rows) return tooSmall(size)
  if (model.isHelp) return keysOf(model)
  const says = model.says.text
  switch (model.at) {
    case 'select':
      return selectView(model.select ?? emptySelect, model, says)
    case 'queue':
      return model.queue === undefined
        ? viewOf([], size)
        : queueView(model.queue, model, says, model.select !== undefined)
    case 'preview':
      return model.preview === undefined ? viewOf([], size) : previewView(model.preview, model, says)
    case 'loop':
      return model.loop === undefined
        ? viewOf([], size)
        : loopView(model.loop, model, { says, hasList: hasList(model) })
    case 'ending':
      return model.ending === undefined
        ? viewOf([], size)
        : endingView(model.ending, model, says, backTo(model))
  }
}

function backTo({ select, queue }: Model): string {
  if (queue !== undefined) return 'the queue'
  return select === undefined ? 'the run' : 'all changes'
}

/** There is something to come back to. */
function hasList({ select, queue }: Model): boolean {
  return select !== undefined || queue !== undefined
}

function keysOf(model: Model): View {
  const { at, size, loop, ending } = model
  if (at === 'ending') return helpView(ending?.stage ?? 'result', size)
  if (at === 'queue') return helpView(at, size, new Set(model.select === undefined ? ['esc'] : []))
  if (at !== 'loop' || loop === undefined) return helpView(at, size)
  const list = hasList(model) ? [] : ['esc']
  if (isRunning(loop)) return helpView('loop', size, new Set(list))
  return helpView('ended', size, new Set(hasEnd(loop) ? list : [...list, 'enter']))
}

function tooSmall(size: Size): View {
  const words: readonly Line[] = [
    line('This window is too small for ralph.'),
    line(`It needs ${String(smallest.columns)} columns and ${String(smallest.rows)} rows.`),
  ]
  return viewOf(words, size)
}
