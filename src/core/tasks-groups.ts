// Groups the boxes of one tasks file into stories: which heading level is the story, what is a note, what is a tree of boxes.
import type { Line } from './tasks-lines.ts'

export interface Group {
  /** Heading as written, or the root box's text; '' where nothing names the group. */
  readonly heading: string
  readonly boxes: readonly Line[]
  /** Lines of the group that are neither its own heading nor a box. */
  readonly prose: readonly Line[]
}

export interface Groups {
  readonly groups: readonly Group[]
  readonly notes: readonly { readonly title: string; readonly text: string }[]
}

interface OpenGroup {
  heading: string
  boxes: Line[]
  prose: Line[]
}

export function groupBoxes(lines: readonly Line[]): Groups {
  const counts = ownedCounts(lines)
  const level = storyLevel(lines, counts)
  const groups: OpenGroup[] = []
  const notes: { title: string; lines: string[] }[] = []
  let group: OpenGroup | undefined
  let note: { title: string; lines: string[] } | undefined
  let shallower = ''
  for (const line of lines) {
    const heading = line.heading
    if (heading !== undefined && heading.level <= level) {
      group = undefined
      note = undefined
      shallower = heading.title
      if ((counts.get(line) ?? 0) === 0) notes.push((note = { title: heading.title, lines: [] }))
      else if (heading.level === level)
        groups.push((group = { heading: heading.title, boxes: [], prose: [] }))
    } else if (isTask(line)) {
      if (group === undefined) groups.push((group = { heading: shallower, boxes: [], prose: [] }))
      group.boxes.push(line)
    } else if (line.box !== undefined) {
      // A phantom never opens a story, but it is counted by OpenSpec and must be listed somewhere.
      const home = group ?? groups.at(-1)
      if (home === undefined) groups.push((group = { heading: shallower, boxes: [line], prose: [] }))
      else home.boxes.push(line)
      note?.lines.push(line.text)
    } else if (note === undefined) group?.prose.push(line)
    else note.lines.push(line.text)
  }
  const split = groups.filter((each) => each.boxes.length > 0).flatMap((each) => splitTree(each, level))
  const texts = notes.map(({ title, lines: body }) => ({ title, text: body.join('\n').trim() }))
  return { groups: split, notes: texts.filter((each) => each.text !== '') }
}

/** A box that counts when it is decided which headings are stories. */
function isTask(line: Line): boolean {
  return line.box !== undefined && !line.hidden && line.box.text !== ''
}

/** How many tasks lie below each heading, up to the next of the same or a higher level. */
function ownedCounts(lines: readonly Line[]): Map<Line, number> {
  const counts = new Map<Line, number>()
  const path: Line[] = []
  for (const line of lines) {
    if (line.heading !== undefined) {
      while (path.length > 0 && (path.at(-1)?.heading?.level ?? 0) >= line.heading.level) path.pop()
      path.push(line)
      counts.set(line, 0)
    } else if (isTask(line)) {
      for (const owner of path) counts.set(owner, (counts.get(owner) ?? 0) + 1)
    }
  }
  return counts
}

/** 1 if two h1 own tasks; else the shallowest of 2..6 with two owners; else the shallowest with any; 0 without headings. */
function storyLevel(lines: readonly Line[], counts: ReadonlyMap<Line, number>): number {
  const owners = [0, 0, 0, 0, 0, 0, 0]
  for (const line of lines) {
    const level = line.heading?.level
    if (level !== undefined && (counts.get(line) ?? 0) > 0) owners[level] = (owners[level] ?? 0) + 1
  }
  if ((owners[1] ?? 0) >= 2) return 1
  for (const wanted of [2, 1]) {
    const level = owners.findIndex((count, index) => index >= 2 && count >= wanted)
    if (level !== -1) return level
  }
  return (owners[1] ?? 0) > 0 ? 1 : 0
}

/** A plan that is one tree of boxes: each root box is a story, its children the tasks. */
function splitTree(group: OpenGroup, level: number): readonly Group[] {
  if (level >= 2) return [group]
  const roots: { root: Line; boxes: Line[] }[] = []
  for (const line of group.boxes) {
    const current = roots.at(-1)
    const isChild =
      current !== undefined && (!isTask(line) || (line.box?.indent ?? 0) > (current.root.box?.indent ?? 0))
    if (isChild) current.boxes.push(line)
    else roots.push({ root: line, boxes: [line] })
  }
  const parents = roots.filter(({ boxes }) => boxes.some((line, index) => index > 0 && isTask(line)))
  if (roots.length < 2 || parents.length * 2 < roots.length) return [group]
  return roots.map(({ root, boxes }, index) => {
    const next = roots[index + 1]?.root.number ?? Infinity
    const isOwn = (line: Line): boolean =>
      line.number < next && (line.number > root.number || (index === 0 && line.number < root.number))
    return { heading: root.box?.text ?? '', boxes, prose: group.prose.filter(isOwn) }
  })
}
