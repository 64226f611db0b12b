// Parses OpenSpec's spec files: requirements with their scenarios, in a change's deltas and in the current specs.
import { readLines, type Line } from './tasks-lines.ts'

type DeltaKind = 'ADDED' | 'MODIFIED' | 'REMOVED' | 'RENAMED' | 'CURRENT'

interface Scenario {
  readonly name: string
  /** As written, list markers and stars taken off. */
  readonly steps: readonly string[]
}

export interface Requirement {
  readonly kind: DeltaKind
  readonly name: string
  /** The whole block as written, heading and scenarios too. */
  readonly text: string
  readonly scenarios: readonly Scenario[]
}

export interface Spec {
  /** Folder below `specs/`, e.g. `auth/login`. */
  readonly capability: string
  /** As shown to the agent. */
  readonly path: string
  /** What stands in front of the first requirement, e.g. `## Purpose`. */
  readonly preamble: string
  readonly requirements: readonly Requirement[]
}

interface OpenRequirement {
  kind: DeltaKind
  name: string
  lines: Line[]
}

export function parseSpec(capability: string, path: string, text: string): Spec {
  const preamble: string[] = []
  const requirements: OpenRequirement[] = []
  let kind: DeltaKind = 'CURRENT'
  let current: OpenRequirement | undefined
  for (const line of readLines(text).lines) {
    const { heading } = line
    const name = heading?.level === 3 ? /^Requirement:\s*(.+)$/i.exec(heading.title)?.[1]?.trim() : undefined
    if (name !== undefined) requirements.push((current = { kind, name, lines: [line] }))
    else if (heading !== undefined && heading.level <= 2) {
      kind = sectionKind(heading.title)
      current = undefined
      if (kind === 'CURRENT') preamble.push(line.text)
    } else {
      const bullet = current === undefined && !line.hidden ? bulletName(kind, line.text) : undefined
      if (bullet !== undefined) requirements.push({ kind, name: bullet, lines: [line] })
      else if (current !== undefined) current.lines.push(line)
      else if (kind === 'REMOVED' || kind === 'RENAMED') requirements.at(-1)?.lines.push(line)
      else preamble.push(line.text)
    }
  }
  return { capability, path, preamble: preamble.join('\n').trim(), requirements: requirements.map(closed) }
}

const deltaKinds = ['ADDED', 'MODIFIED', 'REMOVED', 'RENAMED'] as const

function sectionKind(title: string): DeltaKind {
  const words = title.toUpperCase().split(/\s+/).join(' ')
  return deltaKinds.find((kind) => words === `${kind} REQUIREMENTS`) ?? 'CURRENT'
}

/** REMOVED may list plain bullets, RENAMED says `FROM:` and `TO:`. */
function bulletName(kind: DeltaKind, text: string): string | undefined {
  if (kind !== 'REMOVED' && kind !== 'RENAMED') return undefined
  const bullet = /^(?:[-*+]\s+)?(FROM:\s*)?/i.exec(text.trim())
  const isNamed = kind === 'RENAMED' ? bullet?.[1] !== undefined : /^[-*+]\s/.test(text)
  if (!isNamed) return undefined
  const words = text
    .trim()
    .slice(bullet?.[0].length ?? 0)
    .replaceAll('`', '')
    .trim()
  const name = words.replace(/^#+\s*/, '').replace(/^Requirement:\s*/i, '')
  // `- **Reason**: …` below a removed requirement is its explanation.
  return name === '' || /^\*\*(?:Reason|Migration)/i.test(name) ? undefined : name
}

function closed({ kind, name, lines }: OpenRequirement): Requirement {
  const text = lines
    .map((line) => line.text)
    .join('\n')
    .trimEnd()
  return { kind, name, text, scenarios: readScenarios(lines) }
}

function readScenarios(lines: readonly Line[]): Scenario[] {
  const scenarios: { name: string; steps: string[] }[] = []
  for (const line of lines) {
    const { heading } = line
    if (heading !== undefined && heading.level <= 4) {
      // Any `####` counts as a scenario for OpenSpec.
      if (heading.level === 4 && heading.title !== '') {
        scenarios.push({ name: heading.title.replace(/^Scenario:\s*/i, ''), steps: [] })
      }
    } else if (line.text.trim() !== '') addStep(scenarios.at(-1)?.steps, line)
  }
  return scenarios
}

function addStep(steps: string[] | undefined, line: Line): void {
  if (steps === undefined) return
  const bullet = line.hidden ? null : /^\s*[-*+]\s+(.*)$/.exec(line.text)
  const words = (bullet?.[1] ?? line.text).replace(/^\*\*([A-Za-z]+):?\*\*:?/, '$1').trim()
  const isStep = bullet !== null || /^(?:GIVEN|WHEN|THEN|AND|BUT)\b/i.test(words)
  const last = steps.length - 1
  // A line that is no step of its own goes on with the one above.
  if (isStep || last < 0) steps.push(words)
  else steps[last] = `${steps[last] ?? ''}\n${line.text.trimEnd()}`
}
