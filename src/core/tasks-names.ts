// What the words of a heading or a task line say: its number, its id, and who may do it.
import { isDoneMark } from './box.ts'
import type { TaskState } from './story.ts'

const groupWords = 'Phase|Step|Stage|Milestone|Part|Group|Epic|Story|Wave|Sprint|Slice|Section|Task'
const numberForms = [
  /^(\d+(?:\.\d+)*)(?:[.):]|[ \t]+[—–-](?=\s))[ \t]*(.*)$/s, // `1. Title`, `2) Title`, `3: Title`, `4 — Title`
  /^(\d+(?:\.\d+)+)[ \t]+(.*)$/s, // `2.1 Title`
  /^([A-Z])[.):][ \t]+(.*)$/s, // `A. Title`
  /^([A-Z]{1,4}-?\d+(?:\.\d+)*)(?:[.):]|[ \t]+[—–-](?=\s))[ \t]*(.*)$/s, // `T0.1: Title`
]
const wordForm = new RegExp(`^(?:${groupWords})[ \\t]+(\\d+(?:\\.\\d+)*|[A-Z])(?![\\w.])`, 'i')

/** `number` is '' when the heading has none; `title` is what is shown beside the number. */
export function readStoryName(heading: string): { number: string; title: string } {
  const shown = withoutDoneMark(heading)
  for (const form of numberForms) {
    const match = form.exec(shown)
    const title = (match?.[2] ?? '').trim()
    if (match?.[1] !== undefined && title !== '') return { number: match[1], title }
  }
  const word = wordForm.exec(shown)
  return { number: word?.[1] ?? '', title: shown }
}

/** People put a tick behind the heading of a finished group; it is no part of its name. */
export function withoutDoneMark(heading: string): string {
  let shown = heading.trim()
  for (;;) {
    const shorter = shown.replace(/(?:✓|✔\uFE0F?|✅|\[x\]|\(done\))$/i, '').trimEnd()
    if (shorter === shown || shorter === '') return shown
    shown = shorter
  }
}

const humanTag =
  /^[*_`]*(?:\[(?:HUMAN|human|Human|MANUAL|manual|Manual|DEV|USER)\]|\((?:HUMAN|human|Human|MANUAL|manual|Manual)\))[*_`:]*(?=\s|$)/
/** In any case: nobody remembers which of them goes to which end. */
const humanEnd = /(?:\[confirm\]|\[input:[^\][]*\]|\[(?:human|manual)\]|\((?:human|manual)\))[*_`.]*$/i
const taskId =
  /^(?:\*\*|__|`)?(?:Task[ \t]+)?(\d+(?:\.\d+)+[A-Za-z]?(?=[\s.:)*_`]|$)|\d+(?=[.:)](?:\s|$|\*|`))|[A-Z]{1,4}-?\d+(?:\.\d+)*[a-z]?(?=[.:)])|T\d{3,}(?=\s))[.:)]?(?:\*\*|__|`)?[.:)]?(?=\s|$|\S)/

/** Splits `1.2 text`; a tag in front of the id stays with the text. `id` is '' when the line has none. */
export function readTaskName(description: string): { id: string; text: string } {
  const tag = humanTag.exec(description)?.[0] ?? ''
  const strike = tag === '' && description.startsWith('~~') ? '~~' : ''
  const rest = description.slice(tag.length + strike.length).trimStart()
  const match = taskId.exec(rest)
  const after = match === null ? '' : rest.slice(match[0].length).trim()
  if (match?.[1] === undefined || after === '') return { id: match?.[1] ?? '', text: description }
  const lead = tag === '' ? strike : `${tag} `
  // `**1.2 Title** more`: the stars in front went with the id, so the text gets them back.
  const opening = /^(\*\*|__|`)/.exec(rest)?.[1] ?? ''
  const isClosed = opening === '' || match[0].slice(opening.length).includes(opening)
  return { id: match[1], text: lead + (isClosed ? after : opening + after) }
}

export function readState(mark: string, description: string, hidden: boolean): TaskState {
  if (isDoneMark(mark)) return 'done'
  if (hidden || description === '') return 'phantom'
  const { text } = readTaskName(description)
  if (mark === '?' || humanTag.test(text) || humanEnd.test(text)) return 'human'
  if (mark === '-' || mark === '>' || text.startsWith('~~')) return 'deferred'
  return 'open'
}

/** Equal for two spellings of the same words: what a task is recognised by between two reads. */
export function normalised(text: string): string {
  return text.normalize('NFC').replaceAll(/[`*_]/g, '').replaceAll(/\s+/g, ' ').trim().toLowerCase()
}
