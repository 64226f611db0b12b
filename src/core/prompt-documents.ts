// The change's documents within a budget: whole if they fit, else the parts that matter to the story, the rest by name and path.
import type { Requirement, Spec } from './deltas.ts'
import { byteLength, fenced, headOf, inline } from './prompt-text.ts'
import { readLines } from './tasks-lines.ts'

export interface PromptDocument {
  readonly kind: 'proposal' | 'design' | 'other'
  /** As the agent can open it. */
  readonly path: string
  readonly text: string
}

/** The text in force of a requirement that the change modifies. */
export interface CurrentRequirement {
  readonly capability: string
  readonly name: string
  readonly path: string
  readonly text: string
}

export interface DocumentsInput {
  readonly documents: readonly PromptDocument[]
  readonly deltas: readonly Spec[]
  readonly current: readonly CurrentRequirement[]
  /** Title, intro, tasks and bodies of the story: what relevance is measured against. */
  readonly storyText: string
  readonly changeDir: string
}

interface Piece {
  readonly heading: string
  readonly name: string
  readonly path: string
  readonly text: string
  readonly score: number
}

const namesShown = 60
const pieceBytes = 12_000

export function documentsSection(input: DocumentsInput, budgetBytes: number): string {
  const whole = [...wholePieces(input)]
  const current = input.current.map(currentPiece)
  const all = render([...whole, ...current], [], input.changeDir)
  if (byteLength(all) <= budgetBytes) return all
  const plain = render(whole, current, input.changeDir)
  if (byteLength(plain) <= budgetBytes) return fill(whole, current, budgetBytes, input.changeDir)
  const parts = ranked(splitPieces(input), input)
  return fill([], [...parts, ...current], budgetBytes, input.changeDir)
}

/** Takes the best of `candidates` while they fit; the others keep their line with name and path. */
function fill(
  fixed: readonly Piece[],
  candidates: readonly Piece[],
  budgetBytes: number,
  changeDir: string,
): string {
  const taken = new Set<Piece>()
  // What the names of the demoted may need at most.
  let used = byteLength(render(fixed, candidates, changeDir))
  for (const piece of [...candidates].sort((a, b) => b.score - a.score)) {
    const size = byteLength(renderPiece(piece)) + byteLength(piece.heading) + 8
    if (used + size > budgetBytes) continue
    used += size
    taken.add(piece)
  }
  const demoted = candidates.filter((piece) => !taken.has(piece))
  return render([...fixed, ...candidates.filter((piece) => taken.has(piece))], demoted, changeDir)
}

function render(shown: readonly Piece[], demoted: readonly Piece[], changeDir: string): string {
  const out: string[] = []
  let heading = ''
  for (const piece of shown) {
    if (piece.heading !== heading) out.push((heading = piece.heading))
    out.push(renderPiece(piece))
  }
  if (demoted.length === 0) return out.join('\n\n')
  const names = demoted
    .slice(0, namesShown)
    .map((piece) => `- ${inline(piece.name)} (in ${inline(piece.path, 300)})`)
  const left = demoted.length - names.length
  if (left > 0) names.push(`- and ${left} more in the files under ${inline(changeDir, 300)}`)
  const intro = 'These parts did not fit in here. Read the file where your story touches one of them:'
  return [...out, '## Not shown here', `${intro}\n${names.join('\n')}`].join('\n\n')
}

function renderPiece(piece: Piece): string {
  return `${inline(piece.name)} (${inline(piece.path, 300)}):\n${fenced(piece.text, 'markdown')}`
}

function* wholePieces({ documents, deltas }: DocumentsInput): Iterable<Piece> {
  for (const { kind, path, text } of documents) {
    if (text.trim() !== '')
      yield { heading: headingOf(kind), name: fileName(path), path, text: text.trim(), score: 0 }
  }
  for (const spec of deltas) {
    const text = [spec.preamble, ...groupedByKind(spec.requirements)]
      .filter((part) => part !== '')
      .join('\n\n')
    yield { heading: specsHeading, name: spec.capability, path: spec.path, text, score: 0 }
  }
}

const specsHeading = '## What the change requires'

function groupedByKind(requirements: readonly Requirement[]): string[] {
  let kind = ''
  return requirements.map((each) => {
    const lead = each.kind === kind ? '' : `## ${each.kind} Requirements\n\n`
    kind = each.kind
    return lead + each.text
  })
}

function currentPiece({ capability, name, path, text }: CurrentRequirement): Piece {
  return {
    heading: '## Current text of the requirements that the change modifies',
    name: `${capability} / ${name}, as it is in force`,
    path,
    text,
    score: -1,
  }
}

function headingOf(kind: PromptDocument['kind']): string {
  return { proposal: '## The proposal', design: '## The design', other: '## Further documents' }[kind]
}

function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function* splitPieces({ documents, deltas }: DocumentsInput): Iterable<Piece> {
  for (const { kind, path, text } of documents) {
    for (const section of sections(text)) {
      const isCore =
        kind === 'proposal' ? /^(?:why|what changes|impact)\b/i : /^(?:goals|non-goals|decisions)\b/i
      const score = kind !== 'other' && isCore.test(section.title) ? (kind === 'proposal' ? 3 : 2) : 0
      const name = `${fileName(path)}${section.title === '' ? '' : ` / ${section.title}`}`
      yield { heading: headingOf(kind), name, path, text: headOf(section.text, pieceBytes, path), score }
    }
  }
  for (const { capability, path, requirements } of deltas) {
    for (const { kind, name, text } of requirements) {
      const shown = headOf(text, pieceBytes, path)
      yield { heading: specsHeading, name: `${capability} / ${kind} / ${name}`, path, text: shown, score: 0 }
    }
  }
}

function sections(text: string): { title: string; text: string }[] {
  const found: { title: string; lines: string[] }[] = [{ title: '', lines: [] }]
  for (const line of readLines(text).lines) {
    if (line.heading !== undefined && line.heading.level <= 2)
      found.push({ title: line.heading.title, lines: [] })
    found.at(-1)?.lines.push(line.text)
  }
  return found
    .map(({ title, lines }) => ({ title, text: lines.join('\n').trim() }))
    .filter((each) => each.text !== '')
}

/** A literal name counts most, then rare words in common; the signal is partial, which is why nothing is ever dropped. */
function ranked(pieces: Iterable<Piece>, { storyText }: DocumentsInput): Piece[] {
  const all = [...pieces]
  const words = all.map((piece) => wordsOf(`${piece.name} ${piece.text}`))
  const spread = new Map<string, number>()
  for (const set of words) for (const word of set) spread.set(word, (spread.get(word) ?? 0) + 1)
  const wanted = [...wordsOf(storyText)]
  const lower = storyText.toLowerCase()
  const overlaps = words.map((set) => {
    const weights = wanted.map((word) => (set.has(word) ? 1 / (spread.get(word) ?? 1) : 0))
    return weights.reduce((sum, weight) => sum + weight, 0)
  })
  const most = overlaps.reduce((a, b) => Math.max(a, b), 0.001)
  return all.map((piece, index) => {
    const [capability = '', , name = ''] = piece.name.toLowerCase().split(' / ')
    const isNamed =
      piece.heading === specsHeading &&
      [capability, name].some((word) => word.length > 2 && lower.includes(word))
    return { ...piece, score: piece.score + (isNamed ? 2.5 : 0) + (overlaps[index] ?? 0) / most }
  })
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}_-]{3,40}/gu) ?? [])
}
