// The tests that a story has taken away: a gate that passes without them says less than it did.
import { checksIn, isTest } from './resolution.ts'

export interface TestFile {
  readonly path: string
  /** Undefined where there is no such file. */
  readonly before: string | undefined
  readonly now: string | undefined
}

/** Deleted or emptied, where less than half of what they checked is checked in another test since: one that moved is not lost. */
export function lostTests(files: readonly TestFile[]): readonly string[] {
  const counted = files.map(({ path, before, now }) => ({
    path,
    before: weightOf(path, before),
    now: weightOf(path, now),
  }))
  const lost = counted.filter(({ before, now }) => before > 0 && now === 0)
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)
  const brought = sum(counted.map(({ before, now }) => Math.max(0, now - before)))
  return brought * 2 < sum(lost.map(({ before }) => before)) ? lost.map(({ path }) => path) : []
}

/** A helper or a sample beside the tests checks nothing; what is named as a test does, in whatever language. */
function weightOf(path: string, text: string | undefined): number {
  if (text === undefined || text.trim() === '' || isProse.test(path)) return 0
  const name = path.slice(path.lastIndexOf('/') + 1)
  return Math.max(checksIn(text), isTest(name) ? 1 : 0)
}

/** Of a program only its code checks anything; `spec/` may hold documents. */
const isProse = /\.(?:mdx?|txt|rst|adoc|json|ya?ml|snap|html?|css|svg|csv|xml)$/i

/** What a plan names as to be removed is not lost. */
export function withoutNamed(paths: readonly string[], plan: readonly string[]): readonly string[] {
  const told = plan.filter((text) => /\b(?:remov|delet|drop|retire|replac|get rid)/i.test(text)).join('\n')
  return paths.filter((path) => !told.includes(path.slice(path.lastIndexOf('/') + 1)))
}
