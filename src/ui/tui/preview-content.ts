// What each tab of the preview holds, as lines.
import { specOf } from '../../config/options.ts'
import type { OptionKey } from '../../config/options.ts'
import type { SettingEntry } from '../../config/load.ts'
import { branchName, storyName } from '../print/describe.ts'
import { fromWord, isSetting, valueText } from '../print/config.ts'
import { clip, oneLine, plural, widthOf, withHint } from '../print/text.ts'
import { agentName } from '../vocabulary.ts'
import { editorLine } from './editor.ts'
import { sign, styleFor } from './frame.ts'
import type { Size } from './frame.ts'
import type { World } from './inputs.ts'
import { storyTasks } from './loop-content.ts'
import type { Extent } from './pager.ts'
import { editable, entryFor } from './preview.ts'
import type { PreviewScreen } from './preview.ts'
import { bold, cellsOf, clipLine, dim, fitLine, harmless, line, span } from './spans.ts'
import type { Line } from './spans.ts'
import { wrapSpans } from './wrap.ts'

/** Its frame and all. */
export function paneHeight(screen: PreviewScreen, { columns, rows }: Size): number {
  // One line for the name, and one of keys.
  return rows - 1 - 2 - secondLines(screen, columns).length
}

export function previewExtent(
  screen: PreviewScreen,
  { size }: Pick<World, 'size'>,
): Extent & { readonly lines: readonly Line[] } {
  const width = size.columns - 4
  const height = Math.max(1, paneHeight(screen, size) - 2)
  const lines = previewLines(screen, width)
  return { total: lines.length, height, isLive: false, lines }
}

function previewLines(screen: PreviewScreen, width: number): readonly Line[] {
  switch (screen.tab) {
    case 'Stories':
      return storyLines(screen, width)
    case 'Scenarios':
      return scenarioLines(screen, width)
    case 'Prompt':
      return promptLines(screen, width)
    case 'Settings':
      return settingLines(screen, width)
  }
}

function storyLines({ detail }: PreviewScreen, width: number): readonly Line[] {
  if (detail === undefined) return [line('Reading the plan…', dim)]
  const lints = (detail.lints ?? []).flatMap((lint) =>
    wrapSpans(line(oneLine(harmless(lint))), width, line('! ', styleFor('human')), '  '),
  )
  if (detail.stories.length === 0)
    return [
      line(clip(`There is no task yet in openspec/changes/${oneLine(detail.name)}/tasks.md.`, width)),
      ...lints,
    ]
  return [...storyTasks(detail.stories, width), ...(lints.length === 0 ? [] : [[]]), ...lints]
}

function scenarioLines({ detail }: PreviewScreen, width: number): readonly Line[] {
  if (detail === undefined) return [line('Reading the specs…', dim)]
  if (detail.scenarios.length === 0) return [line('This change has no scenarios in its specs.', dim)]
  let place = ''
  return detail.scenarios.flatMap(({ capability, requirement, name, steps }, at) => {
    const here = `${oneLine(harmless(capability))}: ${oneLine(harmless(requirement))}`
    const head = here === place ? [] : wrapSpans(line(here, bold), width)
    const isFirst = here !== place
    place = here
    return [
      ...(at > 0 && isFirst ? [[]] : []),
      ...head,
      ...wrapSpans(line(oneLine(harmless(name))), width, line('  '), '    '),
      ...steps.flatMap((step) => stepLines(oneLine(harmless(step)), width)),
    ]
  })
}

function stepLines(step: string, width: number): readonly Line[] {
  const [, word = '', rest = step] = /^[-*\s]*\**(GIVEN|WHEN|THEN|AND|BUT)\**:?\s*(.*)$/i.exec(step) ?? []
  const head = word === '' ? line('    ') : [span('    '), span(word.toUpperCase().padEnd(6), dim)]
  return wrapSpans(line(rest), width, head, ' '.repeat(word === '' ? 6 : 10))
}

function promptLines({ plan, problem, story }: PreviewScreen, width: number): readonly Line[] {
  if (plan === undefined) return [line(problem === '' ? 'Making the prompt…' : 'There is no prompt.', dim)]
  const shown = plan.stories[story]
  if (shown === undefined) return [line('No story is open: nothing would be asked.', dim)]
  const head = `Story ${storyName(shown.id, shown.title)} (${String(story + 1)} of ${String(plan.stories.length)}; ←→ for another)`
  return [
    clipLine(line(harmless(oneLine(head)), dim), width),
    [],
    ...harmless(shown.prompt)
      .trimEnd()
      .split('\n')
      .flatMap((each) => {
        // What belongs to an item of a list hangs below its words.
        const [, indent = '', sign = ''] = /^( *)((?:[-*] |\d+[.)] )?)/.exec(each) ?? []
        const hang = ' '.repeat(indent.length + sign.length)
        return wrapSpans(line(each.slice(hang.length)), width, line(`${indent}${sign}`), hang)
      }),
  ]
}

export const labels: Readonly<Partial<Record<OptionKey, string>>> = {
  agent: 'agent',
  model: 'model',
  max_retries: 'retries',
  verify: 'gates',
  max_cost: 'budget in $',
  max_tokens: 'budget in tokens',
  agent_command: 'agent command',
}

function settingLines(screen: PreviewScreen, width: number): readonly Line[] {
  const { settings } = screen
  if (settings === undefined) return [line('Reading the settings…', dim)]
  const room = valueRoom(width)
  const own = editable.flatMap((key, at) => ownLines(screen, key, at === screen.field, width))
  const rest = settings.entries
    .filter((entry) => isSetting(entry) && !editable.some((key) => key === entry.key))
    .flatMap((entry) => {
      const isSet = entry.origin !== 'default'
      const style = isSet ? bold : dim
      const row = [
        span(`  ${entry.key.padEnd(18)} `),
        ...fitLine(line(valueText(entry), style), room),
        ...fitLine(line(`  ${placeWord(entry)}`, style), placeCells),
      ]
      return withHelp(row, entry.key, width)
    })
  return [
    line('For this run (Enter changes one):', dim),
    ...own,
    [],
    line('All others, and where they come from:', dim),
    ...rest,
  ]
}

/** One column for the values of both lists, so that where they come from stands in one, too. */
function valueRoom(width: number): number {
  return Math.max(12, Math.min(44, width - 38))
}

const placeCells = 16

/** Half a sentence says nothing: whole, in its own column, or not at all. */
function withHelp(row: Line, key: OptionKey, width: number): readonly Line[] {
  if (width < 106) return [clipLine(row, width)]
  return wrapSpans(line(specOf(key).help, dim), width, [...row, span(' ')], ' '.repeat(cellsOf(row) + 1))
}

/** `project` alone is no place; the name of a variable is RALPH_ and that of the setting, and has no room. */
function placeWord(entry: SettingEntry): string {
  const { origin } = entry
  if (origin === 'variable') return origin
  return origin === 'project' || origin === 'user' ? `${origin} file` : fromWord(entry)
}

function ownLines(screen: PreviewScreen, key: OptionKey, isAt: boolean, width: number): readonly Line[] {
  const entry = entryFor(screen, key)
  const label = (labels[key] ?? key).padEnd(18)
  const head = [span(isAt ? '› ' : '  ', bold), span(label, isAt ? bold : {}), span(' ')]
  if (isAt && screen.editor !== undefined)
    return [[...head, ...editorLine(screen.editor, Math.max(10, width - widthOf(label) - 4))]]
  if (entry === undefined) return [head]
  const isOwn = screen.flags[key] !== undefined
  const command = entryFor(screen, 'agent_command')
  const isInstead = key === 'agent' && !isOwn && command?.value !== undefined
  const from = isOwn ? 'for this run' : placeWord(isInstead ? command : entry)
  const value = line(isInstead ? 'your own: agent_command' : harmless(valueText(entry)), isOwn ? bold : {})
  const isSet = isOwn || isInstead || entry.origin !== 'default'
  const row = [
    ...head,
    ...fitLine(value, valueRoom(width)),
    ...fitLine(line(`  ${from}`, isSet ? bold : dim), placeCells),
  ]
  return withHelp(row, key, width)
}

const mostProblem = 4

/** What a start would do; or why it would not, in as many lines as that takes. */
export function secondLines(screen: PreviewScreen, columns: number): readonly Line[] {
  const refused = screen.plan?.refused
  const told = screen.wrong || screen.problem
  const problem = told === '' ? refused && withHint(refused.message, refused.hint) : told
  if (problem === undefined || screen.isStarting)
    return [clipLine(line(` ${harmless(planWords(screen))}`, dim), columns)]
  const [first = '', ...rest] = problem.split('\n')
  const here = screen.plan?.agents.length === 0 ? ['Here: agent, or agent command, under Settings (4).'] : []
  return [first, ...here, ...rest]
    .flatMap((each, at) => {
      const words = line(oneLine(harmless(each)), styleFor('human'))
      const head = at === 0 ? [span(' '), ...sign('human'), span(' ')] : line('   ')
      return wrapSpans(words, columns - 1, head, '   ')
    })
    .slice(0, mostProblem)
}

/** Where it would run, with whom, and how it is checked: in one line. */
function planWords({ plan, problem }: PreviewScreen): string {
  if (plan === undefined) return problem === '' ? 'Looking at what a start would do…' : ''
  const { refused } = plan
  if (refused !== undefined) return ''
  const agents =
    plan.agents.length === 0
      ? 'no agent is installed'
      : plan.agents.map((agent) => agentName(agent, plan.agent_program)).join(', then ')
  const gates =
    plan.gates.length === 0
      ? `no gates${plan.gate_offered === '' ? '' : ` (found ${oneLine(plan.gate_offered)})`}`
      : `${plan.gates.length === 1 ? 'gate' : 'gates'} ${plan.gates.map(oneLine).join(', ')}`
  const where =
    plan.branch === plan.original_branch
      ? `on ${branchName(plan.branch)}`
      : `${branchName(plan.original_branch)} → ${oneLine(plan.branch)}`
  const stories = `${plural(plan.stories.length, 'story', 'stories')} to do`
  return [stories, where, agents, gates].join(' · ')
}
